package civil

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clocks are zones whose clocks have done something odd: skipped or repeated
// midnight, skipped a day at the date line, or kept an offset of a quarter hour.
var clocks = []string{
	"UTC", "Europe/London", "Europe/Paris", "Europe/Lisbon", "Atlantic/Azores",
	"America/New_York", "America/St_Johns", "America/Havana", "America/Sao_Paulo",
	"America/Asuncion", "America/Santiago", "America/Scoresbysund", "America/Anchorage",
	"Africa/Casablanca", "Africa/Cairo", "Asia/Beirut", "Asia/Amman", "Asia/Tehran",
	"Asia/Kathmandu", "Asia/Kolkata", "Asia/Manila", "Australia/Lord_Howe", "Australia/Sydney",
	"Pacific/Kiritimati", "Pacific/Apia", "Pacific/Kwajalein", "Pacific/Chatham",
	"Pacific/Pago_Pago", "Antarctica/Troll",
}

// missing are days that no clock in the zone ever showed.
var missing = map[string]string{
	"Pacific/Apia":       "2011-12-30",
	"Pacific/Kiritimati": "1994-12-31",
	"Pacific/Kwajalein":  "1993-08-21",
	"Asia/Manila":        "1844-12-31",
}

func mustZone(t interface{ Fatal(...any) }, name string) *time.Location {
	loc, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// aDay draws a day from 1840 to 2100, mostly one on which the clocks change.
func aDay(t *rapid.T, loc *time.Location) Date {
	at := time.Unix(rapid.Int64Range(-4102444800, 4102444800).Draw(t, "instant"), 0).In(loc)
	if rapid.IntRange(0, 3).Draw(t, "any day") > 0 {
		if _, end := at.ZoneBounds(); !end.IsZero() {
			at = end
		}
	}
	return Of(at).AddDays(rapid.IntRange(-1, 1).Draw(t, "days"))
}

func TestIn_IsTheFirstInstantOfTheDay(t *testing.T) {
	for _, name := range clocks {
		loc := mustZone(t, name)
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			d := aDay(t, loc)
			start := d.In(loc)
			if got := Of(start); got != d && missing[name] != d.String() {
				t.Fatalf("%v starts at %v", d, start)
			}
			if got := Of(start.Add(-time.Nanosecond)); !got.Before(d) {
				t.Fatalf("%v starts at %v, but the instant before it is on %v", d, start, got)
			}
			// A change past midnight can end a day after one minute, as it did
			// in America/St_Johns, so a coarser step could miss an early start.
			for m := 1; m <= 36*60; m++ {
				if at := start.Add(-time.Duration(m) * time.Minute); !Of(at).Before(d) {
					t.Fatalf("%v starts at %v, but %v is on or after it", d, start, at)
				}
			}
		}))
	}
}

// Far enough ahead, the time package gives the last UTC day of a leap year wrong
// zone bounds (golang/go#81583), which once made In loop for ever.
func TestIn_EndsAroundEveryNewYear(t *testing.T) {
	for _, name := range clocks {
		loc := mustZone(t, name)
		for year := 2024; year <= 2110; year++ {
			for _, days := range []int{-2, -1, 0, 1, 2} {
				d := pack(year, time.January, 1).AddDays(days)
				start := d.In(loc)
				if want := d.String() + "T00:00:00"; start.Format("2006-01-02T15:04:05") != want {
					t.Fatalf("%s in %s starts at %v", d, name, start)
				}
			}
		}
	}
}

func TestIn_SkippedDayStartsWithTheNextOne(t *testing.T) {
	for name, day := range missing {
		loc, d := mustZone(t, name), MustParse(day)
		if got, want := d.In(loc), d.AddDays(1).In(loc); !got.Equal(want) {
			t.Errorf("%s %s starts at %v, want %v", name, day, got, want)
		}
		if got := Of(d.In(loc)); got != d.AddDays(1) {
			t.Errorf("%s showed %s", name, day)
		}
	}
}

func TestIn_Golden(t *testing.T) {
	tests := []struct{ zone, day, want string }{
		{"UTC", "2026-01-31", "2026-01-31T00:00:00Z"},
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T01:00:00-02:00"}, // no midnight
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00"},    // two midnights
		{"Pacific/Apia", "2011-12-31", "2011-12-31T00:00:00+14:00"},
		{"Pacific/Kiritimati", "2026-01-01", "2026-01-01T00:00:00+14:00"},
		{"Africa/Cairo", "2026-04-24", "2026-04-24T01:00:00+03:00"}, // no midnight
		{"Africa/Casablanca", "2026-02-15", "2026-02-15T00:00:00+01:00"},
	}
	for _, tt := range tests {
		if got := MustParse(tt.day).In(mustZone(t, tt.zone)).Format(time.RFC3339); got != tt.want {
			t.Errorf("%s in %s starts at %s, want %s", tt.day, tt.zone, got, tt.want)
		}
	}
}

func TestToday_IsWhatTheLocalClockShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc := mustZone(t, rapid.SampledFrom(clocks).Draw(t, "zone"))
		now := time.Unix(rapid.Int64Range(-4102444800, 4102444800).Draw(t, "now"), 0)
		today := Today(now, loc)
		if got, want := today.String(), now.In(loc).Format(time.DateOnly); got != want {
			t.Fatalf("Today = %s, want %s", got, want)
		}
		if start := today.In(loc); start.After(now) {
			t.Fatalf("today, %v, starts at %v, after %v", today, start, now)
		}
	})
	now := time.Date(2026, 1, 31, 10, 30, 0, 0, time.UTC)
	for name, want := range map[string]string{
		"Pacific/Kiritimati": "2026-02-01", "UTC": "2026-01-31", "Pacific/Pago_Pago": "2026-01-30",
	} {
		if got := Today(now, mustZone(t, name)).String(); got != want {
			t.Errorf("today in %s is %s, want %s", name, got, want)
		}
	}
}

func TestZone(t *testing.T) {
	for _, name := range []string{
		"", "Local", "localtime", "posixrules", "Factory", "right/UTC", "posix/Europe/Paris",
		"Mars/Olympus", "../etc/passwd", "/etc/localtime", "Europe/", "+02:00",
	} {
		loc, err := Zone(name)
		if err == nil || loc != nil {
			t.Errorf("Zone(%q) = %v, want an error", name, loc)
			continue
		}
		if !strings.Contains(err.Error(), `"`+name+`"`) || !strings.Contains(err.Error(), "Europe/Paris") {
			t.Errorf("Zone(%q): error %q does not quote the name and give an example", name, err)
		}
	}
	if utc := mustZone(t, "UTC"); utc != time.UTC {
		t.Errorf("UTC is %v", utc)
	}
	if first, again := mustZone(t, "Europe/Paris"), mustZone(t, "Europe/Paris"); first != again {
		t.Error("the second look-up gave another location")
	}
}

func BenchmarkZone(b *testing.B) {
	for b.Loop() {
		if _, err := Zone("Europe/Paris"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIn(b *testing.B) {
	loc := mustZone(b, "Europe/Paris")
	d := MustParse("2026-03-29")
	for b.Loop() {
		_ = d.In(loc)
	}
}
