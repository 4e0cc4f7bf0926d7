package billing

import (
	"strconv"
	"strings"
)

// A receipt that has expired tells nothing. Therefore its subscription remembers for how many months
// the receipts of its periods are kept: "0:6 14:12" means six months from period 0 on, and twelve
// from period 14 on. 0 months mean for ever.

// NoteKept notes for how many months the receipt of the period is kept, if that differs from the
// period before.
func (s *Subscription) NoteKept(period, months int) {
	if last, known := KeptMonths(s.Kept, period); known && last == months {
		return
	}
	s.Kept = strings.TrimLeft(s.Kept+" "+strconv.Itoa(period)+":"+strconv.Itoa(months), " ")
}

// LeastKept returns the least number of months in the text of Kept; 0: all for ever, or not known.
func LeastKept(kept string) (least int) {
	for step := range strings.FieldsSeq(kept) {
		_, text, _ := strings.Cut(step, ":")
		if months, err := strconv.Atoi(text); err == nil && months > 0 && (least == 0 || months < least) {
			least = months
		}
	}
	return least
}

// KeptMonths returns for how many months the receipt of the period is kept, by the text of Kept. It
// is not known if an older Duesday has settled the period, or if the text is another tool's.
func KeptMonths(kept string, period int) (months int, known bool) {
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
