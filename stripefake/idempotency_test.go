package stripefake

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const customers = "/v1/customers"

// TestIdempotency has a case for each sentence of Stripe's page on idempotent requests.
func TestIdempotency(t *testing.T) {
	t.Run("the first result is repeated, status and body", func(t *testing.T) {
		w := newWorld(t, Options{})
		first := w.ok("POST", customers, "name=A", "Idempotency-Key", "k")
		w.Advance(23*time.Hour + 59*time.Minute)
		again := w.ok("POST", customers, "name=A", "Idempotency-Key", "k")
		equal(t, "body", again.text, first.text)
		equal(t, "replayed", again.header.Get("Idempotent-Replayed"), "true")
		equal(t, "original", again.header.Get("Original-Request"), first.header.Get("Request-Id"))
		if again.header.Get("Request-Id") == first.header.Get("Request-Id") {
			t.Error("a replay has the id of the first request")
		}
		equal(t, "customers", len(w.ok("GET", customers, "").ids()), 1)
	})
	t.Run("parameters in another order are the same", func(t *testing.T) {
		w := newWorld(t, Options{})
		first := w.ok("POST", customers, "name=A&metadata[x]=1&metadata[y]=2", "Idempotency-Key", "k")
		equal(t, "id", w.ok("POST", customers, "metadata[y]=2&metadata[x]=1&name=A", "Idempotency-Key", "k").id(), first.id())
	})
	t.Run("other parameters are an error", func(t *testing.T) {
		w := newWorld(t, Options{})
		first := w.ok("POST", customers, "name=A", "Idempotency-Key", "k")
		a := w.do("POST", customers, "name=B", "Idempotency-Key", "k")
		equal(t, "error", []any{a.status, a.at("error.type"), a.header.Get("Idempotent-Replayed")},
			[]any{400, "idempotency_error", ""})
		a = w.do("POST", customers+"/"+first.id(), "name=A", "Idempotency-Key", "k")
		equal(t, "another endpoint", []any{a.status, a.at("error.type")}, []any{400, "idempotency_error"})
		equal(t, "the first one's", w.ok("POST", customers, "name=A", "Idempotency-Key", "k").id(), first.id())
	})
	t.Run("after 24 hours it is a new request", func(t *testing.T) {
		w := newWorld(t, Options{})
		first := w.customer("name=A", "Idempotency-Key", "k")
		w.Advance(24 * time.Hour)
		if second := w.customer("name=B", "Idempotency-Key", "k"); second == first {
			t.Error("the key was not forgotten")
		}
	})
	t.Run("the 24 hours begin with the first answer, not with the last", func(t *testing.T) {
		w := newWorld(t, Options{})
		first := w.customer("name=A", "Idempotency-Key", "k")
		w.Advance(20 * time.Hour)
		w.customer("name=A", "Idempotency-Key", "k")
		w.Advance(4 * time.Hour)
		if w.customer("name=A", "Idempotency-Key", "k") == first {
			t.Error("a replay has prolonged the key's life")
		}
	})
	t.Run("failed validation saves nothing", func(t *testing.T) {
		w := newWorld(t, Options{})
		w.do("POST", customers, "nome=A", "Idempotency-Key", "k").refused(t, "unknown parameter", 400, "parameter_unknown",
			"nome")
		w.do("POST", customers, "metadata=x", "Idempotency-Key", "k").refused(t, "no hash", 400, nil, "metadata")
		if a := w.ok("POST", customers, "name=A", "Idempotency-Key", "k"); a.header.Get("Idempotent-Replayed") != "" {
			t.Error("a refused request was replayed")
		}
	})
	t.Run("what fails while it is carried out is saved", func(t *testing.T) {
		w := newWorld(t, Options{})
		w.do("POST", customers+"/cus_fake0000000009", "name=A", "Idempotency-Key", "k").refused(t, "no customer", 404,
			"resource_missing", "id")
		for w.customer("") != "cus_fake0000000009" {
		}
		a := w.do("POST", customers+"/cus_fake0000000009", "name=A", "Idempotency-Key", "k")
		equal(t, "again", []any{a.status, a.header.Get("Idempotent-Replayed")}, []any{404, "true"})
	})
	t.Run("keys have 255 characters", func(t *testing.T) {
		w := newWorld(t, Options{})
		w.do("POST", customers, "", "Idempotency-Key", strings.Repeat("k", 256)).refused(t, "256", 400, nil, nil)
		w.customer("", "Idempotency-Key", strings.Repeat("k", 255))
	})
	t.Run("only POST has keys", func(t *testing.T) {
		w := newWorld(t, Options{})
		w.ok("GET", customers, "", "Idempotency-Key", "k")
		id := w.customer("", "Idempotency-Key", "k")
		equal(t, "list", w.ok("GET", customers, "", "Idempotency-Key", "k").ids(), []string{id})
	})
	t.Run("each account and mode has its own", func(t *testing.T) {
		w := newWorld(t, Options{})
		if err := w.Connect("acct_a", ""); err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{w.customer("", "Idempotency-Key", "k"): true,
			w.customer("", "Idempotency-Key", "k", "Stripe-Account", "acct_a"):         true,
			w.customer("", "Idempotency-Key", "k", "Authorization", "Bearer "+liveKey): true}
		equal(t, "customers", len(ids), 3)
		equal(t, "another key of the same account", ids[w.customer("", "Idempotency-Key", "k", "Authorization",
			"Bearer rk_test_duesday")], true)
	})
	t.Run("without a key everything is new", func(t *testing.T) {
		w := newWorld(t, Options{})
		first := w.customer("name=A")
		if w.customer("name=A") == first {
			t.Error("two requests without a key made one customer")
		}
	})
}

