package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// ErrPermanent means that an effect can never be delivered. The effect becomes a dead letter
// immediately.
var ErrPermanent = errors.New("undeliverable")

// A Deliverer carries out effects. The outbox calls it from several goroutines, and may pass it the
// same effect more than once, even at the same time. The effect's ID identifies repetitions. A
// Deliverer must return nil only after the effect has happened durably, because the outbox then
// deletes the effect. It must limit its own time.
type Deliverer interface {
	Deliver(ctx context.Context, e Effect) error
}

// A Guard reports, right before each delivery, whether the effect is still wanted. An
// unwanted effect is deleted undelivered. An error of the guard counts as a failed delivery.
type Guard func(ctx context.Context, e Effect) (wanted bool, err error)

// An Outbox delivers the effects of one queue in one table. It is safe for concurrent use. Any
// number of outboxes, in any number of processes, may drain one table. An effect may then be
// delivered twice, but is never lost.
type Outbox struct {
	store   store.Store
	table   store.Table
	now     func() time.Time
	deliver Deliverer
	guard   Guard
	queue   Queue
	lease   time.Duration // 0: effects are not claimed
	tally   Tally         // nil: nothing is counted
	numbers Numbers       // nil: nothing gets a number
	record  Recorder      // nil: ends are not recorded
}

// New returns the outbox of the queue Mail in table t of s, with the clock now. A nil guard accepts
// every effect.
func New(s store.Store, t store.Table, now func() time.Time, d Deliverer, g Guard) *Outbox {
	return &Outbox{store: s, table: t, now: now, deliver: d, guard: g}
}

// On returns the outbox of another queue, in the same table and with the same deliverer.
func (o Outbox) On(q Queue) *Outbox {
	o.queue = q
	return &o
}

// Claiming returns an outbox that claims each effect before its delivery. The process that claims
// an effect delivers it, and other processes skip it until the lease ends. Without claims,
// processes that drain the table at the same time deliver the same effects. A claim costs one
// commit, and if the claiming process dies, the effect waits until the lease ends.
func (o Outbox) Claiming(lease time.Duration) *Outbox {
	o.lease = lease
	return &o
}

// A Backlog describes the undelivered rows of a queue, except rows of KindSum.
type Backlog struct {
	Due, Later, Dead int
	Oldest           time.Time // since when the row that waits longest has waited; zero: none waits
}

// Backlog reads the queue: all of it, or, unless most is 0, the first rows of each shard, most of
// them at most, and that many dead letters for each shard. A row waits since it was due, or, if its
// delivery has failed, since it was made.
func (o *Outbox) Backlog(ctx context.Context, most int) (b Backlog, err error) {
	now := o.now()
	for n := range shards {
		for it, err := range o.rows(ctx, store.Query{Partition: o.queue.shard(n), Limit: most}) {
			if err != nil {
				return b, err
			}
			if it.Str(schema.Kind) == KindSum {
				continue
			}
			if o.table.KeyOf(it).SK <= lastDue(now) && !o.isClaimed(it) {
				b.Due++
			} else {
				b.Later++
			}
			e, _ := Decode(it) // an unreadable row has a due time, or none
			since := e.Due
			if e.Tries > 0 {
				since = e.Created
			}
			if since.Before(now) && !since.IsZero() && (b.Oldest.IsZero() || since.Before(b.Oldest)) {
				b.Oldest = since
			}
		}
	}
	for _, err := range o.rows(ctx, store.Query{Partition: o.queue.dead(), Limit: most * shards}) {
		if err != nil {
			return b, err
		}
		b.Dead++
	}
	return b, nil
}

