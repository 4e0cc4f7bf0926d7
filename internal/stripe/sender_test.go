package stripe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

func tooMany(header map[string]string) reply {
	r := fails(429, fields{"type": "invalid_request_error", "code": "rate_limit", "message": "m"})
	r.header = header
	return r
}

func locked(status int, code string) reply {
	return fails(status, fields{"type": "invalid_request_error", "code": code, "message": "m"})
}

var succeeded = fields{"status": "succeeded", "latest_charge": "ch_1"}

// What Stripe has not executed is sent again as it was, under the same key.
func TestSender_SendsAgainWhatWasNotExecuted(t *testing.T) {
	for name, first := range map[string]reply{"rate": tooMany(nil), "lock": locked(429, "lock_timeout"), "in use": locked(409, "idempotency_key_in_use"),
		"a balancer's 429": {status: 429, body: "slow down"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(t, first, first, first, okIntent(succeeded))
			got, err := processor(t, s).Confirm(t.Context(), confirmRequest)
			if err != nil || got.State != billing.Succeeded {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
			for i, r := range s.requests() {
				if r.header.Get("Idempotency-Key") != "dd_confirm" || r.form.Encode() != s.requests()[0].form.Encode() {
					t.Errorf("%s: send %d went under %q with %v", name, i, r.header.Get("Idempotency-Key"), r.form)
				}
				if i > 0 {
					most := firstRest << (i - 1)
					if rest := r.at.Sub(s.requests()[i-1].at); rest < most/2 || rest > most+time.Second {
						t.Errorf("%s: send %d came after %v, want %v to %v", name, i, rest, most/2, most)
					}
				}
			}
		})
	}
}

func TestSender_GivesUp(t *testing.T) {
	lost := reply{}
	for name, tt := range map[string]struct {
		reply reply
		sends int
		want  error
		get   bool
	}{
		"a rate":                {tooMany(nil), busyTries, billing.ErrNotExecuted, false},
		"a rate, for good":      {tooMany(map[string]string{"Stripe-Should-Retry": "false"}), 1, billing.ErrNotExecuted, false},
		"a look-up":             {lost, readTries, billing.ErrUnknown, true},
		"a look-up's 500":       {reply{status: 500, body: "x"}, readTries, billing.ErrUnknown, true},
		"a confirm":             {lost, 1, billing.ErrUnknown, false},
		"a 500":                 {reply{status: 500, body: "x"}, 1, billing.ErrUnknown, false},
		"a 500 to send again":   {reply{status: 500, body: "x", header: map[string]string{"Stripe-Should-Retry": "true"}}, advisedTries, billing.ErrUnknown, false},
		"a decision":            {fails(400, fields{"type": "invalid_request_error"}), 1, billing.ErrInvalid, false},
		"a decision to repeat":  {reply{status: 400, body: `{"error":{"type":"invalid_request_error"}}`, header: map[string]string{"Stripe-Should-Retry": "true"}}, 1, billing.ErrInvalid, false},
		"our key, for a lookup": {fails(401, fields{"type": "invalid_request_error"}), 1, billing.ErrRefused, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(t)
			s.always = func(seen) reply { return tt.reply }
			p := processor(t, s)
			var err error
			if tt.get {
				_, err = p.Lookup(t.Context(), "pi_1")
			} else {
				_, err = p.Confirm(t.Context(), confirmRequest)
			}
			wantError(t, name, err, tt.want)
			if got := len(s.requests()); got != tt.sends {
				t.Errorf("%s: sent %d times, want %d", name, got, tt.sends)
			}
		})
	}
}

// A send that may have been carried out is not undone by a later one that was not let in.
func TestSender_StaysInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		s := newScript(t)
		s.always = func(seen) reply {
			if first {
				first = false
				return reply{status: 500, body: "x", header: map[string]string{"Stripe-Should-Retry": "true"}}
			}
			return locked(409, "idempotency_key_in_use")
		}
		_, err := processor(t, s).Confirm(t.Context(), confirmRequest)
		if !errors.Is(err, billing.ErrUnknown) || errors.Is(err, billing.ErrNotExecuted) {
			t.Errorf("got %v, want ErrUnknown", err)
		}
	})
}

