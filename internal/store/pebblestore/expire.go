package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

const (
	expiryInterval = time.Minute // of the deletion in the background
	// expiryBatch is small so that commits do not wait behind deletions.
	expiryBatch = 256
)

// An expiredRow names the item of a due TTL entry.
type expiredRow struct {
	*layout
	entry []byte // key of the TTL entry
	id    store.Key
}

// An expiryGuard reports whether the clock may decide which items are deleted. It reads the store
// by its argument.
type expiryGuard func(context.Context, store.Store) bool

// ExpireWhile begins the deletion of expired items in the background. It asks may at once and once
// a minute, and deletes nothing while the answer is no: a clock that is ahead would delete what has
// not expired, for good. Without a call nothing is deleted in the background. Later calls change
// nothing.
func (s *Store) ExpireWhile(may func(context.Context, store.Store) bool) {
	select {
	case s.expiry <- may:
	default:
	}
}

// expire is the deletion in the background.
func (s *Store) expire(ctx context.Context) {
	var may expiryGuard
	select {
	case may = <-s.expiry:
	case <-ctx.Done():
		return
	}
	ticker := time.NewTicker(expiryInterval)
	defer ticker.Stop()
	for {
		if may(ctx, s) {
			if _, err := s.DeleteExpired(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
				s.log.Error("store", "event", "expired items could not be deleted", "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// DeleteExpired deletes the expired items with their index rows, and returns how many. Readers
// never see expired items, deleted or not.
func (s *Store) DeleteExpired(ctx context.Context) (int, error) {
	deleted := 0
	for _, l := range s.layouts {
		if l.TTL == "" {
			continue
		}
		after := []byte{l.id, kindExpiry}
		for {
			rows, err := s.dueRows(l, after)
			if err != nil {
				return deleted, err
			}
			if len(rows) == 0 {
				break
			}
			r := &request{expired: rows, done: make(chan error, 1)}
			if err := s.submit(ctx, r); err != nil {
				return deleted, err
			}
			deleted += r.dropped
			after = append(rows[len(rows)-1].entry, 0)
		}
	}
	return deleted, nil
}

func (s *Store) dueRows(l *layout, from []byte) ([]expiredRow, error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	v := s.acquire()
	defer v.release()
	upper := binary.BigEndian.AppendUint64([]byte{l.id, kindExpiry}, uint64(max(s.now().Unix(), 0))+1)
	it, err := v.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	var rows []expiredRow
	for ok := it.First(); ok && len(rows) < expiryBatch; ok = it.Next() {
		entry := bytes.Clone(it.Key())
		id, err := decodeKeyTail(entry[min(expiryHead, len(entry)):])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("table %s: %w", l.Name, err), it.Close())
		}
		rows = append(rows, expiredRow{l, entry, id})
	}
	return rows, it.Close()
}

// dropExpired stages the deletion of the items that are still expired: an item may have got a
// later expiry, or been replaced, since its entry was read.
func (st *stage) dropExpired(rows []expiredRow, now int64) (dropped int, err error) {
	for _, r := range rows {
		key := r.layout.key(r.id)
		e, err := st.load(r.layout, r.id, key)
		if err != nil {
			return dropped, err
		}
		if e.item != nil && r.Expired(e.item, now) {
			st.remove(key, e)
			dropped++
		}
	}
	return dropped, nil
}
