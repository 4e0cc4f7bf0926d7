package engine

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Every receipt and every failed end of a period is put through here, and adds to the sums of money
// that reports show: package outbox says how each is added once. The outbox row of its mail carries
// the sums; only an account without an address costs a row more.

// Put is billing.Records.Put. The commit also says what it adds to the sums.
func (e *Engine) Put(ctx context.Context, s *billing.Subscription, others ...store.Write) error {
	others, err := e.summed(ctx, s, others)
	if err != nil {
		return err
	}
	return e.Records.Put(ctx, s, others...)
}

// summed returns the writes of one commit with their sums. A receipt among them notes whether it is of
// a declined payment, or of a period that had ended failed.
func (e *Engine) summed(ctx context.Context, s *billing.Subscription, writes []store.Write) ([]store.Write, error) {
	var sums []billing.Sum
	first := "" // sort key of the first item
	for i := range writes {
		w := &writes[i]
		if w.Op != store.OpPut || w.Table != e.Table {
			continue
		}
		switch sk := w.Item.Str(schema.SK); {
		case strings.HasPrefix(sk, billing.RecPrefix):
			r, err := billing.DecodePayment(w.Item)
			if err != nil {
				return nil, err
			}
			if r.Recovered, err = e.recovered(ctx, s, r, writes); err != nil {
				return nil, err
			}
			if r.Recovered != "" {
				w.Item.Set(schema.Recovered, store.S(r.Recovered))
			}
			sums, first = append(sums, r.Sums()...), cmp.Or(first, sk)
		case strings.HasPrefix(sk, billing.PerPrefix):
			p, err := billing.DecodePeriod(w.Item)
			if err != nil {
				return nil, err
			}
			was, err := e.rewritten(ctx, s, p)
			if err != nil {
				return nil, err
			}
			sums, first = append(sums, p.Sums(was)...), cmp.Or(first, sk)
		}
	}
	return e.withSums(writes, sums, s.Account, first, strconv.FormatInt(s.Version, 10)), nil
}

// recovered returns Receipt.Recovered for a receipt that is among the writes. A record of the period
// among their deletes tells how it had ended; of an open one, the subscription as it was read.
func (e *Engine) recovered(ctx context.Context, s *billing.Subscription, r *billing.Receipt,
	writes []store.Write) (string, error) {
	if r.Kind != billing.Charged && r.Kind != billing.External {
		return "", nil // such as a second payment of the period
	}
	for _, w := range writes {
		if w.Op != store.OpDelete || w.Key != billing.PeriodKey(s.Name, r.Period) {
			continue
		}
		it, err := e.Store.Get(ctx, e.Table, w.Key)
		if errors.Is(err, store.ErrNotFound) {
			return "", store.ErrConflict
		} else if err != nil {
			return "", err
		}
		p, err := billing.DecodePeriod(it)
		if err == nil && p.Ending == billing.EndFailed {
			return p.RecoveredBy(r), nil
		}
	}
	open := s.Raw.Get(schema.OpenPeriod).Map()
	if int(open.Int(schema.Period)) == r.Period && len(open.Get(schema.Attempts).List()) > 0 {
		return billing.RecoveredDecline, nil
	}
	return "", nil
}

// rewritten returns the record that is replaced by a new one of a past period, or nil.
func (e *Engine) rewritten(ctx context.Context, s *billing.Subscription,
	p *billing.EndedPeriod) (*billing.EndedPeriod, error) {
	if p.Period >= int(s.Raw.Int(schema.Period)) {
		return nil, nil
	}
	it, err := e.Store.Get(ctx, e.Table, billing.PeriodKey(p.Name, p.Period))
	if err != nil {
		return nil, billing.IgnoreNotFound(err)
	}
	return billing.DecodePeriod(it)
}

// withSums returns the writes with the sums in one of their outbox rows, or in a row of their own,
// whose id tells the event from others.
func (e *Engine) withSums(writes []store.Write, sums []billing.Sum, id ...string) []store.Write {
	text := billing.SumsText(sums)
	if text == "" {
		return writes
	}
	for i := range writes {
		if w := &writes[i]; w.Op == store.OpPut && w.Table == e.Tables.Outbox.Name {
			outbox.SetSums(w, text)
			return writes
		}
	}
	now := e.Now()
	return append(writes, outbox.Write(e.Tables.Outbox.Name, outbox.Effect{
		ID: outbox.KindSum + "/" + strings.Join(id, "/"), Kind: outbox.KindSum, Due: now, Created: now, Sums: text}))
}

// beginSums notes since when a store of an older Duesday has kept sums.
func (e *Engine) beginSums(ctx context.Context, readOnly bool) error {
	if readOnly || !e.Opened.Summed.IsZero() {
		return nil
	}
	set := store.NewItem(store.Attribute{Name: schema.SumsDate, Value: store.S(billing.Stamp(e.Now()))})
	return store.Retry(ctx, "noting the beginning of the sums", func() (err error) {
		err = e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil, store.AttributeAbsent(schema.SumsDate)))
		if err != nil && !store.Retryable(err) {
			return err
		}
		if e.Opened, err = e.Meta(ctx); err == nil && e.Opened.Summed.IsZero() {
			err = store.ErrUnknown // it has not landed
		}
		return err
	})
}

// uncounted yields the outbox's rows whose sums no drain has added yet.
func (e *Engine) uncounted(ctx context.Context) iter.Seq2[outbox.Effect, error] {
	return outbox.New(e.Store, e.Tables.Outbox, e.Now, nil, nil).Uncounted(ctx)
}

// uncountedSums yields the sums of those rows.
func (e *Engine) uncountedSums(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for row, err := range e.uncounted(ctx) {
			if !yield(row.Sums, err) {
				return
			}
		}
	}
}
