package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Leases share the work of a run among processes on a shared store. The holder of the lease of an
// index partition works on its rows; the others work on other partitions. Leases only save work:
// the charge protocol alone ensures one charge a period, with any clocks and any number of holders.

// A lease is the item LEASE#<kind>/<partition> as this process wrote it.
type lease struct {
	e     *Engine
	key   store.Key
	owner string // random, of one run in one process

	until atomic.Pointer[time.Time]
	lost  atomic.Bool
}

// acquire takes the lease of the partition. It returns nil if another live worker holds it.
func (e *Engine) acquire(ctx context.Context, kind billing.Kind, partition, owner string) (*lease, error) {
	l := &lease{e: e, key: store.Key{PK: billing.LeasePK(kind), SK: partition}, owner: owner}
	taken := false
	err := store.Retry(ctx, "the lease of "+partition, func() error {
		it, err := e.Store.Get(ctx, e.Table, l.key)
		was := []store.Condition{store.Absent()}
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case it.Str(schema.Owner) != owner && e.alive(it):
			taken = true
			return nil
		default:
			was = []store.Condition{billing.Unchanged(schema.Owner, it.Get(schema.Owner)),
				billing.Unchanged(schema.Until, it.Get(schema.Until))}
		}
		return l.write(ctx, was)
	})
	if err != nil || taken {
		return nil, err
	}
	return l, nil
}

// alive reports whether the owner wrote the lease within its length. A lease with a later end was
// written by a clock that is ahead, and does not count.
func (e *Engine) alive(it store.Item) bool {
	until := billing.ParseStamp(it.Str(schema.Until))
	now := e.Now()
	return now.Before(until) && !until.After(now.Add(2*e.lease))
}

func (l *lease) conditions(owner, until string) []store.Condition {
	return []store.Condition{store.AttributeEquals(schema.Owner, store.S(owner)),
		store.AttributeEquals(schema.Until, store.S(until))}
}

func (l *lease) write(ctx context.Context, was []store.Condition) error {
	until := l.e.Now().Add(l.e.lease)
	err := l.e.Store.Commit(ctx, store.Put(l.e.Table, billing.ItemAt(l.key,
		store.Attribute{Name: schema.Owner, Value: store.S(l.owner)},
		store.Attribute{Name: schema.Until, Value: store.S(billing.Stamp(until))},
		store.Attribute{Name: schema.TTL, Value: store.Int(until.Add(24 * time.Hour).Unix())}), was...))
	if err == nil {
		l.until.Store(&until)
	}
	return err
}

// held reports whether the lease is good for another row. After a sleep, a worker must not begin
// rows taken over by another worker. A lease once found expired stays lost: rows may be left out.
func (l *lease) held() bool {
	if l == nil {
		return true
	}
	if !l.e.Now().Before(l.until.Load().Add(-l.e.lease / 12)) {
		l.lost.Store(true)
	}
	return !l.lost.Load()
}

// keep renews the lease four times in its length until stop is called. If another worker has taken
// it over, it is lost. After another failure, the renewal is tried again until the lease runs out.
func (l *lease) keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	end := l.e.every(max(l.e.lease/4, time.Millisecond), func() {
		if !l.lost.Load() && errors.Is(l.write(ctx, l.mine()), store.ErrConflict) {
			l.lost.Store(true)
		}
	})
	return func() {
		cancel() // a renewal that is throttled would hold the end up
		end()
	}
}

// mine holds while the lease is as this process wrote it last.
func (l *lease) mine() []store.Condition {
	return l.conditions(l.owner, billing.Stamp(*l.until.Load()))
}

// release gives the lease back. A failure does no harm, since the lease runs out.
func (l *lease) release(ctx context.Context) error {
	err := l.e.Store.Commit(ctx, store.Delete(l.e.Table, l.key, l.mine()...))
	if store.Retryable(err) {
		return nil // another worker has it
	}
	return err
}

// keyedLocks let one goroutine of this process work on a subscription at a time. They only save
// work (two would look up and confirm the same intent): the commits' conditions decide.
type keyedLocks struct {
	held sync.Map // chan struct{} by billing.Name without SKU; closed by the unlock
}

// lock waits for the subscription and returns its unlock.
func (l *keyedLocks) lock(n billing.Name) (unlock func()) {
	n.SKU = ""
	mine := make(chan struct{})
	for {
		other, taken := l.held.LoadOrStore(n, mine)
		if !taken {
			return func() {
				l.held.Delete(n)
				close(mine)
			}
		}
		<-other.(chan struct{})
	}
}
