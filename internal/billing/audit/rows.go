package audit

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/store"
)

// A run finds a subscription by its row in an index. This file compares every row of a subscription's
// date, and of the dates that a run looks at, with the item. An index may lag behind, and a job may
// run beside the audit: a row that differs is a doubt, and a second look decides.

// A doubt is a row to be looked at again.
type doubt struct {
	store.Key // of the item
	index     int
	at        store.Key // of the row that was met; zero: none was
}

// indexes is the number of indexes of the table. Both have rows of subscriptions.
const indexes = 2

// lag is the time given to an index of a shared store to show the last writes.
const lag = 2 * time.Second

// noteRows notes the rows of the subscription's item.
func (a *auditor) noteRows(s *audited, it store.Item) {
	t := &a.Tables.RecurringPayments
	for i := range indexes {
		x := &t.Indexes[i]
		if at, in := x.KeyOf(it); in {
			s.rows[i] = a.hashItem(t.Project(x, it))
			a.agenda.partitions[i][a.texts[a.once(at.PK)]] = true
		}
	}
}

// readRows reads the rows, and notes the doubts.
func (a *auditor) readRows(ctx context.Context) error {
	g := &a.agenda
	for i := range indexes {
		for d := g.from; !d.After(g.until); d = d.AddDays(1) {
			for partition := range a.Partitions(d) {
				g.partitions[i][partition] = true
			}
		}
		x := &a.Tables.RecurringPayments.Indexes[i]
		for partition := range g.partitions[i] {
			q := store.Query{Table: a.Table, Index: x.Name, Partition: partition}
			for it, err := range a.Store.Query(ctx, q) {
				if err != nil {
					return err
				}
				a.step()
				key := billing.KeyOf(it)
				n, is := billing.NameOf(key)
				if !is {
					continue
				}
				if s := a.find(n); s != nil && a.texts[s.sku] == n.SKU && s.rows[i] == a.hashItem(it) {
					s.rows[i] = 0
					continue
				}
				at, _ := x.KeyOf(it)
				g.doubts = append(g.doubts, doubt{key, i, at})
			}
		}
	}
	for s := range a.each() {
		for i, row := range s.rows {
			if row != 0 {
				key := a.nameOf(s).Key()
				if now, err := a.Load(ctx, a.nameOf(s)); err == nil {
					key = now.Key() // of either form
				}
				g.doubts = append(g.doubts, doubt{Key: key, index: i})
			}
		}
	}
	return nil
}

// lookAgain reports the doubts that are left.
func (a *auditor) lookAgain(ctx context.Context) (err error) {
	if len(a.agenda.doubts) > 0 && a.Shared {
		err = clock.Wait(ctx, lag)
	}
	for i := 0; i < len(a.agenda.doubts) && err == nil; i++ {
		err = a.decide(ctx, a.agenda.doubts[i])
	}
	return err
}

// decide looks at one doubt again: at the item, and at the place in the index.
func (a *auditor) decide(ctx context.Context, d doubt) error {
	t := &a.Tables.RecurringPayments
	x := &t.Indexes[d.index]
	it, err := a.Store.Get(ctx, a.Table, d.Key)
	n, _ := billing.NameOf(d.Key)
	if text := n.TextKey(); errors.Is(err, store.ErrNotFound) && d.at == (store.Key{}) {
		it, err = a.Store.Get(ctx, a.Table, text)
		d.Key = text
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	at, in := x.KeyOf(it)
	if d.at == (store.Key{}) {
		d.at = at
	}
	var want store.Item
	if in && d.at == at {
		want = t.Project(x, it)
	} else if !in && d.at == at {
		return nil // it has left the index meanwhile
	}
	row, err := a.row(ctx, x, d.at, d.Key)
	if err != nil || row.Equal(want) {
		return err
	}
	kind, detail := "index row differs", "the row in %s on %s differs from the item"
	if row == nil {
		kind, detail = "index row missing", "%s has no row on %s, so no run finds it; store copy creates the index again"
	}
	a.problem(kind, n, 0, detail, x.Name, d.at.PK)
	return nil
}

// row returns the row of the item at the place in the index, or nil.
func (a *auditor) row(ctx context.Context, x *store.Index, at, key store.Key) (store.Item, error) {
	q := store.Query{Table: a.Table, Index: x.Name, Partition: at.PK, From: at.SK, To: at.SK}
	for it, err := range a.Store.Query(ctx, q) {
		if err != nil || billing.KeyOf(it) == key {
			return it, err
		}
	}
	return nil, nil
}

// hashItem returns a number that tells the item from others; it is not 0.
func (a *auditor) hashItem(it store.Item) uint32 {
	var h maphash.Hash
	h.SetSeed(a.seed)
	writeValue(&h, store.M(it))
	return uint32(h.Sum64()) | 1
}

func writeValue(h *maphash.Hash, v store.Value) {
	text := func(text string) {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0xFF) // which is in no UTF-8
	}
	_ = h.WriteByte(byte(v.Kind()))
	if v.Bool() {
		_ = h.WriteByte(1)
	}
	text(v.Str() + v.Num() + v.Raw())
	for _, a := range v.Map() {
		text(a.Name)
		writeValue(h, a.Value)
	}
	for _, e := range v.List() {
		writeValue(h, e)
	}
	_ = h.WriteByte(0xFE)
}
