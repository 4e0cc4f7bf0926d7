package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/store"
)

// Cancel abandons an unfinished copy. The destination can then never become live, and the source
// charges again if it did before. Cancel returns ErrRefused if the destination is live. If the
// destination is lost or empty, the source decides.
func (c *Copy) Cancel(ctx context.Context) error {
	c.prepare()
	src, err := c.source(ctx)
	if err != nil {
		return err
	}
	dst, err := c.To.State(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrMissing):
		if src.MovedID != "" {
			return c.giveUp(ctx, src.MovedID, false)
		}
		if n, err := c.unmarkAll(ctx, ""); err != nil || n > 0 {
			return err
		}
		return refuse("there is nothing to cancel, because no copy of %s to %s has started", c.FromName, c.ToName)
	case err != nil:
		return err
	case dst.CopyID == "" || dst.Installation != src.Installation:
		return refuse("%s is not a copy of %s", c.ToName, c.FromName)
	case !dst.Copying && !dst.Canceled:
		return refuse("%s is live, so it may already have charged customers", c.ToName)
	}
	c.id = dst.CopyID
	if err := c.cancelDestination(ctx, dst); err != nil {
		return err
	}
	return c.giveUp(ctx, c.id, true)
}

// giveUp marks the copy as given up at the source, then removes its marks and its fence. It
// searches for marks even if the source has no fence: a repeated Cancel removes leftovers.
func (c *Copy) giveUp(ctx context.Context, id string, destinationCanceled bool) error {
	src, err := c.From.State(ctx)
	if err != nil {
		return err
	}
	if src.MovedID != id {
		if src.Moved == "" {
			_, err = c.unmarkAll(ctx, "")
		}
		return err
	}
	err = c.From.GiveUp(ctx, id, destinationCanceled)
	if errors.Is(err, store.ErrConflict) {
		return refuse("the copy of %s is live or is being activated, so it may already have charged customers", c.FromName)
	}
	if err != nil {
		return err
	}
	if _, err := c.unmarkAll(ctx, id); err != nil {
		return err
	}
	return c.From.Unfence(ctx, id)
}

// cancelDestination excludes that the destination is ever activated.
func (c *Copy) cancelDestination(ctx context.Context, dst *move.State) error {
	const tries = 5
	for range tries {
		if dst.Canceled {
			return nil
		}
		if !dst.Copying {
			return refuse("%s is live, so it may already have charged customers", c.ToName)
		}
		err := c.To.CancelCopy(ctx, c.id, store.Delete(c.table(), planKey(planSK))) // nobody's turn
		if err == nil || (!errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown)) {
			return err
		}
		if dst, err = c.To.State(ctx); err != nil {
			return err
		}
	}
	return ErrOvertaken
}

// markAll is mark for all items of a batch, in one commit where it can be.
func (c *Copy) markAll(ctx context.Context, table int, batch []store.Item) ([]store.Item, error) {
	if !c.recurring(table) {
		return batch, nil
	}
	marked := make([]store.Item, len(batch))
	var writes []store.Write
	for i, it := range batch {
		w, after, ok := c.From.Mark(it, c.id)
		if marked[i] = after; ok {
			writes = append(writes, w)
		}
	}
	if len(writes) == 0 {
		return batch, nil
	}
	err := c.commitMarks(ctx, writes...)
	if err == nil {
		return marked, nil
	}
	if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown) {
		return nil, err
	}
	marked = marked[:0] // another process changes one of them: mark one by one
	for _, it := range batch {
		if it, err = c.mark(ctx, it); err != nil {
			return nil, err
		}
		if it != nil {
			marked = append(marked, it)
		}
	}
	return marked, nil
}

// mark marks an item, also if it changes meanwhile, and returns it as marked; nil if it is gone.
func (c *Copy) mark(ctx context.Context, it store.Item) (store.Item, error) {
	const tries = 32
	t := &c.From.Tables.RecurringPayments
	for range tries {
		w, after, ok := c.From.Mark(it, c.id)
		if !ok {
			return it, nil
		}
		err := c.commitMarks(ctx, w)
		if err == nil {
			return after, nil
		}
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown) {
			return nil, err
		}
		src, err := c.From.State(ctx)
		switch {
		case err != nil:
			return nil, err
		case src.MovedID != c.id || src.GivenUp:
			return nil, errGivenUp
		case src.Final != c.final:
			return nil, ErrOvertaken
		}
		if it, err = c.From.Store.Get(ctx, t.Name, t.KeyOf(it)); errors.Is(err, store.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s/%s in the source changes too often; stop the program that writes it, then run this again", t.KeyOf(it).PK, t.KeyOf(it).SK)
}

// commitMarks commits marks if the source is still fenced for this copy.
func (c *Copy) commitMarks(ctx context.Context, marks ...store.Write) error {
	c.marking.Lock()
	defer c.marking.Unlock()
	return c.From.Store.Commit(ctx, append(marks, c.From.StillFenced(c.id, c.final))...)
}

// unmarkAll removes the marks of an abandoned copy from the source, and returns their number.
// With no id it removes all marks of a source that is not moving.
func (c *Copy) unmarkAll(ctx context.Context, id string) (n int, err error) {
	t := &c.From.Tables.RecurringPayments
	var done int64
	for it, err := range c.From.Store.Scan(ctx, store.Scan{Table: t.Name}) {
		if err != nil {
			return n, fmt.Errorf("removing the copy's marks from the source: %w", err)
		}
		if _, ok := c.From.Unmark(it, id); ok {
			n++
		}
		if err := c.unmark(ctx, it, id); err != nil {
			return n, fmt.Errorf("removing the copy's marks from the source: %w", err)
		}
		done++
		c.Progress(Lifting, done)
	}
	return n, nil
}

func (c *Copy) unmark(ctx context.Context, it store.Item, id string) error {
	const tries = 32
	t := &c.From.Tables.RecurringPayments
	for range tries {
		w, ok := c.From.Unmark(it, id)
		if !ok {
			return nil
		}
		err := c.From.Store.Commit(ctx, w, c.From.StillLifting(id))
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown) {
			return err
		}
		if it, err = c.From.Store.Get(ctx, t.Name, t.KeyOf(it)); errors.Is(err, store.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		src, err := c.From.State(ctx)
		if err != nil {
			return err
		}
		if _, left := c.From.Unmark(it, id); left && (src.MovedID != id || src.GivenUp != (id != "")) {
			return ErrOvertaken // by another copy
		}
	}
	return fmt.Errorf("%s/%s in the source changes too often; stop the program that writes it, then run this again", t.KeyOf(it).PK, t.KeyOf(it).SK)
}
