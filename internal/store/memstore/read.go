package memstore

import (
	"context"
	"hash/fnv"
	"iter"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// An iteration collects a page under the lock and yields it without: the loop body
// may write, and may take its time. Pages grow, as most loops end early.
const (
	firstPage = 16
	fullPage  = 256
)

// Query implements store.Store.
func (s *Store) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		decl, x, err := s.schema.CheckQuery(q)
		if err != nil {
			yield(nil, err)
			return
		}
		r := reading{store: s, table: s.tables[q.Table], limit: q.Limit}
		if x == nil {
			r.rows, r.hideExpired = &r.table.items, true
		} else {
			r.project = func(it store.Item) store.Item { return decl.Project(x, it) }
			for i := range decl.Indexes {
				if &decl.Indexes[i] == x {
					r.rows = &r.table.indexes[i]
				}
			}
		}
		r.run(ctx, q.After, yield, func(after store.Cursor, now int64, n int) []row {
			return r.queryPage(q, after, now, n)
		})
	}
}

// Scan implements store.Store. A segment is a share of the partitions, by hash.
func (s *Store) Scan(ctx context.Context, sc store.Scan) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		if _, err := s.schema.CheckScan(sc); err != nil {
			yield(nil, err)
			return
		}
		r := reading{store: s, table: s.tables[sc.Table], hideExpired: true}
		r.rows = &r.table.items
		r.run(ctx, sc.After, yield, func(after store.Cursor, now int64, n int) []row {
			return r.scanPage(sc, after, now, n)
		})
	}
}

// A reading is one iteration over the rows of a table or of an index.
type reading struct {
	store       *Store
	table       *table
	rows        *rows // guarded by store.mu
	hideExpired bool
	project     func(store.Item) store.Item // nil in a table
	limit       int
}

// run yields page after page. page is called with the lock held and returns at most
// n rows; fewer than n mean that there are no more.
func (r *reading) run(ctx context.Context, after store.Cursor, yield func(store.Item, error) bool,
	page func(after store.Cursor, now int64, n int) []row) {
	left := r.limit
	for n := firstPage; ; n = min(2*n, fullPage) {
		if r.limit > 0 {
			n = min(n, left)
		}
		found, err := r.locked(ctx, after, n, page)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, f := range found {
			it := f.item
			if r.project == nil {
				it = it.Clone()
			} else {
				it = r.project(it)
			}
			if !yield(it, nil) {
				return
			}
		}
		left -= len(found)
		if len(found) < n || (r.limit > 0 && left == 0) {
			return
		}
		after = found[len(found)-1].at
	}
}

func (r *reading) locked(ctx context.Context, after store.Cursor, n int,
	page func(after store.Cursor, now int64, n int) []row) ([]row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := r.store.now().Unix()
	r.store.mu.RLock()
	defer r.store.mu.RUnlock()
	if r.store.closed {
		return nil, store.ErrClosed
	}
	return page(after, now, n), nil
}

func (r *reading) queryPage(q store.Query, after store.Cursor, now int64, n int) []row {
	key := func(c store.Cursor) store.Key { return c.Index }
	if q.Index == "" {
		key = func(c store.Cursor) store.Key { return c.Key }
		after.Index = store.Key{}
	}
	// Along the rows, low turns true where the answer begins, high where it is over.
	low := func(c store.Cursor) bool {
		k := key(c)
		return k.PK > q.Partition || (k.PK == q.Partition && k.SK >= max(q.From, q.Prefix))
	}
	high := func(c store.Cursor) bool {
		k := key(c)
		switch {
		case k.PK != q.Partition:
			return k.PK > q.Partition
		case q.Prefix != "":
			return k.SK > q.Prefix && !strings.HasPrefix(k.SK, q.Prefix)
		}
		return q.To != "" && k.SK > q.To
	}
	var found []row
	if q.Reverse {
		at := r.rows.seek(func(c store.Cursor) bool { return high(c) || (!after.IsZero() && compare(c, after) >= 0) })
		for len(found) < n {
			f, then, ok := r.rows.previous(at)
			if !ok || !low(f.at) {
				break
			}
			at, found = then, r.keep(found, f, now)
		}
		return found
	}
	at := r.rows.seek(func(c store.Cursor) bool { return low(c) && (after.IsZero() || compare(c, after) > 0) })
	for len(found) < n {
		f, then, ok := r.rows.next(at)
		if !ok || high(f.at) {
			break
		}
		at, found = then, r.keep(found, f, now)
	}
	return found
}

func (r *reading) scanPage(sc store.Scan, after store.Cursor, now int64, n int) []row {
	after.Index = store.Key{}
	at := r.rows.seek(func(c store.Cursor) bool { return after.IsZero() || compare(c, after) > 0 })
	var found []row
	for len(found) < n {
		f, then, ok := r.rows.next(at)
		if !ok {
			break
		}
		at = then
		if segment(f.at.Key.PK, sc.Segments) == sc.Segment {
			found = r.keep(found, f, now)
		}
	}
	return found
}

func (r *reading) keep(found []row, f row, now int64) []row {
	if r.hideExpired && r.table.decl.Expired(f.item, now) {
		return found
	}
	return append(found, f)
}

func segment(partition string, segments int) int {
	if segments <= 1 {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(partition))
	return int(h.Sum32() % uint32(segments))
}
