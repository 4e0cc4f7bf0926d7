package transfer

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
)

// migration is the id for which a store is fenced while it is migrated.
const migration = "migration"

// Migrate upgrades a shared store to this program's format, and returns the previous format. It fences
// the store like the source of a copy until no lease is live and the format is upgraded. After an
// interruption, the same call continues. It returns billing.ErrMoved for a store that has moved.
func (c *Copy) Migrate(ctx context.Context, program string) (had int, err error) {
	c.prepare()
	st, err := c.From.State(ctx)
	if err != nil {
		return 0, err
	}
	if st.Format == billing.FormatVersion && st.MovedID != migration {
		return st.Format, nil
	}
	const to = "here: duesday store migrate is under way, and goes on when it is called again"
	if err := c.From.Fence(ctx, migration, to); err != nil {
		return 0, err
	}
	if err := c.waitForLeases(ctx); err != nil {
		return 0, err
	}
	if err := c.From.SetFormat(ctx, migration, program); err != nil {
		return 0, err
	}
	if err := c.From.GiveUp(ctx, migration, false); err != nil {
		return 0, err
	}
	return st.Format, c.From.Unfence(ctx, migration)
}
