package api

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/apitest"
)

func TestNewClient_RefusesWhatCannotBe(t *testing.T) {
	for _, key := range []string{"", "pk_test_1", "whsec_1", "sk_test_", "sk_test_a b", "sk_test_a\n", "SK_TEST_1",
		"sk_1", "sk_org_live_1", " " + apitest.Key, apitest.Key + "ü", "Hush123"} {
		_, err := New(Options{Key: secret.New(key)})
		if err == nil || !strings.Contains(err.Error(), "begins with rk_test_, sk_test_, rk_live_ or sk_live_") ||
			strings.Contains(err.Error(), "Hush123") || strings.Contains(err.Error(), apitest.Key) {
			t.Errorf("a key of %d characters: got %v", len(key), err)
		}
	}
	for says, o := range map[string]Options{
		"rate -1: want 1 to 1000":              {Rate: -1},
		"rate 1001":                            {Rate: 1001},
		"address of the API: want an absolute": {Base: "api.stripe.com"},
		"want an absolute address with http":   {Base: "unix:///run/x"},
		"a user and a password":                {Base: "https://" + apitest.Key + "@example.com"},
		"want a host, and a port at most":      {Base: "https://example.com/v1/"},
		"want a host, and a port":              {Base: "https://example.com?x=1"},
	} {
		o.Key = secret.New(apitest.Key)
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
			continue
		}
		apitest.Hush(t, err.Error())
	}
}
