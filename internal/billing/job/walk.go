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

// A walk reads an index date by date, the oldest first, and each date partition by partition. It
// hands every row to the run's workers. On a shared store, the walk acquires the lease of each
// partition that has rows. It returns at the end to the partitions whose leases other workers held,
// because it must read every partition to its end itself.
type walk struct {
	j       *job
	rows    chan row
	owner   string
	shared  bool     // the walk shares the rows with other processes through leases
	behind  []string // partitions that another worker holds or that the store has refused for now
	refused int      // refusals since the walk last read a partition to its end
}

// A row names a subscription that an index lists. The index may be out of date.
type row struct {
	billing.Name
	date  civil.Date
	wrong error           // error of an unreadable key
	lease *worker.Lease   // nil if only one process uses the store
	group *sync.WaitGroup // counts the unfinished rows of the row's partition
}

// stopGrace is how long active rows may continue after the caller has stopped the run. The next run
// resumes an interrupted row, as it does after a crash.
const stopGrace = 10 * time.Second

// walk hands every index row on the dates from..until to the workers. A stopped run starts no more
// rows and finishes the rows that it has started. If the caller stopped the run, those rows have at
// most stopGrace.
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

// dates visits every partition once, and then waits for the partitions that other workers hold. The
// walk may meet a row again if a worker has moved it to a later date in the span. Such a row is no
// longer due.
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

// visit hands out the rows of one partition. On a shared store, it does so under the partition's
// lease.
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
	return nil // most partitions are empty and need no lease
}

func (w *walk) query(partition string) store.Query {
	return store.Query{Table: w.j.e.Table, Index: w.j.index, Partition: partition}
}

// later postpones the partition if the store was busy or did not answer, so that the other
// partitions do not wait. It returns the error if the store keeps refusing.
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

// share hands out a partition's rows under its lease. It postpones the partition if another worker
// holds the lease.
func (w *walk) share(ctx context.Context, partition string) error {
	l, err := w.lease(ctx, partition)
	if err != nil {
		return w.later(partition, err)
	}
	if l == nil {
		w.behind = append(w.behind, partition)
		return nil
	}
	always := context.WithoutCancel(ctx) // the workers finish the rows that they started under the lease
	stop := l.Keep(always)
	if err = w.hand(ctx, partition, l); err != nil {
		err = w.later(partition, err)
	} else if !l.Held() { // the workers skipped rows
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

// hand hands out the rows of one partition. If it has a lease, it waits until the workers have
// finished the rows.
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

// lease acquires the lease of a partition. It returns an error if the store has moved. For a
// payment run, it also returns an error if charging is off, because an operator may be about to
// move the store.
func (w *walk) lease(ctx context.Context, partition string) (*worker.Lease, error) {
	err := w.j.e.Charging().MayCharge(ctx)
	if err != nil && (w.j.report.Kind == billing.Payments || !errors.Is(err, charging.ErrOff)) {
		return nil, err
	}
	leases := worker.Leases{Records: w.j.e.Records, Length: w.j.e.Sharing.Lease, Ticker: w.j.e.Sharing.Ticker}
	return leases.Acquire(ctx, w.j.report.Kind, partition, w.owner)
}
