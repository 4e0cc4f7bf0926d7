package refund

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/store"
)

// recorded is an account and its reversals. The account is read first: a reversal recorded
// afterwards gives it another version.
type recorded struct {
	account   *billing.Account // nil: it has no item
	reversals []*billing.ReversalRecord
}

func (s *Service) read(ctx context.Context, account string) (now recorded, err error) {
	if now.account, err = s.Account(ctx, account); billing.IgnoreNotFound(err) != nil {
		return now, err
	}
	now.reversals, err = s.ReversalsOf(ctx, account)
	return now, err
}

// A transition is a change of one record: was is nil for a new one, becomes is nil for no change.
type transition func(recorded) (was, becomes *billing.ReversalRecord, err error)

// write commits the change that decide makes of the account's records. If others were faster
// it reads and decides again. It reports whether it changed a record, and leaves now as read
// afterwards.
func (s *Service) write(
	ctx context.Context, account string, now *recorded, decide transition,
) (changed bool, err error) {
	err = store.Retry(ctx, "account "+account, func() error {
		was, becomes, err := decide(*now)
		if err != nil || becomes == nil {
			return err
		}
		if err = s.Live(ctx); err != nil {
			return err
		}
		err = s.Store.Commit(ctx, becomes.Writes(s.Table, was, now.account)...)
		if err != nil && !store.Retryable(err) {
			return err
		}
		changed = err == nil || errors.Is(err, store.ErrUnknown) // the next try writes what has not landed
		again, rerr := s.read(ctx, account)
		if rerr != nil {
			return rerr
		}
		*now = again
		return err
	})
	return changed, err
}

// record brings the records of the subscription's account to one reversal that the processor
// shows.
func (s *Service) record(ctx context.Context, n billing.Name, now *recorded, shown billing.Reversal) (bool, error) {
	return s.write(ctx, n.Account, now, func(now recorded) (was, becomes *billing.ReversalRecord, err error) {
		was, becomes = billing.Reconcile(now.reversals, n, shown, s.Now())
		return was, becomes, nil
	})
}

// look is LOOK: it asks the processor for the refunds and disputes of the charge and records
// them. It returns the account's records as they then are.
func (s *Service) look(ctx context.Context, n billing.Name, charge string) (now recorded, err error) {
	if err = s.Live(ctx); err != nil {
		return now, err
	}
	shown, err := billing.Ask(ctx,
		func() ([]billing.Reversal, error) { return s.proc.(billing.Refunder).ReversalsOf(ctx, charge) })
	if err != nil {
		return now, fmt.Errorf("asking the processor for the refunds and disputes of charge %s: %w", charge, err)
	}
	now, err = s.read(ctx, n.Account)
	for i := 0; i < len(shown) && err == nil; i++ {
		_, err = s.record(ctx, n, &now, shown[i])
	}
	return now, err
}
