package tracking

import (
	"context"

	"github.com/duesday/duesday/internal/outbox"
)

// Pending counts the rows of the inbox and of the actions, and the dead rows of both.
func (s *Service) Pending(ctx context.Context) (inbox, actions, dead int, err error) {
	for _, o := range []*outbox.Outbox{s.inbox.queued(), s.actions.queued()} {
		b, err := o.Backlog(ctx, 0)
		if err != nil {
			return 0, 0, 0, err
		}
		inbox, actions, dead = actions, b.Due+b.Later, dead+b.Dead
	}
	return inbox, actions, dead, nil
}
