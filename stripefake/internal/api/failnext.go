package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// A failure is what FailNext plans for the next requests to a route, or to one path.
type failure struct {
	route  *Route
	path   string // route.Path: every object's
	status int    // 0: the connection breaks
	code   string
	left   int
}

// beforeKey reports whether Stripe fails the request before it looks at the idempotency key.
func (p failure) beforeKey() bool {
	return slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict,
		http.StatusTooManyRequests}, p.status)
}

func (f *Fake) FailNext(endpoint string, status int, code string, times int) error {
	method, path, _ := strings.Cut(endpoint, " ")
	route, _, _ := f.router.find(method, path)
	switch {
	case route == nil:
		return fmt.Errorf("endpoint must be a method and a path of this fake, such as POST /v1/payment_intents (got %q)",
			endpoint)
	case status != 0 && (status < 400 || status > 599):
		return fmt.Errorf("status must be 0 or from 400 to 599 (got %d)", status)
	case times < 1:
		return fmt.Errorf("times must be at least 1 (got %d)", times)
	}
	defer f.lock()()
	f.failures = append(f.failures, &failure{route, path, status, code, times})
	return nil
}

// planned takes the first failure that is planned for the request, before or after its idempotency
// key is looked at. It returns nil if there is none. The caller holds Mu.
func (x *exchange) planned(beforeKey bool) *failure {
	for i, p := range x.f.failures {
		if p.route != x.call.route || p.path != p.route.Path && p.path != x.call.url || p.beforeKey() != beforeKey {
			continue
		}
		if p.left--; p.left == 0 {
			x.f.failures = slices.Delete(x.f.failures, i, i+1)
		}
		return p
	}
	return nil
}

// failureError is the error of a planned failure, as Stripe words it where it has a usual text.
func (x *exchange) failureError(p *failure) error {
	switch {
	case p.status == http.StatusPaymentRequired:
		if e := x.f.Options.Decline(cmp.Or(p.code, "generic_decline")); e != nil {
			return e
		}
	case p.status == http.StatusTooManyRequests && (p.code == "" || p.code == "rate_limit"):
		return tooMany()
	case p.status == http.StatusConflict && p.code == "idempotency_key_in_use":
		return keyInUse(x.call.key)
	}
	e := shape.Refused(p.status, p.code, "", "stripefake.FailNext asked for this error.")
	switch {
	case p.status >= http.StatusInternalServerError:
		e.Kind = "api_error"
	case p.status == http.StatusPaymentRequired:
		e.Kind = "card_error"
	}
	return e
}
