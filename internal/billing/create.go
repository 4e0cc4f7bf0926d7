package billing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// CreateSubscription is access pattern 1: it stores a subscription, and its account if there is
// none yet. If the account already has a subscription of the id, it returns the old one and
// ErrExists: an id is never used again.
func (e *Records) CreateSubscription(ctx context.Context, n NewSubscription) (s *Subscription, err error) {
	if err := n.Check(); err != nil {
		return nil, err
	}
	err = store.Retry(ctx, "subscription "+n.Account+"/"+n.ID, func() error {
		var writes []store.Write
		if writes, s, err = e.creation(ctx, n); errors.Is(err, ErrExists) && call.Of(ctx).Stored() {
			return nil // by an earlier try
		}
		if err != nil {
			return err
		}
		if err = call.Commit(ctx, e.Store, writes...); err != nil {
			s = nil
			return err
		}
		s.Raw = s.Item()
		return nil
	})
	return s, err
}

// creation returns the writes of a new subscription.
func (e *Records) creation(ctx context.Context, n NewSubscription) ([]store.Write, *Subscription, error) {
	if err := e.MayChange(ctx); err != nil {
		return nil, nil, err
	}
	a, err := e.Account(ctx, n.Account)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if n.Email == "" {
			return nil, nil, Invalid("email", "is required, because account "+n.Account+" does not exist yet")
		}
		a = nil
	case err != nil:
		return nil, nil, err
	default:
		if s, err := e.fits(ctx, a, &n); err != nil {
			return nil, s, err
		}
	}
	s, err := e.Build(ctx, &n)
	if err != nil {
		return nil, nil, err
	}
	writes, err := e.WithBeside(ctx, s.Create(e.Table))
	if err != nil {
		return nil, nil, err
	}
	if a == nil {
		a = n.NewAccount(s.Created)
		made, err := e.WithBeside(call.Without(ctx), store.Put(e.Table, a.Item(), store.Absent())) // one row of history
		if err != nil {
			return nil, nil, err
		}
		writes = append(writes, made...)
	} else {
		writes = append(writes, a.BumpVersion(e.Table))
	}
	watermark, err := e.WatermarkWrites(ctx, s.NextPayment, s.NextReminder)
	return append(writes, watermark...), s, err
}

// A HolderField is what a row says of its account beside the address and the time zone.
type HolderField struct {
	Name, Given string
	Stored      *string
	Command     string // changes it
}

// Holder returns these fields with the account's.
func (n *NewSubscription) Holder(a *Account) []HolderField {
	all := []HolderField{{"customer", n.Customer, &a.Payer.Customer, "account attach"}, {"name", n.Name, &a.Name, "account update"},
		{"locale", n.Locale, &a.Locale, "account update"}, {"fallback", n.Fallback, &a.Fallback, "account attach"}}
	stored := a.Details.Fields()
	for i, given := range n.Details.Fields() {
		all = append(all, HolderField{party.Names[i], *given, stored[i], "account update"})
	}
	return all
}

// NewAccount returns the account to be stored with the subscription.
func (n *NewSubscription) NewAccount(created time.Time) *Account {
	a := &Account{ID: n.Account, Email: n.Email, TimeZone: n.TimeZone, Created: created, Version: 1}
	for _, f := range n.Holder(a) {
		*f.Stored = f.Given
	}
	return a
}

// fits checks the new subscription against its account, and takes address and time zone from it.
func (e *Records) fits(ctx context.Context, a *Account, n *NewSubscription) (*Subscription, error) {
	old, err := e.Subscription(ctx, Name{Account: n.Account, ID: n.ID})
	switch {
	case err == nil && old.SKU != n.SKU && old.Name.SKU != n.SKU:
		keeps := "subscription " + old.String() + " has SKU " + old.SKU + "; to change it, use subscription update"
		return old, Invalid("sku", keeps)
	case err == nil:
		return old, fmt.Errorf("subscription %s %w", old, ErrExists)
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	case a.Erased() != "":
		return nil, fmt.Errorf("account %s: %w", a.ID, ErrErased)
	case n.Email != "" && n.Email != a.Email:
		return nil, Invalid("email", "account "+a.ID+" has another address; to change it, use account update")
	case n.TimeZone != "" && n.TimeZone != a.TimeZone:
		return nil, Invalid("time_zone", "account "+a.ID+" is in "+a.TimeZone+"; to change it, use account update")
	}
	for _, f := range n.Holder(a) {
		if f.Given != "" && f.Given != *f.Stored {
			return nil, Invalid(f.Name, "account "+a.ID+" has another "+f.Name+"; to change it, use "+f.Command)
		}
	}
	n.Email, n.TimeZone, n.Details.Address.Country = a.Email, a.TimeZone, a.Details.Address.Country
	return nil, nil
}

