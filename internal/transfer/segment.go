package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/store"
)

const (
	maxBatch      = store.MaxWrites - 1 // and the place
	maxBatchBytes = store.MaxCommitBytes - 64<<10
)

// each runs do for every number below n, all at once, and stops the others at the first error.
func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := do(ctx, i); err != nil {
				stop(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// copyAll copies the rest of every segment, and returns the number of items of all segments.
func (c *Copy) copyAll(ctx context.Context) (int64, error) {
	var done atomic.Int64
	for _, p := range c.plan.places {
		done.Add(p.items)
	}
	c.Progress(Copying, done.Load())
	err := each(ctx, len(c.plan.places), func(ctx context.Context, i int) error {
		p := c.plan.places[i]
		if p.done {
			return nil
		}
		err := c.batches(ctx, c.From, p, p.after, maxBatch, func(batch []store.Item, end bool) error {
			if err := c.flush(ctx, p, batch, end); err != nil {
				return err
			}
			c.Progress(Copying, done.Add(int64(len(batch))))
			return nil
		})
		if err != nil {
			return fmt.Errorf("copying %s: %w", c.From.Tables.All()[p.table].Name, err)
		}
		return nil
	})
	return done.Load(), err
}

// batches reads the items of the segment behind a key and calls do for them: for at most so many at
// a time, as fit into one commit. In the last call, which may have no item, end is true.
func (c *Copy) batches(ctx context.Context, side move.Side, p *place, after store.Key, most int,
	do func(batch []store.Item, end bool) error) error {
	var batch []store.Item
	size := 0
	flush := func(end bool) error {
		err := c.pace.take(ctx, len(batch))
		if err == nil {
			err = do(batch, end)
		}
		batch, size = batch[:0], 0
		return err
	}
	scan := store.Scan{Table: side.Tables.All()[p.table].Name, Segment: p.segment, Segments: c.plan.segments,
		After: store.Cursor{Key: after}}
	for it, err := range side.Store.Scan(ctx, scan) {
		if err != nil {
			return err
		}
		n, err := store.Size(it)
		if err != nil {
			return err
		}
		if len(batch) == most || size+n > maxBatchBytes {
			if err := flush(false); err != nil {
				return err
			}
		}
		batch, size = append(batch, it), size+n
	}
	return flush(true)
}

// flush copies the items of one batch and moves the place behind them.
func (c *Copy) flush(ctx context.Context, p *place, batch []store.Item, end bool) error {
	from, to := c.From.Tables.All()[p.table], c.To.Tables.All()[p.table]
	next := *p
	next.step, next.done = p.step+1, end
	if len(batch) > 0 {
		next.after = from.KeyOf(batch[len(batch)-1])
	}
	batch = c.moving(p.table, batch)
	if c.Shared {
		var err error
		if batch, err = c.markAll(ctx, p.table, batch); err != nil {
			return err
		}
	}
	next.items += int64(len(batch))
	writes := make([]store.Write, 0, len(batch)+1)
	for _, it := range batch {
		writes = append(writes, store.Put(to.Name, c.moved(p.table, it)))
	}
	return c.commit(ctx, p, next, append(writes, p.write(c.table(), next)))
}

// commit moves the place with its items. The puts need no condition: the place's step is
// the condition for all of them, and shows after a lost answer whether they have landed.
func (c *Copy) commit(ctx context.Context, p *place, next place, writes []store.Write) error {
	const tries = 5
	for range tries {
		err := c.To.Store.Commit(ctx, writes...)
		switch {
		case err == nil:
			*p = next
			return nil
		case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown):
			return err
		}
		now := *p
		if err := c.readPlace(ctx, &now); err != nil {
			return err
		}
		switch {
		case now.step == next.step && now.after == next.after && errors.Is(err, store.ErrUnknown):
			*p = next
			return nil
		case now.step != p.step || errors.Is(err, store.ErrConflict):
			return ErrOvertaken
		}
	}
	return fmt.Errorf("%w: the store confirmed no commit", store.ErrUnknown)
}

func (c *Copy) recurring(table int) bool {
	return c.From.Tables.All()[table].Name == c.From.Tables.RecurringPayments.Name
}

func (c *Copy) moving(table int, batch []store.Item) []store.Item {
	if !c.recurring(table) {
		return batch
	}
	kept := make([]store.Item, 0, len(batch))
	for _, it := range batch {
		key := c.From.Tables.RecurringPayments.KeyOf(it)
		if !move.Stays(key) && !(c.refill && strings.HasPrefix(key.PK, lookup.Prefix)) {
			kept = append(kept, it)
		}
	}
	return kept
}

// moved returns an item as the destination is to have it.
func (c *Copy) moved(table int, it store.Item) store.Item {
	if !c.recurring(table) {
		return it
	}
	return move.Unmoved(it, c.shard)
}

// A pace lets so many items pass a second, for all goroutines together.
type pace struct {
	now  func() time.Time
	wait func(context.Context, time.Duration) error
	rate int // 0: no limit

	mu   sync.Mutex
	free time.Time // when the next item may pass; guarded by mu
}

func (p *pace) take(ctx context.Context, n int) error {
	if p.rate <= 0 || n == 0 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := p.now()
	if p.free.Before(now) {
		p.free = now
	}
	left := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	p.mu.Unlock()
	if left <= 0 {
		return ctx.Err()
	}
	return p.wait(ctx, left)
}
