package config_test

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/config"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestNew_Defaults(t *testing.T) {
	got, err := config.New(environment(nil), environment(nil))
	want := config.Config{Store: "pebble:./duesday-data", Processor: "sandbox:./duesday-sandbox.jsonl",
		Mail: "./duesday-mail", CacheBytes: 512 << 20, LogLevel: slog.LevelWarn}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got.Live() {
		t.Error("the sandbox is live")
	}
}

func TestNew_FlagsWinOverEnvironment(t *testing.T) {
	env := environment(map[string]string{config.EnvStore: "pebble:env", "DUESDAY_PROCESSOR": "sandbox:env",
		"DUESDAY_MAIL": "env", "DUESDAY_LOG_LEVEL": "debug"})
	got, err := config.New(environment(map[string]string{"store": "mem:"}), env)
	want := config.Config{Store: "mem:", Processor: "sandbox:env", Mail: "env", CacheBytes: 512 << 20, LogLevel: slog.LevelDebug,
		StoreGiven: true, ProcessorGiven: true, MailGiven: true}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestNew_Refuses(t *testing.T) {
	for _, c := range []struct {
		flags map[string]string
		want  string
	}{
		{map[string]string{"processor": "paypal:live"}, "stripe or sandbox:FILE"},
		{map[string]string{"processor": "stripes"}, "must be stripe or sandbox:FILE"},
		{map[string]string{"processor": "http://127.0.0.1:12121"}, "sandbox:FILE"},
		{map[string]string{"processor": "sandbox"}, "sandbox:FILE"},
		{map[string]string{"log-level": "loud"}, "debug, info, warn or error"},
	} {
		if _, err := config.New(environment(c.flags), environment(nil)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q in it", c.flags, err, c.want)
		}
	}
}

func TestNew_Stripe(t *testing.T) {
	for _, c := range []struct {
		key  string
		live bool
	}{{"sk_test_x", false}, {"rk_test_x", false}, {"sk_live_x", true}, {"rk_live_x", true}, {"", true}} {
		got, err := config.New(environment(map[string]string{"processor": "stripe"}),
			environment(map[string]string{config.EnvStripeKey: c.key, config.EnvStripeAPIBase: "http://127.0.0.1:12111/"}))
		if err != nil || got.Live() != c.live || got.Stripe.APIBase != "http://127.0.0.1:12111" ||
			got.Stripe.Key.Reveal() != c.key {
			t.Errorf("%q: %+v, %v", c.key, got, err)
		}
		if missing := got.Stripe.CheckKey(); (missing != nil) != (c.key == "") {
			t.Errorf("%q: %v", c.key, missing)
		}
		if text := fmt.Sprintf("%v %+v %#v", got, got, got); c.key != "" && strings.Contains(text, c.key) {
			t.Errorf("the key is printed: %s", text)
		}
	}
	for want, c := range map[string][2]string{"": {"sandbox:x"}, "Stripe in test mode": {"stripe", "sk_test_x"},
		"Stripe in live mode, so with real money": {"stripe", "rk_live_x"}} {
		got, err := config.New(environment(map[string]string{"processor": c[0]}), environment(map[string]string{config.EnvStripeKey: c[1]}))
		if err != nil || got.AtStripe() != want {
			t.Errorf("%q: charges are at %q, %v", c, got.AtStripe(), err)
		}
	}
	if got, err := config.New(environment(nil),
		environment(map[string]string{config.EnvStripeKey: "sk_test_x"})); err != nil || !got.Stripe.Key.IsZero() {
		t.Errorf("read without need: %v, %v", got, err)
	}
}

func TestNew_RefusesOfStripe(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{config.EnvStripeAPIBase, "127.0.0.1:12111", "must be an address such as"},
		{config.EnvStripeAPIBase, "http://user:pass@host", "must be an address such as"},
		{config.EnvStripeAPIBase, "ftp://host", "must be an address such as"},
		{config.EnvCardURL, "shop.example/card", "must be an address such as"},
		{config.EnvCardURL, "https://shop.example/my card", "must be an address such as"},
		{config.EnvCardURL, "https://shop.example/card?a={acount}", "must be an address such as"},
	} {
		if _, err := config.New(environment(map[string]string{"processor": "stripe"}),
			environment(map[string]string{c.name: c.value})); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), c.name) || strings.Contains(err.Error(), "pass") {
			t.Errorf("%s=%s: %v, want %q in it", c.name, c.value, err, c.want)
		}
	}
}
