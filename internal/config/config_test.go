package config_test

import (
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
	got, err := config.New(config.Flags{}, environment(nil))
	want := config.Config{Store: "pebble:./duesday-data", Processor: "sandbox:./duesday-sandbox.jsonl",
		Mail: "./duesday-mail", LogLevel: slog.LevelWarn,
		Policy: config.Policy{ReceiptMonths: 6, RetryDays: []int{1, 3, 5, 7}, CatchUp: 3}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got.Live() {
		t.Error("the sandbox is live")
	}
}

func TestNew_FlagsWinOverEnvironment(t *testing.T) {
	env := environment(map[string]string{config.EnvStore: "pebble:env", config.EnvProcessor: "sandbox:env",
		config.EnvMail: "env", config.EnvLogLevel: "debug"})
	got, err := config.New(config.Flags{Store: "mem:", JSON: true}, env)
	want := config.Config{Store: "mem:", Processor: "sandbox:env", Mail: "env", LogLevel: slog.LevelDebug, JSON: true,
		StoreGiven: true, ProcessorGiven: true, MailGiven: true, Policy: config.DefaultPolicy()}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestNew_ServedSandbox(t *testing.T) {
	got, err := config.New(config.Flags{Processor: "sandbox:http://127.0.0.1:12121"}, environment(nil))
	if err != nil || got.Processor != "sandbox:http://127.0.0.1:12121" || got.Live() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNew_Refuses(t *testing.T) {
	for _, c := range []struct {
		flags config.Flags
		want  string
	}{
		{config.Flags{Processor: "stripe:live"}, "sandbox:FILE and sandbox:http://HOST:PORT"},
		{config.Flags{Processor: "http://127.0.0.1:12121"}, "sandbox:http://HOST:PORT"},
		{config.Flags{Processor: "sandbox"}, "sandbox:FILE"},
		{config.Flags{LogLevel: "loud"}, "debug, info, warn or error"},
	} {
		if _, err := config.New(c.flags, environment(nil)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q in it", c.flags, err, c.want)
		}
	}
}
