package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/secret"
)

// The environment variables of tracking.
const (
	EnvWebhookSecrets     = "DUESDAY_STRIPE_WEBHOOK_SECRETS"
	EnvWebhookSecretsFile = "DUESDAY_STRIPE_WEBHOOK_SECRETS_FILE"
	EnvConnectSecrets     = "DUESDAY_STRIPE_CONNECT_SECRETS"
	EnvConnectSecretsFile = "DUESDAY_STRIPE_CONNECT_SECRETS_FILE"
	EnvAPIKey             = "DUESDAY_API_KEY"
	EnvAPIKeyFile         = "DUESDAY_API_KEY_FILE"
	EnvPollSecret         = "DUESDAY_POLL_SECRET"
	EnvPollSecretFile     = "DUESDAY_POLL_SECRET_FILE"
)

// leastAPIKey is the least number of characters of an API key: fewer can be guessed.
const leastAPIKey = 16

// leastPollSecret is that of a poll secret, which signs.
const leastPollSecret = 32

// Tracking has the settings for following Stripe's payments. Secrets come from the environment or
// from files, and never from the command line.
type Tracking struct {
	Stripe    Stripe // filled in with every processor
	Processor string // stripe with its options, for stripe.Parse

	Webhook Secrets // of the endpoint for events of our own account
	Connect Secrets // of the endpoint for events of connected accounts

	APIKey     secret.Text // for /v1; none when there is none, or it is in APIKeyFile
	APIKeyFile string

	Poll     secret.Text // signs what pollers elsewhere post; none when there is none, or it is in PollFile
	PollFile string
}

// Secrets belong to one webhook endpoint. There are two of them while one replaces the other.
type Secrets struct {
	List []secret.Text
	File string // of the secrets; "" when there is none or it has been read
}

// NewTracking reads the settings of the tracking commands. Its errors name the wrong variable, and
// repeat no secret.
func NewTracking(c Config, env func(string) string) (Tracking, error) {
	t := Tracking{Processor: "stripe", APIKey: secret.New(env(EnvAPIKey)), APIKeyFile: env(EnvAPIKeyFile),
		Poll: secret.New(env(EnvPollSecret)), PollFile: env(EnvPollSecretFile)}
	if c.UsesStripe() {
		t.Processor = c.Processor
	}
	var err error
	if t.Stripe, err = newStripe(env); err != nil {
		return t, err
	}
	if !c.Stripe.Key.IsZero() { // it has been read from its file
		t.Stripe.Key, t.Stripe.KeyFile = c.Stripe.Key, c.Stripe.KeyFile
	}
	if t.Webhook, err = newSecrets(env, EnvWebhookSecrets, EnvWebhookSecretsFile); err != nil {
		return t, err
	}
	if t.Connect, err = newSecrets(env, EnvConnectSecrets, EnvConnectSecretsFile); err != nil {
		return t, err
	}
	if t.PollFile != "" && !t.Poll.IsZero() {
		return t, bothSet(EnvPollSecret, EnvPollSecretFile)
	}
	if t.APIKeyFile != "" && !t.APIKey.IsZero() {
		return t, bothSet(EnvAPIKey, EnvAPIKeyFile)
	}
	if !t.APIKey.IsZero() {
		if err := CheckAPIKey(EnvAPIKey, t.APIKey); err != nil {
			return t, err
		}
	}
	return t, nil
}

func bothSet(one, other string) error {
	return fmt.Errorf("%s and %s are both set: unset one", one, other)
}

func newSecrets(env func(string) string, name, fileName string) (s Secrets, err error) {
	text := env(name)
	if s.File = env(fileName); text == "" {
		return s, nil
	}
	if s.File != "" {
		return s, bothSet(name, fileName)
	}
	s.List, err = ParseSecrets(name, text)
	return s, err
}

// ParseSecrets reads webhook secrets separated by commas, spaces or lines. The error begins with
// the name of their source, and repeats none.
func ParseSecrets(name, text string) ([]secret.Text, error) {
	var list []secret.Text
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		if len(words) == 0 {
			return nil, fmt.Errorf("%s: one of them is empty: want webhook secrets, separated by commas, spaces or lines", name)
		}
		for _, word := range words {
			if rest, ok := strings.CutPrefix(word, "whsec_"); !ok || rest == "" {
				return nil, fmt.Errorf(
					"%s: number %d is no webhook secret: want what Stripe shows beside the endpoint, which begins with whsec_",
					name, len(list)+1)
			}
			if slices.ContainsFunc(list, func(t secret.Text) bool { return t.Reveal() == word }) {
				return nil, fmt.Errorf("%s: number %d is there twice", name, len(list)+1)
			}
			list = append(list, secret.New(word))
		}
	}
	return list, nil
}

// CheckAPIKey refuses an easily guessed key, or one that no header can carry. The error begins with
// the name of its source.
func CheckAPIKey(name string, key secret.Text) error {
	text := key.Reveal()
	if utf8.RuneCountInString(text) < leastAPIKey || strings.ContainsFunc(text,
		func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf(
			"%s: want at least %d letters, digits and signs without a space, by chance, such as openssl rand -hex 32 prints",
			name, leastAPIKey)
	}
	return nil
}

// CheckPoll refuses a poll secret that is easily guessed, or that other people have for other ends: an
// API key, or a secret of Stripe's. The secrets must have been read from their files. The error begins
// with the name of its source.
func (t *Tracking) CheckPoll(name string) error {
	text := t.Poll.Reveal()
	same := func(other secret.Text) bool { return other.Reveal() == text }
	switch {
	case t.Poll.IsZero():
		return nil
	case utf8.RuneCountInString(text) < leastPollSecret || strings.ContainsFunc(text,
		func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("%s: want at least %d letters, digits and signs without a space, by chance, such as openssl rand "+
			"-hex 32 prints", name, leastPollSecret)
	case same(t.APIKey) || strings.HasPrefix(text, "dd_"):
		return fmt.Errorf("%s: this is an API key, and whoever has that may not tell of money: want a secret of its own", name)
	case slices.ContainsFunc(slices.Concat(t.Webhook.List, t.Connect.List), same) || same(t.Stripe.Key):
		return fmt.Errorf("%s: this is a secret of Stripe's: want one of its own", name)
	}
	return nil
}
