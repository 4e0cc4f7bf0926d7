package sandbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
)

var _ billing.Refunder = (*Sandbox)(nil)

// returnWords are the outcomes of the lines of refunds and disputes. None is a word of an intent's lines, so
// a program of before there were any does not take them for something else: it refuses the
// file, and names the line.
var returnWords = [...]struct {
	kind  billing.ReversalKind
	state billing.ReversalState
	word  string
}{
	{billing.Refunded, billing.ReversalSucceeded, "refunded"},
	{billing.Refunded, billing.ReversalPending, "refund_pending"},
	{billing.Refunded, billing.ReversalFailed, "refund_failed"},
	{billing.Refunded, billing.ReversalCanceled, "refund_canceled"},
	{billing.Disputed, billing.ReversalPending, "disputed"},
	{billing.Disputed, billing.ReversalSucceeded, "dispute_lost"},
	{billing.Disputed, billing.ReversalFailed, "dispute_won"},
	{billing.Disputed, billing.ReversalCanceled, "dispute_closed"},
}

// wordOf returns the outcome, or "" when there is none.
func wordOf(kind billing.ReversalKind, state billing.ReversalState) string {
	for _, o := range returnWords {
		if o.kind == kind && o.state == state {
			return o.word
		}
	}
	return ""
}

// ofWord is the reverse of wordOf; ok is false for an outcome of an intent, and for none.
func ofWord(word string) (kind billing.ReversalKind, state billing.ReversalState, ok bool) {
	for _, o := range returnWords {
		if o.word == word {
			return o.kind, o.state, true
		}
	}
	return "", "", false
}

// returns are what has gone back, in the order in which it was made. There are few beside
// the charges.
type returns struct {
	list  []returned
	ids   map[string]int   // places in list
	of    map[string][]int // by intent
	keys  map[keyHash]int
	lines uint32
}

// A returned is one of them as it stands.
type returned struct {
	billing.Reversal
	first billing.ReversalState // which the key answers with
}

// add takes a line: of a new one, or of one whose state it changes.
func (l *returns) add(r billing.Reversal, key *keyHash) {
	l.lines++
	i, known := l.ids[r.ID]
	if known {
		l.list[i].State = r.State
		return
	}
	if l.ids == nil {
		l.ids, l.of, l.keys = map[string]int{}, map[string][]int{}, map[keyHash]int{}
	}
	i = len(l.list)
	l.list = append(l.list, returned{r, r.State})
	l.ids[r.ID] = i
	l.of[r.Ref] = append(l.of[r.Ref], i)
	if key != nil {
		l.keys[*key] = i
	}
}

// left returns what has not gone back of the intent.
func (l *returns) left(ref string, charged money.Amount) money.Amount {
	minor := charged.Minor()
	for _, i := range l.of[ref] {
		if r := &l.list[i]; r.State == billing.ReversalSucceeded || r.State == billing.ReversalPending {
			minor -= r.Amount.Minor()
		}
	}
	return money.New(max(0, minor), charged.Currency())
}

// Refund implements billing.Refunder. Within KeyLife the key answers as it did first. What
// was charged on pm_card_pendingRefund goes back only when MoveReturn says so.
func (s *Sandbox) Refund(ctx context.Context, r billing.RefundRequest) (billing.Reversal, error) {
	return call(ctx, s, OpRefund, r.Key, func() (billing.Reversal, error) { return s.refund(r) })
}

// ReturnsOf implements billing.Refunder.
func (s *Sandbox) ReturnsOf(ctx context.Context, ref string) ([]billing.Reversal, error) {
	return call(ctx, s, OpReturnsOf, "", func() (list []billing.Reversal, err error) {
		return s.returned(func() error {
			if _, err := s.find(ref); err != nil {
				return err
			}
			for _, i := range s.ledger.returns.of[ref] {
				list = append(list, s.ledger.returns.list[i].Reversal)
			}
			return nil
		}, &list)
	})
}

// Returns implements billing.Refunder: it yields what was made at or after r.Since, oldest
// first, as it stood when it was called. An error comes last; one of a lost answer may come
// after a part of the list.
func (s *Sandbox) Reversals(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Reversal, error] {
	return func(yield func(billing.Reversal, error) bool) {
		if err := checkList(r); err != nil {
			yield(billing.Reversal{}, err)
			return
		}
		f, err := s.begin(ctx, OpReturns, "")
		if err != nil {
			yield(billing.Reversal{}, err)
			return
		}
		list, err := s.since(r.Since)
		if f == unknown {
			list = list[:len(list)/2]
		}
		for _, made := range list {
			if !yield(made, nil) {
				return
			}
		}
		if err = s.end(OpReturns, f, err); err != nil {
			yield(billing.Reversal{}, err)
		}
	}
}

