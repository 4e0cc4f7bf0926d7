package importing

import (
	"cmp"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/secret"
)

// A Difference is a field for which an import gives another value than the stored one.
type Difference struct {
	Field         string
	Stored, Given string
	Kept          string // why an import does not change the field; "": it can
}

// String returns the difference for people: "amount 10.00 -> 20.00".
func (d Difference) String() string {
	text := d.Field + " " + d.Stored + " -> " + d.Given
	if d.Kept != "" {
		text += " (not changed: " + d.Kept + ")"
	}
	return text
}

// ofAccount returns the account's differences from the input, of the fields that it gives.
func ofAccount(a *billing.Account, n *billing.NewSubscription, given func(field string) bool) (all []Difference) {
	if n.Email != a.Email {
		all = append(all, Difference{"email", a.Email, n.Email, ""})
	}
	if zone := cmp.Or(a.TimeZone, "UTC"); given("time_zone") && n.TimeZone != zone {
		all = append(all, Difference{"time_zone", zone, n.TimeZone, ""})
	}
	for _, f := range n.Holder(a) {
		if f.Given == "" || f.Given == *f.Stored {
			continue
		}
		d := Difference{f.Name, secret.MaskMethod(*f.Stored), f.Given, ""}
		if f.Command != "account update" {
			d.Kept = f.Command + " changes it"
		}
		all = append(all, d)
	}
	return all
}

// ofSubscription returns the subscription's differences from the input, of the fields that it gives, and
// the change that removes those that it can. A next payment date up to the due date is none.
func ofSubscription(s *billing.Subscription, n *billing.NewSubscription, given func(field string) bool) (c billing.Change, all []Difference) {
	note := func(field, stored, now, kept string) bool {
		if stored == now || !given(field) {
			return false
		}
		all = append(all, Difference{field, stored, now, kept})
		return kept == ""
	}
	const another = "cancel the subscription and import another"
	plan := billing.Plan{SKU: s.SKU, Amount: s.Amount}
	if p := s.Pending; p != nil && p.SKU == n.SKU && p.Amount == n.Amount { // the file is ahead
		plan = *p
	}
	kept := "" // the price of another plan is none of this one
	if note("sku", plan.SKU, n.SKU, "subscription update --sku changes the plan"); plan.SKU != n.SKU {
		kept = "it is the price of " + n.SKU
	}
	if now := n.Amount.Currency(); now != s.Amount.Currency() {
		note("currency", s.Amount.Currency().Code(), now.Code(), another)
	} else if note("amount", plan.Amount.Decimal(), n.Amount.Decimal(), kept) {
		c.Amount = &n.Amount
	}
	if note("quantity", strconv.Itoa(cmp.Or(plan.Quantity, s.Terms.Count())), strconv.Itoa(n.Terms.Count()), kept) {
		c.Quantity = new(n.Terms.Count())
	}
	if stored := s.Terms.Discount; note("discount", stored.String(), n.Terms.Discount.String(), "") { // also one that is over
		c.Discount = &n.Terms.Discount
	} else if left := stored.Left(s.Period); given("discount") && !left.IsZero() && n.Terms.Discount.Periods != stored.Periods {
		note("discount_periods", strconv.Itoa(left.Periods), strconv.Itoa(n.Terms.Discount.Periods), "another discount brings its periods with it")
	}
	if note("interval", s.Interval.String(), n.Interval.String(), another); s.Interval.Unit == n.Interval.Unit && s.Interval.Unit != civil.Day &&
		note("payment_day", strconv.Itoa(s.PaymentDay), strconv.Itoa(n.PaymentDay), "") {
		c.PaymentDay = &n.PaymentDay
	}
	if note("payment_method", secret.MaskMethod(s.Method), n.Method, "") {
		c.Method = &n.Method
	}
	if note("collection", string(s.Collection), string(n.Collection), "") {
		c.Collection = &n.Collection
	}
	if due, err := s.Due(); err == nil && c.PaymentDay == nil && n.NextPayment.After(due) {
		note("next_payment_date", due.String(), n.NextPayment.String(), "pause and resume, or skip, move a payment")
	}
	if note("reminder_days", strconv.Itoa(s.ReminderDays), strconv.Itoa(n.ReminderDays), "") {
		c.ReminderDays = &n.ReminderDays
	}
	note("installments", strconv.Itoa(s.Installments), strconv.Itoa(n.Installments), another)
	if note("address", s.Address, n.Address, "") {
		c.Address = &n.Address
	}
	if was, now := s.Terms.Tax, n.Terms.Tax; now != (price.Tax{}) {
		rate := was.Rate.String()
		if was.Mode == price.Untaxed {
			rate = ""
		}
		differs := note("tax_rate", rate, now.Rate.String(), "")
		if differs = note("tax", string(was.Mode), string(now.Mode), "") || differs; note("tax_note", was.Note, now.Note, "") || differs {
			c.Tax = &tax.Change{Rate: new(now.Rate.String()), Mode: now.Mode, Note: new(now.Note)}
		}
	}
	return c, all
}
