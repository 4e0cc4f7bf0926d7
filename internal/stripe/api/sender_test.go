package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/test/apitest"
)

// testClient returns a client that the script answers.
func testClient(t *testing.T, s *apitest.Script, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{Key: secret.New(apitest.Key), Transport: s, Rate: MaxRate,
		Now: func() time.Time { return apitest.Now }, Log: apitest.Log(t)}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
	})
	return c
}

// confirm sends a request that has an idempotency key.
func confirm(ctx context.Context, c *Client, key string) error {
	raw, _, err := c.Ask(ctx, http.MethodPost, "/v1/payment_intents/pi_1/confirm", "", key,
		url.Values{"payment_method": {"pm_1"}})
	if err == nil && !strings.Contains(string(raw), `"status":"succeeded"`) {
		err = fmt.Errorf("got %s", raw)
	}
	return err
}

// lookup sends a request that has none.
func lookup(ctx context.Context, c *Client, at string) error {
	_, _, err := c.Ask(ctx, http.MethodGet, "/v1/payment_intents/pi_1", at, "", nil)
	return err
}

func tooMany(header map[string]string) apitest.Reply {
	r := apitest.Fails(429, apitest.Fields{"type": "invalid_request_error", "code": "rate_limit", "message": "m"})
	r.Header = header
	return r
}

func locked(status int, code string) apitest.Reply {
	return apitest.Fails(status, apitest.Fields{"type": "invalid_request_error", "code": code, "message": "m"})
}

var succeeded = apitest.Fields{"status": "succeeded", "latest_charge": "ch_1"}

// What Stripe has not executed is sent again as it was, under the same key.
func TestSender_SendsAgainWhatWasNotExecuted(t *testing.T) {
	for name, first := range map[string]apitest.Reply{"rate": tooMany(nil), "lock": locked(429, "lock_timeout"),
		"in use":           locked(409, "idempotency_key_in_use"),
		"a balancer's 429": {Status: 429, Body: "slow down"}} {
		synctest.Test(t, func(t *testing.T) {
			s := apitest.NewScript(t, first, first, first, apitest.OKIntent(succeeded))
			if err := confirm(t.Context(), testClient(t, s), "dd_confirm"); err != nil {
				t.Errorf("%s: got %v", name, err)
			}
			for i, r := range s.Requests() {
				if r.Header.Get("Idempotency-Key") != "dd_confirm" || r.Form.Encode() != s.Requests()[0].Form.Encode() {
					t.Errorf("%s: send %d went under %q with %v", name, i, r.Header.Get("Idempotency-Key"), r.Form)
				}
				if i > 0 {
					most := firstRest << (i - 1)
					if rest := r.At.Sub(s.Requests()[i-1].At); rest < most/2 || rest > most+time.Second {
						t.Errorf("%s: send %d came after %v, want %v to %v", name, i, rest, most/2, most)
					}
				}
			}
		})
	}
}

func TestSender_GivesUp(t *testing.T) {
	lost := apitest.Reply{}
	for name, tt := range map[string]struct {
		reply apitest.Reply
		sends int
		want  error
		get   bool
	}{
		"a rate": {tooMany(nil), busyTries, processor.ErrNotExecuted, false},
		"a rate, for good": {tooMany(map[string]string{"Stripe-Should-Retry": "false"}), 1, processor.ErrNotExecuted,
			false},
		"a look-up":       {lost, readTries, processor.ErrUnknown, true},
		"a look-up's 500": {apitest.Reply{Status: 500, Body: "x"}, readTries, processor.ErrUnknown, true},
		"a confirm":       {lost, 1, processor.ErrUnknown, false},
		"a 500":           {apitest.Reply{Status: 500, Body: "x"}, 1, processor.ErrUnknown, false},
		"a 500 to send again": {apitest.Reply{Status: 500, Body: "x",
			Header: map[string]string{"Stripe-Should-Retry": "true"}}, advisedTries, processor.ErrUnknown, false},
		"a decision": {apitest.Fails(400, apitest.Fields{"type": "invalid_request_error"}), 1, processor.ErrInvalid,
			false},
		"a decision to repeat": {apitest.Reply{Status: 400, Body: `{"error":{"type":"invalid_request_error"}}`,
			Header: map[string]string{"Stripe-Should-Retry": "true"}}, 1, processor.ErrInvalid, false},
		"our key, for a lookup": {apitest.Fails(401, apitest.Fields{"type": "invalid_request_error"}), 1, processor.ErrRefused,
			true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := apitest.NewScript(t)
			s.Always = func(apitest.Seen) apitest.Reply { return tt.reply }
			c := testClient(t, s)
			var err error
			if tt.get {
				err = lookup(t.Context(), c, "")
			} else {
				err = confirm(t.Context(), c, "dd_confirm")
			}
			apitest.WantError(t, name, err, tt.want)
			if got := len(s.Requests()); got != tt.sends {
				t.Errorf("%s: sent %d times, want %d", name, got, tt.sends)
			}
		})
	}
}

