package httpapi

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

// routes are the routes of /v1 about what Stripe runs.
func (s *server) routes() []web.Route {
	shop := s.o.Shop
	return []web.Route{
		{Pattern: "POST /v1/purchases", Operation: "createPurchase", Scope: key.Charge, Merchants: true, Do: s.createPurchase},
		{Pattern: "GET /v1/purchases", Operation: "listPurchases", Scope: key.Read, Merchants: true,
			Do: list(ofMerchant(shop.Purchases), "account")},
		{Pattern: "GET /v1/purchases/{id}", Operation: "getPurchase", Scope: key.Read, Merchants: true, Do: s.showPurchase},
		{Pattern: "GET /v1/payments", Operation: "listPayments", Scope: key.Read, Merchants: true,
			Do: list(ofMerchant(shop.Payments), "account")},
		{Pattern: "GET /v1/payments/{stripe_account}/{id}", Operation: "getPayment", Scope: key.Read, Merchants: true,
			Do: s.showPayment},
		{Pattern: "GET /v1/events", Operation: "listEvents", Scope: key.Read, Merchants: true,
			Do: list(s.events, "account", "stripe_account", "subscription", "type", "from", "to")},
		{Pattern: "GET /v1/events/{id}", Operation: "getEvent", Scope: key.Read, Merchants: true, Do: s.showEvent},
		{Pattern: "GET /v1/accounts", Operation: "listMerchants", Scope: key.Read, Merchants: true, Do: list(s.accounts, "account")},
	}
}

// show answers with one object of a merchant. One that the key may not see is not found.
func show[T any](w http.ResponseWriter, r *web.Request, v T, merchant func() string, err error) error {
	if errors.Is(err, store.ErrNotFound) || err == nil && r.Key.Merchant != "" && !r.Key.Sees(merchant()) {
		return web.ErrNotFound
	}
	if err == nil {
		web.Send(w, http.StatusOK, v)
	}
	return err
}

// ofMerchant are the rows of a list of one merchant.
func ofMerchant[T row](all func(context.Context, string, tracking.Mark) iter.Seq2[T, error]) func(*question) (rows[T], error) {
	return func(q *question) (of rows[T], err error) {
		merchant, err := q.merchant()
		if err == nil && merchant == "" {
			err = field.Wrong("account", "must be the merchant's UUID")
		}
		if err == nil {
			of.all = all(q.ctx, merchant, q.after)
		}
		return of, err
	}
}

func (s *server) showPurchase(w http.ResponseWriter, r *web.Request) error {
	id := strings.ToLower(r.PathValue("id"))
	if !tracking.IsUUID(id) {
		return web.ErrNotFound
	}
	t, err := s.o.Shop.Timeline(r.Context(), id)
	return show(w, r, t, func() string { return t.Purchase.Merchant }, err)
}

func (s *server) showPayment(w http.ResponseWriter, r *web.Request) error {
	p, err := s.o.Shop.Payment(r.Context(), r.PathValue("stripe_account"), r.PathValue("id"))
	return show(w, r, p, func() string { return p.Merchant }, err)
}

// createPurchase answers 201 for a new purchase, declined or not, and 200 for a repeated one.
func (s *server) createPurchase(w http.ResponseWriter, r *web.Request) error {
	text, err := r.IdempotencyKey()
	if err != nil {
		return err
	}
	var order tracking.Order
	if err := r.Read(&order); err != nil {
		return err
	}
	if order.Key != "" && order.Key != text {
		return field.Wrong("key", "must be empty, or equal to the request's "+web.KeyHeader)
	}
	order.Key, order.By = text, r.Key.ID
	if order.Merchant = cmp.Or(order.Merchant, r.Key.Merchant); !r.Key.Sees(order.Merchant) {
		return web.ErrMerchant
	}
	created, err := s.o.Shop.CreatePurchase(r.Context(), order)
	if err != nil {
		return s.failedOrder(r, err)
	}
	status := http.StatusCreated
	if created.Repeated {
		status = http.StatusOK
	}
	w.Header().Set("Location", "/v1/purchases/"+created.Purchase.ID)
	sale := &created.Sale
	web.Send(w, status, createdForm{created.Purchase, append([]tracking.Object{}, sale.Objects...), sale.Customer,
		sale.ClientSecret.Reveal(), sale.Declined, sale.Action, created.Repeated})
	return nil
}

// A createdForm is a tracking.Created in JSON.
type createdForm struct {
	Purchase     *tracking.Purchase `json:"purchase"`
	Objects      []tracking.Object  `json:"objects"` // the payment, subscription, schedule at Stripe
	Customer     string             `json:"customer,omitempty"`
	ClientSecret string             `json:"client_secret,omitempty"`
	Declined     string             `json:"declined,omitempty"`
	Action       bool               `json:"action_required,omitempty"`
	Repeated     bool               `json:"repeated,omitempty"`
}

// failedOrder is the answer to a failed order. After an unknown error its outcome is unknown.
func (s *server) failedOrder(r *web.Request, err error) error {
	if _, known := r.ProblemOf(err); known && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, tracking.ErrBody) {
		return err
	}
	r.Failed(err)
	if errors.Is(err, tracking.ErrStripeKey) {
		return errStripeKey
	}
	return errUnknown
}
