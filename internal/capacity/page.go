package capacity

import (
	"context"
	"iter"

	"github.com/duesday/duesday/internal/store"
)

// Query implements store.Store. It reads a page and then yields it, as an engine with
// requests does: a loop that ends early has paid for its page.
func (m *Meter) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	l := Line{Op: OpQuery, Table: q.Table, Index: q.Index, Item: m.name(q.Table, store.Key{PK: q.Partition})}
	c := Strong
	if q.Index != "" {
		c = Eventual
	}
	return m.pages(l, q.Partition, c, q.Limit, func(after store.Cursor, limit int) iter.Seq2[store.Item, error] {
		rest := q
		rest.Limit = limit
		if !after.IsZero() {
			rest.After = after
		}
		return m.Store.Query(ctx, rest)
	})
}

// Scan implements store.Store. It reads a page and then yields it.
func (m *Meter) Scan(ctx context.Context, s store.Scan) iter.Seq2[store.Item, error] {
	return m.pages(Line{Op: OpScan, Table: s.Table}, "", Strong, 0,
		func(after store.Cursor, _ int) iter.Seq2[store.Item, error] {
			rest := s
			if !after.IsZero() {
				rest.After = after
			}
			return m.Store.Scan(ctx, rest)
		})
}

// pages yields the items of read, page by page, and counts each page. read begins after the
// cursor, or at the start for the zero one, and yields at most limit items, 0 meaning all.
func (m *Meter) pages(l Line, partition string, c Consistency, limit int,
	read func(after store.Cursor, limit int) iter.Seq2[store.Item, error]) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		var after store.Cursor
		for left := limit; ; {
			page, bytes, full, err := m.page(l.Index != "", read(after, left))
			if err == nil {
				u := Units{Read: ReadUnits(bytes, c)}
				m.count(l, bytes, u)
				if l.Index != "" {
					m.countPartition(Partition{l.Table, l.Index, partition}, u)
				}
			}
			for _, it := range page {
				if !yield(it, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if left = max(left-len(page), 0); !full || (limit > 0 && left == 0) {
				return
			}
			after = m.schema[l.Table].CursorAt(l.Index, page[len(page)-1])
		}
	}
}

// page collects one page; full means that it ended because of its size.
func (m *Meter) page(index bool, items iter.Seq2[store.Item, error]) (page []store.Item, bytes int, full bool,
	err error) {
	for it, err := range items {
		if err != nil {
			return page, bytes, false, err
		}
		page = append(page, it)
		if bytes += ItemBytes(it); !index {
			bytes += m.token
		}
		if bytes >= PageBytes {
			return page, bytes, true, nil
		}
	}
	return page, bytes, false, nil
}