// AllReturns yields every refund and dispute as it stands. Like Entries it is the auditor's
// view and takes part in none of the faults.
func (s *Sandbox) AllReturns() iter.Seq[billing.Reversal] {
	s.mu.Lock()
	list := slices.Clone(s.ledger.returns.list)
	s.mu.Unlock()
	return func(yield func(billing.Reversal) bool) {
		for _, r := range list {
			if !yield(r.Reversal) {
				return
			}
		}
	}
}

func (s *Sandbox) since(since time.Time) (list []billing.Reversal, err error) {
	since = since.Truncate(time.Millisecond)
	return s.returned(func() error {
		for _, r := range s.ledger.returns.list {
			if !r.Created.Before(since) {
				list = append(list, r.Reversal)
			}
		}
		return nil
	}, &list)
}

// returned runs the step under the lock, and returns what it has put into the list once
// every line of refunds and disputes is on disk.
func (s *Sandbox) returned(step func() error, list *[]billing.Reversal) ([]billing.Reversal, error) {
	lines, err := s.lockedReturns(step)
	if err == nil && s.out != nil {
		err = s.out.waitReturns(lines)
	}
	if err != nil {
		return nil, err
	}
	return *list, nil
}

func (s *Sandbox) lockedReturns(step func() error) (lines uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errClosed
	}
	err = step()
	return s.ledger.returns.lines, err
}

func (s *Sandbox) refund(r billing.RefundRequest) (billing.Reversal, error) {
	if err := checkRefund(r); err != nil {
		return billing.Reversal{}, err
	}
	return s.change(func(now time.Time) (billing.Reversal, error) {
		made, ok, err := s.savedReturn(r.Key, now)
		if err != nil {
			return billing.Reversal{}, err
		}
		if ok {
			if made.Request != r.ID || made.Ref != r.Ref || made.Amount != r.Amount || made.Reason != string(r.Reason) {
				return billing.Reversal{}, invalid("the idempotency key was used with other parameters")
			}
			return made, nil
		}
		state := billing.ReversalSucceeded
		if in, err := s.find(r.Ref); err != nil {
			return billing.Reversal{}, err
		} else if s.ledger.name(s.ledger.lines.at(in.last).method) == methodPendingRefund {
			state = billing.ReversalPending
		}
		return s.make(billing.Reversal{Kind: billing.Refunded, Request: r.ID, Ref: r.Ref, Amount: r.Amount, State: state, Reason: string(r.Reason)}, r.Key, now)
	})
}

// MakeReturn makes a refund or a dispute as somebody else does at the processor, of r.Kind,
// r.Ref, r.Amount, r.State and r.Reason, and returns it whole. It is no call of the
// processor's clients: no faults, no latency, no hook.
func (s *Sandbox) MakeReturn(r billing.Reversal) (billing.Reversal, error) {
	if wordOf(r.Kind, r.State) == "" || !utf8.ValidString(r.Reason) {
		return billing.Reversal{}, invalid(fmt.Sprintf("there is no %s that is %s", r.Kind, r.State))
	}
	return s.change(func(now time.Time) (billing.Reversal, error) { return s.make(r, "", now) })
}

// MoveReturn brings a refund or dispute into another state, as the bank does. Like
// MakeReturn it is no call of the processor's clients.
func (s *Sandbox) MoveReturn(id string, state billing.ReversalState) error {
	_, err := s.change(func(now time.Time) (billing.Reversal, error) {
		i, ok := s.ledger.returns.ids[id]
		if !ok {
			return billing.Reversal{}, invalid(fmt.Sprintf("there is no refund or dispute %.64q", id))
		}
		r := s.ledger.returns.list[i].Reversal
		if r.State = state; wordOf(r.Kind, state) == "" {
			return billing.Reversal{}, invalid(fmt.Sprintf("there is no %s that is %s", r.Kind, state))
		}
		s.writeReturn(r, "", now)
		return r, nil
	})
	return err
}

// change runs the step under the lock and waits until its line is on disk.
func (s *Sandbox) change(step func(now time.Time) (billing.Reversal, error)) (r billing.Reversal, err error) {
	now := s.o.Now().UTC().Truncate(time.Millisecond)
	if err := checkClock(now); err != nil {
		return billing.Reversal{}, err
	}
	var list []billing.Reversal
	_, err = s.returned(func() (err error) {
		r, err = step(now)
		return err
	}, &list)
	if err != nil {
		return billing.Reversal{}, err
	}
	return r, nil
}

