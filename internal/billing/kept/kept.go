// Package kept reads and writes for how many months the receipts of a subscription's periods are kept.
//
// A receipt that has expired tells nothing. Therefore its subscription remembers it in a text: "0:6 14:12"
// means six months from period 0 on, and twelve from period 14 on. 0 months mean for ever. Package kept does
// not know receipts.
package kept

import (
	"strconv"
	"strings"
)

// Note returns the text with the number of months for the period, if that differs from the last.
func Note(kept string, period, months int) string {
	if last, known := Months(kept, period); known && last == months {
		return kept
	}
	return strings.TrimLeft(kept+" "+strconv.Itoa(period)+":"+strconv.Itoa(months), " ")
}

// Least returns the least number of months in the text; 0: all for ever, or not known.
func Least(kept string) (least int) {
	for step := range strings.FieldsSeq(kept) {
		_, text, _ := strings.Cut(step, ":")
		if months, err := strconv.Atoi(text); err == nil && months > 0 && (least == 0 || months < least) {
			least = months
		}
	}
	return least
}

// Months returns for how many months the receipt of the period is kept. It is not known if an older Duesday
// has settled the period, or if the text is another tool's.
func Months(kept string, period int) (months int, known bool) {
	for step := range strings.FieldsSeq(kept) {
		from, text, _ := strings.Cut(step, ":")
		first, err := strconv.Atoi(from)
		if err != nil || first > period {
			break
		}
		months, err = strconv.Atoi(text)
		known = err == nil && months >= 0
	}
	return months, known
}
