package stripefake

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaults(t *testing.T) {
	post := func(w *world) answer { return w.do("POST", customers, "name=A", "Idempotency-Key", "k") }
	for _, tt := range []struct {
		what   string
		faults Faults
		status int // 502: the connection broke
		done   int // customers after the first request
		again  int // what the key gives once all is well
		replay string
		after  int // customers after that
	}{
		{"a lost request", Faults{LostRequests: 1}, 502, 0, 200, "", 1},
		{"a lost reply", Faults{LostReplies: 1}, 502, 1, 200, "true", 1},
		{"an error", Faults{Errors: 1}, 500, 0, 500, "true", 0},
		{"a late error", Faults{LateErrors: 1}, 500, 1, 500, "true", 1},
	} {
		w := newWorld(t, Options{Faults: tt.faults})
		equal(t, tt.what, post(w).status, tt.status)
		if err := w.SetFaults(Faults{}); err != nil {
			t.Fatal(err)
		}
		equal(t, tt.what+": customers", len(w.ok("GET", customers, "").ids()), tt.done)
		a := post(w)
		equal(t, tt.what+": again", []any{a.status, a.header.Get("Idempotent-Replayed")}, []any{tt.again, tt.replay})
		equal(t, tt.what+": customers then", len(w.ok("GET", customers, "").ids()), tt.after)
	}
}

// TestFaults_Busy: what is refused for being busy is neither carried out nor saved, and says
// that it may be tried again.
func TestFaults_Busy(t *testing.T) {
	w := newWorld(t, Options{Faults: Faults{Busy: 1}})
	seen := map[string]int{}
	for i := range 60 {
		a := w.do("POST", customers, "name=A", "Idempotency-Key", fmt.Sprint(i))
		equal(t, "Stripe-Should-Retry", a.header.Get("Stripe-Should-Retry"), "true")
		seen[fmt.Sprint(a.status, " ", a.at("error.code"))]++
	}
	if len(seen) != 3 || seen["429 rate_limit"] == 0 || seen["429 lock_timeout"] == 0 ||
		seen["409 idempotency_key_in_use"] == 0 {
		t.Errorf("got %v, want three kinds", seen)
	}
	if err := w.SetFaults(Faults{}); err != nil {
		t.Fatal(err)
	}
	equal(t, "customers", len(w.ok("GET", customers, "").ids()), 0)
	equal(t, "replayed", w.ok("POST", customers, "name=A", "Idempotency-Key", "0").header.Get("Idempotent-Replayed"), "")
}

// TestFaults_Seed: the same seed has the same things go wrong.
func TestFaults_Seed(t *testing.T) {
	play := func(seed uint64) string {
		w := newWorld(t, Options{Faults: Faults{LostRequests: .1, LostReplies: .1, Errors: .1, LateErrors: .1, Busy: .1,
			Seed: seed}})
		var s strings.Builder
		for range 200 {
			fmt.Fprintln(&s, w.do("POST", customers, "").status)
		}
		return s.String()
	}
	one := play(1)
	equal(t, "the same seed", play(1) == one, true)
	equal(t, "another seed", play(2) == one, false)
	if n := strings.Count(one, "200"); n < 70 || n > 130 {
		t.Errorf("%d of 200 went well, want about 100", n)
	}
}

func TestFaults_Rate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Faults: Faults{Rate: 5}})
		burst := func() (ok int) {
			for range 20 {
				switch a := w.do("POST", customers, ""); a.status {
				case http.StatusOK:
					ok++
				case http.StatusTooManyRequests:
					equal(t, "code", a.at("error.code"), any("rate_limit"))
					equal(t, "Stripe-Should-Retry", a.header.Get("Stripe-Should-Retry"), "true")
				default:
					t.Fatalf("got %d %s", a.status, a.text)
				}
			}
			return ok
		}
		equal(t, "the first second", burst(), 5)
		after(999 * time.Millisecond)
		equal(t, "within a second", burst(), 0)
		w.ok("GET", customers, "") // another endpoint
		w.Advance(time.Hour)
		equal(t, "after the fake's clock has moved", burst(), 0)
		after(time.Millisecond)
		equal(t, "a second later", burst(), 5)
	})
}

func TestFaults_Latency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Now: time.Now, Faults: Faults{Latency: 200 * time.Millisecond}})
		began := time.Now()
		w.customer("")
		equal(t, "took", time.Since(began), 200*time.Millisecond)
	})
}

// TestFaults_Wire: over HTTP a lost request and a lost reply look alike.
func TestFaults_Wire(t *testing.T) {
	w := newWorld(t, Options{})
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	for want, faults := range []Faults{{LostRequests: 1}, {LostReplies: 1}} {
		if err := w.SetFaults(faults); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest("POST", server.URL+customers, strings.NewReader(url.Values{"name": {"A"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+testKey)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := server.Client().Do(r)
		if err == nil {
			res.Body.Close()
			t.Errorf("%+v: got %s, want a broken connection", faults, res.Status)
		}
		if err := w.SetFaults(Faults{}); err != nil {
			t.Fatal(err)
		}
		equal(t, "customers", len(w.ok("GET", customers, "").ids()), want)
	}
}

func TestFaults_Check(t *testing.T) {
	for says, f := range map[string]Faults{
		"errors must be a probability from 0 to 1 (got 1.5)": {Errors: 1.5},
		"busy must be a probability":                         {Busy: -1},
		"add up to at most 1 (got 1.2":                       {Errors: .6, LostReplies: .6},
		"latency must be from 0 to 1m0s (got -1ns)":          {Latency: -1},
		"rate must be at least 0":                            {Rate: -1},
		"event_losses":                                       {EventLosses: -1},
		"webhook_copies":                                     {WebhookCopies: 2},
		"webhook_delay":                                      {WebhookDelay: -1},
	} {
		if err := newWorld(t, Options{}).SetFaults(f); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// after lets the bubble's clock come so far.
func after(d time.Duration) { <-time.After(d) }
