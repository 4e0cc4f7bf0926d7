package engine

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
)

// Heard brings the open period of a subscription to the state of its payment intent, after an event
// of the processor about it. It looks the intent up and settles as runs settle. It opens and
// confirms nothing. The event's content is not believed: anybody able to write metadata at the
// processor can name a subscription. Heard does nothing and returns nil if the intent is not bound
// to the open period, or while charging is off.
func (e *Engine) Heard(ctx context.Context, account, subscription, intent string) error {
	if err := e.checkClock(ctx); err != nil {
		return err
	}
	meta, err := e.Meta(ctx)
	if err != nil {
		return err
	}
	if meta.Moved != "" || !meta.Charging { // runs look at open periods once charging is on again
		return nil
	}
	s, err := e.Subscription(ctx, billing.Name{Account: account, ID: subscription})
	if err != nil || !s.Bound(intent) {
		return billing.IgnoreNotFound(err)
	}
	return e.collect(ctx, s.Name, work{trigger: byEvent}, func(Result) {})
}
