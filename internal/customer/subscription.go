package customer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/processor"
)

// A subscription is what the page shows of one.
type subscription struct {
	ID, Product, State string
	Over               bool
	Facts              []fact
	Confirm            string     // what the bank asks to confirm; "": nothing
	Agreed             *agreement // about a new card of its own; nil: it has no card of its own
	Cancel             string     // what happens if the customer cancels; "": that is not possible
}

// A fact is a value with its label.
type fact struct{ Label, Value string }

// A charge is the next payment of a subscription, with what makes up its amount.
type charge struct {
	*billing.Subscription
	next  billing.Upcoming
	price *price.Price      // nil: one unit, without discount and tax
	later *billing.Upcoming // the first payment of another amount; nil: none is known
}

// nextCharge returns the subscription's next payment, or nil if there is none. With a new card, a
// past_due subscription goes on with the next due date.
func nextCharge(s *billing.Subscription, at time.Time) *charge {
	const ahead = 24 // payments that are looked at for another amount
	now := *s
	if s.Status == billing.PastDue {
		now.Status = billing.Active
	}
	list := slices.DeleteFunc(now.Upcoming(ahead), func(u billing.Upcoming) bool {
		return s.Status == billing.PastDue && u.Due.Before(s.Today(civil.Date{}, at))
	})
	if len(list) == 0 {
		return nil
	}
	c := &charge{Subscription: s, next: list[0]}
	if i := slices.IndexFunc(list, func(u billing.Upcoming) bool { return u.Amount != c.next.Amount }); i > 0 {
		c.later = &list[i]
	}
	now.Period = c.next.Period
	now.TakeEffect() // the plan that is in force on the day
	if c.price = now.PriceOf(now.Period); s.NextOpen() != nil {
		c.price = s.Open.Price
	}
	return c
}

// after writes out the payments after the next one, or returns "" if they are the same.
func (p *page) after(c *charge) string {
	if c.later == nil {
		return ""
	}
	return p.Say("later", "{amount}", p.Amount(c.later.Amount), "{date}", p.date(c.later.Due))
}

// An agreement is what the customer agrees to with a new card.
type agreement struct {
	Before, After string
	Promises      []string
}

// agreement writes out which payments a new card makes. It returns nil if there are none.
func (p *page) agreement(paid ...*charge) (a *agreement) {
	for _, c := range paid {
		a = cmp.Or(a, &agreement{Before: p.Say("agree"), After: p.Say("agree_end")})
		a.Promises = append(a.Promises, p.Say("promise", "{product}", p.product(c.next.SKU, c.ID), "{amount}", p.Amount(c.next.Amount),
			"{every}", p.every(c.Subscription), "{date}", p.date(c.next.Due))+p.after(c))
	}
	return a
}

// Digest identifies what the customer has read, or is "" for nothing.
func (a *agreement) Digest() string {
	if a == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(a.Promises, "\n")))
	return hex.EncodeToString(sum[:])
}

// every writes out how often the subscription is charged.
func (p *page) every(s *billing.Subscription) string {
	key := "every_" + s.Interval.Unit.String()
	if s.Interval.N > 1 {
		key += "s"
	}
	return p.Say(key, "{n}", strconv.Itoa(s.Interval.N))
}

// awaits reports whether the customer has to confirm the open payment.
func awaits(s *billing.Subscription) bool {
	return s.Open != nil && s.Open.State == processor.RequiresAction && s.Open.Ref != ""
}

