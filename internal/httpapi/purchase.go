package httpapi

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// An orderForm is the body of createPurchase.
type orderForm struct {
	Merchant      *string       `json:"merchant"` // nil: the merchant of the key
	Kind          tracking.Kind `json:"kind"`
	Amount        int64         `json:"amount" empty:"no"`
	Currency      string        `json:"currency"`
	Price         string        `json:"price" decides:"amount currency"`
	Payments      int           `json:"payments" empty:"no"`
	Description   string        `json:"description"`
	Customer      string        `json:"customer"`
	Email         string        `json:"email" decides:"customer"`
	Name          string        `json:"name"`
	PaymentMethod string        `json:"payment_method"`
}

// createPurchase responds with 201 for a new purchase, declined or not, and with 200 for a repeated one.
func (s *server) createPurchase(w http.ResponseWriter, r *web.Request) error {
	text, err := r.IdempotencyKey()
	if err != nil {
		return err
	}
	var f orderForm
	err = r.Read(&f)
	o := tracking.Order{Key: text, By: r.Key.ID, Merchant: *cmp.Or(f.Merchant, &r.Key.Merchant), Kind: f.Kind, Amount: f.Amount,
		Currency: f.Currency, Price: f.Price, Payments: f.Payments, Description: f.Description, Customer: f.Customer, Email: f.Email,
		Name: f.Name, PaymentMethod: f.PaymentMethod}
	if err == nil && !r.Key.Sees(o.Merchant) {
		return web.ErrMerchant
	}
	if !tracking.IsUUID(o.Merchant) {
		err = errors.Join(err, field.Wrong("merchant", "must be the merchant's UUID"))
	}
	if err != nil {
		return errors.Join(err, o.Check())
	}
	created, err := s.o.Shop.CreatePurchase(r.Context(), o)
	if errors.Is(err, tracking.ErrOther) {
		if p, err := s.o.Backend.PurchaseOf(r.Context(), strings.ToLower(o.Merchant), text); err == nil {
			return web.KeyUsed("purchases/" + p.ID)
		}
	}
	if err != nil {
		return failedOrder(r, err)
	}
	status := http.StatusCreated
	if created.Repeated {
		status = http.StatusOK
		w.Header().Set(web.ReplayedHeader, "true")
	}
	w.Header().Set("Location", "/v1/purchases/"+created.Purchase.ID)
	web.Send(w, status, view.Ordered(created))
	return nil
}

// failedOrder returns the error for a failed order. After an unknown error, the outcome is unknown.
func failedOrder(r *web.Request, err error) error {
	if _, known := r.ProblemOf(err); known && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, tracking.ErrBody) {
		return err
	}
	r.Failed(err)
	if errors.Is(err, tracking.ErrStripeKey) {
		return errStripeKey
	}
	return errUnknown
}

// purchases yields a merchant's purchases, or the one that an idempotency key created.
func (s *server) purchases(q *question) (of rows[*tracking.Purchase], err error) {
	if !q.Has("idempotency_key") {
		return ofMerchant(s.o.Shop.Purchases)(q)
	}
	of, err = ofMerchant(func(ctx context.Context, merchant string, _ tracking.Mark) iter.Seq2[*tracking.Purchase, error] {
		return func(yield func(*tracking.Purchase, error) bool) {
			p, err := s.o.Backend.PurchaseOf(ctx, merchant, q.Get("idempotency_key"))
			if !errors.Is(err, store.ErrNotFound) {
				yield(p, err)
			}
		}
	})(q)
	return of, errors.Join(web.CheckKey(q.Get("idempotency_key")), err)
}
