package secret_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
)

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"nothing to hide: pi_123":        "nothing to hide: pi_123",
		"pk_live_abc is public":          "pk_live_abc is public",
		"key sk_live_51AbC, and":         "key sk_live_***, and",
		"sk_test_51AbC":                  "sk_test_***",
		"rk_live_a_b9":                   "rk_live_***",
		"rk_test_1.":                     "rk_test_***.",
		"key=sk_test_1&b=2":              "key=sk_test_***&b=2",
		"sk_test_****1234":               "sk_test_***",
		"whsec_aB+/=_-9":                 "whsec_***",
		"dd_abcdefghi2_0123456789abcdef": "dd_abcdefghi2_***",
		"pi_12_secret_Ab9 x":             "pi_12_secret_*** x",
		"seti_1_secret_x?a=b":            "seti_1_secret_***?a=b",
		"Authorization: Bearer a.b-c":    "Authorization: Bearer ***",
		"bearer  sk_live_1":              "bearer ***",
		"the bearer of news":             "the bearer *** news",
		"sk_live_1 sk_live_2\nsk_live_3": "sk_live_*** sk_live_***\nsk_live_***",
	} {
		if got := secret.Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, text := range []string{"sk_live_x", "Bearer sk_test_1 whsec_2", "a_secret_b_secret_c",
		"sk_test_sk_live_abc", "rk_live_***x", "BEARER\t\xff"} {
		f.Add(text)
	}
	left := regexp.MustCompile(`(?:[sr]k_(?:live|test)_|whsec_|_secret_)[A-Za-z0-9]`)
	f.Fuzz(func(t *testing.T, text string) {
		got := secret.Redact(text)
		if again := secret.Redact(got); again != got {
			t.Errorf("Redact(%q) = %q, and of that %q", text, got, again)
		}
		if found := left.FindString(got); found != "" {
			t.Errorf("Redact(%q) = %q, which shows %q", text, got, found)
		}
	})
}

type closed struct{ Secret string }

func TestHandler_RedactsAllThatIsLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(secret.Handler(slog.NewTextHandler(&out, nil)))
	err := fmt.Errorf("call: %w", errors.New("with "+plain))
	log = log.With("with", plain, slog.Group("g", "a", plain))
	log.WithGroup("h").Info("message "+plain, "text", plain, "error", err, "struct", closed{plain}, "bytes",
		slog.StringValue(plain),
		slog.Group("deep", slog.Group("deeper", "k",
			plain)), "n", 7, "ok", true, "valuer", valuer{}, "card", "of 4242 4242 4242 4242", "id", "486f-4242424242424242")
	if strings.Contains(out.String(), plain) {
		t.Errorf("the log shows the secret: %s", out.String())
	}
	for _, want := range []string{"message sk_test_***", "with=sk_test_***", "g.a=sk_test_***",
		"h.error=\"call: with sk_test_***\"",
		"h.deep.deeper.k=sk_test_***", "h.n=7", "h.card=\"of **** **** **** 4242\"", "h.id=486f-4242424242424242",
		"h.ok=true", "h.valuer=sk_test_***"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q: %s", want, out.String())
		}
	}
	quiet := slog.New(secret.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})))
	if quiet.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("the level of the handler below does not count")
	}
}

type valuer struct{}

func (valuer) LogValue() slog.Value { return slog.StringValue(plain) }
