package schedule

import (
	"strings"
	"testing"
	"time"
)

var many = []string{"00:00", "00:30", "02:10", "02:30", "06:10", "18:10", "23:55"}

// wall is what a clock shows, as a number: dates and minutes in their order.
func wall(t time.Time) int64 {
	d, m := t.YearDay(), t.Hour()*60+t.Minute()
	return (int64(t.Year())*1000+int64(d))*10_000 + int64(m)
}

// shown returns the distinct instants of a year at which a clock in the zone shows a time of the day,
// or a later one, for the first time: found by looking at the clock again and again.
func shown(t *testing.T, zone *time.Location, year int) (list []time.Time) {
	t.Helper()
	var targets []int64
	for d := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); d.Year() == year; d = d.AddDate(0, 0, 1) {
		for _, text := range many {
			at, _ := time.Parse("15:04", text)
			targets = append(targets, wall(d.Add(time.Duration(at.Hour()*60+at.Minute())*time.Minute)))
		}
	}
	begin, every := time.Date(year-1, 12, 30, 0, 0, 0, 0, time.UTC), 5*time.Minute
	if zone.String() == "America/St_Johns" { // whose clocks went back at a minute past midnight
		every = time.Minute
	}
	for at := begin; len(targets) > 0; at = at.Add(every) {
		now := wall(at.In(zone))
		for reached := false; len(targets) > 0 && targets[0] <= now; reached = true {
			if targets = targets[1:]; !reached {
				list = append(list, at)
			}
		}
	}
	return list
}

func TestTimes_AgainstAClockThatIsWatched(t *testing.T) {
	for _, c := range []struct {
		zone string
		year int
	}{{"UTC", 2024}, {"Europe/Berlin", 2026}, {"America/Sao_Paulo", 2018}, {"Australia/Lord_Howe", 2026},
		{"Asia/Kathmandu", 1986}, {"Africa/Casablanca", 2026}, {"Pacific/Apia", 2011}, {"America/St_Johns", 2009},
		{"Pacific/Kwajalein", 1993}, {"Antarctica/Troll", 2024}} {
		t.Run(c.zone, func(t *testing.T) {
			times, err := Parse(many, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			want := shown(t, times.zone, c.year)
			if len(want) < 360*len(many) {
				t.Fatalf("the clock showed %d times", len(want))
			}
			at := want[0].Add(-1)
			for i, w := range want {
				next := times.Next(at)
				if !next.Equal(w) {
					t.Fatalf("after %s: %s, want %s", at, next, w.In(times.zone))
				}
				if last := times.Last(next); !last.Equal(next) {
					t.Fatalf("until %s: %s", next, last)
				}
				if i > 0 {
					if last := times.Last(next.Add(-1)); !last.Equal(want[i-1]) {
						t.Fatalf("before %s: %s, want %s", next, last, want[i-1])
					}
					if again := times.Next(want[i-1].Add(next.Sub(want[i-1]) / 2)); !again.Equal(next) {
						t.Fatalf("halfway to %s: %s", next, again)
					}
				}
				at = next
			}
		})
	}
}

func TestTimes_WhereClocksChange(t *testing.T) {
	for _, c := range []struct{ zone, time, after, next string }{
		{"Europe/Berlin", "06:10", "2026-03-28T12:00:00Z", "2026-03-29T04:10:00Z"}, // summer time
		{"Europe/Berlin", "02:30", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"}, // skipped: 03:00
		{"Europe/Berlin", "02:30", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}, // and not again
		{"Europe/Berlin", "02:30", "2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z"}, // the first of two
		{"Europe/Berlin", "02:30", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}, // once
		{"Australia/Lord_Howe", "01:45", "2026-04-04T13:00:00Z", "2026-04-04T14:45:00Z"},
		{"Australia/Lord_Howe", "01:45", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}, // half an hour doubled
		{"America/Sao_Paulo", "00:00", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"},   // midnight skipped: 01:00
		{"Pacific/Apia", "06:10", "2011-12-29T18:00:00Z", "2011-12-30T10:00:00Z"},        // the 30th skipped: the 31st begins
		{"Pacific/Apia", "06:10", "2011-12-30T10:00:00Z", "2011-12-30T16:10:00Z"},        // of the 31st
		{"Asia/Kathmandu", "06:10", "2026-01-01T00:24:59Z", "2026-01-01T00:25:00Z"},
	} {
		times, err := Parse([]string{c.time}, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		after, _ := time.Parse(time.RFC3339, c.after)
		if got := times.Next(after).UTC().Format(time.RFC3339); got != c.next {
			t.Errorf("%s in %s after %s: %s, want %s", c.time, c.zone, c.after, got, c.next)
		}
	}
}

func TestTimes_LastOfDay(t *testing.T) {
	times, err := Parse([]string{"06:10", "18:10"}, "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	first := times.Next(time.Date(2026, 3, 28, 23, 30, 0, 0, time.UTC))
	second := times.Next(first)
	if times.LastOfDay(first) || !times.LastOfDay(second) || (Times{}).LastOfDay(first) {
		t.Error(first, second)
	}
}

func TestParse_Refuses(t *testing.T) {
	for _, c := range []struct{ times, zone, why string }{
		{"6:10", "UTC", "must be times of day such as 06:10"}, {"24:00", "UTC", "times of day"},
		{"06:60", "UTC", "times of day"}, {"", "UTC", "times of day"}, {"06:10:00", "UTC", "times of day"},
		{"18:10,06:10", "UTC", "ascending"}, {"06:10,06:10", "UTC", "ascending"},
		{"06:10", "", "such as Europe/Berlin"}, {"06:10", "CET", "such as Europe/Berlin"},
		{"06:10", "EST", "such as Europe/Berlin"}, {"06:10", "Local", "such as Europe/Berlin"},
		{"06:10", "Berlin", "such as Europe/Berlin"}, {"06:10", "Europe/Atlantis", "not in the zone database"},
		{"06:10", "../zone", "not in the zone database"}, {"06:10", "posix/Europe/Berlin", "IANA name"}} {
		times, err := Parse(strings.Split(c.times, ","), c.zone)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s in %s: %v, %v; want %q", c.times, c.zone, times, err, c.why)
		}
	}
	if times, err := Parse(nil, "nowhere"); err != nil || !times.None() || !times.Next(time.Now()).IsZero() ||
		!times.Last(time.Now()).IsZero() {
		t.Errorf("no times: %v, %v", times, err)
	}
}
