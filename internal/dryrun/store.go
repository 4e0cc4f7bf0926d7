// Package dryrun lets a request run without an effect: over a Store whose commits stay in memory, and a
// charger that answers as if each payment succeeded. What the request would change can then be read.
//
// It knows no request, and it changes nothing in the store and at the processor.
package dryrun

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// A Store reads from another store, keeps its own commits in memory, and shows both together. Index rows, scans
// and the pages of a query after the first are as the other store has them.
type Store struct {
	store.Store
	tables map[string]store.Table // by name

	mu  sync.Mutex
	own map[place]store.Item // nil: removed
}

type place struct {
	table string
	key   store.Key
}

// NewStore returns a Store without commits over base, which has the tables.
func NewStore(base store.Store, tables []store.Table) *Store {
	s := &Store{Store: base, tables: map[string]store.Table{}, own: map[place]store.Item{}}
	for _, t := range tables {
		s.tables[t.Name] = t
	}
	return s
}

// Get returns the item as the commits have made it.
func (s *Store) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(ctx, place{table, key})
}

func (s *Store) get(ctx context.Context, at place) (store.Item, error) {
	it, known := s.own[at]
	switch {
	case !known:
		return s.Store.Get(ctx, at.table, at.key)
	case it == nil:
		return nil, store.ErrNotFound
	}
	return it.Clone(), nil
}

// Query yields a partition with the commits. It reads the whole selection of the other store first, so it is
// for the partition of one account.
func (s *Store) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, of := s.tables[q.Table], q
	if len(s.own) == 0 || q.Index != "" || !q.After.IsZero() {
		return s.Store.Query(ctx, q)
	}
	of.Limit = 0
	var list []store.Item
	for it, err := range s.Store.Query(ctx, of) {
		if err != nil {
			return sequence.Fail[store.Item](err)
		}
		if _, changed := s.own[place{q.Table, t.KeyOf(it)}]; !changed {
			list = append(list, it)
		}
	}
	for at, it := range s.own {
		if sk := at.key.SK; it != nil && at.table == q.Table && at.key.PK == q.Partition && strings.HasPrefix(sk, q.Prefix) && sk >= q.From &&
			(q.To == "" || sk <= q.To) {
			list = append(list, it.Clone())
		}
	}
	slices.SortFunc(list, func(a, b store.Item) int { return strings.Compare(t.KeyOf(a).SK, t.KeyOf(b).SK) })
	if q.Reverse {
		slices.Reverse(list)
	}
	if q.Limit > 0 {
		list = list[:min(q.Limit, len(list))]
	}
	return sequence.Of(list)
}

// Commit keeps the writes in memory, or none of them if a condition does not hold.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[place]store.Item{}
	for i := range writes {
		w := &writes[i]
		t := s.tables[w.Table]
		at := place{w.Table, w.Key}
		if w.Op == store.OpPut {
			at.key = t.KeyOf(w.Item)
		}
		it, err := s.get(ctx, at)
		present := err == nil
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if !holds(w, it, present) {
			return &store.ConflictError{Table: w.Table, Key: at.key}
		}
		if w.Op != store.OpCheck {
			next[at] = written(w, it)
		}
	}
	maps.Copy(s.own, next)
	return nil
}

// holds reports whether the write's conditions are true of the item.
func holds(w *store.Write, it store.Item, present bool) bool {
	needs := w.Op != store.OpPut || w.Was != nil // the item
	for _, c := range w.If {
		if !c.Holds(it, present) {
			return false
		}
		if name, _ := c.Parts(); name == "" && w.Op == store.OpCheck { // Absent
			needs = false
		}
	}
	return present || !needs
}

// written returns the item after the write; nil: it is removed.
func written(w *store.Write, it store.Item) store.Item {
	set, remove := w.Set, w.Remove
	switch {
	case w.Op == store.OpDelete:
		return nil
	case w.Op == store.OpPut && w.Was == nil:
		return w.Item.Clone()
	case w.Op == store.OpPut:
		set, remove = w.Differences()
	}
	for _, a := range set {
		it.Set(a.Name, a.Value)
	}
	for _, name := range remove {
		it.Remove(name)
	}
	return it
}
