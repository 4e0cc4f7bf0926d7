package locale_test

import (
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/money"
)

func TestLanguage(t *testing.T) {
	for text, want := range map[string]string{"": "en", "en-GB": "en", "pt-BR": "pt", "pt": "pt", "PT": "pt",
		"zh-Hant-TW": "zh", "ko-KR": "ko", "de-DE": "de", "fr-FR": "en", "x": "en", "../../etc": "en"} {
		if got := locale.Language(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	tests := []struct{ code, amount, en, de, pt, zh, ko string }{
		{"USD", "1299.50", "$1,299.50", "1.299,50\u00a0US$", "US$\u00a01.299,50", "US$1,299.50", "US$1,299.50"},
		{"BRL", "12.05", "R$12.05", "12,05\u00a0R$", "R$\u00a012,05", "R$12.05", "R$12.05"},
		{"EUR", "0.05", "€0.05", "0,05\u00a0€", "€\u00a00,05", "€0.05", "€0.05"},
		{"JPY", "1234567", "¥1,234,567", "1.234.567\u00a0JP¥", "JP¥\u00a01.234.567", "JP¥1,234,567", "JP¥1,234,567"},
		{"KRW", "500", "₩500", "500\u00a0₩", "₩\u00a0500", "₩500", "₩500"},
		{"CNY", "8.00", "CN¥8.00", "8,00\u00a0CN¥", "CN¥\u00a08,00", "¥8.00", "CN¥8.00"},
		{"KWD", "1234.567", "KWD 1,234.567", "1.234,567\u00a0KWD", "KWD\u00a01.234,567", "KWD\u00a01,234.567", "KWD\u00a01,234.567"},
		{"CHF", "-100.00", "-CHF 100.00", "-100,00\u00a0CHF", "-CHF\u00a0100,00", "-CHF\u00a0100.00", "-CHF\u00a0100.00"},
		{"USD", "92233720368547758.07", "$92,233,720,368,547,758.07", "92.233.720.368.547.758,07\u00a0US$", "US$\u00a092.233.720.368.547.758,07",
			"US$92,233,720,368,547,758.07", "US$92,233,720,368,547,758.07"},
	}
	for _, tt := range tests {
		c, err := money.ParseCurrency(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		a, err := money.Parse(tt.amount, c)
		if err != nil {
			t.Fatal(err)
		}
		for language, want := range map[string]string{"en": tt.en, "de": tt.de, "pt": tt.pt, "zh": tt.zh, "ko": tt.ko} {
			if got := locale.FormOf(language).Amount(a); got != want {
				t.Errorf("%s %s in %s: %q, want %q", tt.amount, tt.code, language, got, want)
			}
		}
	}
}

func TestDates(t *testing.T) {
	at := time.Date(2026, 5, 1, 23, 59, 0, 0, time.UTC) // May is its own abbreviation
	for language, want := range map[string]string{"en": "1 May 2026|May 2026|23:59 UTC on 1 May 2026",
		"de": "1. Mai 2026|Mai 2026|1. Mai 2026, 23:59 UTC",
		"pt": "1 de maio de 2026|maio de 2026|23:59 UTC de 1 de maio de 2026",
		"zh": "2026年5月1日|2026年5月|2026年5月1日 23:59 UTC", "ko": "2026년 5월 1일|2026년 5월|2026년 5월 1일 23:59 UTC"} {
		f := locale.FormOf(language)
		if got := f.Date(at, f.Day) + "|" + f.Date(at, f.Month) + "|" + f.Date(at, f.Moment); got != want {
			t.Errorf("%s: %s, want %s", language, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for language, want := range map[string]string{"en": "7.5% 19%", "de": "7,5\u00a0% 19\u00a0%", "pt": "7,5% 19%", "zh": "7.5% 19%", "ko": "7.5% 19%"} {
		f := locale.FormOf(language)
		if got := f.Percent("7.5") + " " + f.Percent("19"); got != want {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	long := strings.Repeat("ü", 201)
	for value, want := range map[string]string{"": "", " a\r\n b\t": "a b", "x\u202egnp": "x gnp", "\xff": "\uFFFD", "a\x00b": "a b",
		"a\u200bb": "a b", long: long[:400] + "…", long[2:]: long[2:], "=?": "=?", "محمد": "محمد"} {
		if got := locale.Clean(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