// A send that may have been carried out is not undone by a later one that was not let in.
func TestSender_StaysInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		s := apitest.NewScript(t)
		s.Always = func(apitest.Seen) apitest.Reply {
			if first {
				first = false
				return apitest.Reply{Status: 500, Body: "x", Header: map[string]string{"Stripe-Should-Retry": "true"}}
			}
			return locked(409, "idempotency_key_in_use")
		}
		err := confirm(t.Context(), testClient(t, s), "dd_confirm")
		if !errors.Is(err, processor.ErrUnknown) || errors.Is(err, processor.ErrNotExecuted) {
			t.Errorf("got %v, want ErrUnknown", err)
		}
	})
}

// TestSender_KnowsARefusedKey: by the last answer. An earlier send may have been carried out before.
func TestSender_KnowsARefusedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := apitest.Fails(401, apitest.Fields{"type": "invalid_request_error", "code": "api_key_expired", "message": "m"})
		c := testClient(t, apitest.NewScript(t, refused, apitest.OKIntent(succeeded),
			apitest.Reply{Status: 500, Body: "x", Header: map[string]string{"Stripe-Should-Retry": "true"}}, refused,
			apitest.Fails(403, apitest.Fields{"type": "invalid_request_error", "message": "permissions"})))
		for n, want := range []struct{ failed, maybe, refused bool }{{true, false, true}, {false, false, false},
			{true, true, true}, {true, false, false}} {
			e, failed := Is(confirm(t.Context(), c, "dd_confirm"), Refused)
			if failed != want.failed || failed && e.Maybe != want.maybe || c.KeyRefused() != want.refused {
				t.Errorf("request %d: got %+v, refused: %t", n, e, c.KeyRefused())
			}
		}
	})
}

func TestSender_WaitsAsLongAsItIsAsked(t *testing.T) {
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "0": 0, "86400": longestAsked} {
		synctest.Test(t, func(t *testing.T) {
			s := apitest.NewScript(t, tooMany(map[string]string{"Retry-After": header}), apitest.OKIntent(succeeded))
			if err := confirm(t.Context(), testClient(t, s), "dd_confirm"); err != nil {
				t.Fatal(err)
			}
			got := s.Requests()[1].At.Sub(s.Requests()[0].At)
			if got < want || got > want+10*time.Millisecond {
				t.Errorf("Retry-After %s: waited %v, want %v", header, got, want)
			}
		})
	}
	for try := 1; try < 40; try++ {
		if d := restAfter(try, http.Header{"Retry-After": {"Wed, 21 Oct 2026 07:28:00 GMT"}}); d < firstRest/2 ||
			d > longestRest {
			t.Errorf("try %d: rest of %v", try, d)
		}
	}
}

func TestSender_SlowsTheRightLane(t *testing.T) {
	const endpoint = "POST /v1/payment_intents/{id}/confirm"
	for name, tt := range map[string]struct {
		reply            apitest.Reply
		confirm, general int // rates after it
	}{
		"an endpoint's":  {tooMany(nil), 18, 80},
		"all endpoints'": {tooMany(map[string]string{"Stripe-Rate-Limited-Reason": "global-rate"}), 20, 72},
		"an object's":    {tooMany(map[string]string{"Stripe-Rate-Limited-Reason": "resource-specific"}), 20, 80},
		"a lock":         {locked(429, "lock_timeout"), 20, 80},
		"a key in use":   {locked(409, "idempotency_key_in_use"), 20, 80},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			r := tt.reply
			r.Check = func(apitest.Seen) { time.AfterFunc(10*time.Millisecond, cancel) }
			c := testClient(t, apitest.NewScript(t, r), func(o *Options) { o.Rate = 20 })
			err := confirm(ctx, c, "dd_confirm")
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", name, err)
			}
			b := c.sender.budget
			if got := [2]int{b.pace(endpoint).current(time.Now()), b.total.current(time.Now())}; got != [2]int{tt.confirm,
				tt.general} {
				t.Errorf("%s: rates %v, want %d and %d", name, got, tt.confirm, tt.general)
			}
		})
	}
}

