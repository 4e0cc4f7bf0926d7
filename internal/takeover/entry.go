package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/processor"
)

// entry returns what a takeover does with the subscription.
func (v *Service) entry(ctx context.Context, theirs processor.Subscription, rules settings.Settings) (e Entry, err error) {
	e.Theirs = theirs
	a, undone, err := v.find(ctx, &e)
	if err != nil || e.Stored {
		return e, err
	}
	n, why := convert(theirs, a, cmp.Or(rules.TimeZone, "UTC"))
	if e.order = n; undone > 0 {
		e.order.ID = fmt.Sprintf("%s-%d", n.ID, undone+1)
	}
	lost := theirs.EndsWithPeriod && v.engine.Opened.Accepts(theirs.TakenBy) // by this store before it was restored, or by a lost one
	switch {
	case theirs.Obstacle != "":
		e.Stays = theirs.Obstacle
	case lost && !theirs.Refused: // it does not renew
	case theirs.EndsWithPeriod && theirs.TakenBy != "" && !lost:
		e.Stays = "it was taken over by installation " + theirs.TakenBy
	case theirs.EndsWithPeriod:
		e.Stays = "it ends with its period"
	case theirs.PeriodEnd.Before(v.engine.Now().Add(Ahead)):
		e.Stays = "it renews in less than 24 hours"
	}
	switch {
	case e.Stays != "":
		return e, nil
	case why != "":
		e.Stays = why
		return e, nil
	case a == nil && n.Email == "":
		e.Stays = "its customer has no email address"
		return e, nil
	}
	s, err := v.engine.Preview(ctx, e.order)
	err = cmp.Or(e.order.Check(), err)
	if _, invalid := errors.AsType[*billing.FieldError](err); invalid || errors.Is(err, billing.ErrErased) || errors.Is(err, billing.ErrExists) {
		e.Stays = err.Error()
		return e, nil
	}
	if e.Ours = s; err == nil && v.engine.Untaxed(s) {
		e.Stays = "the setting tax is on, and it has " + billing.NoTaxRate
	}
	return e, err
}

// find sets the entry's subscription that was made from theirs and not handed back, and why it is not continued. It
// returns the account that a new one belongs to, or nil, and how many were handed back.
func (v *Service) find(ctx context.Context, e *Entry) (first *billing.Account, undone int, err error) {
	from := e.Theirs
	for s, err := range lookup.Continuing(ctx, v.engine.Records, from.ID) { // its account may have got another customer
		switch {
		case err != nil:
			return nil, 0, err
		case s.Takeover.Stage == billing.TakeoverUndone:
			undone++
		default:
			e.Ours, e.Stored = s, true
		}
	}
	if e.Stored {
		e.Stays = v.unfit(e.Ours, from)
		return nil, undone, nil
	}
	accounts, err := v.accountsOf(ctx, from)
	if len(accounts) > 0 {
		first = accounts[0]
	}
	return first, undone, err
}

// unfit returns why a start does not continue the takeover, or "".
func (v *Service) unfit(s *billing.Subscription, from processor.Subscription) string {
	const form = "it is held here as %s until %s, but its period now ends at %s; undo the takeover first"
	switch k := s.Takeover; {
	case k.Stage == billing.TakeoverUndoing:
		return "it is being handed back; run duesday takeover undo " + s.Name.String()
	case s.Over():
		return fmt.Sprintf("subscription %s, which it has become, is %s here", s.Name, s.Status)
	case s.Held() && !k.Boundary.Equal(from.PeriodEnd):
		return fmt.Sprintf(form, s.Name, k.Boundary.Format(time.RFC3339), from.PeriodEnd.Format(time.RFC3339))
	case from.EndsWithPeriod && v.refused(from):
		return fmt.Sprintf("it was canceled at the processor, so cancel %s here, or undo the takeover", s.Name)
	}
	return ""
}

// refused reports whether somebody else than a start has made theirs end: its customer, or another installation.
func (v *Service) refused(theirs processor.Subscription) bool {
	return theirs.Refused || !v.engine.Opened.Accepts(theirs.TakenBy)
}

// complete reports whether nothing is left to be done.
func (v *Service) complete(e *Entry) bool {
	ends := e.Theirs.EndsWithPeriod && e.Theirs.TakenBy == v.engine.Opened.Installation
	return e.Stored && (!e.Ours.Held() || e.Ours.Takeover.Stage == billing.TakeoverEnding && ends)
}

