package outbox

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// pageRows is the number of rows read at a time: no query stays open during deliveries.
const pageRows = 256

// DueRows yields the queue's rows that are due now and that no other process has claimed. An error comes
// last.
func (o *Outbox) DueRows(ctx context.Context) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for n, last := 0, lastDue(o.now()); n < shards; n++ {
			q := store.Query{Partition: o.queue.shard(n), To: last, Limit: pageRows}
			for more := true; more; {
				page := make([]store.Item, 0, pageRows)
				for it, err := range o.rows(ctx, q) {
					if err != nil {
						yield(nil, err)
						return
					}
					page = append(page, it)
				}
				if more = len(page) == pageRows; more {
					q.After = o.table.CursorAt("", page[pageRows-1])
				}
				for _, it := range page {
					if !o.isClaimed(it) && !yield(it, nil) {
						return
					}
				}
			}
		}
	}
}

// ClaimRow claims the row if the outbox claims effects, and reports whether this process may deliver it.
func (o *Outbox) ClaimRow(ctx context.Context, it *store.Item) (mine bool, err error) {
	if o.lease == 0 {
		return true, nil
	}
	w := o.claim(it)
	if err = o.store.Commit(ctx, w); store.Retryable(err) { // another was faster, or the outcome is unknown
		return false, nil
	}
	if err != nil {
		err = fmt.Errorf("claim an effect: %w", err)
	}
	return err == nil, err
}

// Gone returns the write that deletes the row. It holds while the claim is as read.
func (o *Outbox) Gone(it store.Item) store.Write {
	return store.Delete(o.table.Name, o.table.KeyOf(it), sameClaim(it))
}

// Later returns the writes that move the row to another due time, with it as its content. They hold while
// the claim is as read.
func (o *Outbox) Later(it store.Item, id string, due time.Time) []store.Write {
	return o.moved(it.Clone(), o.queue.keyOf(id, due))
}

// Bury makes the row a dead letter for the reason.
func (o *Outbox) Bury(ctx context.Context, it store.Item, reason error) error {
	return o.bury(ctx, it, Effect{}, 0, reason, new(Report))
}

// Partitions returns the partitions of the queue's undelivered rows.
func (o *Outbox) Partitions() []string {
	list := make([]string, shards)
	for n := range list {
		list[n] = o.queue.shard(n)
	}
	return list
}
