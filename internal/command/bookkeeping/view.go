package bookkeeping

import (
	"cmp"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/screen"
)

// This file contains the JSON views of billing's types.

func viewAccount(a *billing.Account) screen.Object {
	fee, change := "", ""
	if a.Payer.Fee > 0 {
		fee = percent(a.Payer.Fee)
	}
	if a.Copying { // not every copy has the change yet
		change = "unfinished; update the account again"
	}
	var bounced screen.Object // the address that a mail server rejected permanently
	if b := a.Bounced; b.Email != "" {
		bounced = screen.Object{"email", b.Email, "code", b.Code, "at", b.At}
	}
	return screen.Object{"account", a.ID, "email", a.Email, "name?", a.Name, "bounced?", bounced, "time_zone", cmp.Or(a.TimeZone, "UTC"),
		"locale?", a.Locale,
		"payment_method?", a.Method, // for subscriptions without their own payment method
		"payment_method_given_at?", a.Given, "fallback_payment_method?", a.Fallback,
		"customer?", a.Payer.Customer, // the processor's customer ID
		"connected_account?", a.Payer.At, // omitted for the platform's own account
		"application_fee?", fee, // the platform's share of each charge, such as 2.50%
		"created_at", a.Created, "change?", change}
}

func viewSubscription(s *billing.Subscription) screen.Object {
	return screen.Object{"account", s.Account, "subscription", s.ID, "sku", s.SKU, "email", s.Email, "status", s.Status,
		"amount", s.Amount.Decimal(), "currency", s.Amount.Currency().Code(), "pending?", viewPending(s.Pending),
		"payment_day", s.PaymentDay, "interval", s.Interval.String(), "payment_method", s.Method, "collection?", collectionOf(s), "address?", s.Address,
		"time_zone", cmp.Or(s.TimeZone, "UTC"), "reminder_days", s.ReminderDays,
		"trial_ends?", s.TrialEnds, "period", s.Period, "due_date?", dueOf(s), // the next period to be paid
		"next_payment_date?", s.NextPayment, // when the payment job looks at it again
		"next_reminder_date?", s.NextReminder, "paid_periods", s.Paid, "installments?", s.Installments,
		"cancel_at_period_end?", s.CancelAtEnd, "requested?", s.Requested, "manual?", viewManual(s.Manual),
		"collects?", collects(s),
		"parked?", s.Parked, // why the subscription waits for a user
		"paused_on?", s.PausedOn, "last_charge?", s.LastCharge, "created_at", s.Created, "open?", viewOpen(s.Open)}
}

// collectionOf returns the collection for the next period to be opened, or "" if it is automatic.
func collectionOf(s *billing.Subscription) billing.Collection {
	if s.Collection == billing.Automatic {
		return ""
	}
	return s.Collection
}

// methodOf describes how the customer pays for the subscription, for human readers. usual is the
// text for a subscription without its own payment method.
func methodOf(s *billing.Subscription, usual string) string {
	if s.Collection == billing.ByWire {
		return "by wire (collection manual)"
	}
	return cmp.Or(s.Method, usual)
}

// collects returns the past period that is open or that will be collected next, or nil if there is
// none.
func collects(s *billing.Subscription) *int {
	if period := s.AtHand(); period < s.Period {
		return &period
	}
	return nil
}

// viewPending returns the plan change that is not in effect yet.
func viewPending(p *billing.Plan) screen.Object {
	if p == nil {
		return nil
	}
	return screen.Object{"sku", p.SKU, "amount", p.Amount.Decimal(), "from", p.From}
}

// pendingText returns the pending plan change as text for human readers.
func pendingText(s *billing.Subscription) string {
	if s.Pending == nil {
		return ""
	}
	return s.Pending.SKU + " for " + s.Pending.Amount.Format() + " from " + screen.Date(s.Pending.From)
}

// viewManual returns the manual payment that is recorded once the open period's intent is canceled.
func viewManual(m *billing.ManualRequest) screen.Object {
	if m == nil {
		return nil
	}
	return screen.Object{"period", m.Period, "amount", m.Amount.Decimal(), "currency", m.Amount.Currency().Code(), "note?", m.Note,
		"processed_at", m.Processed}
}

func viewOpen(o *billing.OpenPeriod) screen.Object {
	if o == nil {
		return nil
	}
	return screen.Object{"period", o.Period, "due_date", o.Due, "amount", o.Amount.Decimal(),
		"currency", o.Amount.Currency().Code(), "payment_method", o.Method, "intent", o.Ref, "attempt", o.Attempt,
		"by_fallback?", o.ByFallback(), // the period uses the account's fallback method
		"state?", o.State, "pay_by?", o.PayBy, "retry_date?", o.Retry, "opened_at", o.Opened, "declined", viewAttempts(o.Attempts)}
}

func viewAttempts(attempts []billing.Attempt) []screen.Object {
	return screen.Views(attempts, func(a billing.Attempt) screen.Object {
		return screen.Object{"attempt", a.Number, "code", a.Code, "payment_method", a.Method, "at", a.At}
	})
}

