package engine

import (
	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

// This file is the decision of the charge protocol: the next action about one subscription. It is
// pure and total. Its rows are those of the tables in docs/internals/charging.md, in the same order;
// the first fitting row decides. execute.go carries the actions out.

// A trigger says why a subscription is looked at.
type trigger uint8

const (
	byRun     trigger = iota // the daily payment job, or a person's request for the same
	byPerson                 // a person charges a parked period
	byRequest                // a person's request ends the open period
	byEvent                  // the processor has told of the bound intent
)

// finishes reports whether the trigger only ends an open period: nothing is opened or confirmed.
func (t trigger) finishes() bool { return t == byRequest || t == byEvent }

// An answer says which request the processor has answered in this step.
type answer uint8

const (
	unasked   answer = iota
	lookedUp         // Lookup
	confirmed        // Confirm of the period's attempt
	canceling        // Cancel
	paged            // Confirm once more, for a page
)

// A methodCheck says whether the account has got a payment method since the period was opened.
type methodCheck uint8

const (
	methodUnread methodCheck = iota
	methodSame
	methodNew
)

// A situation has the inputs of the decision.
type situation struct {
	trigger trigger
	status  billing.Status
	open    bool // a period is open
	byWire  bool // the customer is asked to pay the period, and nothing is charged; with none open, the next one

	// With no period open.
	unfinished  bool // its cancellation or skip has begun, and more overdue periods are to be recorded
	marked      bool // a past period is to be collected
	due         bool // the due date of the next period has come
	paidOff     bool // all installments are paid
	cancelAtEnd bool
	charged     bool // this call has charged a period of the subscription
	overload    bool // more periods are due than one run catches up with
	altered     bool // another tool has moved the row past the period's day; with a period open, too

	// With a period open: the item's state.
	past       bool // it is a past one, which is collected
	late       bool // and the due date of the next one has come; or it has one attempt, before a cancellation
	requested  bool // a person has asked for the period's end
	failing    bool // the last attempt was declined for good
	retryAhead bool // the retry day has not come
	bound      bool // this worker has bound the intent a moment ago: it cannot have been confirmed
	waiting    bool // the item awaits the customer's authentication
	asked      bool // the customer was asked to, and the deadline runs
	overdue    bool // the deadline has passed
	retryLeft  bool // the retry schedule has a day after today

	// With a period open: the processor's answer.
	answer    answer
	state     processor.State
	matches   bool // the intent has the bound amount and period
	ran       bool // the intent shows the period's current attempt
	attempted bool // the intent shows an attempt
	overtaken bool // the shown attempt may be one before the period's own
	noPage    bool // the customer has no page to authenticate on
	hard      bool // the decline is definite
	fallback  bool // the account has a second method for the period; known with method
	method    methodCheck
}

// ending reports whether the open period must end unpaid, once its intent is cancelled.
func (x *situation) ending() bool { return x.requested || x.failing }

// parked reports whether a person must decide before money is moved.
func (x *situation) parked() bool {
	return x.status == billing.ParkedState && x.trigger != byPerson && !x.past
}

// An action is the next step.
type action uint8

const (
	doNothing action = iota

	// With no period open. A run's look at the subscription ends with each but doOpen.
	doReportParked // report the wait for a person; with a period open, too
	doRealign      // move the row to its due date
	doLapse        // cancel the subscription after its last period, or record more overdue periods as void or skipped
	doParkOverload // park: too many periods are due at once
	doParkAltered  // park: another tool may have taken the payment; with a period open, too
	doOpen         // OPEN and BIND
	doAskToPay     // open the period without an intent, ask the customer to pay it
	doReopen       // see the past period's last intent cancelled, then OPEN and BIND

	// Requests to the processor, and a read: the situation is looked at again with the answer.
	doLookUp
	doConfirm
	doCancel
	doMakePage
	doReadMethod

	// Commits.
	doRetryOvertaken   // make the attempt again, as the next one
	doParkMismatch     // park: it is not the bound intent
	doSettle           // SETTLE
	doEnd              // end the period failed, void or skipped
	doRebind           // retire the intent, OPEN and BIND the next generation
	doUseMethod        // make the next attempt at once, with the account's new method
	doFail             // mark the period as failing: nobody has authenticated
	doAwaitProcessor   // note the processing
	doAskCustomer      // note the wait, ask the customer to authenticate
	doDecline          // record the decline, wait for the retry day
	doDeclineLast      // record the decline, mark the period as failing
	doDeclineParked    // record the decline, leave the period to the person's decision
	doDeclineUseMethod // record the decline, then as doUseMethod
	doDeclineFallback  // record the decline, make the next attempt at once with the account's fallback
	doReportAwaited    // report the wait for the customer
	doReportCanceling  // report the intent as not yet cancelled
	doReportUntried    // report the attempt as not yet run
	doEndUnpaid        // end a period by wire failed: nobody has paid it in time
	doAwaitPayment     // move the row of a period by wire to the day on which it ends
	doReportMismatch   // report a past period's intent as another one than was bound, and paid
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

// nextClosed decides where no period is open. The dry run decides by it, too.
func nextClosed(x situation) action {
	switch {
	case x.unfinished:
		return doLapse
	case x.trigger.finishes():
		return doNothing
	case x.marked: // also if the next one is to be parked after it
		return doReopen
	case x.parked():
		return doReportParked
	case x.paidOff, x.status != billing.Active && x.status != billing.ParkedState:
		return doNothing
	case !x.due:
		return doRealign
	case x.cancelAtEnd:
		return doLapse
	case x.trigger == byPerson && (x.charged || x.byWire):
		return doNothing // a person charges one period, and none that is paid by wire
	case x.trigger == byRun && x.altered:
		return doParkAltered
	case x.trigger == byRun && x.overload:
		return doParkOverload
	case x.byWire:
		return doAskToPay
	}
	return doOpen
}

// nextByWire decides about an open period that the customer was asked to pay. It has no intent.
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

// nextUnasked decides before the processor's answer about the bound intent.
func nextUnasked(x situation) action {
	switch {
	case x.altered && x.trigger == byRun && !x.ending() && !x.past:
		return doLookUp // it may have been paid
	case x.retryAhead && !x.requested && (x.trigger == byRun || x.trigger == byRequest):
		return doNothing // the walk has met a stale row
	case x.bound:
		return doConfirm
	}
	return doLookUp
}

// nextAnswered decides by the processor's answer about the bound intent.
func nextAnswered(x situation) action {
	switch {
	case x.trigger == byEvent && x.retryAhead && x.state != processor.Succeeded:
		return doNothing // the decline is recorded
	case x.state == processor.Succeeded && x.matches:
		return doSettle
	case x.altered && x.trigger == byRun && !x.ending() && !x.past:
		return doParkAltered
	case x.answer == lookedUp && x.overtaken && !x.failing:
		return doRetryOvertaken
	case !x.matches && (x.state == processor.Succeeded || !x.ending()):
		return x.mismatch() // an intent only to be cancelled may be any
	case x.ending():
		return nextEnding(x)
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
// intent cancelled: then nobody can pay it any more.
func nextEnding(x situation) action {
	switch {
	case x.state == processor.Canceled:
		return doEnd
	case x.answer != canceling:
		return doCancel
	}
	return doReportCanceling
}

// nextUnpaid decides by an unsuccessful intent of a period that may go on.
func nextUnpaid(x situation) action {
	switch {
	case x.state == processor.Canceled && x.trigger.finishes():
		return doNothing // the request was taken back meanwhile; the payment job goes on from here
	case x.state == processor.Canceled && x.past:
		return doEnd // a person asks for another one
	case x.state == processor.Canceled:
		return doRebind // nobody here has asked for it
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

// nextDeclined decides by a decline not yet recorded.
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

// mayConfirm reports whether the current attempt is to be made: the intent does not show it,
// and does not wait for the customer.
func (x *situation) mayConfirm() bool {
	return x.answer == lookedUp && !x.ran && (!x.waiting || x.state == processor.Opened) &&
		!x.parked() && !x.trigger.finishes()
}

// mayMakePage reports whether a page is to be made for a customer without one.
func (x *situation) mayMakePage() bool {
	return x.state == processor.RequiresAction && x.noPage && x.answer != paged && !x.overdue &&
		!x.late && (x.status != billing.ParkedState || x.past) && !x.trigger.finishes()
}

// mismatch returns the action for another intent than was bound. A past period is not parked: that
// would park the next one.
func (x *situation) mismatch() action {
	switch {
	case !x.past:
		return doParkMismatch
	case x.state == processor.Succeeded:
		return doReportMismatch
	}
	return doFail
}

// withMethod returns the action with or without a new method, or the read that decides.
func (x *situation) withMethod(same, changed action) action {
	switch x.method {
	case methodSame:
		return same
	case methodNew:
		return changed
	}
	return doReadMethod
}
