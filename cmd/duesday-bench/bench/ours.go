package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/consumption"
)

// Ours is the product: engine, embedded store, and the sandbox in memory at no latency.
type Ours struct {
	store  *pebblestore.Store
	engine *engine.Engine
	first  civil.Date    // the day on which the first subscriptions are due
	ahead  *atomic.Int64 // of the real clock, in nanoseconds: days pass as they do for a daily job
}

// OpenOurs opens an empty one in the folder.
func OpenOurs(ctx context.Context, dir string, cacheBytes int64) (*Ours, error) {
	tables := schema.New(schema.DefaultPrefix)
	ahead := new(atomic.Int64)
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	s, err := pebblestore.Open(dir, pebblestore.Options{Tables: tables.All(), Names: schema.Names(), Create: true,
		CacheBytes: cacheBytes, Now: now, Holder: "duesday-bench"})
	if err != nil {
		return nil, err
	}
	box, err := sandbox.Open("", sandbox.Options{Now: now})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	e, err := engine.Open(ctx, engine.Options{Store: s, Tables: tables, Processor: box, Now: now,
		Config: engine.DefaultConfig()})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Ours{store: s, engine: e, first: civil.Of(time.Now().UTC()), ahead: ahead}, nil
}

// Close closes it.
func (o *Ours) Close() error { return o.store.Close() }

// Load creates n subscriptions, each of an account of its own, due over so many days in turn. They are
// paid monthly, or yearly if they are due over more days than a month has, so that each day of Load
// has only subscriptions that were never paid.
func (o *Ours) Load(ctx context.Context, n, days, workers int) error {
	const chunk = 48
	_, _, err := load(workers, time.Hour, func(_, i int) (bool, error) {
		at := i * chunk
		if at >= n {
			return false, nil
		}
		batch := make([]billing.NewSubscription, 0, chunk)
		for i := at; i < min(n, at+chunk); i++ {
			one := consumption.Subscription(i, o.first.AddDays(i%days))
			if days > 28 {
				one.Interval = civil.Interval{N: 1, Unit: civil.Year}
			}
			batch = append(batch, one)
		}
		_, err := bulk.Create(ctx, o.engine.Records, batch)
		return true, err
	})
	return err
}

// Pay runs the payment job of the day for the time given and returns how many it charged
// and how long that took: a stopped run finishes its open periods.
func (o *Ours) Pay(ctx context.Context, day civil.Date, workers int, length time.Duration) (charged int,
	took time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if length > 0 {
		timer := time.AfterFunc(length, cancel)
		defer timer.Stop()
	}
	if days := day.DaysSince(o.first); days > 0 {
		o.ahead.Store(int64(days) * int64(24*time.Hour))
	}
	start := time.Now()
	r, err := job.Payments(ctx, o.engine, job.Options{Date: day, Workers: workers})
	took = time.Since(start)
	if err != nil && (r == nil || !errors.Is(err, context.Canceled)) {
		return 0, took, err
	}
	return r.Counts[engine.OutcomePaid], took, nil
}

// Scan streams the due rows of the day, decoded.
func (o *Ours) Scan(ctx context.Context, day civil.Date) (rows int, err error) {
	for _, err := range o.engine.GetDuePaymentsByDate(ctx, day) {
		if err != nil {
			return rows, err
		}
		rows++
	}
	return rows, nil
}

// Day returns the i-th day on which subscriptions of Load are due.
func (o *Ours) Day(i int) civil.Date { return o.first.AddDays(i) }

// Settle waits until no compaction runs, two minutes at most.
func (o *Ours) Settle() { settle(o.store.Metrics) }
