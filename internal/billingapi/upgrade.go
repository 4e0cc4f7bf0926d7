package billingapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// upgrade charges the next period now for the new plan. The subscription's upgrade says how it went, so a
// decline is not an error.
func (s *server) upgrade(w http.ResponseWriter, r *web.Request, n billing.Name, c billing.Change, f planRequest) error {
	if !r.Key.Scope.Includes(key.Charge) {
		return errNow
	}
	return s.once(w, r, post{status: http.StatusOK, object: pathOf(n), asked: f, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			a, err := e.UpgradeNow(ctx, n, upgrade.Order{SKU: c.SKU, Amount: c.Amount})
			if a.Repeated && errors.Is(err, charging.ErrOff) { // the request is stored and waits
				err = nil
			}
			return showSubscription(w, a.Subscription, err)
		}})
}

// previewUpgrade shows what upgrade would charge, and the subscription after it.
func (s *server) previewUpgrade(w http.ResponseWriter, r *web.Request, n billing.Name, c billing.Change) error {
	e, err := s.Engine.Fresh(r.Context())
	if err != nil {
		return err
	}
	asked := *call.Of(r.Context())
	asked.Key = "preview" // as the request will have one
	f, sub, err := e.OfferUpgrade(call.With(r.Context(), &asked), n, upgrade.Order{SKU: c.SKU, Amount: c.Amount})
	if err != nil {
		return err
	}
	f.Mark(sub)
	after := sub.AfterUpgrade()
	after.Upgrade = nil // it is only offered
	return show(w, append(view.Subscription(after), "next_due", view.List(after.Upcoming(shownDues), view.Upcoming), "offer", view.Offer(&f)), nil)
}