func locale(theirs processor.Subscription) string {
	if billing.CheckLocale(theirs.Locale) != nil {
		return ""
	}
	return theirs.Locale
}

// accountsOf returns the accounts of the subscription's customer, and the account with the customer's id.
func (v *Service) accountsOf(ctx context.Context, theirs processor.Subscription) (all []*billing.Account, err error) {
	named := func(a *billing.Account) bool { return a.ID == theirs.Customer }
	for a, err := range lookup.Accounts(ctx, v.engine.Records, "", processor.Payer{Customer: theirs.Customer}, "") {
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	if slices.ContainsFunc(all, named) {
		return all, nil
	}
	a, err := v.engine.Account(ctx, theirs.Customer)
	if err == nil {
		all = append(all, a)
	}
	return all, billing.IgnoreNotFound(err)
}

// convert returns the order of our subscription, held until the end of theirs, or why Duesday cannot have it.
func convert(theirs processor.Subscription, a *billing.Account, zone string) (n billing.NewSubscription, why string) {
	n = billing.NewSubscription{Account: theirs.Customer, Email: theirs.Email, Name: theirs.Name, Locale: locale(theirs), Customer: theirs.Customer,
		ID: theirs.ID, SKU: theirs.SKU, Amount: theirs.Amount, Method: theirs.Method, Interval: theirs.Interval, TimeZone: zone,
		ReminderDays: billing.DefaultReminderDays, Takeover: &billing.Takeover{From: theirs.ID, Boundary: theirs.PeriodEnd, Stage: billing.TakeoverHeld}}
	if a != nil {
		n.Account, n.Email, n.Name, n.Locale, n.TimeZone = a.ID, "", "", "", a.TimeZone
	}
	day := func(t time.Time) civil.Date { return billing.TodayIn(n.TimeZone, t) }
	n.NextPayment, n.PaymentDay = dates(theirs, day)
	if theirs.Quantity > 1 {
		n.Terms.Quantity = theirs.Quantity
	}
	return n, terms(&n, theirs, day(theirs.DiscountEnds))
}

// dates returns the first due date and the payment day: the day of the week or month on which theirs renews, in the
// zone of day. Stripe moves a day that a month does not have to its last one, by UTC.
func dates(theirs processor.Subscription, day func(time.Time) civil.Date) (first civil.Date, payment int) {
	first = day(theirs.PeriodEnd)
	switch theirs.Interval.Unit {
	case civil.Week:
		return first, (int(first.Weekday())+6)%7 + 1
	case civil.Day:
		return first, 0
	}
	utc, anchored := civil.Of(theirs.PeriodEnd), civil.Of(theirs.Anchor).Day()
	shift := first.DaysSince(utc)
	switch {
	case anchored <= utc.Day() || utc.AddDays(1).Day() != 1 || shift > 0:
		return first, first.Day()
	case shift < 0: // the day before the last one here, on which a longer month has a later day
		return first.AddDays(1), anchored - 1
	}
	return first, anchored
}

// terms sets tax and discount, and returns what of them Duesday cannot have, or "".
func terms(n *billing.NewSubscription, theirs processor.Subscription, ends civil.Date) string {
	var err error
	if theirs.TaxRate != "" {
		n.Terms.Tax.Mode = price.Exclusive
		if theirs.TaxInclusive {
			n.Terms.Tax.Mode = price.Inclusive
		}
		if n.Terms.Tax.Rate, err = price.ParsePercent(theirs.TaxRate); err != nil {
			return "its tax rate: " + err.Error()
		}
	}
	d := price.Discount{Amount: theirs.Off}
	if theirs.Percent != "" {
		if d.Percent, err = price.ParsePercent(theirs.Percent); err != nil {
			return "its coupon: " + err.Error()
		}
	}
	if theirs.DiscountOnce {
		d.Periods = 1
	} else if !theirs.DiscountEnds.IsZero() {
		schedule := civil.Schedule{Anchor: n.NextPayment, Day: n.PaymentDay, Interval: n.Interval}
		for due, err := schedule.Due(0); err == nil && due.Before(ends); due, err = schedule.Due(d.Periods) {
			d.Periods++
		}
		if d.Periods == 0 {
			return "" // it ends with their period
		}
	}
	n.Terms.Discount = d
	return ""
}
