package pebblestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := s.schema.Table(table)
	if err != nil {
		return nil, err
	}
	if err := t.CheckKey(key); err != nil {
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
		return nil, fmt.Errorf("get from %s: %w", table, err)
	}
	if it == nil || l.Expired(it, s.now().Unix()) {
		return nil, store.ErrNotFound
	}
	return it, nil
}

// getDurable returns the item of the current view, expired or not, or nil.
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
