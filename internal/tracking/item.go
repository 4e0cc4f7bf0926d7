package tracking

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// stampLayout is that of the published tables: UTC, sorts as text as it does in time.
const stampLayout = "2006-01-02 15:04:05.000"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// parseStamp returns zero for what is no stamp.
func parseStamp(text string) time.Time {
	t, err := time.Parse(stampLayout, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// A writer makes an item of what is not zero.
type writer struct{ it store.Item }

func (w *writer) text(name, value string) {
	if value != "" {
		w.it.Set(name, store.S(value))
	}
}

func (w *writer) time(name string, t time.Time) {
	if !t.IsZero() {
		w.it.Set(name, store.S(stamp(t)))
	}
}

func (w *writer) number(name string, n int64) {
	if n != 0 {
		w.it.Set(name, store.Int(n))
	}
}

func (w *writer) yes(name string, b bool) {
	if b {
		w.it.Set(name, store.Bool(true))
	}
}

func (w *writer) history(list []Change) {
	if len(list) == 0 {
		return
	}
	values := make([]store.Value, len(list))
	for i, c := range list {
		var of writer
		of.time(schema.EffectAt, c.At)
		of.text(schema.EffectEvent, c.Event)
		of.text(schema.EffectWhat, c.What)
		values[i] = store.M(of.it)
	}
	w.it.Set(schema.TrackedHistory, store.L(values...))
}

func historyOf(it store.Item) (list []Change) {
	for _, v := range it.Get(schema.TrackedHistory).List() {
		of := v.Map()
		list = append(list, Change{At: parseStamp(of.Str(schema.EffectAt)), What: of.Str(schema.EffectWhat), Event: of.Str(schema.EffectEvent)})
	}
	return list
}

// maxHistory is how many changes of one object are kept: the first, and the latest.
const maxHistory = 100

func remember(list []Change, c Change) []Change {
	if len(list) >= maxHistory {
		list = slices.Delete(slices.Clone(list), maxHistory/2, maxHistory/2+1)
	}
	return append(list, c)
}

// head writes what the published tables have in common.
func (w *writer) head(id, stripeAccount, account string, created, updated time.Time, version int64) {
	w.text(schema.TrackedID, id)
	w.text(schema.TrackedStripeAccount, stripeAccount)
	w.text(schema.TrackedAccount, account)
	w.time(schema.TrackedCreated, created)
	w.time(schema.TrackedUpdated, updated)
	w.number(schema.TrackedVersion, version)
}

// items yields the items of a table that an index has under the partition. The index has their
// keys alone: it is written with every change of an item, and lists are read seldom.
func (s *Service) items(ctx context.Context, t *store.Table, index, partition string, reverse bool) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		if partition == "" {
			return
		}
		for row, err := range s.o.Store.Query(ctx, store.Query{Table: t.Name, Index: index, Partition: partition, Reverse: reverse}) {
			if err == nil {
				row, err = s.o.Store.Get(ctx, t.Name, t.KeyOf(row))
			}
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// read makes what people read of items; an error comes last.
func read[T any](items iter.Seq2[store.Item, error], of func(store.Item) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for it, err := range items {
			var v T
			if err == nil {
				v, err = of(it)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}