// What a 429 costs: those who wait behind it lose a moment, and it is longer each time that the
// same request meets one.
func TestSender_RestsTheLaneForAMomentFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		busy        int // answers of 429 before the last request
		header      map[string]string
		least, most time.Duration
	}{
		"the first":                   {1, nil, firstPaceRest, firstPaceRest},
		"the first, with no wait":     {1, map[string]string{"Retry-After": "0"}, 0, 5 * time.Millisecond}, // the slot's
		"the first, with a long wait": {1, map[string]string{"Retry-After": "7"}, 7 * time.Second, 7 * time.Second},
		"the second":                  {2, nil, firstRest, 2 * firstRest},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			left, done := tt.busy, make(chan time.Time, 1)
			s := apitest.NewScript(t)
			s.Always = func(r apitest.Seen) apitest.Reply {
				if r.Header.Get("Idempotency-Key") == "dd_behind" {
					return apitest.OKIntent(succeeded)
				}
				if left--; left == 0 {
					done <- r.At
				}
				return tooMany(tt.header)
			}
			c := testClient(t, s)
			var all sync.WaitGroup
			all.Go(func() {
				if err := confirm(ctx, c, "dd_confirm"); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: got %v", name, err)
				}
			})
			met := <-done
			synctest.Wait() // it has learned from the last
			if err := confirm(t.Context(), c, "dd_behind"); err != nil {
				t.Error(err)
			}
			for _, r := range s.Requests() {
				if r.Header.Get("Idempotency-Key") == "dd_behind" {
					if got := r.At.Sub(met); got < tt.least || got > tt.most {
						t.Errorf("%s: the request behind went %v after it, want %v to %v", name, got, tt.least, tt.most)
					}
				}
			}
			cancel()
			all.Wait()
		})
	}
}

func TestSender_ErrorsReadAsSentences(t *testing.T) {
	for want, e := range map[string]apitest.Fields{
		"status 401 invalid_request_error: Invalid API Key (request req_1)": {"type": "invalid_request_error",
			"message": "Invalid API Key"},
		"status 401 invalid_request_error x: Invalid : Key (request req_1)": {"type": "invalid_request_error", "code": "x",
			"message": " Invalid  : Key"},
	} {
		err := lookup(t.Context(), testClient(t, apitest.NewScript(t, apitest.Fails(401, e))), "")
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("got %v, want it to end with %q", err, want)
		}
	}
}

// slow answers 200 ms later.
type slow struct{ *apitest.Script }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.Script.RoundTrip(r)
	time.Sleep(200 * time.Millisecond)
	return resp, err
}

// Sixteen workers against a Stripe that takes 200 ms and allows 25 a second.
func TestSender_ChargesAsFastAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		s := apitest.NewScript(t)
		s.Always = func(r apitest.Seen) apitest.Reply {
			return apitest.OKIntent(succeeded)
		}
		c := testClient(t, s, func(o *Options) { o.Rate, o.Transport = 25, slow{s} })
		start := time.Now()
		var left atomic.Int64
		left.Store(n)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					if err := confirm(t.Context(), c, "dd_confirm"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if got, want := time.Since(start), (n-1)*40800*time.Microsecond+200*time.Millisecond; got != want {
			t.Errorf("%d charges took %v, want %v", n, got, want)
		}
		for from := range s.Requests()[:n-26] {
			if span := s.Requests()[from+25].At.Sub(s.Requests()[from].At); span < time.Second {
				t.Fatalf("26 requests within %v", span)
			}
		}
	})
}

func TestSender_LeavesAnAccountAloneThatLetGo(t *testing.T) {
	gone := apitest.Fails(403, apitest.Fields{"type": "invalid_request_error", "code": "account_invalid",
		"message": "The provided key '" + apitest.Key + "' does not have access to account 'acct_1'"})
	s := apitest.NewScript(t, gone, apitest.OKIntent(succeeded), apitest.OKIntent(succeeded), apitest.OKIntent(succeeded))
	now := apitest.Now
	c := testClient(t, s, func(o *Options) { o.Now = func() time.Time { return now } })
	for range 3 { // the first is asked
		apitest.WantError(t, "the account", lookup(t.Context(), c, "acct_1"), processor.ErrAccountRefused)
	}
	if err := lookup(t.Context(), c, "acct_2"); err != nil {
		t.Errorf("another account: %v", err)
	}
	if err := lookup(t.Context(), c, ""); err != nil {
		t.Errorf("our own: %v", err)
	}
	now = now.Add(disconnectedFor - time.Second)
	apitest.WantError(t, "soon after", lookup(t.Context(), c, "acct_1"), processor.ErrAccountRefused)
	now = now.Add(time.Second)
	if err := lookup(t.Context(), c, "acct_1"); err != nil {
		t.Errorf("ten minutes later: %v", err)
	}
}

