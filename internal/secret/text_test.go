package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
)

const plain = "sk_test_51abcdefABCDEF"

func TestText_ShowsItselfToNobody(t *testing.T) {
	type options struct {
		Name string
		Key  secret.Text
		key  secret.Text
	}
	key := secret.New(plain)
	o := options{"n", key, key}
	shown := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%w", "%10s", "%c"} {
		for what, value := range map[string]any{"text": key, "pointer": &key, "struct": o, "pointer to struct": &o,
			"slice": []secret.Text{key}, "map": map[string]secret.Text{"k": key}} {
			shown[verb+" of "+what] = fmt.Sprintf(verb, value)
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	shown["JSON"] = string(text)
	if want := `{"Name":"n","Key":"***"}`; string(text) != want {
		t.Errorf("JSON: got %s, want %s", text, want)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("m", "key", key, "options", o, "group", slog.GroupValue(slog.Any("k", key)))
	}
	shown["log"] = log.String()
	for how, got := range shown {
		if strings.Contains(got, plain) || strings.Contains(got, fmt.Sprintf("%x", plain)) {
			t.Errorf("%s shows the secret: %s", how, got)
		}
	}
	if got := fmt.Sprintf("%v %s %#v", key, key, key); got != "*** *** ***" {
		t.Errorf("got %s, want three masks", got)
	}
}

func TestText_HoldsWhatItWasGiven(t *testing.T) {
	if got := secret.New(plain); got.Reveal() != plain || got.IsZero() {
		t.Errorf("got %q, zero %t; want %q", got.Reveal(), got.IsZero(), plain)
	}
	for _, none := range []secret.Text{{}, secret.New("")} {
		if none.Reveal() != "" || !none.IsZero() || none.String() != secret.Mask {
			t.Errorf("no secret: got %q, zero %t, printed %s", none.Reveal(), none.IsZero(), none)
		}
	}
}
