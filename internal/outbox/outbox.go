package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// ErrPermanent marks, by errors.Is, an effect that no repetition can deliver: it goes
// to the dead letters at once.
var ErrPermanent = errors.New("undeliverable")

// A Deliverer does what an effect asks for. It is called from several goroutines, and
// may get one effect more than once, even at one time: the effect's ID tells. When it
// returns nil the effect is deleted, so it must have happened, durably. It puts its
// own limit on how long it takes.
type Deliverer interface {
	Deliver(ctx context.Context, e Effect) error
}

// A Guard is asked right before each delivery whether the effect is still wanted; one
// that is not is deleted undelivered. Its error counts as a failed delivery.
type Guard func(ctx context.Context, e Effect) (wanted bool, err error)

// An Outbox delivers the effects of one table. It is safe for concurrent use, and any
// number of them, in any number of processes, may work on one table: that can deliver
// an effect twice, and never loses one.
type Outbox struct {
	store   store.Store
	table   store.Table
	now     func() time.Time
	deliver Deliverer
	guard   Guard
	lane    Lane
	lease   time.Duration // 0: effects are not claimed
}

// New returns the outbox of the lane Mail that is kept in table t of s; now is the clock that effects become
// due by. A nil guard wants everything.
func New(s store.Store, t store.Table, now func() time.Time, d Deliverer, g Guard) *Outbox {
	return &Outbox{store: s, table: t, now: now, deliver: d, guard: g}
}

// On returns the outbox of another lane, in the same table and with the same deliverer.
func (o *Outbox) On(l Lane) *Outbox {
	other := *o
	other.lane = l
	return &other
}

// Claiming returns the outbox with a claim before each delivery: the effect is put off for so
// long, which only one of several processes can do, and delivered by that one. Without it each
// process that drains the table at the same time delivers what it sees. It costs a commit, and an
// effect whose process has died waits for so long.
func (o *Outbox) Claiming(lease time.Duration) *Outbox {
	other := *o
	other.lease = lease
	return &other
}

// Pending counts the effects that are due, those that are due later, and the dead
// letters. It reads them all.
func (o *Outbox) Pending(ctx context.Context) (due, later, dead int, err error) {
	last := lastDue(o.now())
	for n := range shards {
		for it, err := range o.store.Query(ctx, store.Query{Table: o.table.Name, Partition: o.lane.shard(n)}) {
			switch {
			case err != nil:
				return 0, 0, 0, fmt.Errorf("count the outbox: %w", err)
			case o.table.KeyOf(it).SK <= last:
				due++
			default:
				later++
			}
		}
	}
	for _, err := range o.store.Query(ctx, store.Query{Table: o.table.Name, Partition: o.lane.dead()}) {
		if err != nil {
			return 0, 0, 0, fmt.Errorf("count the dead letters: %w", err)
		}
		dead++
	}
	return due, later, dead, nil
}

// settle ends an effect's stay at its place by the given writes, one of which deletes
// it there. It reports whether it was this call that did so, as far as is known.
//
// A conflict means that another worker has settled it: no matter. After an unknown
// outcome the row is gone or still there, and the next drain finds out. Any other
// error is the store's.
func (o *Outbox) settle(ctx context.Context, writes ...store.Write) (bool, error) {
	// What has been delivered is settled even when the drain is being stopped.
	err := o.store.Commit(context.WithoutCancel(ctx), writes...)
	switch {
	case err == nil, errors.Is(err, store.ErrUnknown):
		return true, nil
	case errors.Is(err, store.ErrConflict):
		return false, nil
	}
	return false, fmt.Errorf("settle an effect: %w", err)
}

// moved returns the writes that move a row, as it is, to another key.
func (o *Outbox) moved(it store.Item, to store.Key) []store.Write {
	from := o.table.KeyOf(it)
	o.table.SetKey(&it, to)
	if from == to { // two writes on one key are not allowed, and one suffices
		return []store.Write{store.Put(o.table.Name, it)}
	}
	return []store.Write{store.Delete(o.table.Name, from), store.Put(o.table.Name, it)}
}
