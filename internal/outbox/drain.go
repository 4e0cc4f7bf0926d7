package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/duesday/duesday/internal/store"
)

// A Report says what a drain did. The counts are disjoint.
type Report struct {
	Delivered int
	Dropped   int // not wanted any more
	Failed    int // will be tried again
	Dead      int // moved to the dead letters
}

func (r *Report) add(s Report) {
	r.Delivered += s.Delivered
	r.Dropped += s.Dropped
	r.Failed += s.Failed
	r.Dead += s.Dead
}

// pageRows is how many rows are read at a time: no query stays open while a slow
// receiver takes its time.
const pageRows = 256

// Drain delivers every effect that is due when it begins, at least once, by at most
// so many workers at a time and in no particular order, and deletes it. An effect
// that fails, or that cannot be read, is put aside and stops no other. It returns the
// first error of the store, or of ctx; then some effects are left as they were.
func (o *Outbox) Drain(ctx context.Context, workers int) (Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	due := make(chan store.Item)
	reports := make([]Report, max(workers, 1))
	var running sync.WaitGroup
	for i := range reports {
		running.Go(func() {
			for it := range due {
				if ctx.Err() != nil {
					continue // take the rest off the feeder's hands
				}
				if err := o.process(ctx, it, &reports[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	if err := o.feed(ctx, due); err != nil {
		cancel(err)
	}
	close(due)
	running.Wait()
	var total Report
	for _, r := range reports {
		total.add(r)
	}
	return total, context.Cause(ctx)
}

// feed sends every row that is due now, shard by shard.
func (o *Outbox) feed(ctx context.Context, due chan<- store.Item) error {
	last := lastDue(o.now())
	for n := range shards {
		q := store.Query{Table: o.table.Name, Partition: o.lane.shard(n), To: last, Limit: pageRows}
		for more := true; more; {
			page := make([]store.Item, 0, pageRows)
			for it, err := range o.store.Query(ctx, q) {
				if err != nil {
					return fmt.Errorf("read the outbox: %w", err)
				}
				page = append(page, it)
			}
			if more = len(page) == pageRows; more {
				q.After = o.table.CursorAt("", page[pageRows-1])
			}
			for _, it := range page {
				due <- it
			}
		}
	}
	return nil
}

// process takes one row from due to done: delivered, dropped, put off or dead. Its
// error is the store's and stops the drain.
func (o *Outbox) process(ctx context.Context, it store.Item, r *Report) error {
	e, err := decode(it)
	if err != nil {
		return o.bury(ctx, it, e.Tries, err, r)
	}
	if o.lease > 0 {
		claimed, mine, err := o.claim(ctx, it, e)
		if err != nil || !mine {
			return err
		}
		it = claimed
	}
	wanted, err := o.attempt(ctx, e)
	switch {
	case err == nil:
		mine, err := o.settle(ctx, store.Delete(o.table.Name, o.table.KeyOf(it)))
		switch {
		case wanted:
			r.Delivered++ // by us, whoever deleted it
		case mine:
			r.Dropped++
		}
		return err
	case ctx.Err() != nil:
		return nil // stopped, and no fault of the effect
	case errors.Is(err, ErrPermanent):
		return o.bury(ctx, it, e.Tries+1, err, r)
	}
	return o.putOff(ctx, it, e, err, r)
}

// claim puts the row off for the lease, and returns it as it then is. It is not ours when another
// process was faster, or may have been.
func (o *Outbox) claim(ctx context.Context, it store.Item, e Effect) (claimed store.Item, mine bool, err error) {
	claimed = it.Clone()
	to := o.lane.keyOf(e.ID, o.now().Add(o.lease))
	writes := o.moved(it.Clone(), to)
	o.table.SetKey(&claimed, to)
	err = o.store.Commit(ctx, writes...)
	switch {
	case err == nil:
		return claimed, true, nil
	case store.Retryable(err):
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("claim an effect: %w", err)
}

// attempt asks the guard and delivers. A panic is an error like any other: one effect
// must not take down the process that carries all the others.
func (o *Outbox) attempt(ctx context.Context, e Effect) (wanted bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("delivery panicked: %v", p)
		}
	}()
	if o.guard != nil {
		if wanted, err := o.guard(ctx, e); err != nil || !wanted {
			return false, err
		}
	}
	return true, o.deliver.Deliver(ctx, e)
}

// putOff moves the row to its next due time, or to the dead letters after its last.
func (o *Outbox) putOff(ctx context.Context, it store.Item, e Effect, reason error, r *Report) error {
	tries := e.Tries + 1
	due, again := nextDue(tries, o.now())
	if !again {
		return o.bury(ctx, it, tries, reason, r)
	}
	later := it.Clone()
	setFailure(&later, tries, reason.Error())
	mine, err := o.settle(ctx, o.moved(later, o.lane.keyOf(e.ID, due))...)
	if mine {
		r.Failed++
	}
	return err
}
