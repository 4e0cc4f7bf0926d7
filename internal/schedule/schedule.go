// Package schedule computes the instants at which the daily jobs run, from their times of day and a time
// zone.
//
// It does not read a clock, and does not know the jobs.
package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
)

// Times are times of day in a time zone. The zero value has none.
type Times struct {
	minutes []int // after midnight, ascending
	zone    *time.Location
}

// Parse reads ascending times of day such as 06:10, and the name of their zone such as
// Europe/Berlin; see Zone. No times need no zone.
func Parse(times []string, zone string) (Times, error) {
	if len(times) == 0 {
		return Times{}, nil
	}
	t := Times{}
	for _, text := range times {
		at, err := time.Parse("15:04", text)
		minute := at.Hour()*60 + at.Minute()
		switch {
		case err != nil || len(text) != len("15:04"):
			return Times{}, fmt.Errorf("daily must be times of day such as 06:10 (got %.40q)", text)
		case len(t.minutes) > 0 && minute <= t.minutes[len(t.minutes)-1]:
			return Times{}, fmt.Errorf("daily must be ascending times of day, such as 06:10,18:10 (got %s)", text)
		}
		t.minutes = append(t.minutes, minute)
	}
	var err error
	t.zone, err = Zone(zone)
	return t, err
}

// Zone returns the zone of a well-known name: AREA/CITY, or UTC. It refuses abbreviations such as
// CET and EST, which the zone database has too: some have no summer time, and people mean others.
func Zone(name string) (*time.Location, error) {
	if !strings.Contains(name, "/") && name != "UTC" {
		return nil, fmt.Errorf("the time zone must be a name such as Europe/Berlin or America/Sao_Paulo, or UTC (got %.40q)", name)
	}
	return civil.Zone(name)
}

// None reports whether there are no times.
func (t Times) None() bool { return len(t.minutes) == 0 }

// Next returns the first scheduled instant after the time; zero of no times.
//
// A time of day is the first instant of its date at which a clock in the zone shows it or a later
// time. So where clocks skip it, that is the next valid minute; where they show it twice, the first.
func (t Times) Next(after time.Time) time.Time {
	if t.None() {
		return time.Time{}
	}
	for day := civil.Today(after, t.zone); ; day = day.AddDays(1) {
		for _, minute := range t.minutes {
			if at := day.At(minute, t.zone); at.After(after) {
				return at
			}
		}
	}
}

// Last returns the latest scheduled instant that is not after the time; zero of no times.
func (t Times) Last(until time.Time) time.Time {
	if t.None() {
		return time.Time{}
	}
	// Tomorrow's are tried too: where clocks go back over midnight, the date was shown before.
	for day := civil.Today(until, t.zone).AddDays(1); ; day = day.AddDays(-1) {
		for _, minute := range slices.Backward(t.minutes) {
			if at := day.At(minute, t.zone); !at.After(until) {
				return at
			}
		}
	}
}

// LastOfDay reports whether no other scheduled instant follows this one on its date in the zone.
func (t Times) LastOfDay(at time.Time) bool {
	return !t.None() && civil.Today(t.Next(at), t.zone) != civil.Today(at, t.zone)
}
