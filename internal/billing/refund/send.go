package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

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

// record returns the refund's record, or nil.
func (t *task) record() *billing.ReversalRecord { return billing.FindReversal(t.now.reversals, t.id) }

// heard is the processor's word on the task.
func (t *task) heard(now time.Time) word {
	age := now.Sub(t.looked)
	switch {
	case t.denied:
		return denied
	case t.looked.IsZero() || age < 0 || age > lookAge:
		return unknown
	case billing.Definite(t.err):
		return invalid
	case t.sent >= billing.MaxSends:
		return silent
	}
	return none
}

// maxSteps bounds the steps of one task. Only a processor whose every answer takes longer than
// lookAge comes near it.
const maxSteps = 5 * billing.MaxSends

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
			return r, fmt.Errorf("refund %s of %s was refused by the processor%s; asking again takes another key: %w", t.id,
				r.Amount, after(": ", r.Refusal), billing.ErrState)
		case lost:
			return nil, fmt.Errorf("refund %s is not in the store any more: %w", t.id, store.ErrNotFound)
		case done:
			return r, nil
		}
		if err != nil {
			return t.unfinished(err)
		}
	}
	return t.unfinished(errors.New("the processor answers too slowly"))
}

// unfinished returns the record and the error, which tells of the record if there is one.
func (t *task) unfinished(err error) (*billing.ReversalRecord, error) {
	r := t.record()
	if r == nil {
		return nil, err
	}
	return r, fmt.Errorf("refund %s of %s is recorded, and not done yet: %w; "+
		"the same command goes on with it, as does the next payment run", t.id, r.Amount, err)
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
	made, err := s.proc.(billing.Refunder).Refund(ctx, billing.RefundRequest{Key: "dd_" + t.id, ID: t.id, Ref: r.Charge,
		Amount: r.Amount, Reason: billing.RefundReason(r.Reason), Tag: billing.Tag{Installation: s.Opened.Installation,
			Account: r.Account, Subscription: r.ID, SKU: r.SKU, Period: r.Period, Generation: r.Generation}})
	t.looked, t.err = time.Time{}, err
	t.sent++
	if err != nil {
		t.denied = errors.Is(err, billing.ErrRefused) || errors.Is(err, billing.ErrAccountRefused) || ctx.Err() != nil
		return nil
	}
	_, err = s.record(ctx, t.Name, &t.now, made)
	return err
}

// refuse is RECORD (5) of a refusal.
func (s *Service) refuse(ctx context.Context, t *task) error {
	_, err := s.write(ctx, t.Account, &t.now, func(now recorded) (was, becomes *billing.ReversalRecord, err error) {
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
