package secret_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/secret"
)

func TestVisible(t *testing.T) {
	obeyed := []rune{0x7f, 0x61c, 0x200e, 0x200f, 0x2028, 0x2029}
	for _, span := range [][2]rune{{0, 0x1f}, {0x80, 0x9f}, {0x202a, 0x202e}, {0x2066, 0x2069}} {
		for r := span[0]; r <= span[1]; r++ {
			obeyed = append(obeyed, r)
		}
	}
	for _, r := range obeyed {
		want := fmt.Sprintf(`a\u%04xb`, r)
		if got := secret.Line("a" + string(r) + "b"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := secret.Visible("a" + string(r) + "b"); got != want && r != '\n' && r != '\t' {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, text := range []string{"", "Ada Gym, 12.99 €", "غزة", "日本", "👩‍🚀", "a\u00a0b", "\uFFFD"} {
		if got := secret.Line(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := secret.Visible("a\n\tb\x9b"); got != "a\n\tb\uFFFD" {
		t.Errorf("got %q", got)
	}
}

// TestVisible_JSON: JSON keeps its meaning.
func TestVisible_JSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + rapid.StringMatching(`[\x00-\x20\x7f-\x{9f}\x{200e}\x{202a}-\x{202e}\x{2066}\\"u]*`).Draw(t, "more")
		b, err := json.MarshalIndent(map[string]string{text: text}, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		shown := secret.Visible(string(b))
		var back map[string]string
		if err := json.Unmarshal([]byte(shown), &back); err != nil || len(back) != 1 || back[text] != text {
			t.Fatalf("%s became %q, %v", shown, back, err)
		}
		if strings.ContainsFunc(shown, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) || r >= 0x7f && r < 0xa0 }) {
			t.Fatalf("%q", shown)
		}
	})
}