// dueOf returns the due date of the next period to be paid, or the zero date if no period will be
// paid.
func dueOf(s *billing.Subscription) civil.Date {
	if s.NextOpen() == nil && s.Status != billing.Active && s.Status != billing.ParkedState {
		return civil.Date{}
	}
	due, err := s.Due()
	if err != nil {
		return civil.Date{}
	}
	return due
}

// viewReceipt returns the receipt's JSON members. It is also a row of export receipts; see
// receiptColumns.
func viewReceipt(r *billing.Receipt) screen.Object {
	return screen.Object{"account", r.Account, "subscription", r.ID, "sku", r.SKU, "period?", periodOf(r), "due_date", r.Due,
		"processed_at", r.Processed, "amount", r.Amount.Decimal(), "currency", r.Amount.Currency().Code(),
		"charge", r.Charge, "kind", r.Kind}
}

// periodOf returns the receipt's period. It returns nil for an imported receipt, whose period is
// not known.
func periodOf(r *billing.Receipt) *int {
	if r.Kind == billing.Imported {
		return nil
	}
	return &r.Period
}

// viewFullReceipt returns the receipt with its email address and its expiry time.
func viewFullReceipt(r *billing.Receipt) screen.Object {
	return append(viewReceipt(r), "email", r.Email, "expires_at?", r.Expires)
}

// viewReversal returns the JSON members of a refund or dispute. It is also a row of export refunds.
func viewReversal(r *billing.ReversalRecord) screen.Object {
	return screen.Object{"account", r.Account, "subscription", r.ID, "sku", r.SKU, "period", r.Period, "kind", r.Kind,
		"id", r.ReversalID, "created_at", r.Created, "amount", r.Amount.Decimal(),
		"currency", r.Amount.Currency().Code(), "state", r.State, "reason?", r.Reason, "refusal?", r.Refusal,
		"charge", r.Charge, "refund?", r.Ref, // the processor's ID
		"processed_at?", r.Processed, // when the processor handled it
		"ended_at?", r.Ended}
}

func viewPeriod(p *billing.EndedPeriod) screen.Object {
	return screen.Object{"period", p.Period, "ending", p.Ending, "due_date", p.Due, "ended_at", p.Ended, "reason", p.Reason,
		"amount", p.Amount.Decimal(), "currency", p.Amount.Currency().Code(), "intent?", p.Ref,
		"declined", viewAttempts(p.Attempts)}
}

// ViewResult returns the result for one period in a run. In a dry run, the period has no outcome
// yet.
func ViewResult(r engine.Result) screen.Object {
	return screen.Object{"account", r.Account, "subscription", r.ID, "sku", r.SKU, "period", r.Period, "due_date", r.Due,
		"amount", r.Amount.Decimal(), "currency", r.Amount.Currency().Code(), "outcome?", r.Outcome, "reason?", r.Reason}
}

// shownDues is the number of upcoming due dates that are shown for a changed subscription.
const shownDues = 3

// sayChanged prints how a command changed a subscription. viewChanged returns the same as JSON
// members. old is the subscription before the change. It is nil if the subscription is new or if
// its plan did not change.
func (p *program) sayChanged(old, s *billing.Subscription, what string) {
	p.Say("subscription %s %s", s.Name, what)
	if old != nil {
		all := changesOf(old, s)
		for i, d := range all {
			switch d.Name {
			case "amount":
				all[i].Before, all[i].After = old.Amount, s.Amount
			case "pending":
				all[i].Before, all[i].After = pendingText(old), pendingText(s)
			case "collection":
				all[i].Before, all[i].After = cmp.Or(old.Collection, billing.Automatic), cmp.Or(s.Collection, billing.Automatic)
			}
		}
		p.SayDifferences(all)
		p.sayReplaced(s.Replaced(old.Pending), "")
	}
	for i, d := range s.Upcoming(shownDues) {
		p.Say("  %s %s: %s for %s", [...]string{"next due on", "then on", "then on"}[i], d.Due, d.Amount.Format(), d.SKU)
	}
}

func viewChanged(old, s *billing.Subscription) screen.Object {
	changed := screen.Object{}
	if old != nil {
		for _, d := range changesOf(old, s) {
			changed = append(changed, d.Name, screen.Object{"before", d.Before, "after", d.After})
		}
	}
	v := append(viewSubscription(s), "changed", changed, "next_due", screen.Views(s.Upcoming(shownDues), func(u billing.Upcoming) screen.Object {
		return screen.Object{"period", u.Period, "due_date", u.Due, "sku", u.SKU, "amount", u.Amount.Decimal(),
			"currency", u.Amount.Currency().Code()}
	}))
	if old != nil {
		v = append(v, "replaces?", viewPending(s.Replaced(old.Pending)))
	}
	return v
}

// sayReplaced prints the pending plan that a plan change replaces, or would replace. It prints
// nothing if was is nil.
func (p *program) sayReplaced(was *billing.Plan, of string) {
	if was != nil {
		p.Say("  replaces: sku %s %s from %s%s", was.SKU, was.Amount.Decimal(), was.From, of)
	}
}

// changesOf returns the differences between the views, except for the open period, which is not a
// property of the subscription itself.
func changesOf(old, s *billing.Subscription) []screen.Difference {
	return slices.DeleteFunc(screen.Differences(viewSubscription(old), viewSubscription(s)),
		func(d screen.Difference) bool { return d.Name == "open" })
}
