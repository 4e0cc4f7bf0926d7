// Package memstore keeps a store in memory, for tests and trials: the whole
// contract of package store in one process, cheap enough to open by the ten
// thousand and to fork at any moment (Snapshot).
//
// It keeps nothing on a disk, so nothing survives the process, and it never
// deletes expired items: they are hidden, and an index still yields them, which is
// the worst that the contract allows and so the best to test against. Its indexes
// never lag.
package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// A Store is a store.Store in memory. Items and rows inside it are never changed
// in place, only replaced, so a reader may keep them after it has let go of mu.
type Store struct {
	schema store.Schema
	now    func() time.Time

	mu     sync.RWMutex
	tables map[string]*table // guarded by mu
	closed bool              // guarded by mu
}

// A table holds the items by base key and, for each index in the order of its
// declaration, the same items by index key.
type table struct {
	decl    *store.Table
	items   rows
	indexes []rows
}

var _ store.Store = (*Store)(nil)

// Open returns an empty store of these tables. now is the clock that items expire
// by; it is called without a lock held, from any goroutine.
func Open(tables []store.Table, now func() time.Time) (*Store, error) {
	schema, err := store.NewSchema(tables...)
	if err != nil {
		return nil, err
	}
	s := &Store{schema: schema, now: now, tables: make(map[string]*table, len(schema))}
	for name, decl := range schema {
		s.tables[name] = &table{decl: decl, indexes: make([]rows, len(decl.Indexes))}
	}
	return s, nil
}

// Snapshot returns an independent copy of the store as it stands, on the same
// clock. The copy is open even when s has been closed, as after a restart.
func (s *Store) Snapshot() *Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := &Store{schema: s.schema, now: s.now, tables: make(map[string]*table, len(s.tables))}
	for name, t := range s.tables {
		indexes := make([]rows, len(t.indexes))
		for i := range t.indexes {
			indexes[i] = t.indexes[i].clone()
		}
		c.tables[name] = &table{decl: t.decl, items: t.items.clone(), indexes: indexes}
	}
	return c
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, name string, key store.Key) (store.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	decl, err := s.schema.Table(name)
	if err != nil {
		return nil, err
	}
	if err := decl.CheckKey(key); err != nil {
		return nil, err
	}
	now := s.now().Unix()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	it := s.tables[name].items.get(store.Cursor{Key: key})
	if it == nil || decl.Expired(it, now) {
		return nil, store.ErrNotFound
	}
	return it.Clone(), nil
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.schema.CheckCommit(writes); err != nil {
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
		c.old = t.items.get(store.Cursor{Key: c.key})
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
			c.new = c.new.Clone() // it is the caller's
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
		c.table.items.remove(base)
	} else {
		c.table.items.put(base, c.new)
	}
	for i := range c.table.indexes {
		x := &c.table.decl.Indexes[i]
		was, wasIn := x.KeyOf(c.old)
		is, isIn := x.KeyOf(c.new)
		if wasIn && (!isIn || was != is) {
			c.table.indexes[i].remove(store.Cursor{Key: c.key, Index: was})
		}
		if isIn {
			c.table.indexes[i].put(store.Cursor{Key: c.key, Index: is}, c.new)
		}
	}
}
