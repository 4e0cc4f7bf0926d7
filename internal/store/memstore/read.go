package memstore

import (
	"context"
	"iter"

	"github.com/RaduBerinde/btreemap"

	"github.com/duesday/duesday/internal/store"
)

// A page is collected under the lock and yielded without it: the loop body may write and wait.
const (
	firstPage = 16
	fullPage  = 256
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, name string, key store.Key) (store.Item, error) {
	t, err := s.schema.CheckGet(ctx, name, key)
	if err != nil {
		return nil, err
	}
	now := s.now().Unix()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	_, it, found := s.tables[name].items.Get(store.Cursor{Key: key})
	if !found || t.Expired(it, now) {
		return nil, store.ErrNotFound
	}
	return it.Clone(), nil
}

// Query implements store.Store.
func (s *Store) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return store.Paged(ctx, func() (store.Pages, error) {
		_, x, err := s.schema.CheckQuery(q)
		if err != nil {
			return store.Pages{}, err
		}
		w := walk{Store: s, table: s.tables[q.Table], index: x, reverse: q.Reverse}
		after := q.After
		place := func(sk string) store.Cursor { return store.Cursor{Index: store.Key{PK: q.Partition, SK: sk}} }
		if x == nil {
			place = func(sk string) store.Cursor { return store.Cursor{Key: store.Key{PK: q.Partition, SK: sk}} }
			after.Index = store.Key{}
		}
		w.low = place(max(q.From, q.Prefix))
		w.end = place(q.Prefix + "\xFF") // which is in no UTF-8
		if q.To != "" {
			w.end = place(q.To + "\x00")
		}
		if !after.IsZero() {
			w.resume(after)
		}
		return store.Pages{Limit: q.Limit, First: firstPage, Full: fullPage, Next: w.page}, nil
	})
}

// Scan implements store.Store. A segment is a share of the partitions, by hash.
func (s *Store) Scan(ctx context.Context, sc store.Scan) iter.Seq2[store.Item, error] {
	return store.Paged(ctx, func() (store.Pages, error) {
		if _, err := s.schema.CheckScan(sc); err != nil {
			return store.Pages{}, err
		}
		w := walk{Store: s, table: s.tables[sc.Table], end: store.Cursor{Key: store.Key{PK: "\xFF"}},
			skip: func(c store.Cursor) bool { return !store.InSegment(sc, c.Key.PK) }}
		w.resume(store.Cursor{Key: sc.After.Key})
		return store.Pages{First: firstPage, Full: fullPage, Next: w.page}, nil
	})
}

// A walk is one iteration over the rows of a table or of an index between two places.
type walk struct {
	*Store
	table    *table
	index    *store.Index // nil for the table itself
	low, end store.Cursor // end is exclusive
	reverse  bool
	skip     func(store.Cursor) bool // nil for no row
}

func (w *walk) resume(at store.Cursor) {
	if w.reverse {
		if compare(at, w.end) < 0 {
			w.end = at
		}
		return
	}
	if at.Key.SK += "\x00"; compare(at, w.low) > 0 {
		w.low = at
	}
}

// page returns up to n items; fewer mean that there are no more.
func (w *walk) page(n int) (items []store.Item, more bool, err error) {
	now := w.now().Unix()
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return nil, false, store.ErrClosed
	}
	rows := w.table.rows(w.index)
	found := rows.Ascend(btreemap.GE(w.low), btreemap.LT(w.end))
	if w.reverse {
		found = rows.Descend(btreemap.LT(w.end), btreemap.GE(w.low))
	}
	for at, it := range found {
		switch {
		case w.skip != nil && w.skip(at):
			continue
		case w.index != nil:
			it = w.table.decl.Project(w.index, it)
		case w.table.decl.Expired(it, now):
			continue
		default:
			it = it.Clone()
		}
		if items = append(items, it); len(items) == n {
			w.resume(at)
			return items, true, nil
		}
	}
	return items, false, nil
}
