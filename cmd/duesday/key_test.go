package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// TestKey: keys are made, used, listed and revoked while serve runs.
func TestKey(t *testing.T) {
	c := newServeCLI(t)
	var ahead atomic.Int64
	begun := c.clock.Now()
	v, stop := c.serveBy(func() time.Time { return begun.Add(time.Duration(ahead.Load())) }, "--no-poll", "--on-fulfil", "true")
	equal(t, "open without a key", v.API, false)
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	c.must("connect", "add", "--account", ownAccount, stripefake.DefaultAccount)
	ask := func(key, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.APIBase+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		status, text, _ := c.send(r)
		return status, text
	}
	status, _ := ask("", "/metrics")
	equal(t, "metrics without a key, on this machine, while there is none", status, 401)
	all := c.object(exitDone, "key", "create", "all", "--scope", "read", "--expires", "90d")
	shop := c.object(exitDone, "key", "create", "shop", "--scope", "charge", "--merchant", strings.ToUpper(shopAccount))
	key := func(of map[string]any) string { return of["key"].(string) }
	for path, want := range map[string][2]int{"/v1/merchants": {200, 200}, "/metrics": {200, 403},
		"/v1/payments?merchant=" + ownAccount: {200, 403}, "/v1/events": {200, 200}} {
		s1, _ := ask(key(all), path)
		s2, _ := ask(key(shop), path)
		equal(t, path, [2]int{s1, s2}, want)
	}
	_, text := ask(key(shop), "/v1/merchants")
	equal(t, "accounts of the shop's key", []bool{strings.Contains(text, "acct_shop"), strings.Contains(text, stripefake.DefaultAccount)},
		[]bool{true, false})

	c.must("key", "revoke", "all")
	ahead.Store(int64(6 * time.Second))
	status, text = ask(key(all), "/v1/merchants")
	equal(t, "a revoked key", status, 401)
	r := stop()
	equal(t, "exit", r.code, exitDone)
	for _, hidden := range []string{key(all), key(shop)} {
		if strings.Contains(text+r.errors+r.out, hidden[14:]) {
			t.Error("a key is in the log or the answer")
		}
	}
	contains(t, r.errors, "is revoked")
	list := c.list("key", "list")
	equal(t, "listed", len(list), 2)
	for _, one := range list {
		k := one.(map[string]any)
		if k["last_used_at"] == nil || k["key"] != nil || (k["name"] == "all") != (k["revoked_at"] != nil) ||
			(k["name"] == "shop") != (k["merchant"] == shopAccount) || (k["name"] == "all") != (k["expires_at"] != nil) {
			t.Errorf("listed: %v", k)
		}
	}
	equal(t, "revoked again", c.run("key", "revoke", all["id"].(string)).code, exitUsage)
	c.must("key", "create", "shop", "--scope", "charge")
	r = c.run("key", "create", "shop", "--scope", "charge")
	equal(t, "a third one", r.code, exitUsage)
	contains(t, r.errors, "two valid keys", shop["id"].(string))
	r = c.run("key", "revoke", "shop")
	contains(t, r.errors, "use an ID instead")
	for _, args := range []string{"a b --scope read", "a --scope root", "a", "a --scope read --merchant x",
		"a --scope read --expires 0d", "a --scope read --expires yesterday", "a --scope read --expires 2001-01-01",
		"dd_abc --scope read", "a --scope read --merchant="} {
		words := strings.Fields(args)
		if args == "a b --scope read" {
			words = []string{"a b", "--scope", "read"}
		}
		equal(t, args, c.run(append([]string{"key", "create"}, words...)...).code, exitUsage)
	}
}

// TestKey_RevokedOnDynamoDB: a key that another process revokes stops within five seconds, in which
// a request may still be answered, and also for a serve that is idle: keys are read on requests.
func TestKey_RevokedOnDynamoDB(t *testing.T) {
	c := newServeCLI(t)
	at, _ := onDynamo(t)
	c.env["DUESDAY_STORE"] = at
	var ahead atomic.Int64
	v, _ := c.serveBy(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, "--no-poll", "--on-fulfil", "true")
	for range 2 {
		made := c.object(exitDone, "key", "create", "shop", "--scope", "read")
		ask := func(want int) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.APIBase+"/v1/merchants", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+made["key"].(string))
			status, text, _ := c.send(r)
			equal(t, "status of "+text, status, want)
		}
		ask(http.StatusOK)
		c.must("key", "revoke", "shop")
		ahead.Add(int64(5 * time.Second))
		ask(http.StatusUnauthorized)
	}
}

// TestServe_RevokedStripeKey: an order gets a certain answer, and /readyz tells.
func TestServe_RevokedStripeKey(t *testing.T) {
	c := newServeCLI(t)
	v, _ := c.serve("--no-poll", "--on-fulfil", "true")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	apiKey := c.apiKey("charge")
	order := func() (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.APIBase+"/v1/purchases",
			strings.NewReader(`{"merchant":"`+shopAccount+`","kind":"legacy","amount":500,"currency":"EUR"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"},
			"Idempotency-Key": {"k"}}
		status, text, _ := c.send(r)
		return status, text
	}
	get := func(url string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		status, text, _ := c.send(r)
		return status, text
	}
	if err := c.fake.Revoke(c.key); err != nil {
		t.Fatal(err)
	}
	status, text := order()
	equal(t, "status", status, http.StatusBadGateway)
	contains(t, text, `"code":"stripe_key"`)
	status, text = get(v.Base + "/readyz")
	equal(t, "readyz", status, http.StatusServiceUnavailable)
	equal(t, "the reason", strings.Contains(text, "Stripe"), false)
	status, text = get(v.APIBase + "/readyz")
	equal(t, "readyz of --api", status, http.StatusServiceUnavailable)
	contains(t, text, "Stripe refuses the key")
	if err := c.fake.Restore(c.key); err != nil {
		t.Fatal(err)
	}
	status, text = order()
	equal(t, "with a valid key", status, http.StatusOK) // the purchase is there since the first request
	id := decode(t, text).(map[string]any)["purchase"].(map[string]any)["id"].(string)
	contains(t, c.must("purchase", "show", id), "asked for: legacy, with the API key "+apiKey[:13])
	status, _ = get(v.Base + "/readyz")
	equal(t, "readyz", status, http.StatusOK)
}

// TestServe_Docs: the reference page is there for everyone who reaches --api, and nowhere else.
func TestServe_Docs(t *testing.T) {
	c := newServeCLI(t)
	v, _ := c.serve("--no-poll", "--on-fulfil", "true")
	for path, part := range map[string]string{"/docs": `id="createSubscription"`, "/openapi.json": `"openapi": "3.1.0"`} {
		for base, want := range map[string]int{v.APIBase: http.StatusOK, v.Base: http.StatusNotFound} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			status, text, _ := c.send(r)
			equal(t, path, []any{status, strings.Contains(text, part)}, []any{want, want == http.StatusOK})
		}
	}
}
