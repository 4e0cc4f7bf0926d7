package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Report counts the effects that a drain processed. Each effect is in one of the counts.
type Report struct {
	Delivered int
	Dropped   int // no longer wanted
	Failed    int // put off to another try
	Dead      int // moved to the dead letters
}

// Drain delivers, at least once, every effect that is due when it begins, and deletes it. At most
// workers deliveries run at a time, in no particular order. An effect that fails or is unreadable
// does not stop the other effects. Drain returns the first error of the store or of ctx. In that
// case, it leaves some effects unchanged. In a store whose processes can claim names, only one
// drain of a queue works at a time, and Drain returns immediately while another drain works. If
// Drain loses its claim, it cancels its deliveries and claims the queue again.
func (o *Outbox) Drain(ctx context.Context, workers int) (Report, error) {
	var total Report
	c, ok := o.store.(store.Claimer)
	if !ok {
		err := o.drain(ctx, workers, nil, &total)
		return total, err
	}
	for {
		lost, release, err := c.Claim(ctx, "drain "+o.table.Name+" "+string(o.queue), "another drain")
		if _, elsewhere := errors.AsType[*store.ClaimedError](err); elsewhere {
			return total, nil
		}
		if err != nil {
			return total, fmt.Errorf("claim the outbox: %w", err)
		}
		err = o.drain(ctx, workers, lost, &total)
		release()
		if !errors.Is(err, errLost) {
			return total, err
		}
	}
}

// AnyDue reports whether an effect is due. It may miss effects that were written in the last seconds.
// For an empty queue on DynamoDB, it costs half as much as a drain.
func (o *Outbox) AnyDue(ctx context.Context) (bool, error) {
	for n, last := 0, lastDue(o.now()); n < shards; n++ {
		for _, err := range o.rows(ctx, store.Query{Partition: o.queue.shard(n), To: last, Limit: 1, Eventual: true}) {
			return err == nil, err
		}
	}
	return false, nil
}

// errLost: another process may drain the queue now.
var errLost = errors.New("this process lost its claim on the queue")

// drain is Drain with a claim, or without one if lost is nil. errLost: some effects were not begun.
func (o *Outbox) drain(ctx context.Context, workers int, lost <-chan struct{}, total *Report) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	due := make(chan row)
	reports := make([]Report, max(workers, 1))
	var running sync.WaitGroup
	for i := range reports {
		running.Go(func() {
			for it := range due {
				if ctx.Err() != nil {
					continue // empty the channel, or feed would block
				}
				if err := o.process(ctx, it, &reports[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := o.feed(ctx, due, lost) // if it fails, the deliveries under way still end: another drain would repeat them
	close(due)
	running.Wait()
	for _, r := range reports {
		total.Delivered += r.Delivered
		total.Dropped += r.Dropped
		total.Failed += r.Failed
		total.Dead += r.Dead
	}
	return cmp.Or(context.Cause(ctx), err)
}

// feed sends every row that is due now until the claim is lost; one with sums when they are added.
func (o *Outbox) feed(ctx context.Context, due chan<- row, lost <-chan struct{}) error {
	send := func(r row) error {
		select {
		case <-lost:
			return errLost
		case due <- r:
			return nil
		}
	}
	var held []store.Item // rows with sums
	for it, err := range o.DueRows(ctx) {
		switch {
		case err != nil:
		case o.tally == nil || it.Str(schema.Sums) == "":
			err = send(row{Item: it})
		default:
			if held = append(held, it); len(held) == countRows {
				err, held = o.countAndSend(ctx, held, send), nil
			}
		}
		if err != nil {
			return err
		}
	}
	return o.countAndSend(ctx, held, send)
}

// process delivers, drops, puts off or buries one due row. Only errors of the store are returned.
func (o *Outbox) process(ctx context.Context, due row, r *Report) error {
	it := due.Item
	e, err := Decode(it)
	if err != nil {
		return o.bury(ctx, it, e, e.Tries, err, r)
	}
	switch {
	case e.Kind == KindSum:
		return nil // it waits for a drain that counts
	case due.claimed && stamp(o.now().Add(o.lease/2)) >= it.Str(schema.Until):
		return nil // others may have it soon
	case !due.claimed:
		if mine, err := o.ClaimRow(ctx, &it); !mine {
			return err
		}
	}
	var answer string
	wanted, err := o.attempt(context.WithValue(ctx, answerKey{}, &answer), e)
	switch {
	case err == nil && wanted:
		r.Delivered++ // this call has delivered it, even if another one deletes it first
		return o.settle(ctx, new(int), o.gone(it, e, Outcome{End: Delivered, Tries: e.Tries + 1, Answer: answer})...)
	case err == nil:
		return o.settle(ctx, &r.Dropped, o.gone(it, e, Outcome{End: Unwanted, Tries: e.Tries})...)
	case ctx.Err() != nil:
		return nil // the drain was stopped; the effect did not fail
	case errors.Is(err, ErrPermanent):
		return o.bury(ctx, it, e, e.Tries+1, err, r)
	}
	return o.putOff(ctx, it, e, err, r)
}

// A claim is the attribute Until of a row, which keeps its place: half the write units of a row
// that moves, and a quarter for a claim by itself. Of several claims of a row one holds, because
// each sets a later time than it has read.

// claim returns the write that claims the row for the lease, or none of it, and removes these
// attributes. The row becomes as it is after that.
func (o *Outbox) claim(it *store.Item, remove ...string) store.Write {
	*it = it.Clone()
	same := []store.Condition{sameClaim(*it)}
	for _, name := range remove {
		same = append(same, store.AttributeEquals(name, it.Get(name)))
		it.Remove(name)
	}
	var set store.Item
	if o.lease > 0 {
		set = store.NewItem(store.Attribute{Name: schema.Until, Value: store.S(stamp(o.now().Add(o.lease)))})
		it.Set(schema.Until, set.Get(schema.Until))
	}
	return store.Update(o.table.Name, o.table.KeyOf(*it), set, remove, same...)
}

// isClaimed reports whether a claim of the row has not run out.
func (o *Outbox) isClaimed(it store.Item) bool { return it.Str(schema.Until) > stamp(o.now()) }

// sameClaim holds while nobody has claimed the row since it was read.
func sameClaim(it store.Item) store.Condition {
	if it.Has(schema.Until) {
		return store.AttributeEquals(schema.Until, it.Get(schema.Until))
	}
	return store.AttributeAbsent(schema.Until)
}

// attempt asks the guard and delivers. A panic is an error: one effect must not end all the others.
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
	due, retry := NextDue(tries, o.now())
	if !retry {
		return o.bury(ctx, it, e, tries, reason, r)
	}
	later := it.Clone()
	setFailure(&later, tries, reason.Error())
	return o.settle(ctx, &r.Failed, o.moved(later, o.queue.keyOf(e.ID, due))...)
}
