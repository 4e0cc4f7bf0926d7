package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// CreateReceipt is access pattern 2 as a person's operation: a manual payment settles the due
// period, without a charge. It returns ErrState if nothing is due, or while an intent is live and
// could still take the money a second time. A zero amount means the subscription's; note is the
// person's reference.
func (e *Engine) CreateReceipt(ctx context.Context, n billing.Name, amount money.Amount, note string,
	at time.Time) (rec *billing.Receipt, err error) {
	if err := billing.CheckText("note", note, billing.MaxText); err != nil {
		return nil, err
	}
	full, err := e.Subscription(ctx, n)
	if err != nil {
		return nil, err
	}
	if err := e.checkCharge(ctx, n.Account); err != nil {
		return nil, err
	}
	defer e.locks.lock(full.Name)()
	err = e.reload(ctx, full.Name, func(s *billing.Subscription) (err error) {
		rec, err = e.settleManual(ctx, s, amount, note, at)
		return err
	})
	return rec, err
}

// settleManual settles the due period with a manual payment. A zero amount is the subscription's, a
// zero at is now.
func (e *Engine) settleManual(ctx context.Context, s *billing.Subscription, amount money.Amount, note string,
	at time.Time) (*billing.Receipt, error) {
	today := billing.TodayIn(s.TimeZone, e.Now())
	if s.Open != nil {
		in, err := e.proc.Lookup(ctx, s.Open.Ref)
		if err != nil {
			return nil, fmt.Errorf("subscription %s: its payment intent cannot be looked up: %w", s.Name, err)
		}
		if in.State != billing.Canceled {
			const live = "subscription %s: payment intent %s is live (%s) and could still be paid; cancel, pause or skip " +
				"first: %w"
			return nil, fmt.Errorf(live, s.Name, s.Open.Ref, in.State, billing.ErrState)
		}
	}
	due, err := s.Due()
	switch {
	case err != nil:
		return nil, err
	case s.Status != billing.Active && s.Status != billing.ParkedState:
		return nil, fmt.Errorf("subscription %s is %s: nothing is due: %w", s.Name, s.Status, billing.ErrState)
	case due.After(today):
		return nil, fmt.Errorf("subscription %s: nothing is due before %s: %w", s.Name, due, billing.ErrState)
	case amount == money.Amount{}:
		amount = s.Amount
	case !amount.IsPositive() || amount.Currency() != s.Amount.Currency():
		return nil, billing.Invalid("amount", "want more than zero "+s.Amount.Currency().Code())
	}
	if at.IsZero() {
		at = e.Now()
	}
	rec := e.receipt(s, billing.External, amount, due, at.UTC().Truncate(time.Millisecond), note)
	notice := *s
	notice.Amount = amount
	others := append(e.notice(noticeReceipt, &notice, nil, rec), store.Put(e.Table, rec.Item(), store.Absent()))
	if s.Status == billing.ParkedState {
		others = append(others, store.Delete(e.Table, billing.PeriodKey(s.Name, s.Period)))
	}
	return rec, e.Put(ctx, s, append(others, e.pass(s, today, true, rec.Processed)...)...)
}
