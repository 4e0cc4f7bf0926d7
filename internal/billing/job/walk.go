package job

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/store"
)

// A walk reads an index date by date, the oldest first, each date partition by partition, and hands
// every row to the run's workers. On a shared store it takes the lease of a partition with rows,
// and returns at the end to those held by others: it has to read every partition to its end itself.
type walk struct {
	j       *job
	rows    chan row
	owner   string
	shared  bool     // by leases, with other processes
	behind  []string // partitions held by others, or refused by the store for now
	refused int      // refusals since a partition was last read to its end
}

// A row names a subscription shown by an index, which may be out of date.
type row struct {
	billing.Name
	date  civil.Date
	wrong error           // of a key that cannot be read
	lease *worker.Lease   // nil on a store of one process alone
	group *sync.WaitGroup // of the rows of its partition
}

// stopGrace is how long the rows under way go on after the caller has stopped the run. The next run
// takes up a row that is cut, as after a crash.
const stopGrace = 10 * time.Second

// walk hands every row of the index on the dates from..until to the workers. A stopped run takes no
// more rows, and finishes those begun, at most stopGrace long if the caller has stopped it.
func (j *job) walk(ctx context.Context, from, until civil.Date,
	handle func(context.Context, billing.Name) error) error {
	begun, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cut) })()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &walk{j: j, rows: make(chan row, 256), owner: rand.Text(),
		shared: j.e.Sharing.Lease > 0 && j.e.Sharing.Claims == nil && j.wet()}
	var workers sync.WaitGroup
	for range max(1, j.options.Workers) {
		workers.Go(func() {
			for r := range w.rows {
				if ctx.Err() == nil && r.lease.Held() {
					err := j.mayGoOn(begun)
					if err == nil {
						if err = r.wrong; err == nil {
							err = handle(begun, r.Name)
						}
					}
					if _, bad := errors.AsType[*billing.IllegibleError](err); bad {
						j.unreadable(r, err)
					} else if err != nil {
						j.fail(err, stop)
					}
					j.progress()
				}
				r.group.Done()
			}
		})
	}
	err := w.dates(ctx, from, until)
	close(w.rows)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// dates visits all partitions once, then waits for those held by others. Rows moved by workers to a
// later date within the span are met again and found not to be due.
func (w *walk) dates(ctx context.Context, from, until civil.Date) error {
	for d := from; !d.After(until); d = d.AddDays(1) {
		for partition := range w.j.e.Partitions(d) {
			if err := w.visit(ctx, partition); err != nil {
				return err
			}
		}
	}
	for len(w.behind) > 0 {
		left := w.behind
		w.behind = nil
		for _, partition := range left {
			if err := w.share(ctx, partition); err != nil {
				return err
			}
		}
		if len(w.behind) < len(left) {
			continue
		}
		if clock.Wait(ctx, max(w.j.e.Sharing.Lease/40, 10*time.Millisecond)) != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// visit hands out the rows of one partition, under its lease on a shared store.
func (w *walk) visit(ctx context.Context, partition string) error {
	if !w.shared {
		return w.hand(ctx, partition, nil)
	}
	q := w.query(partition)
	q.Limit = 1
	there, err := billing.AnyItem(w.j.e.Store.Query(ctx, q))
	switch {
	case err != nil:
		return w.later(partition, err)
	case there:
		return w.share(ctx, partition)
	}
	return nil // most partitions are empty, and not worth a lease
}

func (w *walk) query(partition string) store.Query {
	return store.Query{Table: w.j.e.Table, Index: w.j.index, Partition: partition}
}

// later puts the partition off if the store was busy or lost its answer: the other partitions must
// not wait for it. It returns the error if the refusals go on.
func (w *walk) later(partition string, err error) error {
	const most = 32
	if !errors.Is(err, store.ErrThrottled) && !errors.Is(err, store.ErrUnknown) {
		return err
	}
	if w.refused++; w.refused > most {
		return err
	}
	w.behind = append(w.behind, partition)
	return nil
}

// share hands out a partition's rows under its lease, or puts it off if another worker has that.
func (w *walk) share(ctx context.Context, partition string) error {
	l, err := w.lease(ctx, partition)
	if err != nil {
		return w.later(partition, err)
	}
	if l == nil {
		w.behind = append(w.behind, partition)
		return nil
	}
	always := context.WithoutCancel(ctx) // begun rows are finished under the lease
	stop := l.Keep(always)
	if err = w.hand(ctx, partition, l); err != nil {
		err = w.later(partition, err)
	} else if !l.Held() { // rows were left out
		w.behind = append(w.behind, partition)
	} else {
		w.refused = 0
	}
	stop()
	if err := l.Release(always); err != nil {
		w.j.e.Log.WarnContext(ctx, "a lease could not be released, so it expires by itself", "partition", partition,
			"error", err)
	}
	return err
}

// hand hands out the rows of one partition and, under a lease, waits until they are done.
func (w *walk) hand(ctx context.Context, partition string, l *worker.Lease) error {
	var mine sync.WaitGroup
	if l != nil {
		defer mine.Wait()
	}
	date, err := civil.Parse(billing.IndexDate(partition))
	if err != nil {
		return err
	}
	for it, err := range w.j.e.Store.Query(ctx, w.query(partition)) {
		if err != nil {
			return err
		}
		n, wrong, err := w.j.e.FindRow(ctx, it)
		if err != nil {
			return err
		}
		if !l.Held() {
			break
		}
		mine.Add(1)
		select {
		case w.rows <- row{n, date, wrong, l, &mine}:
		case <-ctx.Done():
			mine.Done()
			return context.Cause(ctx)
		}
	}
	return nil
}

// lease takes the lease of a partition. It returns an error if the store has moved, or if charging
// is off: somebody may be about to move the store.
func (w *walk) lease(ctx context.Context, partition string) (*worker.Lease, error) {
	err := w.j.e.Charging().MayCharge(ctx)
	if err != nil && (w.j.report.Kind == billing.Payments || !errors.Is(err, charging.ErrOff)) {
		return nil, err
	}
	leases := worker.Leases{Records: w.j.e.Records, Length: w.j.e.Sharing.Lease, Ticker: w.j.e.Sharing.Ticker}
	return leases.Acquire(ctx, w.j.report.Kind, partition, w.owner)
}
