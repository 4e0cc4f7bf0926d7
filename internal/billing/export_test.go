package billing

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// SetEmail changes only the address.
func (e *Engine) SetEmail(ctx context.Context, id, email string) (*Account, error) {
	return e.UpdateAccount(ctx, id, AccountChange{Email: &email})
}

// WithRaw is the item that would be written of a subscription that was read with the attribute.
func WithRaw(s *Subscription, name string, v store.Value) store.Item {
	c := *s
	c.raw = s.raw.Clone()
	c.raw.Set(name, v)
	return c.item()
}

// Sweep is the part of a payment run that cancels orphans.
func (e *Engine) Sweep(ctx context.Context, previous time.Time) (int, error) {
	return e.cancelOrphans(ctx, previous)
}
