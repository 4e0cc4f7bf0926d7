package engine

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/store"
)

// SetEmail changes only the address.
func (e *Engine) SetEmail(ctx context.Context, id, email string) (*billing.Account, error) {
	return account.Update(ctx, e.Records, id, account.Change{Email: &email})
}

// WithRaw is the item that would be written of a subscription that was read with the attribute.
func WithRaw(s *billing.Subscription, name string, v store.Value) store.Item {
	c := *s
	c.Raw = s.Raw.Clone()
	c.Raw.Set(name, v)
	return c.Item()
}

// Sweep is the part of a payment run that cancels orphans.
func (e *Engine) Sweep(ctx context.Context, previous time.Time) (int, error) {
	return e.Charging().CancelOrphans(ctx, previous)
}

// StandStill keeps real time out of the engine's runs: they do not look at the charging switch again,
// and write their record at the start and at the end alone. Two plays of a simulation are the same.
func (e *Engine) StandStill() {
	e.Sharing.Ticker = func(time.Duration) *time.Ticker { return time.NewTicker(1 << 62) }
}
