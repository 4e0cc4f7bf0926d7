package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// An iteration reads a page, releases the view, and then yields, so that a slow loop body does
// not hold back compactions. Pages grow, because most loops end early and some read millions of
// rows.
const (
	firstPage = 16
	fullPage  = 1024
	pageBytes = 1 << 20 // of encoded rows
)

// A walk reads rows between two keys, a page at a time.
type walk struct {
	store        *Store
	lower, upper []byte // upper is exclusive; nil for none
	reverse      bool
	limit        int // 0 for none
	// decode returns the item of a row, or nil to leave it out. tail is the key without its
	// first two bytes; now is in Unix seconds.
	decode func(tail, value []byte, now int64) (store.Item, error)
}

// Query implements store.Store.
func (s *Store) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		_, x, err := s.schema.CheckQuery(q)
		if err != nil {
			yield(nil, err)
			return
		}
		l := s.layouts[q.Table]
		w := walk{store: s, reverse: q.Reverse, limit: q.Limit}
		if x == nil {
			w.baseBounds(l, q)
			w.decode = func(tail, value []byte, now int64) (store.Item, error) {
				return l.visible(tail, value, q.Partition, now)
			}
		} else {
			xl := l.index(q.Index)
			w.indexBounds(l, xl, q)
			w.decode = func(tail, value []byte, now int64) (store.Item, error) {
				return l.decodeIndex(xl, tail, value, q.Partition)
			}
		}
		w.run(ctx, yield)
	}
}

func (l *layout) index(name string) *indexLayout {
	for i := range l.indexes {
		if l.indexes[i].Name == name {
			return &l.indexes[i]
		}
	}
	return nil
}

// visible decodes a base row, or returns nil when the item has expired.
func (l *layout) visible(tail, value []byte, pk string, now int64) (store.Item, error) {
	it, err := l.decodeBase(tail, value, pk)
	if err != nil || l.Expired(it, now) {
		return nil, err
	}
	return it, nil
}

func (w *walk) baseBounds(l *layout, q store.Query) {
	partition := appendBaseKey(nil, l.id, store.Key{PK: q.Partition})
	w.lower = append(bytes.Clone(partition), max(q.From, q.Prefix)...)
	switch {
	case q.To != "":
		w.upper = append(append(bytes.Clone(partition), q.To...), 0)
	default:
		w.upper = successor(append(bytes.Clone(partition), q.Prefix...))
	}
	if !q.After.IsZero() {
		w.resume(appendBaseKey(nil, l.id, q.After.Key))
	}
}

func (w *walk) indexBounds(l *layout, x *indexLayout, q store.Query) {
	partition := appendComponent([]byte{l.id, x.number}, q.Partition)
	w.lower = appendEscaped(bytes.Clone(partition), max(q.From, q.Prefix))
	switch {
	case q.To != "":
		w.upper = append(appendEscaped(bytes.Clone(partition), q.To), escape, afterEnd)
	default:
		w.upper = successor(appendEscaped(bytes.Clone(partition), q.Prefix))
	}
	if !q.After.IsZero() {
		w.resume(appendIndexKey(nil, l.id, x.number, q.After.Index, q.After.Key))
	}
}

// resume moves the bound so that the walk goes on after the row at key. It may take
// over key.
func (w *walk) resume(key []byte) {
	if w.reverse {
		if w.upper == nil || bytes.Compare(key, w.upper) < 0 {
			w.upper = key
		}
		return
	}
	if key = append(key, 0); bytes.Compare(key, w.lower) > 0 {
		w.lower = key
	}
}

func (w *walk) run(ctx context.Context, yield func(store.Item, error) bool) {
	left := w.limit
	for n := firstPage; ; n = min(4*n, fullPage) {
		if w.limit > 0 {
			n = min(n, left)
		}
		items, more, err := w.page(ctx, n)
		for _, it := range items {
			if !yield(it, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if left -= len(items); !more || (w.limit > 0 && left == 0) {
			return
		}
	}
}

// page returns up to n items, and whether there may be more; the next page goes on
// from there.
func (w *walk) page(ctx context.Context, n int) (items []store.Item, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	s := w.store
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return nil, false, store.ErrClosed
	}
	if w.upper != nil && bytes.Compare(w.lower, w.upper) >= 0 {
		return nil, false, nil
	}
	now := s.now().Unix()
	v := s.acquire()
	defer v.release()
	it, err := v.NewIter(&pebble.IterOptions{LowerBound: w.lower, UpperBound: w.upper})
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if closeErr := it.Close(); err == nil {
			err = closeErr
		}
	}()
	first, next := it.First, it.Next
	if w.reverse {
		first, next = it.Last, it.Prev
	}
	items = make([]store.Item, 0, n)
	read, size := 0, 0
	for ok := first(); ok; ok = next() {
		key := it.Key()
		value, err := it.ValueAndErr()
		if err != nil {
			return items, false, err
		}
		item, err := w.decode(key[2:], value, now)
		if err != nil {
			return items, false, fmt.Errorf("row %x: %w", key, err)
		}
		if item != nil {
			items = append(items, item)
		}
		read, size = read+1, size+len(value)
		// Rows left out count too: a walk over a million expired items must not hold its view
		// all that time.
		if len(items) == n || read >= fullPage || size >= pageBytes {
			w.resume(bytes.Clone(key))
			return items, true, nil
		}
	}
	return items, false, it.Error()
}
