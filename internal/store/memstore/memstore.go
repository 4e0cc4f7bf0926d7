// Package memstore implements package store in memory, for tests and trials. A test can open tens of
// thousands of these stores, and fork one with Snapshot.
//
// It writes nothing to disk, so nothing survives the process. It never deletes expired items: reads hide
// them, but an index still returns them. This is the worst case that package store allows, which makes
// it useful for tests. Its indexes never lag.
package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/RaduBerinde/btreemap"

	"github.com/duesday/duesday/internal/store"
)

// A Store is a store.Store in memory. Items inside it are never changed in place,
// only replaced, so a reader may keep them after it has let go of mu.
type Store struct {
	schema store.Schema
	now    func() time.Time

	mu     sync.RWMutex
	tables map[string]*table // guarded by mu
	closed bool              // guarded by mu
}

// A table holds the items by base key and, for each declared index, by index key.
type table struct {
	decl    *store.Table
	items   *rows
	indexes []*rows
}

// Rows are items in the order of their places: base key in a table, index and base key in an index.
type rows = btreemap.BTreeMap[store.Cursor, store.Item]

// newRows returns no rows. A leaf has up to 31, so a store of three items is one small node; nodes
// are not kept for reuse.
func newRows() *rows {
	return btreemap.NewWithFreeList(16, compare, btreemap.NewFreeList[store.Cursor, store.Item](0))
}

// compare orders places as the contract orders rows; in a table the index keys are empty.
func compare(a, b store.Cursor) int {
	if c := a.Index.Compare(b.Index); c != 0 {
		return c
	}
	return a.Key.Compare(b.Key)
}

var _ store.Store = (*Store)(nil)

// Open returns an empty store of these tables. now, called without a lock, is the clock for expiry.
func Open(tables []store.Table, now func() time.Time) (*Store, error) {
	schema, err := store.NewSchema(tables...)
	if err != nil {
		return nil, err
	}
	s := &Store{schema: schema, now: now, tables: make(map[string]*table, len(schema))}
	for name, decl := range schema {
		t := &table{decl: decl, items: newRows()}
		for range decl.Indexes {
			t.indexes = append(t.indexes, newRows())
		}
		s.tables[name] = t
	}
	return s, nil
}

// Snapshot returns an independent copy of the store as it stands, on the same
// clock. The copy is open even when s has been closed, as after a restart.
func (s *Store) Snapshot() *Store {
	s.mu.Lock() // not shared: Clone marks the rows as copied
	defer s.mu.Unlock()
	c := &Store{schema: s.schema, now: s.now, tables: make(map[string]*table, len(s.tables))}
	for name, t := range s.tables {
		copied := &table{decl: t.decl, items: t.items.Clone()}
		for _, x := range t.indexes {
			copied.indexes = append(copied.indexes, x.Clone())
		}
		c.tables[name] = copied
	}
	return c
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	if err := s.schema.CheckCommit(ctx, writes); err != nil {
		return err
	}
	now := s.now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	var few [4]change // most commits are small and need no allocation
	changes := few[:0]
	for i := range writes {
		w := &writes[i]
		t := s.tables[w.Table]
		c := change{table: t, key: w.KeyIn(t.decl)}
		_, c.old, _ = t.items.Get(store.Cursor{Key: c.key})
		present := c.old
		if present != nil && t.decl.Expired(present, now) {
			present = nil
		}
		var err error
		if c.new, err = w.Resolve(t.decl, i, present); err != nil {
			return err
		}
		switch w.Op {
		case store.OpCheck:
			continue
		case store.OpPut:
			c.new = c.new.Clone() // the caller may change its item later
		}
		changes = append(changes, c)
	}
	for _, c := range changes {
		c.apply()
	}
	return nil
}

// Close implements store.Store. A Commit holds mu, so Close waits for it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.closed = true
	return nil
}

// A change replaces the item at the key by another; nil stands for none. old is
// what is stored, expired or not: its index rows have to go in either case.
type change struct {
	table    *table
	key      store.Key
	old, new store.Item
}

func (c change) apply() {
	base := store.Cursor{Key: c.key}
	if c.new == nil {
		c.table.items.Delete(base)
	} else {
		c.table.items.ReplaceOrInsert(base, c.new)
	}
	for i := range c.table.indexes {
		x := &c.table.decl.Indexes[i]
		was, wasIn := x.KeyOf(c.old)
		is, isIn := x.KeyOf(c.new)
		if wasIn && (!isIn || was != is) {
			c.table.indexes[i].Delete(store.Cursor{Key: c.key, Index: was})
		}
		if isIn {
			c.table.indexes[i].ReplaceOrInsert(store.Cursor{Key: c.key, Index: is}, c.new)
		}
	}
}

// rows returns those of the index, or of the table itself for nil.
func (t *table) rows(x *store.Index) *rows {
	for i := range t.indexes {
		if &t.decl.Indexes[i] == x {
			return t.indexes[i]
		}
	}
	return t.items
}
