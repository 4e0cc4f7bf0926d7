package billingapi

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// previews returns a route for each request that changes a subscription, with the same body, which shows what
// the request would change. It needs no idempotency key.
func (s *server) previews() (all []web.Route) {
	const one = "/v1/accounts/{account}/subscriptions/{subscription}"
	for _, of := range []struct {
		operation, path string
		do              web.Handler
	}{
		{"previewUpdate", one, s.updateSubscription}, {"previewPause", one + "/pause", s.bare(billing.RequestPause, (*engine.Engine).Pause)},
		{"previewResume", one + "/resume", s.bare(billing.RequestNone, (*engine.Engine).Resume)}, {"previewCancel", one + "/cancel", s.cancel},
		{"previewSkip", one + "/skip", s.skip}, {"previewCharge", one + "/charge", s.charge}, {"previewReceipt", one + "/receipts", s.createReceipt},
		{"previewRefund", "/v1/receipts/{number}/refunds", s.refund},
	} {
		all = append(all, route(key.Read, of.operation, "POST "+of.path+"/preview", func(w http.ResponseWriter, r *web.Request) error {
			r.Request = r.WithContext(context.WithValue(r.Context(), dryKey{}, true))
			return of.do(w, r)
		}))
	}
	return all
}

// dryKey is in the context of a request that must not change anything.
type dryKey struct{}

func isDry(r *web.Request) bool { return r.Context().Value(dryKey{}) != nil }

// rehearse sends what the request would change. If the processor is asked for a payment, that is as if the
// payment succeeded. The request's result is there if it is not the subscription.
func (s *server) rehearse(w http.ResponseWriter, r *web.Request, e *engine.Engine, p post) error {
	account, id, _ := strings.Cut(strings.TrimPrefix(p.object, "accounts/"), "/subscriptions/")
	n := billing.Name{Account: account, ID: id}
	old, err := e.Subscription(r.Context(), n)
	if err != nil {
		return err
	}
	dry, c := e.Dry(), *call.Of(r.Context())
	c.Key = "preview " + rand.Text() // the request will have one, and without a key, some are refused; the row stays in memory
	v, err := p.do(call.With(r.Context(), &c), dry)
	if err != nil {
		return err
	}
	now, err := dry.Subscription(r.Context(), n)
	if err != nil {
		return err
	}
	shown := view.Changed(old, now)
	if a, ok := v.(accepted); ok {
		v = a.answer
	}
	if o, ok := v.(view.Object); ok && o.Place("payment_day") < 0 {
		shown = append(shown, "result", o)
	}
	w.Header().Del("ETag") // of a version that is not stored
	return show(w, shown, nil)
}
