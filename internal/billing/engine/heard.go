package engine

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// Heard brings the open period of a subscription to what its payment intent has become, when
// the processor has told that something happened to it. It looks, and settles by the function
// that runs settle by; it confirms nothing and opens nothing. What it was told of is not
// believed: anybody who can write metadata at the processor can name a subscription. Nothing is
// done, and nil returned, when the intent is not the one that is bound to an open period, and while
// charging is off.
func (e *Engine) Heard(ctx context.Context, account, subscription, intent string) error {
	if err := e.checkClock(ctx); err != nil {
		return err
	}
	meta, err := e.Meta(ctx)
	if err != nil {
		return err
	}
	if meta.Moved != "" || !meta.Charging { // runs look at what is open when charging is on again
		return nil
	}
	s, err := e.Subscription(ctx, billing.Name{Account: account, ID: subscription})
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || !s.Bound(intent) {
		return err
	}
	if retry := s.Open.Retry; !retry.IsZero() && retry.After(s.Today(civil.Date{}, e.Now())) {
		// The decline is recorded, and its day has not come: only money that was taken all the
		// same is news.
		in, err := e.proc.Lookup(ctx, s.Open.Ref)
		if err != nil || in.State != billing.Succeeded {
			return err
		}
	}
	return e.collect(ctx, s.Name, trigger{finish: true, heard: true}, func(Result) {})
}
