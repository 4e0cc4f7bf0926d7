package stripe

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Options{
		"stripe": {}, "stripe:": {}, "stripe:?": {}, "stripe:?rate=25": {API: api.Options{Rate: 25}},
		"stripe:?return_url=https%3A%2F%2Fexample.com%2Fa%3Fb%3D1&rate=1000": {API: api.Options{Rate: 1000},
			ReturnURL: "https://example.com/a?b=1"},
		"stripe:?return_url=http://127.0.0.1:8080": {ReturnURL: "http://127.0.0.1:8080"},
	} {
		if got, err := Parse(text); err != nil || got.API.Rate != want.API.Rate || got.ReturnURL != want.ReturnURL {
			t.Errorf("%s: got %d, %q, %v", text, got.API.Rate, got.ReturnURL, err)
		}
	}
}

func TestParse_RefusesAndSaysWhatWouldBeRight(t *testing.T) {
	for text, says := range map[string]string{
		"":                                  "must be stripe, stripe: or stripe:?PARAMETERS",
		"sandbox:":                          "must be stripe, stripe: or",
		"stripes":                           "must be stripe, stripe: or",
		"stripe:" + apitest.Key:             "set the API key in the environment",
		"stripe://" + apitest.Key + "@host": "set the API key in the environment",
		"stripe:?key=" + apitest.Key:        "parameter key: others could see an API key here",
		"stripe:?api_key=" + apitest.Key:    "parameter api_key: others could see an API key",
		"stripe:?" + apitest.Key:            "unknown parameter \"sk_test_***\"; must be rate or return_url",
		"stripe:?rate=" + apitest.Key:       "parameter rate must be a whole number from 1 to 1000 (got \"sk_test_***\")",
		"stripe:?rate=0":                    "parameter rate must be a whole number from 1 to 1000 (got \"0\")",
		"stripe:?rate=1001":                 "parameter rate must be",
		"stripe:?rate=20&rate=30":           "parameter \"rate\" appears 2 times",
		"stripe:?rate=%zz":                  "the parameters are malformed",
		"stripe:?return_url=example.com":    "parameter return_url: must be an absolute http or https address",
		"stripe:?return_url=ftp://a.b":      "parameter return_url: must be an absolute http or https address",
		"stripe:?return_url=":               "parameter return_url: must be an absolute http or https address",
		"stripe:?return_url=https://u:p@h":  "parameter return_url: must not contain a user or password",
		"stripe:?base=https://example.com":  "unknown parameter \"base\"",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", text, err, says)
			continue
		}
		apitest.Hush(t, err.Error())
	}
}

func TestNew_RefusesItsReturnURL(t *testing.T) {
	for says, address := range map[string]string{"return_url: must be an absolute": "/back",
		"return_url: must not contain a user": "https://a:b@c"} {
		_, err := New(Options{API: api.Options{Key: secret.New(apitest.Key)}, ReturnURL: address})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
			continue
		}
		apitest.Hush(t, err.Error())
	}
}

func TestIdentity(t *testing.T) {
	for key, want := range map[string]string{"sk_test_1": "stripe acct_12 test", "rk_test_1": "stripe acct_12 test",
		"sk_live_1": "stripe acct_12 live", "rk_live_1": "stripe acct_12 live"} {
		s := apitest.NewScript(t, apitest.OK(`{"id":"acct_12","object":"account"}`))
		got, err := scripted(t, s, func(o *Options) { o.API.Key = secret.New(key) }).Identity(t.Context())
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", key, got, err, want)
		}
		if r := s.Requests()[0]; r.Method != "GET" || r.Path != "/v1/account" || r.Header.Get("Stripe-Account") != "" {
			t.Errorf("sent %s %s", r.Method, r.Path)
		}
	}
	if got, err := scripted(t, apitest.NewScript(t, apitest.OK(`{}`))).Identity(t.Context()); err == nil {
		t.Errorf("of nobody: got %q", got)
	}
}
