package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/secret"
)

const apiKey = "0123456789abcdef"

func tracking(t *testing.T, processor string, env map[string]string) (config.Tracking, error) {
	t.Helper()
	c, err := config.New(environment(map[string]string{"processor": processor}), environment(env))
	if err != nil {
		t.Fatal(err)
	}
	return config.NewTracking(c, environment(env))
}

func TestNewTracking(t *testing.T) {
	env := map[string]string{config.EnvStripeKey: "sk_test_x", config.EnvStripeAPIBase: "http://127.0.0.1:12111/",
		config.EnvWebhookSecrets: "whsec_a, whsec_b\nwhsec_c\n", config.EnvConnectSecrets + config.InFile: "connect",
		config.EnvAPIKey: apiKey}
	got, err := tracking(t, "", env)
	if err != nil {
		t.Fatal(err)
	}
	if got.Processor != "stripe" || got.Stripe.Key.Reveal() != "sk_test_x" ||
		got.Stripe.APIBase != "http://127.0.0.1:12111" {
		t.Errorf("of Stripe, with a sandbox as the processor: %q, %+v", got.Processor, got.Stripe)
	}
	var secrets []string
	for _, s := range got.Webhook.List {
		secrets = append(secrets, s.Reveal())
	}
	if text := strings.Join(secrets, " "); text != "whsec_a whsec_b whsec_c" || got.Connect.File != "connect" ||
		got.Connect.List != nil {
		t.Errorf("secrets %q, %+v", text, got.Connect)
	}
	if got.APIKey.Reveal() != apiKey {
		t.Errorf("key %q", got.APIKey.Reveal())
	}
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "whsec_") ||
		strings.Contains(text, apiKey) || strings.Contains(text, "sk_test") {
		t.Errorf("a secret is printed: %s", text)
	}
}

func TestNewTracking_TakesTheProcessorsOptions(t *testing.T) {
	got, err := tracking(t, "stripe:?rate=5", nil)
	if err != nil || got.Processor != "stripe:?rate=5" {
		t.Errorf("got %q, %v", got.Processor, err)
	}
}

// TestNewTracking_KeepsTheKeyThatWasRead: the command line has read the key's file before.
func TestNewTracking_KeepsTheKeyThatWasRead(t *testing.T) {
	env := environment(map[string]string{config.EnvStripeKey + config.InFile: "key"})
	c, err := config.New(environment(map[string]string{"processor": "stripe"}), env)
	if err != nil {
		t.Fatal(err)
	}
	c.Stripe.Key.Text, c.Stripe.Key.File = secret.New("sk_test_x"), ""
	got, err := config.NewTracking(c, env)
	if err != nil || got.Stripe.Key.Reveal() != "sk_test_x" || got.Stripe.CheckKey() != nil {
		t.Errorf("got %q, %v, %v", got.Stripe.Key.File, got.Stripe.CheckKey(), err)
	}
}

func TestNewTracking_Refuses(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{config.EnvWebhookSecrets, "whsec_hidden,,whsec_b", "got an empty one"},
		{config.EnvWebhookSecrets, "whsec_hidden,", "got an empty one"},
		{config.EnvWebhookSecrets, " \n", "got an empty one"},
		{config.EnvConnectSecrets, "whsec_hidden sk_test_hidden", "number 2 is not a webhook secret"},
		{config.EnvConnectSecrets, "whsec_hidden whsec_b whsec_hidden", "number 3 is a duplicate"},
		{config.EnvConnectSecrets, "whsec_", "number 1 is not a webhook secret"},
		{config.EnvAPIKey, "hidden890123456", "at least 16"},
		{config.EnvAPIKey, "hidden 890 123 456", "at least 16"},
		{config.EnvAPIKey, "hidden7890123456ü", "at least 16"},
	} {
		_, err := tracking(t, "", map[string]string{c.name: c.value})
		if err == nil || !strings.HasPrefix(err.Error(), c.name) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s=%s: %v, want %q in it", c.name, c.value, err, c.want)
		}
	}
	for name, file := range map[string]string{config.EnvWebhookSecrets: config.EnvWebhookSecrets + config.InFile,
		config.EnvConnectSecrets: config.EnvConnectSecrets + config.InFile, config.EnvAPIKey: config.EnvAPIKey + config.InFile} {
		_, err := tracking(t, "", map[string]string{name: "whsec_0123456789", file: "x"})
		if err == nil || err.Error() != name+" and "+file+" are both set; unset one of them" {
			t.Errorf("%s and %s: %v", name, file, err)
		}
	}
}

// TestRead: files are read once, and refused as the variables are.
func TestRead(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, c := range map[string]struct{ text, want string }{
		config.EnvWebhookSecrets: {"", "got an empty one"},
		config.EnvConnectSecrets: {"hidden", "number 1 is not a webhook secret"},
		config.EnvAPIKey:         {"hidden", "at least 16"},
		config.EnvPollSecret:     {apiKey + "hidden", "at least 32"},
		config.EnvStripeKey:      {"", "is empty"},
	} {
		name += config.InFile
		got, err := tracking(t, "", map[string]string{name: file(c.text)})
		if err != nil {
			t.Fatal(err)
		}
		if err = got.Read(); err == nil || !strings.HasPrefix(err.Error(), name) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
	path := file("whsec_a\nwhsec_b\n")
	got, err := tracking(t, "", map[string]string{config.EnvWebhookSecrets + config.InFile: path})
	for range 2 {
		if err = errors.Join(err, got.Read(), os.RemoveAll(path)); err != nil || len(got.Webhook.List) != 2 {
			t.Errorf("got %v, %v, want two secrets", got.Webhook.List, err)
		}
	}
}