// Preview returns the subscription as CreateSubscription would store it or, with ErrExists, as it is
// stored. Another error is that of CreateSubscription.
func (e *Records) Preview(ctx context.Context, n NewSubscription) (*Subscription, error) {
	a, err := e.Account(ctx, n.Account)
	if err == nil {
		var old *Subscription
		if old, err = e.fits(ctx, a, &n); err != nil {
			return old, err
		}
	}
	if IgnoreNotFound(err) != nil {
		return nil, err
	}
	return e.Build(ctx, &n)
}

// Build returns the subscription as the store would hold it.
func (e *Records) Build(ctx context.Context, n *NewSubscription) (*Subscription, error) {
	taxed := *n
	n, taxed.Terms.Tax = &taxed, n.Taxes.Of(n.Terms.Tax, n.Details.Address.Country)
	if n.Terms != (price.Terms{}) {
		wrong := errors.Join(price.Check(n.Amount, n.Terms, CheckText)...) // with the rate of the country, which n.Check does not know
		if err := cmp.Or(wrong, e.NeedFormat(ctx, TermsFormat)); err != nil {
			return nil, err
		}
	}
	if n.Collection == ByWire {
		if err := e.NeedFormat(ctx, WireFormat); err != nil {
			return nil, err
		}
	}
	if n.Takeover != nil {
		if err := e.NeedFormat(ctx, TakeoverFormat); err != nil {
			return nil, err
		}
	}
	return n.Build(e.Now(), e.Opened.Shards)
}

// Build returns the subscription to be stored. LastPaymentDate and LastReminderDate are there from
// the start: an item without them would be in no index and would never be charged.
func (n *NewSubscription) Build(now time.Time, shards int) (*Subscription, error) {
	s := &Subscription{Name: Name{Account: n.Account, ID: n.ID, SKU: n.SKU}, SKU: n.SKU, Email: n.Email,
		PaymentDay: n.PaymentDay, Amount: n.Amount, Terms: n.Terms, Method: n.Method, Address: n.Address,
		Collection: cmp.Or(n.Collection, Automatic), Interval: cmp.Or(n.Interval, Monthly), TimeZone: n.TimeZone, ReminderDays: n.ReminderDays,
		Created: cmp.Or(n.Created, now), Status: Active, Installments: n.Installments, Version: 1, Shards: shards}
	s.Terms.Quantity, s.Takeover = stored(s.Terms.Quantity), n.Takeover
	s.LastPayment, s.LastReminder = cmp.Or(n.LastPayment, s.Created), cmp.Or(n.LastReminder, s.Created)
	today := TodayIn(n.TimeZone, now)
	start := cmp.Or(n.Start, today).AddDays(n.TrialDays)
	if s.PaymentDay == 0 && s.Interval.Unit == civil.Week {
		s.PaymentDay = (int(start.Weekday())+6)%7 + 1
	} else if s.PaymentDay == 0 {
		s.PaymentDay = cmp.Or(n.NextPayment, start).Day()
	}
	if s.Anchor = n.NextPayment; s.Anchor.IsZero() {
		var err error
		if s.Anchor, err = civil.FirstOnOrAfter(start, s.PaymentDay, s.Interval); err != nil {
			return nil, Invalid("payment_day", err.Error())
		}
	}
	if n.TrialDays > 0 {
		s.TrialEnds = s.Anchor
	}
	if due, err := s.Schedule().Due(0); err != nil || due != s.Anchor {
		return nil, Invalid("next_payment_date", fmt.Sprintf("%s does not fall on payment day %d", s.Anchor, s.PaymentDay))
	}
	reminder := n.NextReminder
	if due, next := s.Overdue(today); due > 0 && n.SkipOverdue {
		s.Anchor, s.TrialEnds, reminder = next, civil.Date{}, civil.Date{}
	}
	s.Reschedule(s.Anchor, today)
	s.NextPayment = s.Anchor // also in the past: the low watermark makes the walk find it
	if s.ReminderDays > 0 && !s.Anchor.After(today) {
		s.NextReminder = s.Anchor.AddDays(-s.ReminderDays) // for a run on a business day before it
	}
	s.NextReminder = cmp.Or(reminder, s.NextReminder)
	return s, nil
}

// Overdue returns how many periods of a new subscription are due, if more than one is, and the first
// due date that has not passed. A payment run would charge several of them at once.
func (s *Subscription) Overdue(today civil.Date) (due int, next civil.Date) {
	for n := 0; next.Before(today); n++ {
		var err error
		if next, err = s.Schedule().Due(n); err != nil {
			return 0, next
		}
		if !next.After(today) {
			due++
		}
	}
	if due == 1 {
		due = 0
	}
	return due, next
}
