package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Every receipt and every failed end of a period is put through here, and adds to the sums of money
// that reports show. The outbox row of its mail carries the sums; only an account without an address
// costs a row more.

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
	var sums []report.Sum
	first := "" // sort key of the first item
	for i := range writes {
		w := &writes[i]
		sk := w.Item.Str(schema.SK)
		isReceipt := strings.HasPrefix(sk, billing.RecPrefix)
		if w.Op != store.OpPut || w.Table != e.Table || !isReceipt && !strings.HasPrefix(sk, billing.PerPrefix) {
			continue
		}
		var more []report.Sum
		var err error
		if isReceipt {
			more, err = e.sumsOfReceipt(ctx, s, w, writes)
		} else {
			more, err = e.sumsOfPeriod(ctx, s, w)
		}
		if err != nil {
			return nil, err
		}
		sums, first = append(sums, more...), cmp.Or(first, sk)
	}
	return e.withSums(writes, sums, s.Account, first, strconv.FormatInt(s.Version, 10)), nil
}

// sumsOfReceipt sets Recovered of the receipt. A record of the period among the deletes tells how it
// had ended.
func (e *Engine) sumsOfReceipt(ctx context.Context, s *billing.Subscription, w *store.Write,
	writes []store.Write) ([]report.Sum, error) {
	r, err := billing.DecodePayment(w.Item)
	if err != nil || r.Kind != billing.Charged && r.Kind != billing.External { // a second payment recovers nothing
		return report.OfReceipt(r), err
	}
	r.Recovered = w.Item.Str(schema.Recovered)
	if slices.ContainsFunc(writes, func(w store.Write) bool {
		return w.Op == store.OpDelete && w.Key == billing.PeriodKey(s.Name, r.Period)
	}) {
		p, err := e.RecordOf(ctx, s.Name, r.Period)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, store.ErrConflict
		case err == nil:
			r.Recovered = cmp.Or(report.Recovery(p, r), r.Recovered)
		case !errors.As(err, new(*billing.IllegibleError)):
			return nil, err
		}
	}
	if r.Recovered != "" {
		w.Item.Set(schema.Recovered, store.S(r.Recovered))
	}
	return report.OfReceipt(r), nil
}

// sumsOfPeriod returns what the record adds. A past period that has failed before adds nothing.
func (e *Engine) sumsOfPeriod(ctx context.Context, s *billing.Subscription, w *store.Write) ([]report.Sum, error) {
	p, err := billing.DecodePeriod(w.Item)
	if err == nil && p.Period < int(s.Raw.Int(schema.Period)) {
		var was *billing.EndedPeriod
		if was, err = e.RecordOf(ctx, s.Name, p.Period); err == nil && was.Ending == billing.EndFailed {
			return nil, nil
		}
		err = billing.IgnoreNotFound(err)
	}
	return report.OfPeriod(p), err
}

// withSums returns the writes with the sums in one of their outbox rows, or in a row of their own,
// whose id tells the event from others.
func (e *Engine) withSums(writes []store.Write, sums []report.Sum, id ...string) []store.Write {
	text := report.Text(sums)
	if text == "" {
		return writes
	}
	for i := range writes {
		if w := &writes[i]; w.Op == store.OpPut && w.Table == e.Tables.Outbox.Name && !outbox.IsHeld(w) {
			outbox.SetSums(w, text)
			return writes
		}
	}
	now := e.Now()
	return append(writes, outbox.Write(e.Tables.Outbox.Name, outbox.Effect{
		ID: outbox.KindSum + "/" + strings.Join(id, "/"), Kind: outbox.KindSum, Due: now, Created: now, Sums: text}))
}

// causesFormat is the first format whose builds store the cause of each status.
const causesFormat = 4

// begin notes since when a store of an older Duesday has kept sums, and the causes of statuses: no build
// that keeps none may be at work beside this one.
func (e *Engine) begin(ctx context.Context, readOnly bool) error {
	if readOnly {
		return nil
	}
	err := e.beginWith(ctx, schema.SumsDate, func() time.Time { return e.Opened.Summed })
	if err == nil && (e.lease == 0 || e.Opened.Format >= causesFormat) {
		err = e.beginWith(ctx, schema.CausesDate, func() time.Time { return e.Opened.Caused })
	}
	return err
}

// beginWith sets the attribute of META to now, unless it has begun.
func (e *Engine) beginWith(ctx context.Context, attribute string, begun func() time.Time) error {
	if !begun().IsZero() {
		return nil
	}
	set := store.NewItem(store.Attribute{Name: attribute, Value: store.S(billing.Stamp(e.Now()))})
	return store.Retry(ctx, "noting "+attribute, func() (err error) {
		err = e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil, store.AttributeAbsent(attribute)))
		if err != nil && !store.Retryable(err) {
			return err
		}
		if e.Opened, err = e.Meta(ctx); err == nil && begun().IsZero() {
			err = store.ErrUnknown // it has not landed
		}
		return err
	})
}
