package api

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/test/apitest"
)

func TestNewClient_RefusesWhatCannotBe(t *testing.T) {
	for _, key := range []string{"", "pk_test_1", "whsec_1", "sk_test_", "sk_test_a b", "sk_test_a\n", "SK_TEST_1",
		"sk_1", "sk_org_live_1", " " + apitest.Key, apitest.Key + "ü", "Hush123"} {
		_, err := New(Options{Key: secret.New(key)})
		if err == nil || !strings.Contains(err.Error(), "begin with rk_test_, sk_test_, rk_live_ or sk_live_") ||
			strings.Contains(err.Error(), "Hush123") || strings.Contains(err.Error(), apitest.Key) {
			t.Errorf("a key of %d characters: got %v", len(key), err)
		}
	}
	for says, o := range map[string]Options{
		"must be 1 to 1000 requests per second (got -1)": {Rate: -1},
		"(got 1001)":                                     {Rate: 1001},
		"the API address must be an absolute":            {Base: "api.stripe.com"},
		"must be an absolute http":                       {Base: "unix:///run/x"},
		"must not contain a user":                        {Base: "https://" + apitest.Key + "@example.com"},
		"must contain only a host, and a port if needed": {Base: "https://example.com/v1/"},
		"must contain only a host, and a port":           {Base: "https://example.com?x=1"},
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
