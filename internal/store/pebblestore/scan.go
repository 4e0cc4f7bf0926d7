package pebblestore

import (
	"context"
	"iter"

	"github.com/duesday/duesday/internal/store"
)

// Scan implements store.Store. A segment is a set of partitions, by hash: every segment walks
// the whole table and decodes its share. Partition keys begin alike ("ACC#"), so a split by
// ranges would not be even.
func (s *Store) Scan(ctx context.Context, sc store.Scan) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		if _, err := s.schema.CheckScan(sc); err != nil {
			yield(nil, err)
			return
		}
		l := s.layouts[sc.Table]
		w := walk{store: s, lower: []byte{l.id, kindBase}, upper: []byte{l.id, kindBase + 1}}
		if !sc.After.IsZero() {
			w.resume(appendBaseKey(nil, l.id, sc.After.Key))
		}
		w.decode = func(tail, value []byte, now int64) (store.Item, error) {
			pk, _, _, err := cutComponent(tail)
			if err != nil || !inSegment(pk, sc.Segment, sc.Segments) {
				return nil, err
			}
			return l.visible(tail, value, "", now)
		}
		w.run(ctx, yield)
	}
}

// inSegment must not change: a cursor may be kept while Duesday is updated.
func inSegment(partition []byte, segment, segments int) bool {
	if segments <= 1 {
		return true
	}
	h := uint32(2166136261) // FNV-1a
	for _, b := range partition {
		h = (h ^ uint32(b)) * 16777619
	}
	return h%uint32(segments) == uint32(segment)
}
