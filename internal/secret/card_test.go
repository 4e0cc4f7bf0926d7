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
		"4242.4242.4242.4242.":             "****.****.****.4242.",
		"378282246310005":                  "***********0005",
		"3782 822463 10005":                "**** ****** *0005",
		"12 4242424242424242":              "12 ************4242",
		"4242424242424242 7":               "************4242 7",
		"No.4242424242424242":              "No.************4242",
		"card=4242424242424242;":           "card=************4242;",
		"4242424242424242@example.com":     "************4242@example.com",
		"卡号4242424242424242":               "卡号************4242",
		"４２４２　４２４２　４２４２　４２４２":                     "****　****　****　４２４２",
		"5555555555554444, 4242424242424242":      "************4444, ************4242",
		"+1 555 123 4567 4242 4242 4242 4242":     "+1 555 123 4567 **** **** **** 4242",
		"4242 4242 4242 4242 4242 4242 4242 4242": "**** **** **** **** **** **** **** 4242",
		`"a\n4242424242424242"`:                   `"a\n************4242"`,
		"4242_4242_4242_4242":                     "****_****_****_4242",
		"4242/4242/4242/4242":                     "****/****/****/4242",
		"4242 - 4242 - 4242 - 4242":               "**** - **** - **** - 4242",
		"4242 / 4242 / 4242 / 4242":               "**** / **** / **** / 4242",
		"4242·4242·4242·4242 4242\u2014x":         "****·****·****·4242 4242\u2014x",
		"4242\u20144242\u20144242\u20144242":      "****\u2014****\u2014****\u20144242",
		"4242\u200e4242\u202d4242\u20694242":      "****\u200e****\u202d****\u20694242",
		"3782/822463_10005":                       "****/******_*0005",
		"_4242424242424242_":                      "_************4242_",
		"123/4242424242424242":                    "123/************4242",
		"٤٢٤٢ ٤٢٤٢ ٤٢٤٢ ٤٢٤٢":                     "**** **** **** ٤٢٤٢",
		"४२४२४२४२४२४२४२४२":                        "************४२४२",
		"𝟒𝟐𝟒𝟐𝟜𝟚𝟜𝟚𝟰𝟮𝟰𝟮𝟺𝟸𝟺𝟸":                        "************𝟺𝟸𝟺𝟸",
		"4242\u200b4242\u200b4242\u200b4242":      "****\u200b****\u200b****\u200b4242",
	} {
		if got := secret.MaskCards(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if !secret.HasCardNumber(text) || !secret.HasCardInMethod(text) {
			t.Errorf("%q: no card number", text)
		}
	}
}

// TestMaskCards_LeavesOthers: texts that resemble a card number, and are none.
func TestMaskCards_LeavesOthers(t *testing.T) {
	for _, text := range []string{
		"",
		"ordinary 2023-06-28 text 12.99",
		"2026-11-21T13:38:07.941Z",
		"acct_0000000001",
		"1234123412341234",                       // no check digit
		"9999999999999995",                       // no network
		"424242424242424242",                     // no length of Visa's
		"42 4242 4242 4242 42",                   // no grouping
		"4242  4242  4242  4242",                 // two spaces
		"42424242 - 4242 - 4242",                 // no grouping
		"order-4242424242424242",                 // an id
		"4242424242424242-a",                     // the same
		"ch_4242424242424242",                    // the same
		"4242424242424242_1",                     // the same
		"41111111/11111111", "411111_1111111111", // an account and a subscription, names
		"A4242424242424242",                        // the same
		"0.4242424242424242",                       // a fraction
		"4242-4242-4242-4242-4242",                 // a licence key
		"00004242-4242-4242-4242-000000000000",     // a UUID
		"4242424242424242abcd",                     // hexadecimal
		"4222222222222",                            // Visa's old length, also German mobile numbers
		"+49 151 4242 4242 42",                     // a telephone number
		"+378282246310005",                         // the same, as far as anybody can tell
		"Tel.: +378 2822 4631 0005 (home)",         // the same
		"bytes 4242424242424242424242424242424242", // longer than any card number
	} {
		if got := secret.MaskCards(text); got != text || secret.HasCardNumber(text) {
			t.Errorf("%q: got %q, and a card number: %v", text, got, secret.HasCardNumber(text))
		}
	}
}

func TestMaskMethod(t *testing.T) {
	for text, want := range map[string]string{
		"4222222222222":         "*********2222",
		"4222 222 222 222":      "**** *** **2 222",
		"old: 4222-2222-2222-2": "old: ****-****-*222-2",
		"1234123412341234":      "************1234", // mistyped
		"4242 4242 4242 4242":   "**** **** **** 4242",
	} {
		if got := secret.MaskMethod(text); got != want || !secret.HasCardInMethod(text) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"pm_card_visa", "pm_4222222222222", "+4915112345678", "123456789012",
		"12341234123412341234",
		"0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58", "11111111-1111-4111-8111-111111111111", ""} {
		if got := secret.MaskMethod(text); got != text || secret.HasCardInMethod(text) {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// TestMaskCards_LeavesNone: after masking no card number is left, and only digits have changed.
func TestMaskCards_LeavesNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([0-9 .\-a+０-９]|4242|5555 5555 5555 4444|378282246310005| ){0,40}`).Draw(t, "text")
		for _, mask := range []func(string) string{secret.MaskCards, secret.MaskMethod} {
			got := mask(text)
			if secret.HasCardNumber(got) {
				t.Fatalf("%q: %q still has one", text, got)
			}
			was, is := []rune(text), []rune(got)
			for i := range was {
				if was[i] != is[i] && (is[i] != '*' || !strings.ContainsRune("0123456789０１２３４５６７８９", was[i])) {
					t.Fatalf("%q became %q", text, got)
				}
			}
		}
		if method := secret.MaskMethod(text); secret.HasCardInMethod(method) {
			t.Fatalf("%q: %q still has one", text, method)
		}
	})
}
