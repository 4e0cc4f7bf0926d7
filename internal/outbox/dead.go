package outbox

import (
	"context"
	"fmt"
	"iter"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// bury moves the row to the dead letters. It keeps every attribute: a later version may be
// able to read a row that this one cannot.
func (o *Outbox) bury(ctx context.Context, it store.Item, tries int, reason error, r *Report) error {
	dead := it.Clone()
	setFailure(&dead, tries, reason.Error())
	dead.Set(schema.DeadDate, store.S(stamp(o.now())))
	return o.settle(ctx, &r.Dead, o.moved(dead, store.Key{PK: o.queue.dead(), SK: o.table.KeyOf(it).SK})...)
}

// Dead yields the dead letters, oldest first, each with the reason in Error. Of an unreadable
// one it yields the readable attributes. It yields an error at most once, last.
func (o *Outbox) Dead(ctx context.Context) iter.Seq2[Effect, error] {
	return o.effects(ctx, o.queue.dead(), "the dead letters")
}

// effects yields the effects of a partition, which the error calls by its name.
func (o *Outbox) effects(ctx context.Context, partition, name string) iter.Seq2[Effect, error] {
	return func(yield func(Effect, error) bool) {
		for it, err := range o.store.Query(ctx, store.Query{Table: o.table.Name, Partition: partition}) {
			if err != nil {
				yield(Effect{}, fmt.Errorf("read %s: %w", name, err))
				return
			}
			e, _ := decode(it) // of a dead letter, the reason was kept when it died
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Replay makes the dead letter with this id due now, with all its tries before it. Of several with
// one id it takes the oldest. It returns store.ErrNotFound if there is none, store.ErrConflict if
// another call was faster, and store.ErrUnknown if the outcome is unknown: Dead shows it.
func (o *Outbox) Replay(ctx context.Context, id string) error {
	for it, err := range o.store.Query(ctx, store.Query{Table: o.table.Name, Partition: o.queue.dead()}) {
		if err != nil {
			return fmt.Errorf("replay %s: %w", id, err)
		}
		if e, _ := decode(it); e.ID == id {
			return o.revive(ctx, it, id)
		}
	}
	return fmt.Errorf("replay %s: no dead letter: %w", id, store.ErrNotFound)
}

// revive keeps the last error, the reason of the replay, until the next try.
func (o *Outbox) revive(ctx context.Context, it store.Item, id string) error {
	live := it.Clone()
	live.Remove(schema.Tries)
	live.Remove(schema.DeadDate)
	if err := o.store.Commit(ctx, o.moved(live, o.queue.keyOf(id, o.now()))...); err != nil {
		return fmt.Errorf("replay %s: %w", id, err)
	}
	return nil
}

// Waiting yields every undelivered effect: first the live ones, shard by
// shard, then the dead letters. Of an unreadable one it yields the readable attributes. It
// yields an error at most once, last.
func (o *Outbox) Waiting(ctx context.Context) iter.Seq2[Effect, error] {
	return func(yield func(Effect, error) bool) {
		for n := range shards {
			for e, err := range o.effects(ctx, o.queue.shard(n), "the outbox") {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
		for e, err := range o.Dead(ctx) {
			if !yield(e, err) {
				return
			}
		}
	}
}
