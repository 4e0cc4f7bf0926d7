package httpapi

import (
	"errors"
	"net/http"
	"regexp"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

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
	if err := checkCards(&order); err != nil {
		return err
	}
	if order.Key != "" && order.Key != keys[0] {
		return &tracking.FieldError{Field: "key", Problem: "this is not the " + idempotencyHeader +
			" of the request: leave it out"}
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
	send(w, status, formOfCreated(created))
	return nil
}

// failedOrder is the answer to a failed order. After an unknown error its outcome is unknown.
func (s *server) failedOrder(r *http.Request, err error) error {
	if _, _, known := faultOf(err); known && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, tracking.ErrBody) {
		return err
	}
	s.logFailure(r, err)
	return errUnknown
}

// checkCards refuses an order with a card number in it, wherever a text could be.
func checkCards(o *tracking.Order) error {
	for _, f := range []struct{ name, text string }{
		{"description", o.Description}, {"email", o.Email}, {"name", o.Name},
		{"customer", o.Customer}, {"price", o.Price}, {"payment_method", o.PaymentMethod},
	} {
		if secret.HasCardNumber(f.text) {
			return &tracking.FieldError{Field: f.name,
				Problem: "this looks like a card number, which must never come here: want it given to Stripe alone"}
		}
	}
	return nil
}

func (s *server) listPurchases(w http.ResponseWriter, r *http.Request) error {
	account, limit, err := ofAccount(r)
	if err != nil {
		return err
	}
	list := s.o.Shop.Purchases(r.Context(), account)
	if wantsLines(r) {
		return stream(s, w, r, list, limit, asIs)
	}
	return gather(w, list, limit, "purchases")
}

func (s *server) showPurchase(w http.ResponseWriter, r *http.Request) error {
	id, err := named(r, "id")
	if err != nil {
		return err
	}
	timeline, err := s.o.Shop.Timeline(r.Context(), id)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, timeline)
	return nil
}

func (s *server) listPayments(w http.ResponseWriter, r *http.Request) error {
	account, limit, err := ofAccount(r)
	if err != nil {
		return err
	}
	list := s.o.Shop.Payments(r.Context(), account)
	if wantsLines(r) {
		return stream(s, w, r, list, limit, asIs)
	}
	return gather(w, list, limit, "payments")
}

func (s *server) showPayment(w http.ResponseWriter, r *http.Request) error {
	at, err := named(r, "stripe_account")
	if err != nil {
		return err
	}
	id, err := named(r, "id")
	if err != nil {
		return err
	}
	payment, err := s.o.Shop.Payment(r.Context(), at, id)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, payment)
	return nil
}

// ofAccount reads the parameters of a list of an account's. As lines a list is whole unless
// the caller sets a limit.
func ofAccount(r *http.Request) (account string, limit int, err error) {
	values, err := params(r, "account", "limit")
	if err != nil {
		return "", 0, err
	}
	if account, err = ident(values, "account"); err != nil {
		return "", 0, err
	}
	if account == "" {
		return "", 0, &tracking.FieldError{Field: "account", Problem: "want the UUID of the account"}
	}
	if wantsLines(r) {
		limit, err = count(values, "limit", 0, maxStreamed)
	} else {
		limit, err = count(values, "limit", listLines, maxList)
	}
	return account, limit, err
}

func asIs[T any](v T) any { return v }
