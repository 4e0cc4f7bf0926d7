// Package locale writes dates, amounts and other values for customers in their language.
//
// It has no sentences: packages mail and document do, in their templates.
package locale

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/duesday/duesday/internal/money"
)

// Languages returns the languages in which mail and documents are available. The first one is used for all
// other languages.
func Languages() []string { return []string{"en", "de", "pt", "zh", "ko"} }

// Language returns the language for a locale: pt for pt-BR, en for an unknown one.
func Language(locale string) string {
	base, _, _ := strings.Cut(strings.ToLower(locale), "-")
	if slices.Contains(Languages(), base) {
		return base
	}
	return Languages()[0]
}

// A Form is how a language writes dates and amounts. golang.org/x/text has no dates.
type Form struct {
	Day, Month, Moment string            // layouts of package time, for Date
	months             []string          // in place of January
	group, decimal     string            // separators of a number
	space              string            // between a currency and the number
	signLast           bool              // the currency stands behind the number
	signs              map[string]string // of currencies, if not those of all languages
}

// FormOf returns the form of a language.
func FormOf(language string) Form {
	switch language {
	case "de":
		return Form{Day: "2. January 2006", Month: "January 2006", Moment: "2. January 2006, 15:04 UTC",
			months: []string{"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September",
				"Oktober", "November", "Dezember"},
			group: ".", decimal: ",", space: "\u00a0", signLast: true}
	case "pt":
		return Form{Day: "2 de January de 2006", Month: "January de 2006", Moment: "15:04 UTC de 2 de January de 2006",
			months: []string{"janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "agosto", "setembro",
				"outubro", "novembro", "dezembro"},
			group: ".", decimal: ",", space: "\u00a0"}
	case "zh":
		return Form{Day: "2006年1月2日", Month: "2006年1月", Moment: "2006年1月2日 15:04 UTC", group: ",", decimal: ".",
			signs: map[string]string{"CNY": "¥"}}
	case "ko":
		return Form{Day: "2006년 1월 2일", Month: "2006년 1월", Moment: "2006년 1월 2일 15:04 UTC", group: ",", decimal: "."}
	}
	return Form{Day: "2 January 2006", Month: "January 2006", Moment: "15:04 UTC on 2 January 2006"}
}

// signs are the signs of currencies that mean one currency in every language.
var signs = map[string]string{"BRL": "R$", "CNY": "CN¥", "EUR": "€", "GBP": "£", "JPY": "JP¥", "KRW": "₩", "USD": "US$"}

// Date writes out the time in one of the form's layouts.
func (f Form) Date(t time.Time, layout string) string {
	text := t.Format(layout)
	if f.months == nil {
		return text
	}
	return strings.Replace(text, t.Month().String(), f.months[t.Month()-1], 1)
}

// Amount writes out an amount with exactly the decimals of its currency.
func (f Form) Amount(a money.Amount) string {
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

// Percent writes out a percentage, such as 7.5.
func (f Form) Percent(text string) string {
	if f.signLast {
		text += "\u00a0"
	}
	return strings.Replace(text, ".", cmp.Or(f.decimal, "."), 1) + "%"
}

// Clean returns a value as one line with at most 200 characters, which is more than an account, subscription
// or reference has. Runs of whitespace, control characters and characters that reorder or hide text become one
// space.
func Clean(value string) string {
	const most = 200
	value = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(value, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(value); len(runes) > most {
		value = string(runes[:most]) + "…"
	}
	return value
}
