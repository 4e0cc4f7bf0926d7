package billing

import "time"

// A recurrence is the interval of a price.
type recurrence struct {
	interval string // day, week, month, year
	count    int64  // of intervals, at least 1
}

// recurrenceOf returns the recurrence of a price; ok is false for a one-time price.
func recurrenceOf(price object) (r recurrence, ok bool) {
	sub := price.Sub("recurring")
	if sub == nil {
		return recurrence{}, false
	}
	return recurrence{sub.Str("interval"), max(1, sub.Num("interval_count"))}, true
}

// valid reports whether Stripe takes it: at most three years.
func (r recurrence) valid() bool {
	most := map[string]int64{"day": 1095, "week": 156, "month": 36, "year": 3}[r.interval]
	return r.count >= 1 && r.count <= most
}

// after returns the end of the n-th period after the anchor, both in Unix seconds, in UTC. A day
// that the month lacks is its last day; later months have the anchor's day again.
func (r recurrence) after(anchor, n int64) int64 {
	steps := int(r.count * n)
	t := time.Unix(anchor, 0).UTC()
	switch r.interval {
	case "day":
		return t.AddDate(0, 0, steps).Unix()
	case "week":
		return t.AddDate(0, 0, 7*steps).Unix()
	case "year":
		steps *= 12
	}
	day := t.Day()
	first := time.Date(t.Year(), t.Month()+time.Month(steps), 1, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(day, last)-1).Unix()
}

// next returns the first end of a period after t. The anchor may be later than t.
func (r recurrence) next(anchor, t int64) int64 {
	length := r.after(0, 1)
	n := (t-anchor)/length - 2
	for r.after(anchor, n) <= t {
		n++
	}
	for r.after(anchor, n-1) > t {
		n--
	}
	return r.after(anchor, n)
}
