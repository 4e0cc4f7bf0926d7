package secret_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/secret"
)

func TestMaskCards(t *testing.T) {
	for text, want := range map[string]string{
		"4242424242424242":                 "************4242",
		"my card 4242 4242 4242 4242, ok?": "my card **** **** **** 4242, ok?",
		"4242-4242-4242-4242":              "****-****-****-4242",
		"4242.4242.4242.4242":              "****.****.****.4242",
		"378282246310005":                  "***********0005",
		"1234123412341234":                 "************1234", // no valid number, but meant as one
		"12 4242424242424242":              "12 ************4242",
		"4242424242424242 7":               "************4242 7",
		"ordinary 2023-06-28 text 12.99":   "ordinary 2023-06-28 text 12.99",
		"2026-11-21T13:38:07.941Z":         "2026-11-21T13:38:07.941Z",
		"acct_0000000001":                  "acct_0000000001",
		"":                                 "",
	} {
		if got := secret.MaskCards(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if secret.HasCardNumber(text) != (text != want) {
			t.Errorf("%q: has a card number: %v", text, text == want)
		}
	}
}

// TestMaskCards_LeavesNone: whatever stands beside a number, none survives, and nothing but
// digits is changed.
func TestMaskCards_LeavesNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9 .\-a]{0,40}`).Draw(t, "text")
		got := secret.MaskCards(text)
		if secret.HasCardNumber(got) {
			t.Fatalf("%q: %q still has one", text, got)
		}
		for i := range len(text) {
			if text[i] != got[i] && (got[i] != '*' || !strings.ContainsRune("0123456789", rune(text[i]))) {
				t.Fatalf("%q became %q", text, got)
			}
		}
	})
}
