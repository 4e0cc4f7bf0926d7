package pebblestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if _, err := s.schema.CheckGet(ctx, table, key); err != nil {
		return nil, err
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	l := s.layouts[table]
	it, err := s.getDurable(l, key)
	if err != nil {
		return nil, fmt.Errorf("get from %s: %w", table, damaged(s.dir, err))
	}
	if it == nil || l.Expired(it, s.now().Unix()) {
		return nil, store.ErrNotFound
	}
	return it, nil
}

// getDurable returns the item of the current view, expired or not, or nil. Pebble's Get is most of its
// 12 to 16 us, and the largest single part of a webhook (docs/performance.md).
func (s *Store) getDurable(l *layout, key store.Key) (store.Item, error) {
	v := s.acquire()
	defer v.release()
	var buf [128]byte
	k := appendBaseKey(buf[:0], l.id, key)
	value, closer, err := v.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	it, err := l.decodeBase(k[2:], value, key.PK)
	return it, errors.Join(err, closer.Close())
}

// An iteration reads a page, releases the view, and then yields, so that a slow loop body does
// not hold back compactions.
const (
	firstPage = 16
	fullPage  = 1024
	pageBytes = 1 << 20 // of encoded rows
)

// Query implements store.Store.
func (s *Store) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return store.Paged(ctx, func() (store.Pages, error) {
		_, x, err := s.schema.CheckQuery(q)
		if err != nil {
			return store.Pages{}, err
		}
		l := s.layouts[q.Table]
		w := walk{store: s, reverse: q.Reverse}
		var after []byte
		if x == nil {
			plain := func(dst []byte, s string) []byte { return append(dst, s...) }
			w.bounds(q, appendBaseKey(nil, l.id, store.Key{PK: q.Partition}), plain, 0)
			after = appendBaseKey(nil, l.id, q.After.Key)
			w.decode = func(tail, value []byte, now int64) (store.Item, error) {
				return l.visible(tail, value, q.Partition, now)
			}
		} else {
			xl := &l.indexes[slices.IndexFunc(l.indexes, func(xl indexLayout) bool { return xl.Name == x.Name })]
			w.bounds(q, appendComponent([]byte{l.id, xl.number}, q.Partition), appendEscaped, escape, afterEnd)
			after = appendIndexKey(nil, l.id, xl.number, q.After.Index, q.After.Key)
			w.decode = func(tail, value []byte, now int64) (store.Item, error) {
				return l.decodeIndex(xl, tail, value, q.Partition)
			}
		}
		if !q.After.IsZero() {
			w.resume(after)
		}
		return store.Pages{Limit: q.Limit, First: firstPage, Full: fullPage, Next: w.page}, nil
	})
}

// Scan implements store.Store. A segment is a set of partitions, by hash: every segment walks
// the whole table and decodes its share. Partition keys begin alike ("ACC#"), so a split by
// ranges would not be even.
func (s *Store) Scan(ctx context.Context, sc store.Scan) iter.Seq2[store.Item, error] {
	return store.Paged(ctx, func() (store.Pages, error) {
		if _, err := s.schema.CheckScan(sc); err != nil {
			return store.Pages{}, err
		}
		l := s.layouts[sc.Table]
		w := walk{store: s, lower: []byte{l.id, kindBase}, upper: []byte{l.id, kindBase + 1}}
		if !sc.After.IsZero() {
			w.resume(appendBaseKey(nil, l.id, sc.After.Key))
		}
		w.decode = func(tail, value []byte, now int64) (store.Item, error) {
			pk, _, _, err := cutComponent(tail)
			if err != nil || !store.InSegment(sc, pk) {
				return nil, err
			}
			return l.visible(tail, value, "", now)
		}
		return store.Pages{First: firstPage, Full: fullPage, Next: w.page}, nil
	})
}

// A walk reads rows between two keys, a page at a time.
type walk struct {
	store        *Store
	lower, upper []byte // upper is exclusive; nil for none
	reverse      bool
	// decode returns the item of a row, or nil to leave it out. tail is the key without its
	// first two bytes; now is in Unix seconds.
	decode func(tail, value []byte, now int64) (store.Item, error)
}

// visible decodes a base row, or returns nil when the item has expired.
func (l *layout) visible(tail, value []byte, pk string, now int64) (store.Item, error) {
	it, err := l.decodeBase(tail, value, pk)
	if err != nil || l.Expired(it, now) {
		return nil, err
	}
	return it, nil
}

// bounds sets the ends of a query of the partition. sort appends a sort key, and end is greater than
// the end of the last one.
func (w *walk) bounds(q store.Query, partition []byte, sort func([]byte, string) []byte, end ...byte) {
	w.lower = sort(bytes.Clone(partition), max(q.From, q.Prefix))
	w.upper = successor(sort(bytes.Clone(partition), q.Prefix))
	if q.To != "" {
		w.upper = append(sort(bytes.Clone(partition), q.To), end...)
	}
}

// resume moves the bound so that the walk goes on after the row at key. It may take over key.
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

// page returns up to n items, and whether there may be more; the next page goes on from there.
func (w *walk) page(n int) (items []store.Item, more bool, err error) {
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
	defer func() { err = damaged(s.dir, cmp.Or(err, it.Close())) }()
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
