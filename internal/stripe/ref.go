package stripe

import (
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing"
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

// parseRef reads a ref. One that is none of Stripe's is ErrNoIntent: it is another
// processor's.
func parseRef(text string) (ref, error) {
	at, id, connected := strings.Cut(text, "/")
	if !connected {
		at, id = "", text
	}
	if !isID(id, "pi_") || connected && !isID(at, "acct_") {
		return ref{}, fmt.Errorf("%w: %.60q is no payment intent of Stripe's: want pi_… or acct_…/pi_…", billing.ErrNoIntent, text)
	}
	return ref{at, id}, nil
}

// isID reports whether the text is an id of Stripe's with the prefix.
func isID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	return ok && rest != "" && len(text) <= 255 && !strings.ContainsFunc(rest, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// checkAt refuses what is no connected account; "" is our own.
func checkAt(at string) error {
	if at != "" && !isID(at, "acct_") {
		return unsent("connected account %.60q: want acct_…", at)
	}
	return nil
}

// checkID refuses what cannot be an id, so that it is no part of another path.
func checkID(what, id, prefix string) error {
	if !isID(id, prefix) {
		return unsent("%s %.60q: want %s…", what, id, prefix)
	}
	return nil
}
