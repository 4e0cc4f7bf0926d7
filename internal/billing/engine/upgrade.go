package engine

import (
	"cmp"
	"context"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// This file charges the next period now for another plan. The protocol treats the open period like a past
// one: it has no retry days, and gives way when the next period is due. Plan, anchor and due date change
// only in the commit that settles it.

// An Upgraded is the result of UpgradeNow.
type Upgraded struct {
	Offer        upgrade.Offer // zero if the key was known
	Results      []Result      // empty if the request was handled before
	Subscription *billing.Subscription
	Repeated     bool // the key was known
}

// OfferUpgrade returns what UpgradeNow would do, and changes nothing.
func (e *Engine) OfferUpgrade(ctx context.Context, n billing.Name, o upgrade.Order) (upgrade.Offer, *billing.Subscription, error) {
	s, err := e.Subscription(ctx, n)
	if err != nil {
		return upgrade.Offer{}, nil, err
	}
	f, err := e.offer(ctx, s, o, s.Today(e.day, e.Now()))
	return f, s, err
}

func (e *Engine) offer(ctx context.Context, s *billing.Subscription, o upgrade.Order, today civil.Date) (upgrade.Offer, error) {
	f, err := upgrade.Of(s, o, today, call.KeyOf(ctx) != "")
	if err != nil {
		return f, err
	}
	method, _, err := e.Cards().MethodOf(ctx, s)
	switch {
	case err == nil && method == "":
		err = refusal(s, " has no payment method")
	case err == nil && e.Untaxed(s):
		err = refusal(s, " has %s", billing.NoTaxRate)
	}
	return f, err
}

// Untaxed reports whether the subscription has no tax rate, although the store charges tax.
func (e *Engine) Untaxed(s *billing.Subscription) bool {
	return e.cfg.Tax == settings.On && s.Terms.Tax.Mode == price.Untaxed
}

// withdrawn returns why the marked upgrade must not be opened any more, or "".
func (e *Engine) withdrawn(s *billing.Subscription, today civil.Date) string {
	if e.Untaxed(s) {
		return "the subscription has " + billing.NoTaxRate
	}
	return upgrade.Withdrawn(s, today)
}

// UpgradeNow charges the next period now for the new plan. Its first commit marks the subscription, so that
// a run on the same business day continues after a crash. The subscription's Upgrade says how it ended.
func (e *Engine) UpgradeNow(ctx context.Context, n billing.Name, o upgrade.Order) (a Upgraded, err error) {
	if err := cmp.Or(billing.CheckKey(ctx), e.NeedFormat(ctx, billing.UpgradeFormat)); err != nil {
		return a, err
	}
	s, err := e.Subscription(ctx, n)
	if err != nil {
		return a, err
	}
	off := e.mayCollect(ctx, s) // a repeated request can have nothing left to do
	asked := billing.KeyedRequest{Name: s.Name, Kind: billing.KeyedUpgrade, Period: billing.AnyPeriod,
		Note: *cmp.Or(o.SKU, new("")), Amount: *cmp.Or(o.Amount, new(money.Amount))}
	w := work{trigger: byPerson, upgrade: true}
	a.Subscription, err = e.changeUnless(ctx, s.Name, func() (bool, error) {
		before, err := e.Keyed(ctx, &asked)
		if a.Repeated = before != nil; a.Repeated {
			w.period = before.Period
			return true, err
		}
		return false, cmp.Or(err, off)
	}, func(s *billing.Subscription, today civil.Date) (writes []write, err error) {
		if a.Offer, err = e.offer(ctx, s, o, today); err != nil {
			return nil, err
		}
		a.Offer.Mark(s)
		s.NextPayment, w.period = e.agendaDay(s, today), s.Period
		k := asked
		k.Period, k.Amount, k.Note = s.Period, a.Offer.Unit, a.Offer.SKU
		k.Fix(ctx)
		return nil, nil
	})
	switch s := a.Subscription; {
	case err != nil:
		return a, err
	case !s.Upgrading() || s.Period != w.period:
		return a, nil
	case off != nil:
		return a, off
	}
	a.Results, a.Subscription, err = e.collectOne(ctx, a.Subscription, w)
	return a, err
}

// upgrading returns ErrState for a request that has to wait for the upgrade.
func upgrading(s *billing.Subscription) error {
	return refusal(s, ": an upgrade of period %d to %s is under way; wait until it is paid or has ended", s.Period, s.Upgrade.SKU)
}

// openUpgrade is OPEN and BIND of the upgrade.
func (t *turn) openUpgrade(ctx context.Context) (step, error) {
	method, payer, err := t.e.Cards().MethodOf(ctx, t.s)
	if err != nil {
		return step{}, err
	}
	o, err := upgrade.Open(t.s, t.e.Now())
	switch o.Method, o.Payer = method, payer; {
	case err != nil:
		return t.dropUpgrade(ctx, err.Error())
	case method == "":
		return t.dropUpgrade(ctx, billing.NoMethod)
	}
	return t.bind(ctx, o)
}

// dropUpgrade removes the mark of an upgrade that is not open.
func (t *turn) dropUpgrade(ctx context.Context, reason string) (step, error) {
	return t.ended(ctx, upgradeResult(t.s, OutcomeSkipped, ""), reason)
}

// upgradeResult describes the upgrade that is marked.
func upgradeResult(s *billing.Subscription, outcome Outcome, reason string) *Result {
	u := s.Upgrade
	return &Result{Name: s.Name, SKU: u.SKU, Period: u.Period, Outcome: outcome,
		Amount: s.AfterUpgrade().AmountOf(u.Period), Due: u.Day, Reason: reason}
}

// endUpgrade closes the open upgrade. The processor has shown its intent cancelled. The period stays as
// it was before, and the person's request is carried out.
func (t *turn) endUpgrade(ctx context.Context) (step, error) {
	s, o := t.s, t.s.Open
	r, reason := resultOf(s, OutcomeSkipped, ""), cmp.Or(t.w.refusal, "its payment intent was canceled")
	switch {
	case s.Requested != billing.RequestNone:
		reason = string(s.Requested) + " was requested"
	case s.Altered() != "":
		reason = s.Altered()
	case o.State == billing.Failing && !(o.Unanswered() && o.Asked.IsZero()):
		reason = t.e.failure(o)
	}
	return t.ended(ctx, r, reason)
}

// ended commits the end of an upgrade that is not paid.
func (t *turn) ended(ctx context.Context, r *Result, reason string) (step, error) {
	r.Reason = "not upgraded: " + reason
	t.s.EndUpgrade(reason)
	t.s.Open = nil
	others := t.e.closePast(t.s, t.today, false)
	again := goesOn(t.s, t.today)
	if again { // a run counts the period once
		r = nil
	}
	return step{result: r, again: again}, t.e.put(ctx, t.s, others...)
}
