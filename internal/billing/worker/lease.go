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

// Leases share a run's rows among the processes on a shared store. Each process works on the rows
// of the index partitions whose leases it holds.
//
// A lease only saves work. The subscription's version, which billing.Records.Put checks, decides
// which worker wins, whatever the clocks show and however many workers believe they hold the lease.
type Leases struct {
	*billing.Records
	Length time.Duration // time after which other processes take over a silent worker's partitions
	Ticker Ticker
}

// A Lease is the item LEASE#<kind>/<partition> that this process wrote. A nil Lease is always held.
type Lease struct {
	in    *Leases
	key   store.Key
	owner string // random, for one run in one process

	until atomic.Pointer[time.Time]
	lost  atomic.Bool
}

// Acquire acquires the partition's lease. It returns nil if another live worker holds the lease.
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

// alive reports whether the owner has written the lease within the lease length. It ignores a lease
// that ends later than that allows, because a clock that is ahead wrote it.
func (in *Leases) alive(it store.Item) bool {
	until := billing.ParseStamp(it.Str(schema.Until))
	now := in.Now()
	return now.Before(until) && !until.After(now.Add(2*in.Length))
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
// worker must not start rows that another worker has taken over. If Held finds that the lease has
// expired, the lease stays lost, and the worker may skip some rows.
func (l *Lease) Held() bool {
	if l == nil {
		return true
	}
	if !l.in.Now().Before(l.until.Load().Add(-l.in.Length / 12)) {
		l.lost.Store(true)
	}
	return !l.lost.Load()
}

// Keep renews the lease four times per lease length until stop is called. If another worker has
// taken over the lease, Keep marks the lease as lost. After any other failure, Keep retries until
// the lease expires.
func (l *Lease) Keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	end := l.in.Ticker.Every(max(l.in.Length/4, time.Millisecond), func() {
		if !l.lost.Load() && errors.Is(l.write(ctx, l.mine()), store.ErrConflict) {
			l.lost.Store(true)
		}
	})
	return func() {
		cancel() // a throttled renewal would delay the end
		end()
	}
}

// mine returns the conditions that are true while the lease is unchanged since this process last
// wrote it.
func (l *Lease) mine() []store.Condition {
	return []store.Condition{store.AttributeEquals(schema.Owner, store.S(l.owner)),
		store.AttributeEquals(schema.Until, store.S(billing.Stamp(*l.until.Load())))}
}

// Release releases the lease. If the release fails, the lease expires by itself, so a failure is
// harmless.
func (l *Lease) Release(ctx context.Context) error {
	err := l.in.Store.Commit(ctx, store.Delete(l.in.Table, l.key, l.mine()...))
	if store.Retryable(err) {
		return nil // another worker holds the lease
	}
	return err
}