func TestSender_WaitsAsLongAsItIsAsked(t *testing.T) {
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "0": 0, "86400": longestAsked} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(t, tooMany(map[string]string{"Retry-After": header}), okIntent(succeeded))
			if _, err := processor(t, s).Confirm(t.Context(), confirmRequest); err != nil {
				t.Fatal(err)
			}
			got := s.requests()[1].at.Sub(s.requests()[0].at)
			if got < want || got > want+10*time.Millisecond {
				t.Errorf("Retry-After %s: waited %v, want %v", header, got, want)
			}
		})
	}
	for try := 1; try < 40; try++ {
		if d := rest(try, http.Header{"Retry-After": {"Wed, 21 Oct 2026 07:28:00 GMT"}}); d < firstRest/2 || d > longestRest {
			t.Errorf("try %d: rest of %v", try, d)
		}
	}
}

func TestSender_SlowsTheRightLane(t *testing.T) {
	const confirm = "POST /v1/payment_intents/{id}/confirm"
	for name, tt := range map[string]struct {
		reply            reply
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
			r.check = func(seen) { time.AfterFunc(10*time.Millisecond, cancel) }
			p := processor(t, newScript(t, r), func(o *Options) { o.Rate = 20 })
			_, err := p.Confirm(ctx, confirmRequest)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", name, err)
			}
			b := p.budget
			if got := [2]int{b.lane(confirm).current(time.Now()), b.total.current(time.Now())}; got != [2]int{tt.confirm, tt.general} {
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
		"the first":                   {1, nil, firstLaneRest, firstLaneRest},
		"the first, with no wait":     {1, map[string]string{"Retry-After": "0"}, 0, 5 * time.Millisecond}, // the slot's
		"the first, with a long wait": {1, map[string]string{"Retry-After": "7"}, 7 * time.Second, 7 * time.Second},
		"the second":                  {2, nil, firstRest, 2 * firstRest},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			left, done := tt.busy, make(chan time.Time, 1)
			s := newScript(t)
			s.always = func(r seen) reply {
				if r.header.Get("Idempotency-Key") == "dd_behind" {
					return okIntent(succeeded)
				}
				if left--; left == 0 {
					done <- r.at
				}
				return tooMany(tt.header)
			}
			p := processor(t, s)
			var all sync.WaitGroup
			all.Go(func() {
				if _, err := p.Confirm(ctx, confirmRequest); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: got %v", name, err)
				}
			})
			met := <-done
			synctest.Wait() // it has learned from the last
			behind := confirmRequest
			behind.Key = "dd_behind"
			if _, err := p.Confirm(t.Context(), behind); err != nil {
				t.Error(err)
			}
			for _, r := range s.requests() {
				if r.header.Get("Idempotency-Key") == "dd_behind" {
					if got := r.at.Sub(met); got < tt.least || got > tt.most {
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
	for want, e := range map[string]fields{
		"status 401 invalid_request_error: Invalid API Key (request req_1)": {"type": "invalid_request_error", "message": "Invalid API Key"},
		"status 401 invalid_request_error x: Invalid : Key (request req_1)": {"type": "invalid_request_error", "code": "x", "message": " Invalid  : Key"},
	} {
		_, err := processor(t, newScript(t, fails(401, e))).Lookup(t.Context(), "pi_1")
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("got %v, want it to end with %q", err, want)
		}
	}
}

// Sixteen workers against a Stripe that takes 200 ms and allows 25 a second.
func TestSender_ChargesAsFastAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		s := newScript(t)
		s.always = func(r seen) reply { a := okIntent(succeeded); a.delay = 200 * time.Millisecond; return a }
		p := processor(t, s, func(o *Options) { o.Rate = 25 })
		start := time.Now()
		var left atomic.Int64
		left.Store(n)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					if _, err := p.Confirm(t.Context(), confirmRequest); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if got, want := time.Since(start), (n-1)*40800*time.Microsecond+200*time.Millisecond; got != want {
			t.Errorf("%d charges took %v, want %v", n, got, want)
		}
		for from := range s.requests()[:n-26] {
			if span := s.requests()[from+25].at.Sub(s.requests()[from].at); span < time.Second {
				t.Fatalf("26 requests within %v", span)
			}
		}
	})
}

