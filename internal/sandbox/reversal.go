package sandbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// reversalWords are the outcomes of the lines of refunds and disputes. None is an outcome of an
// intent, so a program older than refunds refuses the file, and names the line.
var reversalWords = map[string]reversalOutcome{
	"refunded":        {processor.Refunded, processor.ReversalSucceeded},
	"refund_pending":  {processor.Refunded, processor.ReversalPending},
	"refund_failed":   {processor.Refunded, processor.ReversalFailed},
	"refund_canceled": {processor.Refunded, processor.ReversalCanceled},
	"disputed":        {processor.Disputed, processor.ReversalPending},
	"dispute_lost":    {processor.Disputed, processor.ReversalSucceeded},
	"dispute_won":     {processor.Disputed, processor.ReversalFailed},
	"dispute_closed":  {processor.Disputed, processor.ReversalCanceled},
}

// A reversalOutcome is the kind and state of a refund or dispute that a word names.
type reversalOutcome struct {
	kind  processor.ReversalKind
	state processor.ReversalState
}

func wordOf(kind processor.ReversalKind, state processor.ReversalState) string {
	for word, c := range reversalWords {
		if c == (reversalOutcome{kind, state}) {
			return word
		}
	}
	return ""
}

// reversals are all refunds and disputes, oldest first. There are few beside the charges.
type reversals struct {
	list  []reversal
	ids   map[string]int   // places in list
	of    map[string][]int // by intent
	keys  map[keyHash]int
	lines uint32
}

// A reversal is a refund or dispute as it stands.
type reversal struct {
	processor.Reversal
	first processor.ReversalState // in the answer of the key
}

// add takes a line: of a new reversal, or of another state of a known one.
func (l *reversals) add(r processor.Reversal, key string) {
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
	l.list = append(l.list, reversal{r, r.State})
	l.ids[r.ID] = i
	l.of[r.Ref] = append(l.of[r.Ref], i)
	if key != "" {
		l.keys[hashKey(key)] = i
	}
}

// since returns those made at or after the time, as they stand.
func (l *reversals) since(t time.Time) (found []processor.Reversal) {
	for _, r := range l.list {
		if !r.Created.Before(t) {
			found = append(found, r.Reversal)
		}
	}
	return found
}

func (l *reversals) left(ref string, charged money.Amount) money.Amount {
	minor := charged.Minor()
	for _, i := range l.of[ref] {
		if r := &l.list[i]; r.State == processor.ReversalSucceeded || r.State == processor.ReversalPending {
			minor -= r.Amount.Minor()
		}
	}
	return money.New(max(0, minor), charged.Currency())
}

const (
	refundPrefix  = "re_sandbox_"
	disputePrefix = "dp_sandbox_"
)

// recordOfReversal is a line of the file, at the time of creation.
func recordOfReversal(r processor.Reversal) record {
	return record{Ref: r.ID, Account: r.Tag.Account, Subscription: r.Tag.Subscription, SKU: r.Tag.SKU,
		Period: r.Tag.Period, Generation: r.Tag.Generation, Amount: r.Amount.Decimal(),
		Currency: r.Amount.Currency().Code(), Outcome: wordOf(r.Kind, r.State), At: r.Created.Format(atLayout),
		Install: r.Tag.Installation, Of: r.Ref, Request: r.Request, Reason: r.Reason}
}

func (r *record) readReversal() (processor.Reversal, error) {
	c, ok := reversalWords[r.Outcome]
	switch {
	case !ok:
		return processor.Reversal{}, fmt.Errorf("outcome must be that of a refund or dispute (got %q)", r.Outcome)
	case r.Of == "":
		return processor.Reversal{}, errors.New(`the field "of" is missing`)
	}
	plain := *r
	plain.Outcome = string(processor.Succeeded)
	n, tag, amount, err := plain.parse()
	if err != nil {
		return processor.Reversal{}, err
	}
	return processor.Reversal{Kind: c.kind, ID: r.Ref, Request: r.Request, Ref: r.Of, Tag: tag, Amount: amount,
		State: c.state, Reason: r.Reason, Created: time.UnixMilli(n.at).UTC()}, nil
}

func (l *ledger) restoreReversal(line *record) error {
	r, err := line.readReversal()
	if err != nil {
		return err
	}
	if _, known := l.refs[r.Ref]; !known {
		return fmt.Errorf("no earlier line has the ref %.64q", r.Ref)
	}
	l.reversals.add(r, line.Key)
	return nil
}