// subscriptionOf returns what the page shows of the subscription.
func (p *page) subscriptionOf(s *billing.Subscription) subscription {
	x := subscription{ID: s.ID, Product: p.product(s.SKU, s.ID), State: p.state(s), Over: s.Over()}
	if c := nextCharge(s, p.records.Now()); c != nil {
		next := "next"
		if s.Status == billing.PastDue && s.Collection != billing.ByWire { // nothing is charged without one
			next = "next_by_card"
		}
		x.Facts = []fact{{p.Say(next), p.Amount(c.next.Amount) + " · " + p.date(c.next.Due) + p.after(c)}, {p.Say("interval"), p.every(s)}}
		x.Facts = append(x.Facts, p.parts(c.price)...)
		if p.wallet() && s.Method != "" && s.Collection != billing.ByWire {
			x.Agreed = p.agreement(c)
		}
	}
	if awaits(s) {
		x.Confirm = p.Say("confirm_text", "{amount}", p.Amount(s.Open.Amount))
	}
	if p.PortalCancel == settings.On && s.Status == billing.Active && !s.CancelAtEnd && s.Requested == billing.RequestNone {
		var end civil.Date
		for n, err := s.Period, error(nil); err == nil && !end.After(s.Today(civil.Date{}, p.records.Now())); n++ { // what is due by now is still owed
			end, err = s.Schedule().Due(n)
		}
		x.Cancel = p.Say("cancel_text", "{date}", p.date(end))
	}
	return x
}

// parts writes out what makes up an amount.
func (p *page) parts(x *price.Price) (list []fact) {
	if x == nil {
		return nil
	}
	if n := x.Terms.Count(); n > 1 {
		list = append(list, fact{p.Say("quantity"), strconv.Itoa(n)})
	}
	if x.Discount.IsPositive() {
		list = append(list, fact{p.Say("discount"), p.Amount(x.Discount)})
	}
	if t := x.Terms.Tax; t.Mode != price.Untaxed {
		list = append(list, fact{p.Say("tax"), p.Amount(x.Tax) + " (" + p.Percent(t.Rate.String()) + ")"})
	}
	return list
}

// state writes out the subscription's state.
func (p *page) state(s *billing.Subscription) string {
	key, day, o := string(s.Status), civil.Date{}, s.Open
	switch {
	case s.Over():
	case s.Requested == billing.RequestCancel:
		key = string(billing.CanceledSub)
	case awaits(s):
		key = "action"
	case s.AtEnd():
		key = "ends"
		day, _ = s.Due()
	case s.Status != billing.Active:
	case o.ByWire():
		key, day = "wire", o.PayBy
	case o != nil && !o.Retry.IsZero():
		key, day = "retry", o.Retry
	case o != nil:
		key = "processing"
	case s.InTrial():
		key, day = "trial", s.TrialEnds
	}
	return p.Say(key, "{date}", p.date(day))
}

// consent returns the history's entry about what the customer agrees to.
func (c *charge) consent() *history.Entry {
	e := &history.Entry{Account: c.Account, Subscription: c.ID, What: "consent.given", Version: c.Version, Currency: c.next.Amount.Currency().Code(),
		Changes: []history.Change{{Name: "amount", After: c.next.Amount.Decimal()}, {Name: "interval", After: c.Interval.String()},
			{Name: "next_payment_date", After: c.next.Due.String()}}}
	if c.later != nil {
		e.Changes = append(e.Changes, history.Change{Name: "later_amount", After: c.later.Amount.Decimal()})
	}
	return e
}

// paidBy returns the payments that a new card would make: of the subscription, or without one of
// those that use the account's card.
func (v *visitor) paidBy(ctx context.Context, id string) (paid []*charge, err error) {
	own, err := v.billing.KeepOwn(ctx, v.account.ID)
	if err != nil {
		return nil, err
	}
	all, err := v.subscriptions(ctx)
	for _, s := range all {
		if c := nextCharge(s, v.records.Now()); c != nil && s.Collection != billing.ByWire && (s.ID == id || id == "" && !slices.Contains(own, s.Name)) {
			paid = append(paid, c)
		}
	}
	return paid, err
}

// subscriptions returns the account's subscriptions, except for illegible ones.
func (v *visitor) subscriptions(ctx context.Context) (all []*billing.Subscription, err error) {
	for s, err := range v.records.GetSubscriptionsByAccount(ctx, v.account.ID) {
		if errors.As(err, new(*billing.IllegibleError)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
