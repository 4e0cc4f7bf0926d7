package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// A PeriodCharge is a person's request to charge one period.
type PeriodCharge struct {
	Period int    // billing.AnyPeriod selects the period that is parked at the first read
	Reopen string // why the person charges a void or skipped period
}

// A PeriodCharged is the result of a PeriodCharge.
type PeriodCharged struct {
	Results      []Result // empty if the request was handled before
	Subscription *billing.Subscription
	Repeated     bool             // the key was known, so a period that has since ended is not charged again
	Paid         bool             // the period was already paid
	Receipt      *billing.Receipt // receipt for that payment; nil if it has expired
}

// ChargePeriod charges only the given period, now. The period is the next one if it is due or
// parked, or a past one that ended unpaid. ChargePeriod marks a past period first, so that the next
// payment run continues with it after a crash. It returns ErrState if the period cannot be charged
// now. It returns no error for a paid period, because the same request may have succeeded before.
func (e *Engine) ChargePeriod(ctx context.Context, n billing.Name, r PeriodCharge) (a PeriodCharged, err error) {
	if err := errors.Join(billing.CheckText("reopen", r.Reopen, billing.MaxText),
		billing.CheckKey(ctx)); err != nil {
		return a, err
	}
	if r.Period < 0 && r.Period != billing.AnyPeriod {
		return a, billing.Invalid("period", "must be 0 or more, as subscription show prints it")
	}
	s, err := e.Subscription(ctx, n)
	if err != nil {
		return a, err
	}
	a.Subscription = s
	off := e.mayCollect(ctx, s) // a repeated request can have nothing left to do
	parked := r.Period == billing.AnyPeriod
	asked := billing.KeyedRequest{Name: s.Name, Kind: billing.KeyedCharge, Period: r.Period, Note: r.Reopen}
	if parked {
		r.Period = s.Period
	}
	w := work{trigger: byPerson, period: r.Period, told: s.Parked}
	now, err := e.changeUnless(ctx, s.Name, func() (bool, error) {
		before, err := e.Keyed(ctx, &asked)
		if a.Repeated = before != nil; a.Repeated {
			w.period, w.attempt, w.told = before.Period, before.Attempt, ""
			return true, err
		}
		return false, cmp.Or(err, off)
	}, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		marked, writes, err := s.Collect, []write(nil), error(nil)
		if parked {
			err = mayChargeParked(s, r.Period)
		} else {
			writes, err = e.mark(ctx, s, r, today)
		}
		released := r.Period == s.Period && reversal.Release(s)
		switch {
		case call.KeyOf(ctx) != "":
			w.attempt = cmp.Or(s.NextOpen(), &billing.OpenPeriod{Attempt: 1}).Attempt
			k := asked
			k.Period, k.Attempt, k.Amount = r.Period, w.attempt, s.AmountOf(r.Period)
			k.Fix(ctx)
		case err == nil && s.Collect == marked && !released:
			err = billing.ErrUnchanged
		}
		return writes, err
	})
	if a.Subscription = cmp.Or(now, s); a.Repeated && err == nil {
		err = e.dealt(ctx, a.Subscription, &w)
	}
	switch {
	case errors.Is(err, errPaid):
		a.Paid = true
		a.Receipt, err = e.receiptOf(ctx, a.Subscription.Name, w.period)
		return a, err
	case errors.Is(err, errDealt):
		return a, nil
	case err != nil && !errors.Is(err, billing.ErrUnchanged):
		return a, err
	case off != nil:
		return a, off
	}
	a.Results, a.Subscription, err = e.collectOne(ctx, a.Subscription, w)
	return a, err
}

// ChargeParked charges the parked period now.
func (e *Engine) ChargeParked(ctx context.Context, n billing.Name) ([]Result, *billing.Subscription, error) {
	a, err := e.ChargePeriod(ctx, n, PeriodCharge{Period: billing.AnyPeriod})
	return a.Results, a.Subscription, err
}

func mayChargeParked(s *billing.Subscription, period int) error {
	switch err := refuseByWire(s, period); {
	case err != nil:
		return err
	case s.Period != period:
		return passed(s, period)
	case s.Status != billing.ParkedState:
		return refusal(s, " is %s, not parked; to charge another period, name it with --period", s.Status)
	}
	return nil
}

// errDealt is returned when a repeated request has nothing left to do.
var errDealt = errors.New("the request was dealt with")

