package clock

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParse(t *testing.T) {
	real := at(t, "2026-11-22T10:00:00.5Z")
	now := func() time.Time { return real }
	for _, c := range []struct{ text, begins, shows, says string }{ // shows: 90 s later
		{"2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z", "2026-01-01T00:00:00Z,1s/s,2026-11-22T10:00:00.5Z"},
		{"2026-01-01T05:00:00+01:00,1h/s", "2026-01-01T04:00:00Z", "2026-01-04T22:00:00Z",
			"2026-01-01T04:00:00Z,1h0m0s/s,2026-11-22T10:00:00.5Z"},
		{"2026-01-01,24h/s,2026-11-22T11:00:00.5+01:00", "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z",
			"2026-01-01T00:00:00Z,24h0m0s/s,2026-11-22T10:00:00.5Z"},
		{"2026-01-01,1s/s,2027-11-22T11:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z",
			"2026-01-01T00:00:00Z,1s/s,2027-11-22T11:00:00Z"}, // it has not begun
		{"9000-01-01,24h/s,1970-01-01T00:00:00Z", "9292-04-10T23:47:16.85Z", "9292-04-10T23:47:16.85Z",
			"9000-01-01T00:00:00Z,24h0m0s/s,1970-01-01T00:00:00Z"}, // it stands
	} {
		clock, err := Parse(c.text, now)
		if err != nil {
			t.Fatal(err)
		}
		begins := clock.Now().Truncate(10 * time.Millisecond)
		if says := clock.String(); says != c.says || !begins.Equal(at(t, c.begins)) {
			t.Errorf("%s: %s, begins at %s; want %s, %s", c.text, says, begins, c.says, c.begins)
		}
		real = real.Add(90 * time.Second)
		shows := clock.Now().Truncate(10 * time.Millisecond)
		other, err := Parse(clock.String(), now)
		if err != nil || !shows.Equal(at(t, c.shows)) || !other.Now().Equal(clock.Now()) || !clock.Test() {
			t.Errorf("%s: shows %s, want %s; another of its text: %v, %v", c.text, shows, c.shows, other, err)
		}
		real = real.Add(-90 * time.Second)
	}
}

func TestParse_Refuses(t *testing.T) {
	for _, c := range []struct{ text, part string }{{"", "start"}, {"now", "start"}, {"1969-12-31", "start"},
		{"9001-01-01", "start"}, {"2026-02-30", "start"}, {"2026-01-01,", "speed"}, {"2026-01-01,3600", "speed"},
		{"2026-01-01,1h", "speed"}, {"2026-01-01,1500ms/s", "speed"}, {"2026-01-01,241h/s", "speed"},
		{"2026-01-01,-1h/s", "speed"}, {"2026-01-01,0s/s", "speed"}, {"2026-01-01,1h/s,now", "anchor"},
		{"2026-01-01,1h/s,2026-01-01T00:00:00Z,", "too many parts"}} {
		if clock, err := Parse(c.text, time.Now); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%q: %v, %v; want an error that names the %s", c.text, clock, err, c.part)
		}
	}
}

func TestMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, begin := Machine(time.Now), time.Now()
		<-c.After(time.Hour)
		if passed := c.Now().Sub(begin); passed != time.Hour || c.Test() || c.String() != "" {
			t.Errorf("%s passed, %q", passed, c)
		}
	})
}

// A wait takes the clock as far as was asked for, and the machine's as much less as it is slower.
func TestClock_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c, err := Parse("2026-01-01,1h/s", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		<-c.After(36 * time.Hour)
		if passed := time.Since(begin); passed != 36*time.Second || !c.Now().Equal(at(t, "2026-01-02T12:00:00Z")) {
			t.Errorf("%s passed, and it shows %s", passed, c.Now())
		}
		if got := c.Real(time.Second); got != leastWait {
			t.Errorf("the shortest wait is %s", got)
		}
	})
}
