package stripe

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Options{
		"stripe": {}, "stripe:": {}, "stripe:?": {}, "stripe:?rate=25": {Rate: 25},
		"stripe:?return_url=https%3A%2F%2Fexample.com%2Fa%3Fb%3D1&rate=1000": {Rate: 1000, ReturnURL: "https://example.com/a?b=1"},
		"stripe:?return_url=http://127.0.0.1:8080":                           {ReturnURL: "http://127.0.0.1:8080"},
	} {
		if got, err := Parse(text); err != nil || got.Rate != want.Rate || got.ReturnURL != want.ReturnURL {
			t.Errorf("%s: got %d, %q, %v", text, got.Rate, got.ReturnURL, err)
		}
	}
}

func TestParse_RefusesAndSaysWhatWouldBeRight(t *testing.T) {
	for text, says := range map[string]string{
		"":                                 "want stripe, stripe: or stripe:?PARAMETERS",
		"sandbox:":                         "want stripe, stripe: or",
		"stripes":                          "want stripe, stripe: or",
		"stripe:" + testKey:                "the API key is not given here",
		"stripe://" + testKey + "@host":    "the API key is not given here",
		"stripe:?key=" + testKey:           "parameter key: the API key is not given here",
		"stripe:?api_key=" + testKey:       "parameter api_key: the API key",
		"stripe:?" + testKey:               "unknown parameter \"sk_test_***\"; known: rate, return_url",
		"stripe:?rate=" + testKey:          "parameter rate: want a whole number from 1 to 1000, not \"sk_test_***\"",
		"stripe:?rate=0":                   "parameter rate: want a whole number from 1 to 1000, not \"0\"",
		"stripe:?rate=1001":                "parameter rate: want",
		"stripe:?rate=20&rate=30":          "parameter \"rate\" is given 2 times",
		"stripe:?rate=%zz":                 "the parameters cannot be read",
		"stripe:?return_url=example.com":   "parameter return_url: want an absolute address",
		"stripe:?return_url=ftp://a.b":     "parameter return_url: want an absolute address",
		"stripe:?return_url=":              "parameter return_url: want an absolute address",
		"stripe:?return_url=https://u:p@h": "parameter return_url: a user and a password",
		"stripe:?base=https://example.com": "unknown parameter \"base\"",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", text, err, says)
			continue
		}
		hush(t, err.Error())
	}
}

func TestNew_RefusesWhatCannotBe(t *testing.T) {
	for _, key := range []string{"", "pk_test_1", "whsec_1", "sk_test_", "sk_test_a b", "sk_test_a\n", "SK_TEST_1", "sk_1", "sk_org_live_1", " " + testKey, testKey + "ü", "Hush123"} {
		_, err := New(Options{Key: secret.New(key)})
		if err == nil || !strings.Contains(err.Error(), "begins with rk_test_, sk_test_, rk_live_ or sk_live_") || strings.Contains(err.Error(), "Hush123") || strings.Contains(err.Error(), testKey) {
			t.Errorf("a key of %d characters: got %v", len(key), err)
		}
	}
	for says, o := range map[string]Options{
		"rate -1: want 1 to 1000":               {Rate: -1},
		"rate 1001":                             {Rate: 1001},
		"address of the API: want an absolute":  {Base: "api.stripe.com"},
		"want an absolute address with http":    {Base: "unix:///run/x"},
		"a user and a password":                 {Base: "https://" + testKey + "@example.com"},
		"want a host, and a port at most":       {Base: "https://example.com/v1/"},
		"want a host, and a port":               {Base: "https://example.com?x=1"},
		"return_url: want an absolute":          {ReturnURL: "/back"},
		"return_url: a user and a password are": {ReturnURL: "https://a:b@c"},
	} {
		o.Key = secret.New(testKey)
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
			continue
		}
		hush(t, err.Error())
	}
}

func TestIdentity(t *testing.T) {
	for key, want := range map[string]string{"sk_test_1": "stripe acct_12 test", "rk_test_1": "stripe acct_12 test", "sk_live_1": "stripe acct_12 live", "rk_live_1": "stripe acct_12 live"} {
		s := newScript(t, ok(`{"id":"acct_12","object":"account"}`))
		got, err := processor(t, s, func(o *Options) { o.Key = secret.New(key) }).Identity(t.Context())
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", key, got, err, want)
		}
		if r := s.requests()[0]; r.method != "GET" || r.path != "/v1/account" || r.header.Get("Stripe-Account") != "" {
			t.Errorf("sent %s %s", r.method, r.path)
		}
	}
	if got, err := processor(t, newScript(t, ok(`{}`))).Identity(t.Context()); err == nil {
		t.Errorf("of nobody: got %q", got)
	}
}
