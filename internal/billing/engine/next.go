package engine

import (
	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

// This file decides the next action for one subscription in the charge protocol. The decision is
// pure and total. Its rows are the rows of the tables in docs/internals/charging.md, in the same
// order, and the first matching row decides. execute.go carries out the actions.

// A trigger is the reason why Duesday handles a subscription.
type trigger uint8

const (
	byRun     trigger = iota // the daily payment job, or a person's request to run it
	byPerson                 // a person charges a parked period
	byRequest                // a person's request ends the open period
	byEvent                  // the processor has sent an event about the bound intent
)

// finishes reports whether the trigger only ends an open period. Such a trigger opens and confirms
// nothing.
func (t trigger) finishes() bool { return t == byRequest || t == byEvent }

// An answer identifies the request that the processor has answered in this step.
type answer uint8

const (
	unasked   answer = iota
	lookedUp         // Lookup
	confirmed        // Confirm of the period's attempt
	canceling        // Cancel
	paged            // Confirm again, to create a page
)

// An origin tells whether the processor's subscription, from which Duesday takes over, has ended.
type origin uint8

const (
	originNone    origin = iota // the subscription is not held
	originUnasked               // it is held
	originEnded                 // theirs has ended, and did not renew, or a person decides that ours begins
	originRenewed               // theirs has charged the period
	originWaits                 // theirs has not ended yet, or it is not known
	originGone                  // theirs was canceled, perhaps by its customer
)

// A methodCheck reports whether the account has received a payment method since the period was
// opened.
type methodCheck uint8

const (
	methodUnread methodCheck = iota
	methodSame
	methodNew
)

// A situation contains the inputs of the decision.
type situation struct {
	trigger trigger
	status  billing.Status
	open    bool // a period is open
	byWire  bool // the customer pays the open period by wire, or the next one if none is open

	// With no period open.
	upgrade     bool // an upgrade of the next period is marked; also set with it open
	withdrawn   bool // the upgrade must not be opened any more, or not be tried for the first time if it is open
	unfinished  bool // a cancellation or skip has started and must record more overdue periods
	marked      bool // a past period is marked for collection
	due         bool // the next period is due
	paidOff     bool // all installments are paid
	cancelAtEnd bool
	charged     bool // this call has charged a period of the subscription
	overload    bool // more periods are due than one run can catch up on
	untaxed     bool // the tax setting is on, and the subscription has no rate
	taxed       bool // the period was parked for the missing rate, and no longer misses it
	altered     bool // another tool has moved the row past the period's day; also set with a period open
	origin      origin

	// With a period open: the item's state.
	past       bool // the open period is a past one, which Duesday collects, or an upgrade
	late       bool // the past period also has a due successor, or has one attempt before a cancellation
	requested  bool // a person has requested the period's end
	failing    bool // the last attempt was permanently declined
	retryAhead bool // the retry day is in the future
	bound      bool // this worker has just bound the intent, so no one can have confirmed it
	waiting    bool // the item awaits the customer's authentication
	asked      bool // the customer was asked to authenticate, and the deadline is running
	overdue    bool // the deadline has passed
	retryLeft  bool // the retry schedule has a day after today

	// With a period open: the processor's answer.
	answer    answer
	state     processor.State
	matches   bool // the intent has the bound amount and period
	ran       bool // the intent shows the period's current attempt
	attempted bool // the intent shows an attempt
	overtaken bool // the shown attempt may precede the period's current attempt
	noPage    bool // the customer has no authentication page
	hard      bool // the decline is definite
	fallback  bool // the account has a fallback method for the period; known if method is known
	method    methodCheck
}

// ending reports whether the open period must end unpaid once the processor has cancelled its
// intent.
func (x *situation) ending() bool { return x.requested || x.failing }

// parked reports whether a person must decide before Duesday moves money.
func (x *situation) parked() bool {
	return x.status == billing.ParkedState && x.trigger != byPerson && !x.past
}

// An action is the next step for a subscription.
type action uint8

const (
	doNothing action = iota

	// Actions with no period open. A run finishes with the subscription after each of them, except
	// doOpen.
	doReportParked // report the wait for a person; also with a period open
	doRealign      // move the row to its due date
	doLapse        // cancel the subscription after its last period, or record more overdue periods as void or skipped
	doParkOverload // park, because too many periods are due at once
	doParkAltered  // park, because another tool may have taken the payment; also with a period open
	doParkUntaxed  // park, because the subscription has no tax rate
	doUnpark       // make a parked subscription active, because its tax rate is there
	doOpen         // OPEN and BIND
	doAskOrigin    // look up the processor's subscription, then decide again
	doVoidRenewed  // record the period as void, because the processor's subscription has charged it
	doAwaitOrigin  // report the wait for the end of the processor's subscription
	doParkOrigin   // park, because the processor's subscription ended early
	doAskToPay     // open the period without an intent, and ask the customer to pay
	doReopen       // check that the past period's last intent is cancelled, then OPEN and BIND

	// Requests to the processor, and one read. next then decides again with the answer.
	doLookUp
	doConfirm
	doCancel
	doMakePage
	doReadMethod

	// Commits.
	doRetryOvertaken   // repeat the attempt under the next number
	doParkMismatch     // park, because the intent is not the bound one
	doSettle           // SETTLE
	doEnd              // end the period as failed, void or skipped
	doRebind           // retire the intent, then OPEN and BIND the next generation
	doUseMethod        // make the next attempt at once with the account's new method
	doFail             // mark the period as failing, because the customer has not authenticated
	doAwaitProcessor   // record that the processor is still processing
	doAskCustomer      // record the wait, and ask the customer to authenticate
	doDecline          // record the decline, and wait for the retry day
	doDeclineLast      // record the decline, and mark the period as failing
	doDeclineParked    // record the decline, and leave the period to the person's decision
	doDeclineUseMethod // record the decline, then do the same as doUseMethod
	doDeclineFallback  // record the decline, and make the next attempt at once with the account's fallback
	doReportAwaited    // report the wait for the customer
	doReportCanceling  // report the intent as not yet cancelled
	doReportUntried    // report the attempt as not yet run
	doEndUnpaid        // end a period by wire as failed, because the customer has not paid in time
	doAwaitPayment     // move the row of a period by wire to the day on which it ends
	doReportMismatch   // report that a past period's intent is not the bound one and is paid

	// Actions with an upgrade marked, and no period open.
	doOpenUpgrade // OPEN and BIND the next period with the new plan, before its due date
	doDropUpgrade // remove the mark
)

// next returns the next action.
func next(x situation) action {
	switch {
	case !x.open:
		return nextClosed(x)
	case x.byWire:
		return nextByWire(x)
	case x.answer == unasked:
		return nextUnasked(x)
	}
	return nextAnswered(x)
}

// nextClosed decides when no period is open. The dry run also uses it.
func nextClosed(x situation) action {
	switch {
	case x.unfinished:
		return doLapse
	case x.trigger.finishes():
		return doNothing
	case x.marked: // even if the next period must then be parked
		return doReopen
	case x.upgrade && x.withdrawn:
		return doDropUpgrade
	case x.upgrade:
		return doOpenUpgrade
	case x.parked() && x.taxed:
		return doUnpark
	case x.parked() && x.trigger == byRun && x.due && !x.paidOff && !x.cancelAtEnd && (x.origin == originUnasked || x.origin == originRenewed):
		return nextHeld(x) // theirs may have charged the period meanwhile
	case x.parked():
		return doReportParked
	case x.paidOff, x.status != billing.Active && x.status != billing.ParkedState:
		return doNothing
	case !x.due:
		return doRealign
	case x.cancelAtEnd:
		return doLapse
	case x.trigger == byPerson && (x.charged || x.byWire):
		return doNothing // a person charges one period at a time, and no period paid by wire
	case x.origin > originEnded, x.origin == originUnasked:
		return nextHeld(x)
	case x.trigger == byRun && x.altered:
		return doParkAltered
	case x.trigger == byRun && x.overload:
		return doParkOverload
	case x.untaxed:
		return doParkUntaxed
	case x.byWire:
		return doAskToPay
	}
	return doOpen
}

// nextHeld decides about the first due period of a subscription that the processor ran before.
func nextHeld(x situation) action {
	switch x.origin {
	case originUnasked:
		return doAskOrigin
	case originRenewed:
		return doVoidRenewed
	case originGone:
		return doParkOrigin
	}
	return doAwaitOrigin
}

// nextByWire decides about an open period that the customer was asked to pay by wire. The period
// has no intent.
func nextByWire(x situation) action {
	switch {
	case x.altered && x.trigger == byRun && !x.requested:
		return doParkAltered
	case x.requested:
		return doEnd
	case x.parked():
		return doReportParked
	case x.trigger != byRun:
		return doNothing
	case x.overdue:
		return doEndUnpaid
	}
	return doAwaitPayment
}

// nextUnasked decides before the processor has answered about the bound intent.
func nextUnasked(x situation) action {
	switch {
	case x.altered && !x.ending() && (x.trigger == byRun && !x.past || x.upgrade):
		return doLookUp // the intent may have been paid
	case x.retryAhead && !x.requested && !x.parked() && (x.trigger == byRun || x.trigger == byRequest):
		return doNothing // the walk has found a stale row
	case x.bound && !(x.upgrade && (x.withdrawn || x.late)):
		return doConfirm
	}
	return doLookUp
}

// nextAnswered decides from the processor's answer about the bound intent.
func nextAnswered(x situation) action {
	switch {
	case x.trigger == byEvent && x.retryAhead && x.state != processor.Succeeded:
		return doNothing // the decline is recorded
	case x.state == processor.Succeeded && x.matches:
		return doSettle
	case x.altered && x.trigger == byRun && !x.ending() && !x.past:
		return doParkAltered
	case x.altered && x.upgrade && !x.ending():
		return doFail // the other tool may have taken the payment
	case x.answer == lookedUp && x.overtaken && !x.failing:
		return doRetryOvertaken
	case !x.matches && (x.state == processor.Succeeded || !x.ending()):
		return x.mismatch() // any intent may be cancelled
	case x.ending():
		return nextEnding(x)
	case x.upgrade && x.mayConfirm() && (x.late || x.withdrawn && !x.attempted):
		return doFail // it would not be charged on its day
	case x.mayConfirm():
		return x.withMethod(doConfirm, doUseMethod)
	case x.mayMakePage():
		return doMakePage
	case x.parked():
		return doReportParked
	}
	return nextUnpaid(x)
}

// nextEnding decides about an ending period. The period ends when the processor has shown its
// intent cancelled, because no one can pay the intent then.
func nextEnding(x situation) action {
	switch {
	case x.state == processor.Canceled:
		return doEnd
	case x.answer != canceling:
		return doCancel
	}
	return doReportCanceling
}

// nextUnpaid decides about an unsuccessful intent of a period that may continue.
func nextUnpaid(x situation) action {
	switch {
	case x.state == processor.Canceled && x.trigger.finishes():
		return doNothing // the request was withdrawn; the payment job continues from here
	case x.state == processor.Canceled && x.past:
		return doEnd // a person must request another attempt
	case x.state == processor.Canceled:
		return doRebind // Duesday has not requested the cancellation
	case x.state == processor.Processing:
		return doAwaitProcessor
	case x.attempted && x.overdue, x.late && x.state == processor.RequiresAction:
		return doFail
	case x.state == processor.RequiresAction && x.asked:
		return doReportAwaited
	case x.state == processor.RequiresAction:
		return x.withMethod(doAskCustomer, doUseMethod)
	case x.state == processor.Declined && x.ran:
		return nextDeclined(x)
	}
	return doReportUntried
}

// nextDeclined decides about a decline that is not recorded yet.
func nextDeclined(x situation) action {
	switch {
	case x.method != methodSame:
		return x.withMethod(doNothing, doDeclineUseMethod)
	case x.status == billing.ParkedState && !x.past:
		return doDeclineParked
	case (x.hard || !x.retryLeft || x.past) && x.fallback:
		return doDeclineFallback
	case x.hard, !x.retryLeft, x.past:
		return doDeclineLast
	}
	return doDecline
}

// mayConfirm reports whether a worker must make the current attempt, because the intent neither
// shows the attempt nor waits for the customer.
func (x *situation) mayConfirm() bool {
	return x.answer == lookedUp && !x.ran && (!x.waiting || x.state == processor.Opened) &&
		!x.parked() && !x.trigger.finishes()
}

// mayMakePage reports whether to create an authentication page for a customer who has none.
func (x *situation) mayMakePage() bool {
	return x.state == processor.RequiresAction && x.noPage && x.answer != paged && !x.overdue &&
		!x.late && (x.status != billing.ParkedState || x.past) && !x.trigger.finishes()
}

// mismatch returns the action for an intent that is not the bound one. It does not park a past
// period, because that would park the next period.
func (x *situation) mismatch() action {
	switch {
	case !x.past:
		return doParkMismatch
	case x.state == processor.Succeeded:
		return doReportMismatch
	}
	return doFail
}

// withMethod returns changed if the account has a new method, and same if it does not. If the
// method has not been read yet, withMethod returns the read.
func (x *situation) withMethod(same, changed action) action {
	switch x.method {
	case methodSame:
		return same
	case methodNew:
		return changed
	}
	return doReadMethod
}
