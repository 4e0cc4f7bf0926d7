package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
)

// A ledgerOfReturns is a bank with which customers dispute charges, and which returns debits.
type ledgerOfReturns interface {
	MakeReversal(r processor.Reversal) (processor.Reversal, error)
	MoveReversal(id string, state processor.ReversalState) error
}

// returns lets a bank take a payment back or decide a dispute, and people refund or record what was paid instead.
// It draws from a source of its own, so that the other moves of a seed stay the same.
func (s *simulation) returns() {
	bank, ok := s.w.box.(ledgerOfReturns)
	if !ok || s.back.IntN(4) > 0 {
		return
	}
	var paid []sandbox.Entry
	for _, e := range s.w.ledger() {
		if _, bad := s.spoilt[s.nameOf(e.Tag)]; e.State == processor.Succeeded && !bad {
			paid = append(paid, e)
		}
	}
	if len(paid) == 0 {
		return
	}
	charge := paid[max(0, len(paid)-1-s.back.IntN(40))] // mostly of the last weeks
	n, ref := s.nameOf(charge.Tag), charge.Ref
	switch s.back.IntN(4) {
	case 0, 1:
		if s.disputed[ref] {
			return
		}
		r, err := bank.MakeReversal(processor.Reversal{Kind: processor.Disputed, Ref: ref, Reason: "fraudulent",
			Amount: charge.Amount, State: pick(s.back, processor.ReversalPending, processor.ReversalSucceeded)})
		if err == nil { // else a refund has left nothing of it
			s.disputed[ref], s.disputes = true, append(s.disputes, r.ID)
			s.did["taken back"]++
		}
	case 2:
		if len(s.disputes) > 0 {
			id := pick(s.back, s.disputes...)
			if err := bank.MoveReversal(id, pick(s.back, processor.ReversalSucceeded, processor.ReversalFailed)); err != nil {
				s.w.violate("dispute %s: %v", id, err)
			}
			s.did["dispute decided"]++
		}
	case 3:
		p := s.w.start(fault{1 + s.back.IntN(12), s.back.IntN(2) == 0})
		o := refund.Order{Name: n, Period: charge.Tag.Period}
		if s.back.IntN(2) == 0 {
			o.Amount = usd(1 + s.back.Int64N(99))
		}
		_, _, err := p.Refunds().Refund(s.w.keyed(context.Background(), fmt.Sprint("refund ", s.back.Uint64())), o)
		s.answered(p, "refund", n, err)
	}
	// Somebody pays otherwise what was taken back.
	if s.back.IntN(3) == 0 {
		p := s.w.start()
		_, err := p.CreateReceipt(context.Background(), n, engine.ManualPayment{Period: &charge.Tag.Period, Note: "instead"})
		s.answered(p, "paid instead", n, err)
	}
}

// answered counts a request that was done, and finds one that failed for no reason.
func (s *simulation) answered(p *process, what string, n billing.Name, err error) {
	_, wrong := errors.AsType[*billing.FieldError](err)
	switch {
	case err == nil:
		s.did[what]++
	case wrong, errors.Is(err, billing.ErrState), s.isSpoilt(err), p.faults.struck(), passes(err):
	default:
		s.w.violate("%s of %s: %v", what, n, err)
	}
}

// nameOf returns the name of the charge's subscription. Its SKU may have changed since.
func (s *simulation) nameOf(tag processor.Tag) billing.Name {
	for _, n := range s.names {
		if n.Account == tag.Account && n.ID == tag.Subscription {
			return n
		}
	}
	panic("no subscription of " + tag.Account + "/" + tag.Subscription)
}
