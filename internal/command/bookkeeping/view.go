package bookkeeping

import (
	"cmp"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/screen"
)

// The JSON forms of billing's nouns.

func viewAccount(a *billing.Account) screen.Object {
	fee, change := "", ""
	if a.Payer.Fee > 0 {
		fee = percent(a.Payer.Fee)
	}
	if a.Copying { // the change is not in every copy yet
		change = "unfinished; update the account again"
	}
	var bounced screen.Object // the address that a mail server refused for good
	if b := a.Bounced; b.Email != "" {
		bounced = screen.Object{"email", b.Email, "code", b.Code, "at", b.At}
	}
	return screen.Object{"account", a.ID, "email", a.Email, "name?", a.Name, "bounced?", bounced, "time_zone", cmp.Or(a.TimeZone, "UTC"),
		"locale?", a.Locale,
		"payment_method?", a.Method, // of subscriptions without one of their own
		"payment_method_given_at?", a.Given, "fallback_payment_method?", a.Fallback,
		"customer?", a.Payer.Customer, // at the processor
		"connected_account?", a.Payer.At, // none: our own
		"application_fee?", fee, // its share for us: 2.50%
		"created_at", a.Created, "change?", change}
}

func viewSubscription(s *billing.Subscription) screen.Object {
	return screen.Object{"account", s.Account, "subscription", s.ID, "sku", s.SKU, "email", s.Email, "status", s.Status,
		"amount", s.Amount.Decimal(), "currency", s.Amount.Currency().Code(), "pending?", viewPending(s.Pending),
		"payment_day", s.PaymentDay, "interval", s.Interval.String(), "payment_method", s.Method, "collection?", collectionOf(s), "address?", s.Address,
		"time_zone", cmp.Or(s.TimeZone, "UTC"), "reminder_days", s.ReminderDays,
		"trial_ends?", s.TrialEnds, "period", s.Period, "due_date?", dueOf(s), // of the period to be paid next
		"next_payment_date?", s.NextPayment, // the payment job looks at it again
		"next_reminder_date?", s.NextReminder, "paid_periods", s.Paid, "installments?", s.Installments,
		"cancel_at_period_end?", s.CancelAtEnd, "requested?", s.Requested, "manual?", viewManual(s.Manual),
		"collects?", collects(s),
		"parked?", s.Parked, // why it waits for a person
		"paused_on?", s.PausedOn, "last_charge?", s.LastCharge, "created_at", s.Created, "open?", viewOpen(s.Open)}
}

// collectionOf is that of the next period to be opened; "": automatic.
func collectionOf(s *billing.Subscription) billing.Collection {
	if s.Collection == billing.Automatic {
		return ""
	}
	return s.Collection
}

// methodOf is how the subscription is paid, for people.
func methodOf(s *billing.Subscription, usual string) string {
	if s.Collection == billing.ByWire {
		return "by wire (collection manual)"
	}
	return cmp.Or(s.Method, usual)
}

// collects returns the past period that is to be collected, or is open for that; nil: none.
func collects(s *billing.Subscription) *int {
	if period := s.AtHand(); period < s.Period {
		return &period
	}
	return nil
}

// viewPending is the change of the plan that is not in force yet.
func viewPending(p *billing.Plan) screen.Object {
	if p == nil {
		return nil
	}
	return screen.Object{"sku", p.SKU, "amount", p.Amount.Decimal(), "from", p.From}
}

// pendingText is viewPending for people.
func pendingText(s *billing.Subscription) string {
	if s.Pending == nil {
		return ""
	}
	return s.Pending.SKU + " for " + s.Pending.Amount.Format() + " from " + screen.Date(s.Pending.From)
}

// viewManual is the manual payment that waits for the open period's intent to be cancelled.
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
		"by_fallback?", o.ByFallback(), // the method is the account's fallback
		"state?", o.State, "pay_by?", o.PayBy, "retry_date?", o.Retry, "opened_at", o.Opened, "declined", viewAttempts(o.Attempts)}
}

func viewAttempts(attempts []billing.Attempt) []screen.Object {
	return screen.Views(attempts, func(a billing.Attempt) screen.Object {
		return screen.Object{"attempt", a.Number, "code", a.Code, "payment_method", a.Method, "at", a.At}
	})
}

// dueOf returns the due date of the period to be paid next; zero when none will be.
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

// viewReceipt is also a line of export receipts; see receiptColumns.
func viewReceipt(r *billing.Receipt) screen.Object {
	return screen.Object{"account", r.Account, "subscription", r.ID, "sku", r.SKU, "period?", periodOf(r), "due_date", r.Due,
		"processed_at", r.Processed, "amount", r.Amount.Decimal(), "currency", r.Amount.Currency().Code(),
		"charge", r.Charge, "kind", r.Kind}
}

// periodOf returns the period; nil when it is not known, since the receipt came with the data.
func periodOf(r *billing.Receipt) *int {
	if r.Kind == billing.Imported {
		return nil
	}
	return &r.Period
}

// viewFullReceipt says who was told and how long it is kept, too.
func viewFullReceipt(r *billing.Receipt) screen.Object {
	return append(viewReceipt(r), "email", r.Email, "expires_at?", r.Expires)
}

// viewReversal is a refund or a dispute; also a line of export refunds.
func viewReversal(r *billing.ReversalRecord) screen.Object {
	return screen.Object{"account", r.Account, "subscription", r.ID, "sku", r.SKU, "period", r.Period, "kind", r.Kind,
		"id", r.ReversalID, "created_at", r.Created, "amount", r.Amount.Decimal(),
		"currency", r.Amount.Currency().Code(), "state", r.State, "reason?", r.Reason, "refusal?", r.Refusal,
		"charge", r.Charge, "refund?", r.Ref, // the processor's id
		"processed_at?", r.Processed, // by the processor
		"ended_at?", r.Ended}
}

func viewPeriod(p *billing.EndedPeriod) screen.Object {
	return screen.Object{"period", p.Period, "ending", p.Ending, "due_date", p.Due, "ended_at", p.Ended, "reason", p.Reason,
		"amount", p.Amount.Decimal(), "currency", p.Amount.Currency().Code(), "intent?", p.Ref,
		"declined", viewAttempts(p.Attempts)}
}

// ViewResult is the outcome of one period in a run, or in a dry run, which has no outcome yet.
func ViewResult(r engine.Result) screen.Object {
	return screen.Object{"account", r.Account, "subscription", r.ID, "sku", r.SKU, "period", r.Period, "due_date", r.Due,
		"amount", r.Amount.Decimal(), "currency", r.Amount.Currency().Code(), "outcome?", r.Outcome, "reason?", r.Reason}
}

// shownDues is how many due dates a changed subscription is shown with.
const shownDues = 3

// sayChanged prints how a command has changed a subscription, and viewChanged is the same for programs. old
// is the subscription before; nil: a new one, or no plan was changed.
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

// sayReplaced names a pending plan that a change of the plan has dropped, or would drop; nil: none.
func (p *program) sayReplaced(was *billing.Plan, of string) {
	if was != nil {
		p.Say("  replaces: sku %s %s from %s%s", was.SKU, was.Amount.Decimal(), was.From, of)
	}
}

// changesOf leaves out the open period, which is no value of the subscription's own.
func changesOf(old, s *billing.Subscription) []screen.Difference {
	return slices.DeleteFunc(screen.Differences(viewSubscription(old), viewSubscription(s)),
		func(d screen.Difference) bool { return d.Name == "open" })
}
