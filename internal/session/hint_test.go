package session

import (
	"testing"

	"github.com/duesday/duesday/internal/config"
)

func TestHint(t *testing.T) {
	p := New(func(string) string { return "" }, nil, nil, nil, nil)
	p.Config = config.Config{Store: config.DefaultStore, Processor: config.DefaultProcessor, Mail: "m"}
	equal(t, "run", p.Hint("run payments"), "duesday run payments --mail m")
	equal(t, "list", p.Hint("outbox list"), "duesday outbox list --mail m")
	equal(t, "other", p.Hint("charging on"), "duesday charging on")
	p.Config.Store = "pebble:b"
	equal(t, "flag", p.Hint("verify"), "duesday verify --store pebble:b")
	p.Env = func(name string) string {
		return map[string]string{config.EnvStore: "pebble:b", "DUESDAY_MAIL": "n"}[name]
	}
	equal(t, "environment", p.Hint("run payments"), "duesday run payments --mail m")
	p.Lasting = true
	equal(t, "in a letter", p.Hint("verify"), "duesday verify --store pebble:b")
}

func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{"pebble:./a-b_c": "pebble:./a-b_c", "a b": "'a b'", "": "''",
		"it's": `'it'\''s'`, "$(x)": "'$(x)'"} {
		if got := Quoted(text); got != want {
			t.Errorf("Quoted(%q) = %s, want %s", text, got, want)
		}
	}
}
