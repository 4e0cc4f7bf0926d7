package api

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/secret"
)

// The metadata by which billing and tracking tell Duesday's objects at Stripe apart.
const (
	MetaAccount      = "duesday_account"
	MetaSubscription = "duesday_subscription"
)

// IsID reports whether the text is an id of Stripe's with the prefix.
func IsID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	return ok && rest != "" && len(text) <= 255 && !strings.ContainsFunc(rest, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// CheckAt refuses what is no connected account; "" is our own.
func CheckAt(at string) error {
	if at != "" && !IsID(at, "acct_") {
		return Unsent("connected account %.60q: want acct_…", at)
	}
	return nil
}

// CheckID refuses what cannot be an id, so that it is no part of another path.
func CheckID(what, id, prefix string) error {
	if !IsID(id, prefix) {
		return Unsent("%s %.60q: want %s…", what, id, prefix)
	}
	return nil
}

func IsMethod(id string) bool { return IsID(id, "pm_") || IsID(id, "card_") || IsID(id, "src_") }

// Quote is what an error repeats of what was typed.
func Quote(text string) string { return fmt.Sprintf("%.40q", secret.Redact(text)) }

// CheckURL refuses what is no absolute http address. It does not repeat it: a password may be
// in it.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("want an absolute address with http or https, such as https://example.com")
	case u.User != nil:
		return errors.New("a user and a password are not asked for")
	}
	return nil
}

// Instant reads Stripe's seconds; 0 is no time.
func Instant(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// Account returns the library's parameter for a connected account, or none.
func Account(at string) *string {
	if at == "" {
		return nil
	}
	return &at
}