// A permission that our key lacks there is about the call; the account goes on being charged.
func TestSender_AMissingPermissionSuspendsNobody(t *testing.T) {
	s := apitest.NewScript(t, apitest.Fails(403, apitest.Fields{"type": "invalid_request_error",
		"message": "permissions"}), apitest.OKIntent(succeeded))
	c := testClient(t, s)
	apitest.WantError(t, "forbidden", lookup(t.Context(), c, "acct_1"), processor.ErrAccountRefused)
	if err := lookup(t.Context(), c, "acct_1"); err != nil {
		t.Error(err)
	}
}

func TestEndpoint(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/payment_intents":                 "POST /v1/payment_intents",
		"/v1/payment_intents/pi_1/confirm":    "POST /v1/payment_intents/{id}/confirm",
		"/v1/payment_methods/pm_1/attach":     "POST /v1/payment_methods/{id}/attach",
		"/v1/checkout/sessions":               "POST /v1/checkout/sessions",
		"/v1/customers/cus_1":                 "POST /v1/customers/{id}",
		"/v1/charges/ch_1":                    "POST /v1/charges/{id}",
		"/v2/core/events":                     "POST /v2/core/events",
		"/v1/payment_intents/confirm me/x%20": "POST /v1/payment_intents/{id}/{id}",
	} {
		if got := Endpoint("POST", path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// Over a real connection: what breaks is not sent again behind our back.
func TestTransport_SendsOnce(t *testing.T) {
	s := apitest.NewScript(t, apitest.OKIntent(succeeded), apitest.Reply{}, apitest.OKIntent(succeeded))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := s.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.Copy(w, resp.Body)
	}))
	defer server.Close()
	c := testClient(t, s, func(o *Options) { o.Transport, o.Base = nil, server.URL+"/" })
	if err := confirm(t.Context(), c, "dd_confirm"); err != nil { // so that there is a connection to use again
		t.Fatal(err)
	}
	err := confirm(t.Context(), c, "dd_confirm")
	apitest.WantError(t, "a broken connection", err, processor.ErrUnknown)
	if got := len(s.Requests()); got != 2 {
		t.Errorf("sent %d times, want 2", got)
	}
	if err := confirm(t.Context(), c, "dd_confirm"); err != nil {
		t.Error(err)
	}
	for _, r := range s.Requests() {
		if got := r.Header.Values("Idempotency-Key"); !slices.Equal(got, []string{"dd_confirm"}) ||
			r.Header.Get("User-Agent") == "" {
			t.Errorf("keys %v", got)
		}
	}
}

func TestTransport_WithoutAServerNothingWasSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := testClient(t, apitest.NewScript(t), func(o *Options) { o.Transport, o.Base = nil, "http://"+address })
	apitest.WantError(t, "no server", confirm(t.Context(), c, "dd_confirm"), processor.ErrNotExecuted)
}

func TestTransport_AnswersHaveAnEnd(t *testing.T) {
	body := &limited{http.NoBody, 1}
	if n, err := body.Read(make([]byte, 4)); n != 0 || err == nil {
		t.Errorf("got %d, %v", n, err)
	}
	long := &limited{readCloser{strings.NewReader("abc")}, 2}
	if _, err := long.Read(make([]byte, 4)); !errors.Is(err, errTooLong) {
		t.Errorf("got %v, want %v", err, errTooLong)
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// A gate closed while a request waits lets nothing out, also no further send after a 429, and look-ups
// pass it.
func TestSender_AsksTheGateBeforeEachSend(t *testing.T) {
	closed := errors.New("closed")
	for sends := range 3 {
		synctest.Test(t, func(t *testing.T) {
			s := apitest.NewScript(t, slices.Repeat([]apitest.Reply{tooMany(nil)}, sends)...)
			asked := 0
			ctx := processor.WithGate(t.Context(), func(context.Context) error {
				if asked++; asked > sends {
					return closed
				}
				return nil
			})
			err := confirm(ctx, testClient(t, s), "dd_confirm")
			if !errors.Is(err, closed) || !errors.Is(err, processor.ErrNotExecuted) || !strings.Contains(err.Error(), " sent") {
				t.Errorf("after %d sends: %v", sends, err)
			}
		})
	}
	s := apitest.NewScript(t, apitest.OKIntent(succeeded))
	ctx := processor.WithGate(t.Context(), func(context.Context) error { return closed })
	if err := lookup(ctx, testClient(t, s), ""); err != nil {
		t.Error(err)
	}
}
