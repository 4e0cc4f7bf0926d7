package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Leases share a run's rows among processes on a shared store. The holder of the lease of an index
// partition works on its rows, and the other processes work on other partitions.
//
// A lease only saves work. The subscription's version, which billing.Records.Put checks, decides which
// worker wins, with any clocks and any number of holders.
type Leases struct {
	*billing.Records
	Length time.Duration // when other processes take over a silent worker's partitions
	Ticker Ticker
}

// A Lease is the item LEASE#<kind>/<partition> as this process wrote it. A nil Lease is always held.
type Lease struct {
	in    *Leases
	key   store.Key
	owner string // random, of one run in one process

	until atomic.Pointer[time.Time]
	lost  atomic.Bool
}

// Acquire acquires the lease for the partition. It returns nil if another live worker holds the
// lease.
func (in *Leases) Acquire(ctx context.Context, kind billing.Kind, partition, owner string) (*Lease, error) {
	l := &Lease{in: in, key: store.Key{PK: billing.LeasePK(kind), SK: partition}, owner: owner}
	taken := false
	err := store.Retry(ctx, "the lease of "+partition, func() error {
		it, err := in.Store.Get(ctx, in.Table, l.key)
		was := []store.Condition{store.Absent()}
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case it.Str(schema.Owner) != owner && in.alive(it):
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
func (in *Leases) alive(it store.Item) bool {
	until := billing.ParseStamp(it.Str(schema.Until))
	now := in.Now()
	return now.Before(until) && !until.After(now.Add(2*in.Length))
}

func (l *Lease) conditions(owner, until string) []store.Condition {
	return []store.Condition{store.AttributeEquals(schema.Owner, store.S(owner)),
		store.AttributeEquals(schema.Until, store.S(until))}
}

func (l *Lease) write(ctx context.Context, was []store.Condition) error {
	until := l.in.Now().Add(l.in.Length)
	err := l.in.Store.Commit(ctx, store.Put(l.in.Table, billing.ItemAt(l.key,
		store.Attribute{Name: schema.Owner, Value: store.S(l.owner)},
		store.Attribute{Name: schema.Until, Value: store.S(billing.Stamp(until))},
		store.Attribute{Name: schema.TTL, Value: store.Int(until.Add(24 * time.Hour).Unix())}), was...))
	if err == nil {
		l.until.Store(&until)
	}
	return err
}

// Held reports whether the lease allows the worker to start another row. After a suspension, a
// worker must not start rows that another worker has taken over. A lease that Held has found
// expired stays lost, and some rows may be left out.
func (l *Lease) Held() bool {
	if l == nil {
		return true
	}
	if !l.in.Now().Before(l.until.Load().Add(-l.in.Length / 12)) {
		l.lost.Store(true)
	}
	return !l.lost.Load()
}

// Keep renews the lease four times in its length until stop is called. If another worker has taken
// it over, it is lost. After another failure, the renewal is tried again until the lease runs out.
func (l *Lease) Keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	end := l.in.Ticker.Every(max(l.in.Length/4, time.Millisecond), func() {
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
func (l *Lease) mine() []store.Condition {
	return l.conditions(l.owner, billing.Stamp(*l.until.Load()))
}

// Release releases the lease. A failure does no harm, because the lease expires by itself.
func (l *Lease) Release(ctx context.Context) error {
	err := l.in.Store.Commit(ctx, store.Delete(l.in.Table, l.key, l.mine()...))
	if store.Retryable(err) {
		return nil // another worker has it
	}
	return err
}