func TestSender_LeavesAnAccountAloneThatLetGo(t *testing.T) {
	gone := fails(403, fields{"type": "invalid_request_error", "code": "account_invalid", "message": "The provided key '" + testKey + "' does not have access to account 'acct_1'"})
	s := newScript(t, gone, okIntent(succeeded), okIntent(succeeded), okIntent(succeeded))
	now := testNow
	p := processor(t, s, func(o *Options) { o.Now = func() time.Time { return now } })
	confirm := func(ref string) error {
		r := confirmRequest
		r.Ref = ref
		_, err := p.Confirm(t.Context(), r)
		return err
	}
	for range 3 { // the first is asked
		wantError(t, "the account", confirm("acct_1/pi_1"), billing.ErrAccountRefused)
	}
	if err := confirm("acct_2/pi_1"); err != nil {
		t.Errorf("another account: %v", err)
	}
	if err := confirm("pi_1"); err != nil {
		t.Errorf("our own: %v", err)
	}
	now = now.Add(refusalLife - time.Second)
	wantError(t, "soon after", confirm("acct_1/pi_1"), billing.ErrAccountRefused)
	now = now.Add(time.Second)
	if err := confirm("acct_1/pi_1"); err != nil {
		t.Errorf("ten minutes later: %v", err)
	}
}

// A permission that our key lacks there is about the call; the account goes on being charged.
func TestSender_AMissingPermissionSuspendsNobody(t *testing.T) {
	s := newScript(t, fails(403, fields{"type": "invalid_request_error", "message": "permissions"}), okIntent(succeeded))
	p := processor(t, s)
	_, err := p.Lookup(t.Context(), "acct_1/pi_1")
	wantError(t, "forbidden", err, billing.ErrAccountRefused)
	if _, err := p.Lookup(t.Context(), "acct_1/pi_1"); err != nil {
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
		"/v1/payment_intents/confirm me/x%20": "POST /v1/payment_intents/{id}/{id}",
	} {
		if got := endpoint("POST", path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// Over a real connection: what breaks is not sent again behind our back.
func TestTransport_SendsOnce(t *testing.T) {
	s := newScript(t, okIntent(succeeded), reply{}, okIntent(succeeded))
	server := httptest.NewServer(s)
	defer server.Close()
	p := processor(t, s, func(o *Options) { o.Transport, o.Base = nil, server.URL+"/" })
	if _, err := p.Confirm(t.Context(), confirmRequest); err != nil { // so that there is a connection to use again
		t.Fatal(err)
	}
	_, err := p.Confirm(t.Context(), confirmRequest)
	wantError(t, "a broken connection", err, billing.ErrUnknown)
	if got := len(s.requests()); got != 2 {
		t.Errorf("sent %d times, want 2", got)
	}
	if _, err := p.Confirm(t.Context(), confirmRequest); err != nil {
		t.Error(err)
	}
	for _, r := range s.requests() {
		if got := r.header.Values("Idempotency-Key"); !slices.Equal(got, []string{"dd_confirm"}) || r.header.Get("User-Agent") == "" {
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
	p := processor(t, newScript(t), func(o *Options) { o.Transport, o.Base = nil, "http://"+address })
	_, err = p.Confirm(t.Context(), confirmRequest)
	wantError(t, "no server", err, billing.ErrNotExecuted)
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
