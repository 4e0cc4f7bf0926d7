package tracking_test

import (
	"errors"
	"testing"

	"github.com/duesday/duesday/internal/tracking"
)

// TestOrder_Key checks that a key must not contain card numbers or secrets, but may be a UUID, a
// timestamp or a telephone number.
func TestOrder_Key(t *testing.T) {
	order := tracking.Order{Kind: tracking.Legacy, Amount: 1, Currency: "EUR"}
	for _, key := range []string{"1764150000123", "4915112345679", "1e6f3b52-1234-4012-8888-888888881881",
		"order-4242424242424242", "0"} {
		order.Key = key
		if err := order.Check(); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"4242424242424242", "4242_4242_4242_4242", "４２４２/４２４２/４２４２/４２４２", "4242-4242-4242-4242", "card 378282246310005", "sk_test_123", "",
		"a\x00"} {
		order.Key = key
		if bad, ok := errors.AsType[*tracking.FieldError](order.Check()); !ok || bad.Field != "key" {
			t.Errorf("%q: got %v", key, bad)
		}
	}
}
