package httpapi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"strconv"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// A handler answers a request, unless it returns an error.
type handler func(http.ResponseWriter, *http.Request) error

// routes are the routes behind the key.
func (s *server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	shop := s.o.Shop
	all := map[string]handler{
		"POST /v1/purchases":                     s.createPurchase,
		"GET /v1/purchases":                      ofAccount(s, "purchases", shop.Purchases),
		"GET /v1/purchases/{id}":                 show("id", shop.Timeline),
		"GET /v1/payments":                       ofAccount(s, "payments", shop.Payments),
		"GET /v1/payments/{stripe_account}/{id}": s.showPayment,
	}
	for pattern, do := range all {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := do(w, r); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	return mux
}

// show answers with the one that has the id in the path.
func show[T any](name string, get func(ctx context.Context, id string) (T, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := named(r, name)
		if err != nil {
			return err
		}
		v, err := get(r.Context(), id)
		if err != nil {
			return err
		}
		send(w, http.StatusOK, v)
		return nil
	}
}

// ofAccount answers with a list of an account's under the name. As lines it is whole unless the
// caller sets a limit.
func ofAccount[T any](s *server, name string, list func(context.Context, string) iter.Seq2[T, error]) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := params(r, "account", "limit")
		if err != nil {
			return err
		}
		account := q.Get("account")
		if !idForm.MatchString(account) {
			return field.Wrong("account", "want the UUID of the account")
		}
		limit, most := listLines, maxList
		if wantsLines(r) {
			limit, most = 0, maxStreamed
		}
		if text := q.Get("limit"); text != "" {
			if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > most {
				return field.Wrong("limit", fmt.Sprintf("want 1 to %d", most))
			}
		}
		if wantsLines(r) {
			return stream(s, w, r, list(r.Context(), account), limit)
		}
		return gather(w, list(r.Context(), account), limit, name)
	}
}

// idempotencyForm is the form of a caller's key: printable ASCII.
var idempotencyForm = regexp.MustCompile(`^[ -~]{1,255}$`)

const idempotencyHeader = "Idempotency-Key"

// createPurchase answers 201 for a new purchase, declined or not, and 200 for a repeated one.
func (s *server) createPurchase(w http.ResponseWriter, r *http.Request) error {
	keys := r.Header.Values(idempotencyHeader)
	if len(keys) != 1 || !idempotencyForm.MatchString(keys[0]) {
		return refusef(http.StatusBadRequest, "idempotency_key", "want one %s of 1 to %d printable ASCII characters",
			idempotencyHeader, maxID)
	}
	var order tracking.Order
	if err := readForm(w, r, &order); err != nil {
		return err
	}
	if order.Key != "" && order.Key != keys[0] {
		return field.Wrong("key", "this is not the "+idempotencyHeader+" of the request: leave it out")
	}
	order.Key = keys[0]
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
	return errUnknown
}

func (s *server) showPayment(w http.ResponseWriter, r *http.Request) error {
	at, err := named(r, "stripe_account")
	if err != nil {
		return err
	}
	return show("id", func(ctx context.Context, id string) (*tracking.Payment, error) {
		return s.o.Shop.Payment(ctx, at, id)
	})(w, r)
}
