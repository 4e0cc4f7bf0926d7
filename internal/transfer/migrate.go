package transfer

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
)

// migration is the id for which a store is fenced while it is migrated.
const migration = "migration"

// Migrate gives a store on which other processes may be at work the format of this program, whose
// version is given, and returns the format that it had. The store is fenced as the source of a copy
// is, so that the processes of every version stop; when no lease lives, its format is raised and
// the fence is lifted. Interrupted, the same call goes on. It returns billing.ErrMoved for a store
// that has moved.
func (c *Copy) Migrate(ctx context.Context, program string) (had int, err error) {
	c.prepare()
	st, err := c.From.MoveState(ctx)
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
