package billing

import (
	"testing"
	"testing/quick"
	"time"
)

func at(t testing.TB, text string) int64 {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when.Unix()
}

func TestMonthEndsComeBackToTheAnchor(t *testing.T) {
	month, anchor := recurrence{"month", 1}, at(t, "2024-01-31T10:00:00Z")
	got := anchor
	for i, want := range []string{"2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31", "2024-06-30", "2024-07-31",
		"2024-08-31", "2024-09-30", "2024-10-31", "2024-11-30", "2024-12-31", "2025-01-31", "2025-02-28", "2025-03-31"} {
		if got = month.next(anchor, got); got != at(t, want+"T10:00:00Z") {
			t.Errorf("end %d is %s, want %s", i, time.Unix(got, 0).UTC(), want)
		}
		if direct := month.after(anchor, int64(i+1)); direct != got {
			t.Errorf("period %d ends at %d by next and %d by after", i, got, direct)
		}
	}
	leap := at(t, "2024-02-29T00:00:00Z")
	if got, want := (recurrence{"year", 1}).next(leap, leap), at(t, "2025-02-28T00:00:00Z"); got != want {
		t.Errorf("a year after 29 February ends at %d, want %d", got, want)
	}
}

func TestNextIsTheFirstEndAfter(t *testing.T) {
	const day = int64(24 * 60 * 60)
	longest := map[string]int64{"day": day, "week": 7 * day, "month": 31 * day, "year": 366 * day}
	first := func(interval, count uint8, anchor, now uint32) bool {
		r := recurrence{[]string{"day", "week", "month", "year"}[interval%4], 1 + int64(count%3)}
		got := r.next(int64(anchor), int64(now))
		before := r.last(int64(anchor), got)
		return got > int64(now) && got-int64(now) <= longest[r.interval]*r.count &&
			before <= int64(now) && r.next(int64(anchor), before) == got
	}
	if err := quick.Check(first, nil); err != nil {
		t.Error(err)
	}
}
