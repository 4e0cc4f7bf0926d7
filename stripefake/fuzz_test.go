package stripefake

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// fuzzFake has one object of most kinds.
func fuzzFake(f *testing.F) *Fake {
	fake := New(Options{})
	f.Cleanup(func() { _ = fake.Close() })
	for _, ask := range []string{
		"/v1/customers name=A&payment_method=pm_card_visa", "/v1/payment_intents " +
			"amount=1000&currency=usd&payment_method=pm_card_visa&confirm=true&return_url=http://a.example",
		"/v1/products name=P", "/v1/webhook_endpoints url=http://127.0.0.1:1/&enabled_events[]=nothing",
		"/v1/setup_intents payment_method=pm_card_visa",
	} {
		path, body, _ := strings.Cut(ask, " ")
		if code, answer := fuzzAsk(fake, "POST", path, body); code != 200 {
			f.Fatalf("%s: %d %s", ask, code, answer)
		}
	}
	return fake
}

func fuzzAsk(fake *Fake, method, path, params string) (int, string) {
	r := httptest.NewRequest(method, "/", strings.NewReader(params))
	r.URL.Path = path
	if method != "POST" {
		r.URL.RawQuery = params
	}
	r.Header.Set("Authorization", "Bearer "+testKey)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	fake.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

// FuzzHandler: whatever is asked, of whatever endpoint, the answer is JSON, and no error of
// the fake's own.
func FuzzHandler(f *testing.F) {
	fake := fuzzFake(f)
	endpoints := allRoutes()
	slices.SortFunc(endpoints, func(a, b api.Route) int { return strings.Compare(a.Endpoint(), b.Endpoint()) })
	for i, r := range endpoints {
		f.Add(uint16(i), "pi_fake0000000001", "limit=3&expand[]=data.customer")
		var all []string
		for param := range slices.Values(append(r.Names(), "expand")) {
			all = append(all, param+"=1", param+"[0][price]=x", param+"[a][b]=1", param+"=")
		}
		f.Add(uint16(i), "../x", strings.Join(all, "&"))
		for _, form := range all {
			f.Add(uint16(i), "cus_fake0000000002", form)
		}
	}
	f.Fuzz(func(t *testing.T, which uint16, id, params string) {
		r := endpoints[int(which)%len(endpoints)]
		parts := strings.Split(r.Path, "/")
		for i, part := range parts {
			if strings.HasPrefix(part, "{") {
				parts[i] = id
			}
		}
		path := strings.Join(parts, "/")
		code, body := fuzzAsk(fake, r.Method, path, params)
		if code == 500 || strings.HasPrefix(path, "/v1/") && !json.Valid([]byte(body)) {
			t.Errorf("%s %s %s: %d %s", r.Method, path, params, code, body)
		}
	})
}
