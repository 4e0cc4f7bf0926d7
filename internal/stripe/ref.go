package stripe

import (
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
)

// A ref names an intent: pi_… on our own account, acct_…/pi_… on a connected one.
type ref struct {
	at string // acct_…, or ""
	id string // pi_…
}

func (r ref) String() string {
	if r.at == "" {
		return r.id
	}
	return r.at + "/" + r.id
}

// parseRef reads a ref. A text in another form is ErrNoIntent: it is another processor's.
func parseRef(text string) (ref, error) {
	at, id, connected := strings.Cut(text, "/")
	if !connected {
		at, id = "", text
	}
	if !api.IsID(id, "pi_") || connected && !api.IsID(at, "acct_") {
		return ref{}, fmt.Errorf("%w: %.60q is no payment intent of Stripe's: want pi_… or acct_…/pi_…", billing.ErrNoIntent,
			text)
	}
	return ref{at, id}, nil
}