// make adds one, if the intent has so much to give back. mu is held.
func (s *Sandbox) make(r billing.Reversal, key string, now time.Time) (billing.Reversal, error) {
	in, err := s.find(r.Ref)
	if err != nil {
		return billing.Reversal{}, err
	}
	last := s.ledger.lines.at(in.last)
	if last.state != succeeded {
		return billing.Reversal{}, invalid(fmt.Sprintf("the intent is %s: there is nothing to give back", states[last.state]))
	}
	t := s.ledger.terms.at(last.terms)
	left := s.ledger.returns.left(r.Ref, t.amount())
	if r.Amount.Currency() != left.Currency() || !r.Amount.IsPositive() || r.Amount.Minor() > left.Minor() {
		return billing.Reversal{}, invalid(fmt.Sprintf("%s is left to give back, and not %s", left, r.Amount))
	}
	s.made++
	prefix := refundPrefix
	if r.Kind == billing.Disputed {
		prefix = disputePrefix
	}
	r.ID, r.Tag, r.Created = prefix+s.birth+"_"+strconv.FormatUint(s.made, 36), s.ledger.tag(t), now
	s.writeReturn(r, key, now)
	return r, nil
}

const (
	refundPrefix  = "re_sandbox_"
	disputePrefix = "dp_sandbox_"
)

// writeReturn appends the line, in memory and to what the writer has to write. mu is held.
func (s *Sandbox) writeReturn(r billing.Reversal, key string, at time.Time) {
	var h *keyHash
	if key != "" {
		h = new(hashKey(key))
	}
	s.ledger.returns.add(r, h)
	if s.out != nil {
		line := recordOfReturn(r)
		line.Key, line.At = key, at.Format(atLayout)
		s.out.add(line)
	}
}

// savedReturn returns what answered the key, as it was then, if it is remembered. mu is held.
func (s *Sandbox) savedReturn(key string, now time.Time) (r billing.Reversal, ok bool, err error) {
	i, ok := s.returnOf(hashKey(key), now.UnixMilli())
	if !ok {
		if _, ok, err = s.saved(key, now.UnixMilli()); ok {
			err = errOtherUse
		}
		return r, false, err
	}
	r = s.ledger.returns.list[i].Reversal
	r.State = s.ledger.returns.list[i].first
	return r, true, nil
}

var errOtherUse = invalid("the idempotency key was used for something else")

// returnOf returns the place of what was made under the key, if it is remembered. mu is held.
func (s *Sandbox) returnOf(h keyHash, now int64) (i int, ok bool) {
	if i, ok = s.ledger.returns.keys[h]; ok {
		ok = s.alive(s.ledger.returns.list[i].Created.UnixMilli(), now)
	}
	return i, ok
}

func checkRefund(r billing.RefundRequest) error {
	switch {
	case !r.Amount.IsPositive() || r.Amount.Currency().IsZero():
		return invalid("the amount must be more than zero")
	case r.Reason != "" && r.Reason != billing.Duplicate && r.Reason != billing.Fraudulent && r.Reason != billing.RequestedByCustomer:
		return invalid("there is no such reason")
	}
	return checkTexts(r.Key, r.ID, r.Ref)
}

// recordOfReturn is a line of the file, and the form on the wire: there at is when it was made.
func recordOfReturn(r billing.Reversal) record {
	return record{Ref: r.ID, Account: r.Tag.Account, Subscription: r.Tag.Subscription, SKU: r.Tag.SKU, Period: r.Tag.Period,
		Generation: r.Tag.Generation, Amount: r.Amount.Decimal(), Currency: r.Amount.Currency().Code(), Outcome: wordOf(r.Kind, r.State),
		At: r.Created.Format(atLayout), Install: r.Tag.Installation, Of: r.Ref, Request: r.Request, Reason: r.Reason}
}

func (r *record) readReturn() (billing.Reversal, error) {
	kind, state, ok := ofWord(r.Outcome)
	switch {
	case !ok:
		return billing.Reversal{}, fmt.Errorf("outcome %q: want one of a refund or dispute", r.Outcome)
	case r.Of == "":
		return billing.Reversal{}, errors.New("of is missing")
	}
	plain := *r
	plain.Outcome = string(billing.Succeeded)
	n, tag, amount, err := plain.parse()
	if err != nil {
		return billing.Reversal{}, err
	}
	return billing.Reversal{Kind: kind, ID: r.Ref, Request: r.Request, Ref: r.Of, Tag: tag, Amount: amount, State: state, Reason: r.Reason,
		Created: time.UnixMilli(n.at).UTC()}, nil
}

// restoreReturn adds a line of the file.
func (l *ledger) restoreReturn(line *record) error {
	r, err := line.readReturn()
	if err != nil {
		return err
	}
	if _, known := l.refs[r.Ref]; !known {
		return fmt.Errorf("of %.64q: there is no such ref before it", r.Ref)
	}
	var key *keyHash
	if line.Key != "" {
		key = new(hashKey(line.Key))
	}
	l.returns.add(r, key)
	return nil
}
