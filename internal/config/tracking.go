package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/secret"
)

// The environment variables of tracking.
const (
	EnvWebhookSecrets = "DUESDAY_STRIPE_WEBHOOK_SECRETS"
	EnvConnectSecrets = "DUESDAY_STRIPE_CONNECT_SECRETS"
	EnvAPIKey         = "DUESDAY_API_KEY"
	EnvPollSecret     = "DUESDAY_POLL_SECRET"
	EnvHeartbeat      = "DUESDAY_HEARTBEAT" // of serve
)

// The least characters of secrets: fewer can be guessed.
const (
	leastAPIKey     = 16
	leastPollSecret = 32
)

// Tracking holds the settings for following Stripe's payments.
type Tracking struct {
	Stripe    Stripe // filled in with every processor
	Processor string // stripe with its options, for stripe.Parse

	Webhook Secrets // of the endpoint for events of our own account
	Connect Secrets // of the endpoint for events of connected accounts
	APIKey  Secret  // for /v1
	Poll    Secret  // signs what pollers elsewhere post

	Heartbeat Secret // URL of a monitor, whose path is its secret
}

// Secrets are the signing secrets of one webhook endpoint. While a secret is rotated, there are
// two.
type Secrets struct {
	Secret
	List []secret.Text
}

// NewTracking returns the settings of the tracking commands without reading files. Its errors name
// the wrong variable and do not contain secrets.
func NewTracking(c Config, env func(string) string) (t Tracking, err error) {
	t = Tracking{Processor: "stripe", APIKey: newSecret(env, EnvAPIKey), Poll: newSecret(env, EnvPollSecret),
		Heartbeat: newSecret(env, EnvHeartbeat),
		Webhook:   Secrets{Secret: newSecret(env, EnvWebhookSecrets)}, Connect: Secrets{Secret: newSecret(env, EnvConnectSecrets)}}
	if c.UsesStripe() {
		t.Processor = c.Processor
	}
	if t.Stripe, err = newStripe(env); err != nil {
		return t, err
	}
	if !c.Stripe.Key.IsZero() { // it has been read from its file
		t.Stripe.Key = c.Stripe.Key
	}
	return t, cmp.Or(t.Webhook.check(), t.Connect.check(), t.APIKey.check(), t.Poll.check(), t.Heartbeat.check(), t.checkSecrets())
}

// Read reads the secrets that are in files. Its errors name the variable and do not contain
// secrets.
func (t *Tracking) Read() error {
	lines := func(path string) (string, error) {
		text, err := secret.ReadFile(path)
		return text + "\n", err // of an empty file, too, there is something to check
	}
	return cmp.Or(t.Webhook.read(lines), t.Connect.read(lines), t.APIKey.Read(), t.Poll.Read(), t.Stripe.Key.Read(),
		t.checkSecrets())
}

// checkSecrets checks the secrets that have been read, and lists those of the endpoints.
func (t *Tracking) checkSecrets() (err error) {
	for _, s := range []*Secrets{&t.Webhook, &t.Connect} {
		if s.List == nil && !s.IsZero() {
			if s.List, err = parseSecrets(s.source, s.Reveal()); err != nil {
				return err
			}
		}
	}
	return cmp.Or(t.APIKey.checkChance(leastAPIKey), t.checkPoll())
}

// parseSecrets reads secrets separated by commas, spaces or lines. The error repeats none.
func parseSecrets(name, text string) ([]secret.Text, error) {
	var list []secret.Text
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		if len(words) == 0 {
			return nil, fmt.Errorf("%s must be webhook secrets separated by commas, spaces or lines (got an empty one)", name)
		}
		for _, word := range words {
			if rest, ok := strings.CutPrefix(word, "whsec_"); !ok || rest == "" {
				return nil, fmt.Errorf(
					"%s: number %d is not a webhook secret; use the one that Stripe shows beside the endpoint, which begins with whsec_",
					name, len(list)+1)
			}
			if slices.ContainsFunc(list, func(t secret.Text) bool { return t.Reveal() == word }) {
				return nil, fmt.Errorf("%s: number %d is a duplicate", name, len(list)+1)
			}
			list = append(list, secret.New(word))
		}
	}
	return list, nil
}

// checkPoll refuses a poll secret that is easily guessed, or that other people have for other ends: an
// API key, or a secret of Stripe's.
func (t *Tracking) checkPoll() error {
	text, name := t.Poll.Reveal(), t.Poll.source
	same := func(other secret.Text) bool { return other.Reveal() == text }
	err := t.Poll.checkChance(leastPollSecret)
	switch {
	case t.Poll.IsZero() || err != nil:
		return err
	case same(t.APIKey.Text) || strings.HasPrefix(text, "dd_"):
		return fmt.Errorf("%s is an API key, but API keys must not be able to report payments; use a separate secret", name)
	case slices.ContainsFunc(slices.Concat(t.Webhook.List, t.Connect.List), same) || same(t.Stripe.Key.Text):
		return fmt.Errorf("%s is one of Stripe's secrets; use a separate secret", name)
	}
	return nil
}
