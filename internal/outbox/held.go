package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Held mail waits for a decision: a restored store does not know whether it was delivered. No drain looks
// at its queue, also none of an older Duesday. A held row never has Sums: they stay in the queue of its
// origin, in a row of KindSum, and are added without it. Both rows name the same receipts.

// IsHeld reports whether the write puts a held row.
func IsHeld(w *store.Write) bool {
	var e Effect
	if w.Op == store.OpPut {
		e, _ = Decode(w.Item)
	}
	return e.Queue == Held
}

// A Fate is what Decide does with an undelivered row.
type Fate uint8

// The fates.
const (
	Keep    Fate = iota // where it is
	Hold                // in the queue Held
	Release             // in the queue Mail, due now
	Drop                // deleted undelivered
)

// Decide asks for the fate of each row of the queue, except dead letters and rows with only Sums, and
// carries it out in one commit per row. It returns the number of rows for each fate. An interrupted call
// can be repeated. If two calls run at once, only one of them decides about each row.
func (o *Outbox) Decide(ctx context.Context, fate func(Effect) (Fate, error)) (count [Drop + 1]int, err error) {
	var all []store.Item
	for n := range shards {
		for it, err := range o.rows(ctx, store.Query{Partition: o.queue.shard(n)}) {
			if err != nil {
				return count, err
			}
			all = append(all, it)
		}
	}
	for _, it := range all {
		e, _ := Decode(it)
		if e.Kind == KindSum {
			continue
		}
		f, err := fate(e)
		if err == nil && f == Keep {
			count[Keep]++
		} else if err == nil {
			err = o.settle(ctx, &count[f], o.decided(it, e, f)...)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return count, fmt.Errorf("mail %s: %w", e.ID, err)
		}
	}
	return count, nil
}

// decided returns the writes of the fate. They hold only while the row is there with its Sums.
func (o *Outbox) decided(it store.Item, e Effect, f Fate) []store.Write {
	from, row := o.table.KeyOf(it), it.Clone()
	row.Remove(schema.Sums)
	writes := []store.Write{store.Delete(o.table.Name, from)}
	if e.Sums != "" {
		// Under an id of its own: the mail may come back to its place.
		sum := Effect{Queue: e.Queue, ID: KindSum + "/" + e.ID, Due: e.Due, Created: e.Created, Kind: KindSum, Sums: e.Sums,
			Numbered: e.Numbered}
		writes = []store.Write{store.Delete(o.table.Name, from, store.AttributeEquals(schema.Sums, it.Get(schema.Sums))),
			Write(o.table.Name, sum)}
	}
	switch f {
	case Hold:
		o.table.SetKey(&row, Held.keyOf(e.ID, e.Due))
	case Release:
		o.table.SetKey(&row, Mail.keyOf(e.ID, o.now()))
	default:
		return append(writes, o.recorded(it, e, Outcome{End: Unwanted, Asked: true, Tries: e.Tries})...)
	}
	return append(writes, store.Put(o.table.Name, row))
}
