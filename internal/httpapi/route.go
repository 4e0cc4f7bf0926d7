package httpapi

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"strings"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// A handler answers a request with a key, unless it returns an error.
type handler func(http.ResponseWriter, *http.Request, *key.Key) error

// A route is one behind the keys. Its scope has no default: without one, no key is enough.
type route struct {
	pattern string
	scope   key.Scope
	do      handler
}

// routes are the routes behind the keys.
func (s *server) routes() *http.ServeMux {
	mux, shop := http.NewServeMux(), s.o.Shop
	for _, to := range []route{
		{"POST /v1/purchases", key.Charge, s.createPurchase},
		{"GET /v1/purchases", key.Read, list(s, ofMerchant(shop.Purchases), "account")},
		{"GET /v1/purchases/{id}", key.Read, s.showPurchase},
		{"GET /v1/payments", key.Read, list(s, ofMerchant(shop.Payments), "account")},
		{"GET /v1/payments/{stripe_account}/{id}", key.Read, s.showPayment},
		{"GET /v1/events", key.Read, list(s, s.events, "account", "stripe_account", "subscription", "type", "from", "to")},
		{"GET /v1/events/{id}", key.Read, s.showEvent},
		{"GET /v1/accounts", key.Read, list(s, s.accounts, "account")},
	} {
		mux.HandleFunc(to.pattern, func(w http.ResponseWriter, r *http.Request) {
			k := keyOf(r)
			err := allow(k, to.scope)
			if err == nil {
				err = to.do(w, r, k)
			}
			if err != nil {
				s.fail(w, r, err)
			}
		})
	}
	return mux
}

var errNone = &refusal{http.StatusNotFound, "not_found", "no such object exists, or the API key cannot see it"}

// show answers with one object of a merchant. One that the key may not see is not found.
func show[T any](w http.ResponseWriter, k *key.Key, v T, merchant func() string, err error) error {
	if errors.Is(err, store.ErrNotFound) || err == nil && k.Merchant != "" && !k.Sees(merchant()) {
		return errNone
	}
	if err == nil {
		send(w, http.StatusOK, v)
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

func (s *server) showPurchase(w http.ResponseWriter, r *http.Request, k *key.Key) error {
	id := strings.ToLower(r.PathValue("id"))
	if !tracking.IsUUID(id) {
		return errNone
	}
	t, err := s.o.Shop.Timeline(r.Context(), id)
	return show(w, k, t, func() string { return t.Purchase.Merchant }, err)
}

func (s *server) showPayment(w http.ResponseWriter, r *http.Request, k *key.Key) error {
	p, err := s.o.Shop.Payment(r.Context(), r.PathValue("stripe_account"), r.PathValue("id"))
	return show(w, k, p, func() string { return p.Merchant }, err)
}

// idempotencyForm is the form of a caller's key: printable ASCII.
var idempotencyForm = regexp.MustCompile(`^[ -~]{1,255}$`)

const idempotencyHeader = "Idempotency-Key"

// createPurchase answers 201 for a new purchase, declined or not, and 200 for a repeated one.
func (s *server) createPurchase(w http.ResponseWriter, r *http.Request, k *key.Key) error {
	keys := r.Header.Values(idempotencyHeader)
	if len(keys) != 1 || !idempotencyForm.MatchString(keys[0]) {
		return refusef(http.StatusBadRequest, "idempotency_key", "the request must have one %s header with 1 to %d printable ASCII characters",
			idempotencyHeader, maxID)
	}
	var order tracking.Order
	if err := readForm(w, r, &order); err != nil {
		return err
	}
	if order.Key != "" && order.Key != keys[0] {
		return field.Wrong("key", "must be empty, or equal to the request's "+idempotencyHeader+"")
	}
	order.Key, order.By = keys[0], k.ID
	if order.Merchant = cmp.Or(order.Merchant, k.Merchant); !k.Sees(order.Merchant) {
		return errMerchant
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
	send(w, status, createdForm{created.Purchase, append([]tracking.Object{}, sale.Objects...), sale.Customer,
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
func (s *server) failedOrder(r *http.Request, err error) error {
	if _, _, known := faultOf(err); known && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, tracking.ErrBody) {
		return err
	}
	s.logFailure(r, err)
	if errors.Is(err, tracking.ErrStripeKey) {
		return errStripeKey
	}
	return errUnknown
}
