package sealed_test

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/sealed"
)

// TestKey: only the same secret and label open a token, and no change of one opens anything.
func TestKey(t *testing.T) {
	k := sealed.NewKey("secret", "links")
	for _, text := range []string{"", "a", strings.Repeat("ü\x00", 400)} {
		token := k.Seal(text)
		if got, ok := k.Open(token); !ok || got != text {
			t.Errorf("%.10q: %.10q, %v", text, got, ok)
		}
		for name, other := range map[string]sealed.Key{"secret": sealed.NewKey("other", "links"), "label": sealed.NewKey("secret", "forms")} {
			if _, ok := other.Open(token); ok {
				t.Errorf("another %s opens it", name)
			}
		}
		for i := range token {
			for _, c := range []string{"A", "_", ""} {
				if altered := token[:i] + c + token[i+1:]; altered != token {
					if _, ok := k.Open(altered); ok {
						t.Fatalf("altered at %d", i)
					}
				}
			}
		}
	}
	if _, ok := k.Open(k.Seal(strings.Repeat("x", 5000))); ok {
		t.Error("a token without end")
	}
}
