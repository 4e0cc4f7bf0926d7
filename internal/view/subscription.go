package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/planchange"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// Subscription returns the subscription.
func Subscription(s *billing.Subscription) Object {
	return Object{"id", s.ID, "account", s.Account, "version", s.Version, "sku", s.SKU, "email?", s.Email, "status", s.Status,
		"amount", s.Amount, "currency", s.Amount.Currency().Code(), "quantity?", s.Terms.Quantity,
		"discount?", Discount(s.Terms.Discount), "tax?", SubscriptionTax(s.Terms.Tax), "pending?", Pending(s.Pending), "upgrade?", Upgrade(s),
		"takeover?", Origin(s),
		"payment_day", s.PaymentDay, "interval", s.Interval.String(), "payment_method?", s.Method, "collection?", CollectionOf(s), "address?", s.Address,
		"time_zone", cmp.Or(s.TimeZone, "UTC"), "reminder_days", s.ReminderDays,
		"trial_ends?", s.TrialEnds, "period", s.Period, "due_date?", DueOf(s), // the next period to be paid
		"next_payment_date?", s.NextPayment, // when the payment job looks at it again
		"next_reminder_date?", s.NextReminder, "paid_periods", s.Paid, "installments?", s.Installments,
		"cancel_at_period_end?", s.CancelAtEnd, "ends_on?", endOf(s), "requested?", s.Requested, "manual?", manual(s.Manual),
		"collects?", Collects(s),
		"detail?", s.Parked, // why the subscription waits for a user
		"paused_on?", s.PausedOn, "last_charge?", s.LastCharge, "created_at", s.Created, "open?", Open(s.Open)}
}

// CollectionOf returns the collection for the next period to be opened, or "" if it is automatic.
func CollectionOf(s *billing.Subscription) billing.Collection {
	if s.Collection == billing.Automatic {
		return ""
	}
	return s.Collection
}

// Collects returns the past period that is open or that will be collected next, or nil if there is
// none.
func Collects(s *billing.Subscription) *int {
	if period := s.AtHand(); period < s.Period {
		return &period
	}
	return nil
}

// DueOf returns the due date of the next period to be paid, or the zero date if no period will be
// paid.
func DueOf(s *billing.Subscription) civil.Date {
	if s.NextOpen() == nil && s.Status != billing.Active && s.Status != billing.ParkedState {
		return civil.Date{}
	}
	due, err := s.Due()
	if err != nil {
		return civil.Date{}
	}
	return due
}

// endOf returns the day on which the subscription ends with its paid period, or the zero date if a period is charged before.
func endOf(s *billing.Subscription) civil.Date {
	if !s.AtEnd() {
		return civil.Date{}
	}
	return DueOf(s)
}

// Pending returns the plan change that is not in effect yet, or nil.
func Pending(p *billing.Plan) Object {
	if p == nil {
		return nil
	}
	return Object{"sku", p.SKU, "amount", p.Amount, "currency", p.Amount.Currency().Code(), "quantity?", p.Quantity, "from", p.From}
}

// Upgrade returns the subscription's last upgrade, or nil.
func Upgrade(s *billing.Subscription) Object {
	u := s.Upgrade
	if u == nil {
		return nil
	}
	return Object{"state", upgrade.StateOf(s), "period", u.Period, "sku", u.SKU, "amount", u.Amount,
		"currency", u.Amount.Currency().Code(), "date", u.Day, "detail?", strings.TrimPrefix(u.Reason, billing.UpgradePaid)}
}

// Offer returns what an upgrade does if its charge succeeds.
func Offer(f *upgrade.Offer) Object {
	return Object{"period", f.Period, "sku", f.SKU, "amount", f.Amount, "currency", f.Amount.Currency().Code(), "due_date", f.Day,
		"due_before", f.DueBefore, "days_given_away", f.Days, "next_due_date", f.Next, "replaces?", Pending(f.Replaces)}
}

// Upgraded returns the subscription after an upgrade, and how the upgrade went. The offer is absent if the
// request's key was known.
func Upgraded(old *billing.Subscription, a engine.Upgraded) Object {
	v := Changed(old, a.Subscription)
	if !a.Repeated {
		v = append(v, "offer", Offer(&a.Offer))
	}
	return append(v, "results", List(a.Results, Result), "repeated?", a.Repeated)
}

// manual returns the manual payment that is recorded once the open period's intent is canceled.
func manual(m *billing.ManualRequest) Object {
	if m == nil {
		return nil
	}
	return Object{"period", m.Period, "amount", m.Amount, "currency", m.Amount.Currency().Code(), "note?", m.Note,
		"processed_at", m.Processed}
}

// ShownDues is the number of upcoming due dates that are shown for a changed subscription.
const ShownDues = 3

// Changed returns the subscription, how it differs from old, and its next due dates. old is the
// subscription before the change. It is nil if the subscription is new or if its plan did not change.
func Changed(old, s *billing.Subscription) Object {
	changed := Object{}
	if old != nil {
		for _, d := range Changes(old, s) {
			var pair Object
			if d.Before != nil {
				pair = append(pair, "before", d.Before)
			}
			if d.After != nil {
				pair = append(pair, "after", d.After)
			}
			changed = append(changed, d.Name, pair)
		}
	}
	v := append(Subscription(s), "changed", changed, "next_due", List(s.Upcoming(ShownDues), Upcoming))
	if old != nil {
		v = append(v, "replaces?", Pending(s.Replaced(old.Pending)))
	}
	return v
}

// Changes returns the differences between the two subscriptions, except for the open period, which is
// not a property of the subscription itself.
func Changes(old, s *billing.Subscription) []Difference {
	return slices.DeleteFunc(Differences(Subscription(old), Subscription(s)),
		func(d Difference) bool { return d.Name == "open" })
}

// Upcoming returns a period that is not due yet.
func Upcoming(u billing.Upcoming) Object {
	return Object{"period", u.Period, "due_date", u.Due, "sku", u.SKU, "amount", u.Amount,
		"currency", u.Amount.Currency().Code()}
}

// Moved returns the due date of a period before and after a change of the payment day.
func Moved(before, after civil.Date) Object {
	return Object{"due_before", before, "due_after", after, "days_later", after.DaysSince(before)}
}

// WrittenOff returns the periods that a cancellation wrote off, with their sum.
func WrittenOff(list []*billing.EndedPeriod, sum money.Amount) Object {
	return Object{"written_off", List(list, Period), "written_off_sum", sum}
}

// PlanChange returns the change of one plan. It is the sum over all subscriptions that have the plan.
func PlanChange(g *planchange.Sum) Object {
	return Object{"currency", g.Before.Currency().Code(), "amount_before", g.Before, "amount", g.After,
		"subscriptions", g.Count, "month_before", g.MonthBefore, "month", g.MonthAfter, "mail", g.Mail}
}

// Charged returns the result of charging one period, and the subscription after it.
func Charged(a engine.PeriodCharged, installation string) Object {
	number := ""
	if a.Receipt != nil {
		number = a.Receipt.Number(installation)
	}
	return Object{"results", List(a.Results, Result), "paid_before?", a.Paid, "repeated?", a.Repeated, "receipt?", number,
		"subscription", Subscription(a.Subscription)}
}
