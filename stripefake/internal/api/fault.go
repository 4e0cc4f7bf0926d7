package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Faults are stripefake.Faults.
type Faults struct {
	Latency                                             time.Duration
	LostRequests, LostReplies, Errors, LateErrors, Busy float64
	Rate                                                int
	Seed                                                uint64
	EventLosses, WebhookCopies, WebhookDrops            float64
	WebhookShuffle                                      bool
	WebhookDelay                                        time.Duration
}

// Check returns the first mistake in the faults, by the names of the control API.
func (f Faults) Check() error {
	sum := 0.0
	for _, r := range f.rates() {
		if !(r.rate >= 0 && r.rate <= 1) {
			return fmt.Errorf("%s must be a probability from 0 to 1 (got %v)", r.name, r.rate)
		}
		if r.fate != normal {
			sum += r.rate
		}
	}
	switch {
	case sum > 1+1e-9:
		return fmt.Errorf("lost_requests, lost_replies, errors, late_errors and busy must add up to at most 1 (got %v)", sum)
	case f.Latency < 0 || f.Latency > MaxLatency:
		return fmt.Errorf("latency must be from 0 to %v (got %v)", MaxLatency, f.Latency)
	case f.WebhookDelay < 0:
		return fmt.Errorf("webhook_delay must be at least 0 (got %v)", f.WebhookDelay)
	case f.Rate < 0:
		return fmt.Errorf("rate must be at least 0 (got %d)", f.Rate)
	}
	return nil
}

// A fate is the fault of one request.
type fate int

const (
	normal fate = iota
	lostRequest
	lostReply
	failed
	failedLate
	busy
)

type rate struct {
	name string
	rate float64
	fate fate
}

// rates are the rates of requests, and then the others, whose fate is normal.
func (f Faults) rates() []rate {
	return []rate{
		{"lost_requests", f.LostRequests, lostRequest}, {"lost_replies", f.LostReplies, lostReply},
		{"errors", f.Errors, failed}, {"late_errors", f.LateErrors, failedLate}, {"busy", f.Busy, busy},
		{"event_losses", f.EventLosses, normal}, {"webhook_copies", f.WebhookCopies, normal},
		{"webhook_drops", f.WebhookDrops, normal},
	}
}

func newDice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// draw returns the fate of a request in one draw: seed and order decide. The caller holds Mu.
func (f *Fake) draw() fate {
	u := f.dice.Float64()
	for _, r := range f.faults.rates() {
		if u < r.rate {
			return r.fate
		}
		u -= r.rate
	}
	return normal
}

// chance draws with the probability. The caller holds Mu.
func (f *Fake) chance(p float64) bool { return p > 0 && f.dice.Float64() < p }

// isBusy returns an error of a busy Stripe. The caller holds Mu.
func (f *Fake) isBusy(key string) error {
	switch n := f.dice.IntN(3); {
	case n == 0:
		return tooMany()
	case n == 1 && key != "":
		return keyInUse(key)
	}
	return shape.Refused(http.StatusTooManyRequests, "lock_timeout", "", "This object cannot be accessed right now "+
		"because another API request or Stripe process is currently accessing it. If you see this error intermittently, "+
		"retry the request.")
}

func tooMany() error {
	return shape.Refused(http.StatusTooManyRequests, "rate_limit", "", "Request rate limit exceeded. You can learn more "+
		"about rate limits here https://stripe.com/docs/rate-limits.")
}

// broken returns the error of a request that fails by a fault.
func broken() error {
	return &shape.Error{Status: http.StatusInternalServerError, Kind: "api_error",
		Message: "Sorry! There was an error while talking to stripefake. This is one of the faults that you configured."}
}

// A limit is one of the rate: of an endpoint of one account in one mode.
type limit struct {
	space    *Space
	endpoint string
}

// admit reports whether the endpoint has room: at most Rate pass in any second of the real clock.
func (f *Fake) admit(s *Space, endpoint string) bool {
	if f.faults.Rate == 0 {
		return true
	}
	l, now := limit{s, endpoint}, f.Options.Real()
	last := slices.DeleteFunc(f.windows[l], func(t time.Time) bool { return now.Sub(t) >= time.Second })
	room := len(last) < f.faults.Rate
	if room {
		last = append(last, now)
	}
	f.windows[l] = last
	return room
}

// wait waits for the latency of a request. It returns an error if the caller has gone.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hangUp breaks the connection without an answer. Where the server cannot (a recorder in a
// test), the answer is a 502 without a body, as of a broken proxy.
func hangUp(w http.ResponseWriter) {
	rc := http.NewResponseController(w)
	conn, _, err := rc.Hijack()
	if err == nil {
		_ = conn.Close() // the caller learns nothing, on purpose
		return
	}
	_ = rc.SetWriteDeadline(time.Unix(1, 0)) // it ends the stream of HTTP/2
	w.WriteHeader(http.StatusBadGateway)
}

// Faults returns the faults in effect.
func (f *Fake) Faults() Faults {
	defer f.lock()()
	return f.faults
}

// SetFaults replaces all faults. The dice begin anew if the seed is another one.
func (f *Fake) SetFaults(to Faults) error {
	if err := to.Check(); err != nil {
		return err
	}
	defer f.lock()()
	if to.Seed != f.faults.Seed {
		f.dice = newDice(to.Seed)
	}
	f.faults = to
	return nil
}
