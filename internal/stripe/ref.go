package stripe

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

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

// The metadata of Duesday's objects at Stripe.
const (
	metaInstallation = "duesday_installation"
	metaSKU          = "duesday_sku"
	metaPeriod       = "duesday_period"
	metaGeneration   = "duesday_generation"
	metaRefund       = "duesday_refund"
	metaAttempt      = "duesday_attempt" // the note of note.go
)

// maxMetadata is the most characters of a value at Stripe.
const maxMetadata = 500

// metadataOf returns the tag as metadata, without empty values: to Stripe an empty value means to
// remove one.
func metadataOf(t billing.Tag) (map[string]string, error) {
	return metadata(metaInstallation, t.Installation, api.MetaAccount, t.Account, api.MetaSubscription, t.Subscription,
		metaSKU, t.SKU, metaPeriod, strconv.Itoa(t.Period), metaGeneration, strconv.Itoa(t.Generation))
}

func metadata(pairs ...string) (map[string]string, error) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		name, value := pairs[i], pairs[i+1]
		if utf8.RuneCountInString(value) > maxMetadata {
			return nil, api.Unsent("%s has %d characters; Stripe keeps at most %d", name, utf8.RuneCountInString(value),
				maxMetadata)
		}
		if value != "" {
			m[name] = value
		}
	}
	return m, nil
}

// tagOf reads the tag back. It is zero if it is not Duesday's, or was made unreadable by hand.
func tagOf(m map[string]string) billing.Tag {
	if m[metaInstallation] == "" {
		return billing.Tag{}
	}
	period, err := strconv.Atoi(m[metaPeriod])
	generation, err2 := strconv.Atoi(m[metaGeneration])
	if err != nil || err2 != nil {
		return billing.Tag{}
	}
	return billing.Tag{Installation: m[metaInstallation], Account: m[api.MetaAccount],
		Subscription: m[api.MetaSubscription], SKU: m[metaSKU], Period: period, Generation: generation}
}