// dealt returns errPaid or errDealt if a repeated request has nothing left to do.
// The period has then ended, or it is open and a run tries it again on a later day.
func (e *Engine) dealt(ctx context.Context, s *billing.Subscription, w *work) error {
	if s.AtHand() == w.period && !w.tried(s) && (w.attempt > 0 || s.NextOpen() == nil) {
		return nil
	}
	_, err := e.RecordOf(ctx, s.Name, w.period)
	switch {
	case errors.Is(err, store.ErrNotFound) && w.period < s.Period:
		return errPaid
	case billing.IgnoreNotFound(err) != nil:
		return err
	}
	return errDealt
}

// mayCollectBeside returns ErrState if Duesday may not charge the period now. The period is not the
// subscription's current one.
func mayCollectBeside(s *billing.Subscription, period int) error {
	switch {
	case s.Over():
		return wrongStatus(s)
	case s.Upgrading():
		return upgrading(s)
	case period > s.Period:
		due, err := s.Schedule().Due(period)
		if err != nil {
			return billing.Invalid("period", err.Error())
		}
		return refusal(s, ": period %d is due on %s, but the next period is %d", period, due, s.Period)
	case s.Open != nil:
		return refusal(s, ": period %d is open; period %d can be charged when period %[1]d has ended", s.Open.Period, period)
	case s.Collect > 0:
		return refusal(s, ": period %d must be collected first", s.AtHand())
	case s.Status == billing.ParkedState:
		return refusal(s, ": period %d is parked; charge or skip it first", s.Period)
	case s.Altered() != "":
		return refusal(s, ": %s", s.Altered())
	}
	return nil
}

// mark prepares the request. It marks a past period in memory, and returns the other writes. The
// next period to be paid needs no mark, but must be due.
func (e *Engine) mark(ctx context.Context, s *billing.Subscription, r PeriodCharge,
	today civil.Date) ([]write, error) {
	if s.AtHand() != r.Period && r.Period >= s.Period {
		return nil, mayCollectBeside(s, r.Period)
	}
	if err := refuseByWire(s, r.Period); err != nil {
		return nil, err
	}
	if s.Upgrading() {
		return nil, upgrading(s)
	}
	if r.Period < s.Period {
		return e.markPast(ctx, s, r, today)
	}
	due, err := s.Due()
	switch {
	case err != nil:
		return nil, err
	case s.Open == nil && s.Status != billing.Active && s.Status != billing.ParkedState:
		return nil, wrongStatus(s)
	case due.After(today):
		return nil, refusal(s, ": period %d is due on %s", r.Period, due)
	}
	return nil, nil
}

// errPaid is returned when the past period has no record that it ended unpaid.
var errPaid = errors.New("the period is paid")

// markPast marks the past period in memory, unless it is the current one. It returns the write of a
// reopened record, or errPaid.
func (e *Engine) markPast(ctx context.Context, s *billing.Subscription, r PeriodCharge,
	today civil.Date) ([]write, error) {
	p, err := e.RecordOf(ctx, s.Name, r.Period)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, errPaid
	case err != nil:
		return nil, err
	case s.AtHand() == r.Period:
		return nil, nil
	}
	if err := mayCollectBeside(s, r.Period); err != nil {
		return nil, err
	}
	if err := e.NeedFormat(ctx, billing.PastFormat); err != nil {
		return nil, err
	}
	var writes []write
	switch {
	case s.PaidOff():
		return nil, refusal(s, ": all %d installments are paid", s.Installments)
	case e.cfg.Tax == settings.On && p.Ref == "" && (p.Price == nil || p.Price.Terms.Tax.Mode == price.Untaxed):
		return nil, refusal(s, ": period %d has %s; record how it is paid with receipt create --period", p.Period, billing.NoTaxRate)
	case p.Ending == billing.EndFailed:
	case r.Reopen == "":
		return nil, refusal(s, ": period %d is %s (%s); to charge it anyway, give a reason with --reopen", p.Period, p.Ending, p.Reason)
	default:
		p.Reason = fmt.Sprintf("%s (%s); reopened: %s", p.Ending, p.Reason, r.Reopen)
		writes = append(writes, e.putRecord(p))
	}
	s.MarkCollect(r.Period, today)
	return writes, nil
}

// receiptOf returns the receipt that settled the period, or nil if the receipt has expired.
func (e *Engine) receiptOf(ctx context.Context, n billing.Name, period int) (*billing.Receipt, error) {
	found, err := e.ReceiptsOf(ctx, n, period)
	for _, r := range found {
		if r.Kind != billing.Overpayment {
			return r, err
		}
	}
	return nil, err
}