// rows yields the rows of a query in the outbox's table. An error comes last.
func (o *Outbox) rows(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		q.Table = o.table.Name
		for it, err := range o.store.Query(ctx, q) {
			if err != nil {
				err = fmt.Errorf("read the outbox: %w", err)
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

// settle commits the writes at the end of a delivery; one of them deletes the row. It counts a row
// that this call has deleted, and one with an unknown outcome: if it is there, the next drain finds
// it. After a conflict another worker has settled the effect. Any other error is returned.
func (o *Outbox) settle(ctx context.Context, count *int, writes ...store.Write) error {
	// A delivered effect is settled even while the drain is being stopped.
	err := o.store.Commit(context.WithoutCancel(ctx), writes...)
	switch {
	case err == nil, errors.Is(err, store.ErrUnknown):
		*count++
	case !errors.Is(err, store.ErrConflict):
		return fmt.Errorf("settle an effect: %w", err)
	}
	return nil
}

// moved returns the writes that move a row to another key, without its claim. They hold while the
// claim is as read.
func (o *Outbox) moved(it store.Item, to store.Key) []store.Write {
	from, same := o.table.KeyOf(it), sameClaim(it)
	it.Remove(schema.Until)
	o.table.SetKey(&it, to)
	if from == to { // two writes on one key are not allowed, and one is enough
		return []store.Write{store.Put(o.table.Name, it, same)}
	}
	return []store.Write{store.Delete(o.table.Name, from, same), store.Put(o.table.Name, it)}
}

// bury moves the row to the dead letters, with every attribute: a later version may read it.
func (o *Outbox) bury(ctx context.Context, it store.Item, e Effect, tries int, reason error, r *Report) error {
	dead := it.Clone()
	setFailure(&dead, tries, reason.Error())
	dead.Set(schema.DeadDate, store.S(stamp(o.now())))
	writes := o.moved(dead, store.Key{PK: o.queue.dead(), SK: o.table.KeyOf(it).SK})
	return o.settle(ctx, &r.Dead, append(writes, o.recorded(it, e, Outcome{End: GivenUp, Tries: tries, Err: reason})...)...)
}

// Dead yields the dead letters, oldest first, each with the reason in Error. For an unreadable row,
// it yields the readable attributes. If it yields an error, the error comes last.
func (o *Outbox) Dead(ctx context.Context) iter.Seq2[Effect, error] {
	return o.effects(ctx, o.queue.dead())
}

func (o *Outbox) effects(ctx context.Context, partitions ...string) iter.Seq2[Effect, error] {
	rows := sequence.Flat(slices.Values(partitions), func(partition string) iter.Seq2[store.Item, error] {
		return o.rows(ctx, store.Query{Partition: partition})
	})
	return sequence.Map(rows, func(it store.Item) (Effect, error) {
		e, _ := Decode(it) // of a dead letter, the reason was kept when it died
		return e, nil
	})
}

// Forget deletes up to 1,000 dead letters that were given up before the time.
func (o *Outbox) Forget(ctx context.Context, before time.Time) error {
	var old []store.Key
	for it, err := range o.rows(ctx, store.Query{Partition: o.queue.dead(), Limit: 1000}) {
		if err != nil {
			return fmt.Errorf("old dead letters: %w", err)
		}
		if at := it.Str(schema.DeadDate); at != "" && at < stamp(before) {
			old = append(old, o.table.KeyOf(it))
		}
	}
	for _, key := range old {
		if err := o.store.Commit(ctx, store.Delete(o.table.Name, key)); err != nil && !store.Retryable(err) {
			return fmt.Errorf("old dead letters: %w", err)
		}
	}
	return nil
}

// Replay makes the dead letter with this ID due now, with its full number of tries. If several dead
// letters have the ID, it replays the oldest. It returns store.ErrNotFound if there is none,
// store.ErrConflict if another call was faster, and store.ErrUnknown if the outcome is unknown. In
// that case, Dead shows whether the row is still a dead letter.
func (o *Outbox) Replay(ctx context.Context, id string) error {
	for it, err := range o.rows(ctx, store.Query{Partition: o.queue.dead()}) {
		if err != nil {
			return fmt.Errorf("replay %s: %w", id, err)
		}
		if e, _ := Decode(it); e.ID == id {
			return o.revive(ctx, it, e)
		}
	}
	return fmt.Errorf("replay %s: there is no such dead letter: %w", id, store.ErrNotFound)
}

// revive keeps the last error, the reason of the replay, until the next try.
func (o *Outbox) revive(ctx context.Context, it store.Item, e Effect) error {
	live := it.Clone()
	live.Remove(schema.Tries)
	live.Remove(schema.DeadDate)
	writes := append(o.moved(live, o.queue.keyOf(e.ID, o.now())), o.recorded(it, e, Outcome{End: Replayed})...)
	if err := call.Commit(ctx, o.store, writes...); err != nil {
		return fmt.Errorf("replay %s: %w", e.ID, err)
	}
	return nil
}

// Waiting yields every undelivered effect, with dead letters last. For an unreadable row, it yields
// the readable attributes. If it yields an error, the error comes last.
func (o *Outbox) Waiting(ctx context.Context) iter.Seq2[Effect, error] {
	return o.effects(ctx, append(o.Partitions(), o.queue.dead())...)
}
