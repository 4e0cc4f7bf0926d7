package sandbox

import (
	"context"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/processor"
)

var _ processor.Refunder = (*Sandbox)(nil)

// Refund implements processor.Refunder. Within KeyLife the key answers as it did first. A refund of a
// charge on pm_card_pendingRefund is pending until MoveReversal changes it.
func (s *Sandbox) Refund(ctx context.Context, r processor.RefundRequest) (processor.Reversal, error) {
	return call(ctx, s, r.Key, func() (processor.Reversal, error) { return s.refund(r) })
}

func (s *Sandbox) ReversalsOf(ctx context.Context, ref string) ([]processor.Reversal, error) {
	return call(ctx, s, "", func() ([]processor.Reversal, error) {
		return locked(s, func() (list []processor.Reversal, err error) {
			for _, i := range s.ledger.reversals.of[ref] {
				list = append(list, s.ledger.reversals.list[i].Reversal)
			}
			_, err = s.find(ref)
			return list, err
		})
	})
}

// Reversals implements processor.Refunder. It yields the refunds and disputes made at or after
// r.Since, oldest first, as they stood at the call. An error comes last. The error of a lost answer
// may come after a part of the list.
func (s *Sandbox) Reversals(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Reversal, error] {
	return listCall(ctx, s, r, func() (int, func(int) processor.Reversal) {
		found := s.ledger.reversals.since(r.Since.Truncate(time.Millisecond))
		return len(found), func(i int) processor.Reversal { return found[i] }
	})
}

// AllReversals returns the current state of every refund and dispute, for the audit. It has no
// faults.
func (s *Sandbox) AllReversals() []processor.Reversal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.reversals.since(time.Time{})
}

func (s *Sandbox) refund(r processor.RefundRequest) (processor.Reversal, error) {
	if err := checkRefund(r); err != nil {
		return processor.Reversal{}, err
	}
	return change(s, func(now time.Time) (processor.Reversal, error) {
		made, ok, err := s.savedReversal(r.Key, now)
		if err != nil {
			return processor.Reversal{}, err
		}
		if ok {
			if made.Request != r.ID || made.Ref != r.Ref || made.Amount != r.Amount || made.Reason != string(r.Reason) {
				return processor.Reversal{}, invalid("the idempotency key was used with other parameters")
			}
			return made, nil
		}
		state := processor.ReversalSucceeded
		if in, err := s.find(r.Ref); err != nil {
			return processor.Reversal{}, err
		} else if s.ledger.name(s.ledger.lines.at(in.last).method) == methodPendingRefund {
			state = processor.ReversalPending
		}
		return s.makeReversal(processor.Reversal{Kind: processor.Refunded, Request: r.ID, Ref: r.Ref, Amount: r.Amount,
			State: state, Reason: string(r.Reason)}, r.Key, now)
	})
}

// MakeReversal creates a refund or dispute, as someone else could at the processor, from r.Kind,
// r.Ref, r.Amount, r.State and r.Reason. It returns the complete reversal, and has no faults or
// latency.
func (s *Sandbox) MakeReversal(r processor.Reversal) (processor.Reversal, error) {
	if wordOf(r.Kind, r.State) == "" || !utf8.ValidString(r.Reason) {
		return processor.Reversal{}, invalid(fmt.Sprintf("a %s cannot have the state %s", r.Kind, r.State))
	}
	return change(s, func(now time.Time) (processor.Reversal, error) { return s.makeReversal(r, "", now) })
}

// MoveReversal changes the state of a refund or dispute, as the bank would. It has no faults.
func (s *Sandbox) MoveReversal(id string, state processor.ReversalState) error {
	_, err := change(s, func(now time.Time) (processor.Reversal, error) {
		i, ok := s.ledger.reversals.ids[id]
		if !ok {
			return processor.Reversal{}, invalid(fmt.Sprintf("there is no refund or dispute %.64q", id))
		}
		r := s.ledger.reversals.list[i].Reversal
		if r.State = state; wordOf(r.Kind, state) == "" {
			return processor.Reversal{}, invalid(fmt.Sprintf("a %s cannot have the state %s", r.Kind, state))
		}
		s.writeReversal(r, "", now)
		return r, nil
	})
	return err
}

// makeReversal adds a refund or dispute of at most the amount left. mu is held.
func (s *Sandbox) makeReversal(r processor.Reversal, key string, now time.Time) (processor.Reversal, error) {
	in, err := s.find(r.Ref)
	if err != nil {
		return processor.Reversal{}, err
	}
	last := s.ledger.lines.at(in.last)
	if last.state != succeeded {
		return processor.Reversal{}, invalid(fmt.Sprintf("the intent is %s, so nothing can be refunded", states[last.state]))
	}
	t := s.ledger.terms.at(last.terms)
	left := s.ledger.reversals.left(r.Ref, t.amount())
	if r.Amount.Currency() != left.Currency() || !r.Amount.IsPositive() || r.Amount.Minor() > left.Minor() {
		return processor.Reversal{}, invalid(fmt.Sprintf("only %s can still be refunded (got %s)", left, r.Amount))
	}
	prefix := refundPrefix
	if r.Kind == processor.Disputed {
		prefix = disputePrefix
	}
	r.ID, r.Tag, r.Created = s.nextRef(prefix), s.ledger.tag(t), now
	s.writeReversal(r, key, now)
	return r, nil
}

// writeReversal appends the line, in memory and for the file. mu is held.
func (s *Sandbox) writeReversal(r processor.Reversal, key string, at time.Time) {
	s.ledger.reversals.add(r, key)
	if s.out != nil {
		line := recordOfReversal(r)
		line.Key, line.At = key, at.Format(atLayout)
		s.out.pending = append(s.out.pending, line)
	}
}

// savedReversal returns the first answer of the key, if it is remembered. mu is held.
func (s *Sandbox) savedReversal(key string, now time.Time) (r processor.Reversal, ok bool, err error) {
	i, ok := s.reversalOf(hashKey(key), now.UnixMilli())
	if !ok {
		if _, ok, err = s.saved(key, now.UnixMilli(), func(*line) bool { return true }); ok {
			err = errOtherUse
		}
		return r, false, err
	}
	r = s.ledger.reversals.list[i].Reversal
	r.State = s.ledger.reversals.list[i].first
	return r, true, nil
}

var errOtherUse = invalid("the idempotency key was used for another request")

// reversalOf returns the place of the key's refund, if the key is remembered. mu is held.
func (s *Sandbox) reversalOf(h keyHash, now int64) (i int, ok bool) {
	if i, ok = s.ledger.reversals.keys[h]; ok {
		ok = s.alive(s.ledger.reversals.list[i].Created.UnixMilli(), now)
	}
	return i, ok
}

func checkRefund(r processor.RefundRequest) error {
	switch {
	case !r.Amount.IsPositive() || r.Amount.Currency().IsZero():
		return invalid("the amount must be more than zero")
	case r.Reason != "" && r.Reason != processor.Duplicate && r.Reason != processor.Fraudulent &&
		r.Reason != processor.RequestedByCustomer:
		return invalid("the reason is unknown")
	}
	return checkTexts(r.Key, r.ID, r.Ref)
}
