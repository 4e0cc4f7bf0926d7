package transfer

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/store"
)

// Cancel gives up an unfinished copy: its destination can never become live from then on,
// and the source charges again if it did before. It is refused when the destination is live.
// The destination may be lost, or empty: the source decides.
func (c *Copy) Cancel(ctx context.Context) error {
	c.prepare()
	src, err := c.source(ctx)
	if err != nil {
		return err
	}
	dst, err := c.To.MoveState(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrMissing):
		if src.MovedID != "" {
			return c.giveUp(ctx, src.MovedID, false)
		}
		if n, err := c.unmarkAll(ctx, ""); err != nil || n > 0 {
			return err
		}
		return refuse("no copy of %s has begun, and there is none at %s", c.FromName, c.ToName)
	case err != nil:
		return err
	case dst.CopyID == "" || dst.Installation != src.Installation:
		return refuse("%s is no copy of %s", c.ToName, c.FromName)
	case !dst.Copying && !dst.Canceled:
		return refuse("%s is live: it may have charged already", c.ToName)
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
	src, err := c.From.MoveState(ctx)
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
		return refuse("the copy of %s is live, or was about to be: it may have charged already", c.FromName)
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
func (c *Copy) cancelDestination(ctx context.Context, dst *billing.MoveState) error {
	const tries = 5
	for range tries {
		if dst.Canceled {
			return nil
		}
		if !dst.Copying {
			return refuse("%s is live: it may have charged already", c.ToName)
		}
		err := c.To.CancelCopy(ctx, c.id, store.Delete(c.table(), planKey(planSK))) // nobody's turn
		if err == nil || (!errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown)) {
			return err
		}
		if dst, err = c.To.MoveState(ctx); err != nil {
			return err
		}
	}
	return ErrOvertaken
}
