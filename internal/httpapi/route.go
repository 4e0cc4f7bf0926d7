package httpapi

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// routes returns tracking's routes of /v1.
func (s *server) routes() []web.Route {
	shop := s.o.Shop
	return []web.Route{
		{Pattern: "POST /v1/purchases", Operation: "createPurchase", Scope: key.Charge, Merchants: true, Do: s.createPurchase},
		{Pattern: "GET /v1/purchases", Operation: "listPurchases", Scope: key.Read, Merchants: true,
			Do: list(view.Purchase, (*tracking.Purchase).Mark, s.purchases, "merchant", "idempotency_key")},
		{Pattern: "GET /v1/purchases/{purchase}", Operation: "getPurchase", Scope: key.Read, Merchants: true, Do: s.showPurchase},
		{Pattern: "GET /v1/payments", Operation: "listPayments", Scope: key.Read, Merchants: true,
			Do: list(view.Payment, (*tracking.Payment).Mark, ofMerchant(shop.Payments), "merchant")},
		{Pattern: "GET /v1/payments/{stripe_account}/{payment}", Operation: "getPayment", Scope: key.Read, Merchants: true,
			Do: s.showPayment},
		{Pattern: "GET /v1/events", Operation: "listEvents", Scope: key.Read, Merchants: true,
			Do: list(view.EventRow, tracking.EventRow.Mark, s.events, "merchant", "stripe_account", "subscription", "type", "from", "to",
				"status", "source", "details", "order")},
		{Pattern: "GET /v1/events/{event}", Operation: "getEvent", Scope: key.Read, Merchants: true, Do: s.showEvent},
		{Pattern: "POST /v1/events/{event}/replay", Operation: "replayEvent", Scope: key.Write, Do: s.replayEvent},
		{Pattern: "POST /v1/merchants", Operation: "createMerchant", Scope: key.Admin, Do: s.createMerchant},
		{Pattern: "GET /v1/merchants", Operation: "listMerchants", Scope: key.Read, Merchants: true,
			Do: list(view.Merchant, markMerchant, s.merchants, "merchant")},
		{Pattern: "POST /v1/merchants/{stripe_account}/import", Operation: "importMerchant", Scope: key.Admin, Do: s.importMerchant},
		{Pattern: "GET /v1/jobs", Operation: "listJobs", Scope: key.Read, Do: list(viewJob, markJob, s.jobs)},
		{Pattern: "POST /v1/jobs/{job}/retry", Operation: "retryJob", Scope: key.Write, Do: s.retryJob},
	}
}

// show sends a merchant's object, or returns web.ErrNotFound if the key cannot see it.
func show[T any](w http.ResponseWriter, r *web.Request, v T, form func(T) view.Object, merchant func() string, err error) error {
	if errors.Is(err, store.ErrNotFound) || err == nil && r.Key.Merchant != "" && !r.Key.Sees(merchant()) {
		return web.ErrNotFound
	}
	if err == nil {
		web.Send(w, http.StatusOK, form(v))
	}
	return err
}

// ofMerchant finds the rows of one merchant.
func ofMerchant[T any](all func(context.Context, string, tracking.Mark) iter.Seq2[T, error]) func(*question) (rows[T], error) {
	return func(q *question) (of rows[T], err error) {
		merchant, err := q.merchant()
		if err == nil && merchant == "" {
			err = field.Wrong("merchant", "must be the merchant's UUID")
		}
		if err == nil {
			of.all = func(yield func(T, error) bool) { all(q.ctx, merchant, q.after)(yield) }
		}
		return of, err
	}
}

func (s *server) showPurchase(w http.ResponseWriter, r *web.Request) error {
	id := strings.ToLower(r.PathValue("purchase"))
	if !tracking.IsUUID(id) {
		return web.ErrNotFound
	}
	t, err := s.o.Shop.Timeline(r.Context(), id)
	return show(w, r, t, view.Timeline, func() string { return t.Purchase.Merchant }, err)
}

func (s *server) showPayment(w http.ResponseWriter, r *web.Request) error {
	p, err := s.o.Shop.Payment(r.Context(), r.PathValue("stripe_account"), r.PathValue("payment"))
	return show(w, r, p, view.Payment, func() string { return p.Merchant }, err)
}
