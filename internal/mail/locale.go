package mail

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/money"
)

// Languages returns the languages in which mail is available. For all other languages, mail uses
// the first one.
func Languages() []string { return []string{"en", "de", "pt", "zh", "ko"} }

// languageOf returns the language for a locale: pt for pt-BR, en for an unknown one.
func languageOf(locale string) string {
	base, _, _ := strings.Cut(strings.ToLower(locale), "-")
	if slices.Contains(Languages(), base) {
		return base
	}
	return Languages()[0]
}

// A form is how a language writes dates and amounts. golang.org/x/text has no dates.
type form struct {
	day, month, moment string            // layouts of package time
	months             []string          // in place of January
	group, decimal     string            // separators of a number
	space              string            // between a currency and the number
	signLast           bool              // the currency stands behind the number
	signs              map[string]string // of currencies, if not those of all languages
}

// formOf returns the form of a language other than English.
func formOf(language string) form {
	switch language {
	case "de":
		return form{day: "2. January 2006", month: "January 2006", moment: "2. January 2006, 15:04 UTC",
			months: []string{"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September",
				"Oktober", "November", "Dezember"},
			group: ".", decimal: ",", space: "\u00a0", signLast: true}
	case "pt":
		return form{day: "2 de January de 2006", month: "January de 2006", moment: "15:04 UTC de 2 de January de 2006",
			months: []string{"janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "agosto", "setembro",
				"outubro", "novembro", "dezembro"},
			group: ".", decimal: ",", space: "\u00a0"}
	case "zh":
		return form{day: "2006年1月2日", month: "2006年1月", moment: "2006年1月2日 15:04 UTC", group: ",", decimal: ".",
			signs: map[string]string{"CNY": "¥"}}
	case "ko":
		return form{day: "2006년 1월 2일", month: "2006년 1월", moment: "2006년 1월 2일 15:04 UTC", group: ",", decimal: "."}
	}
	return form{day: "2 January 2006", month: "January 2006", moment: "15:04 UTC on 2 January 2006"}
}

// signs are the signs of currencies that mean one currency in every language.
var signs = map[string]string{"BRL": "R$", "CNY": "CN¥", "EUR": "€", "GBP": "£", "JPY": "JP¥", "KRW": "₩", "USD": "US$"}

func (f form) date(t time.Time, layout string) string {
	text := t.Format(layout)
	if f.months == nil {
		return text
	}
	return strings.Replace(text, t.Month().String(), f.months[t.Month()-1], 1)
}

// amount writes out an amount with exactly the decimals of its currency.
func (f form) amount(a money.Amount) string {
	if f.group == "" {
		return a.Format()
	}
	number, minus := strings.CutPrefix(a.Decimal(), "-")
	whole, decimals, _ := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + f.group + whole[i:]
	}
	if decimals != "" {
		whole += f.decimal + decimals
	}
	code := a.Currency().Code()
	text, space := cmp.Or(f.signs[code], signs[code]), f.space
	if text == "" {
		text, space = code, "\u00a0"
	}
	if text += space + whole; f.signLast {
		text = whole + "\u00a0" + cmp.Or(f.signs[code], signs[code], code)
	}
	if minus {
		text = "-" + text
	}
	return text
}
