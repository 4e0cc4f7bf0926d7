package api

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/secret"
)

// The metadata keys of a charge. Events are searched for them too.
const (
	MetaAccount      = "duesday_account"
	MetaSubscription = "duesday_subscription"
)

// MetaTakeover is the metadata key of a subscription that ends because an installation takes it over. Its value
// is the installation's ID.
const MetaTakeover = "duesday_takeover"

// IsID reports whether the text is a Stripe ID with the prefix.
func IsID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	return ok && rest != "" && len(text) <= 255 && !strings.ContainsFunc(rest, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// CheckAt returns an error unless at is a well-formed connected account, or empty for our own
// account.
func CheckAt(at string) error {
	if at != "" && !IsID(at, "acct_") {
		return Unsent("the connected account must be acct_… (got %.60q)", at)
	}
	return nil
}

// CheckID returns an error if the ID is malformed, because a malformed ID could change the
// request's path.
func CheckID(name, id, prefix string) error {
	if !IsID(id, prefix) {
		return Unsent("the %s must be %s… (got %.60q)", name, prefix, id)
	}
	return nil
}

// IsMethod reports whether the text is a payment method ID.
func IsMethod(id string) bool { return IsID(id, "pm_") || IsID(id, "card_") || IsID(id, "src_") }

// Quote returns a user's text in a form that an error can contain.
func Quote(text string) string { return fmt.Sprintf("%.40q", secret.Redact(text)) }

// CheckURL returns an error unless the text is an absolute http or https address. The error does
// not contain the text, which may contain a password.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("must be an absolute http or https address, such as https://example.com")
	case u.User != nil:
		return errors.New("must not contain a user or password")
	}
	return nil
}

// Instant returns the time for Unix seconds, or the zero time for 0.
func Instant(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// Params returns the library's parameters for a connected account and an idempotency key. Either
// can be empty.
func Params(at, key string) (p sdk.Params) {
	if at != "" {
		p.StripeAccount = &at
	}
	if key != "" {
		p.IdempotencyKey = &key
	}
	return p
}

// DisputesLast is how long after its creation a dispute, including its appeal, can still change.
const DisputesLast = 365 * 24 * time.Hour

// CreatedBetween returns the parameters of a list of objects created at or after from, and before
// until. Stripe counts whole seconds. A zero time means no limit.
func CreatedBetween(from, until time.Time) url.Values {
	query := url.Values{}
	for name, t := range map[string]time.Time{"created[gte]": from, "created[lt]": until} {
		if !t.IsZero() {
			query.Set(name, strconv.FormatInt(max(t.Unix(), 1), 10))
		}
	}
	return query
}
