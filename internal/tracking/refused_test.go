package tracking_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/tracking"
)

// TestCreatePurchase_RefusedBeforeStripe checks that an order with an invalid field stores nothing
// and sends no request, and that a corrected order can use the same key.
func TestCreatePurchase_RefusedBeforeStripe(t *testing.T) {
	c := newCounter(t)
	right := c.order(tracking.Product, goodCard)
	for field, change := range map[string]func(*tracking.Order){
		"amount":         func(o *tracking.Order) { o.Amount = 1 },
		"amount ":        func(o *tracking.Order) { o.Currency, o.Amount = "KWD", 1501 },
		"currency":       func(o *tracking.Order) { o.Currency = "XXX" },
		"currency ":      func(o *tracking.Order) { o.Currency = "KPW" }, // Stripe takes none of it
		"customer":       func(o *tracking.Order) { o.Customer = "cus_a-b" },
		"payment_method": func(o *tracking.Order) { o.PaymentMethod = "tok_visa" },
		"email":          func(o *tracking.Order) { o.Email = "ann@" },
		"price":          func(o *tracking.Order) { o.Amount, o.Currency, o.Price = 0, "", "a/b" },
	} {
		o := right
		change(&o)
		_, err := c.service.CreatePurchase(t.Context(), o)
		if f, ok := errors.AsType[*tracking.FieldError](err); !ok || f.Field != strings.TrimSpace(field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for p := range c.service.Purchases(t.Context(), shopAccount, tracking.Mark{}) {
		t.Errorf("stored: %+v", p)
	}
	if _, err := c.service.CreatePurchase(t.Context(), right); err != nil || c.charges() != 1 {
		t.Errorf("the right order, under the same key: %v, %d charges", err, c.charges())
	}
}

// TestCreatePurchase_RevokedKey checks that a rejected Stripe key has a known outcome. Nothing is
// created, the purchase gives the reason, and it continues once the key is valid.
func TestCreatePurchase_RevokedKey(t *testing.T) {
	c := newCounter(t)
	o := c.order(tracking.Product, goodCard)
	if err := c.shop.fake.Revoke("sk_test_duesday"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.service.CreatePurchase(t.Context(), o); !errors.Is(err, tracking.ErrStripeKey) {
		t.Errorf("got %v", err)
	}
	n := 0
	for p, err := range c.service.Purchases(t.Context(), shopAccount, tracking.Mark{}) {
		if n++; err != nil || !strings.HasPrefix(p.Problem, "not made: the key of this installation is refused") {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if err := c.shop.fake.Restore("sk_test_duesday"); err != nil {
		t.Fatal(err)
	}
	created, err := c.service.CreatePurchase(t.Context(), o)
	if err != nil || n != 1 || c.charges() != 1 || created.Purchase.Problem != "" {
		t.Errorf("with a valid key: %+v, %v; %d purchases, %d charges", created, err, n, c.charges())
	}
}
