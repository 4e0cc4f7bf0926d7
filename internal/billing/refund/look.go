package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// recorded is an account, read first since a reversal changes its version, and its reversals.
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

// write commits the change that decide makes of the account's records. If others were faster it
// reads and decides again. It reports whether it changed a record, and leaves now as read then.
func (s *Service) write(ctx context.Context, account string, now *recorded,
	decide transition) (changed bool, err error) {
	err = store.Retry(ctx, "account "+account, func() error {
		was, becomes, err := decide(*now)
		if err != nil || becomes == nil {
			return err
		}
		if err = s.Live(ctx); err != nil {
			return err
		}
		told, err := s.notice(ctx, was, becomes)
		if err != nil {
			return err
		}
		err = s.commit(ctx, now.account, append(becomes.Writes(s.Table, was, now.account), told...)...)
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

// commit commits the writes, of which a new record's first one changes the account, if it has an item.
func (s *Service) commit(ctx context.Context, a *billing.Account, writes ...store.Write) error {
	if a != nil && writes[0].Op == store.OpPut {
		return s.Commit(ctx, writes...)
	}
	return s.Store.Commit(ctx, writes...)
}

// record brings the records of the subscription's account to one reversal that the processor shows.
func (s *Service) record(ctx context.Context, n billing.Name, now *recorded, shown processor.Reversal) (bool, error) {
	return s.write(call.Without(ctx), n.Account, now, func(now recorded) (was, becomes *billing.ReversalRecord, err error) {
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
	shown, err := processor.Ask(ctx,
		func() ([]processor.Reversal, error) { return s.proc.(processor.Refunder).ReversalsOf(ctx, charge) })
	if err != nil {
		return now, fmt.Errorf("asking the processor for refunds and disputes of charge %s: %w", charge, err)
	}
	now, err = s.read(ctx, n.Account)
	for i := 0; i < len(shown) && err == nil; i++ {
		_, err = s.record(ctx, n, &now, shown[i])
	}
	return now, err
}

// A task is one refund that this process carries on.
type task struct {
	billing.Name
	trigger trigger
	id      string
	charge  string
	create  func(recorded) (*billing.ReversalRecord, error) // the record of an order, or why it cannot be

	now    recorded  // as last read
	looked time.Time // when the last look began; zero: none since the last request
	sent   int       // requests
	err    error     // of the last request
	denied bool
}

func (t *task) record() *billing.ReversalRecord { return billing.FindReversal(t.now.reversals, t.id) }

// heard is the processor's word on the task.
func (t *task) heard(now time.Time) word {
	age := now.Sub(t.looked)
	switch {
	case t.denied:
		return denied
	case t.looked.IsZero() || age < 0 || age > lookAge:
		return unknown
	case processor.Definite(t.err):
		return invalid
	case t.sent >= processor.MaxSends:
		return silent
	}
	return none
}

// maxSteps bounds the steps of one task: only answers that each take longer than lookAge reach it.
const maxSteps = 5 * processor.MaxSends

// carryOn takes the task's steps until the refund is answered or left to the next process, and
// returns its record. The error says why it is not done.
func (s *Service) carryOn(ctx context.Context, t *task) (*billing.ReversalRecord, error) {
	for range maxSteps {
		r, err := t.record(), error(nil)
		switch next(t.trigger, standingOf(r), t.heard(s.Now())) {
		case look:
			began := s.Now()
			if now, lerr := s.look(ctx, t.Name, t.charge); lerr == nil {
				t.now, t.looked = now, began
			} else {
				err = lerr
			}
		case create:
			err = s.create(ctx, t)
		case send:
			err = s.send(ctx, t, r)
		case refuse:
			err = s.refuse(ctx, t)
		case leave:
			err = t.err
		case reject:
			return r, fmt.Errorf("refund %s of %s was refused by the processor%s; to try again, use another key: %w", t.id,
				r.Amount, after(": ", r.Refusal), billing.ErrState)
		case lost:
			return nil, fmt.Errorf("refund %s is no longer in the store: %w", t.id, store.ErrNotFound)
		case done:
			return r, nil
		}
		if err != nil {
			return t.unfinished(err)
		}
	}
	return t.unfinished(errors.New("the processor did not reply in time"))
}

// unfinished returns the record and the error, which tells of the record if there is one.
func (t *task) unfinished(err error) (*billing.ReversalRecord, error) {
	r := t.record()
	if r == nil {
		return nil, err
	}
	return r, fmt.Errorf("refund %s of %s is recorded but not done yet: %w; "+
		"to continue, repeat the command or wait for the next payment run", t.id, r.Amount, err)
}

// create is RECORD (3).
func (s *Service) create(ctx context.Context, t *task) error {
	_, err := s.write(ctx, t.Account, &t.now, func(now recorded) (was, becomes *billing.ReversalRecord, err error) {
		if billing.FindReversal(now.reversals, t.id) == nil {
			becomes, err = t.create(now)
		}
		return nil, becomes, err
	})
	return err
}

// send is SEND and, if the processor answers with the refund, RECORD (5).
func (s *Service) send(ctx context.Context, t *task, r *billing.ReversalRecord) error {
	made, err := s.proc.(processor.Refunder).Refund(ctx, processor.RefundRequest{Key: "dd_" + t.id, ID: t.id, Ref: r.Charge,
		Amount: r.Amount, Reason: processor.RefundReason(r.Reason), Tag: processor.Tag{Installation: s.Opened.Installation,
			Account: r.Account, Subscription: r.ID, SKU: r.SKU, Period: r.Period, Generation: r.Generation}})
	t.looked, t.err = time.Time{}, err
	t.sent++
	if err != nil {
		t.denied = errors.Is(err, processor.ErrRefused) || errors.Is(err, processor.ErrAccountRefused) || ctx.Err() != nil
		return nil
	}
	_, err = s.record(ctx, t.Name, &t.now, made)
	return err
}

// refuse is RECORD (5) of a refusal.
func (s *Service) refuse(ctx context.Context, t *task) error {
	_, err := s.write(call.Without(ctx), t.Account, &t.now, func(now recorded) (was, becomes *billing.ReversalRecord, err error) {
		if was = billing.FindReversal(now.reversals, t.id); was != nil {
			if r := *was; r.Refuse(secret.MaskCards(t.err.Error()), s.Now()) {
				becomes = &r
			}
		}
		return was, becomes, nil
	})
	return err
}

func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}
