package api

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	busyTries    = 8 // sends of one request while Stripe is too busy
	readTries    = 3 // sends of a look-up whose answer was lost
	advisedTries = 3 // sends of a request if Stripe itself asks for another
	firstRest    = 500 * time.Millisecond
	longestRest  = 8 * time.Second

	firstPaceRest = 50 * time.Millisecond
	longestAsked  = time.Minute // of a Retry-After
)

// retryable reports whether the request may be sent once more, with the same key.
func (c *call) retryable(x *exchange, e *Error) bool {
	if e.cause != nil || e.Verdict != Busy && e.Verdict != Unknown {
		return false
	}
	switch x.header.Get("Stripe-Should-Retry") {
	case "false":
		return false
	case "true":
		if e.Verdict == Unknown {
			return c.tries < advisedTries
		}
	}
	switch {
	case e.Verdict == Busy && x.unsent, e.Verdict == Unknown && c.method == http.MethodGet:
		return c.tries < readTries
	case e.Verdict == Busy:
		return c.tries < busyTries
	}
	return false // the caller looks the object up, and then decides on another send and its key
}

// restAfter returns the wait before the next send. Stripe may ask for one. Otherwise it doubles
// each time, with a spread so that workers do not come back together.
func restAfter(tries int, h http.Header) time.Duration {
	if asked, err := strconv.Atoi(h.Get("Retry-After")); err == nil && asked >= 0 {
		return min(time.Duration(asked)*time.Second, longestAsked)
	}
	d := min(longestRest, firstRest<<min(tries-1, 4))
	return d/2 + rand.N(d/2)
}

// paceRest returns how long all requests of a pace stop after a 429. It is a moment if a first send
// met the 429 and Stripe asks for no wait, since the pace is about right. Otherwise it is as long
// as the request itself waits.
func paceRest(tries int, rest time.Duration, h http.Header) time.Duration {
	if tries == 1 && h.Get("Retry-After") == "" {
		return min(rest, firstPaceRest)
	}
	return rest
}