// TestIdempotency_Concurrent: while the first request is under way the key is in use; what
// the second one gets is not saved.
func TestIdempotency_Concurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Now: time.Now, Faults: Faults{Latency: time.Second}})
		var wg sync.WaitGroup
		wg.Go(func() { w.customer("name=A", "Idempotency-Key", "k") })
		synctest.Wait()
		a := w.do("POST", customers, "name=A", "Idempotency-Key", "k")
		a.refused(t, "second", 409, "idempotency_key_in_use", nil)
		equal(t, "Stripe-Should-Retry", a.header.Get("Stripe-Should-Retry"), "true")
		w.do("POST", customers, "name=B", "Idempotency-Key", "k").refused(t, "with other parameters", 400, nil, nil)
		wg.Wait()
		if a = w.ok("POST", customers, "name=A", "Idempotency-Key", "k"); a.header.Get("Idempotent-Replayed") != "true" {
			t.Error("the first result is not repeated")
		}
		equal(t, "customers", len(w.ok("GET", customers, "").ids()), 1)
	})
}

// TestIdempotency_Age: a key's 24 hours begin when its first request is answered, so that it
// is at least as old as Stripe's has to be.
func TestIdempotency_Age(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Now: time.Now, Faults: Faults{Latency: time.Minute}})
		first := w.customer("name=A", "Idempotency-Key", "k")
		w.Advance(24*time.Hour - time.Second)
		equal(t, "24 hours after the request", w.customer("name=A", "Idempotency-Key", "k"), first)
		w.Advance(time.Second - time.Minute) // the minute that the replay took
		if w.customer("name=A", "Idempotency-Key", "k") == first {
			t.Error("24 hours after the answer the key is still known")
		}
	})
}

// TestIdempotency_CallerGone: a caller that goes away before the request is carried out takes
// it back, and frees the key.
func TestIdempotency_CallerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Now: time.Now, Faults: Faults{Latency: time.Minute}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "POST", customers, strings.NewReader("name=A"))
		r.Header.Set("Authorization", "Bearer "+testKey)
		r.Header.Set("Idempotency-Key", "k")
		equal(t, "status", w.send(r).status, http.StatusBadGateway)
		equal(t, "customers", len(w.ok("GET", customers, "").ids()), 0)
		w.customer("name=B", "Idempotency-Key", "k")
	})
}
