package civil

import (
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones resolve on machines without a zone database
)

// zones caches the locations that exist, by name: those of the zone database at most.
var zones sync.Map // string -> *time.Location

// Zone returns the location of an IANA zone name such as "Europe/Paris", or "UTC". It returns an
// error for an empty name and for names that mean the machine's own zone, because a schedule must
// not depend on the machine. It is safe for concurrent use, and fast after the first call for a
// name.
func Zone(name string) (*time.Location, error) {
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if name == "" || machineZone(name) {
		return nil, fmt.Errorf("time zone must be an IANA name, such as Europe/Paris, or UTC (got %.40q)", name)
	}
	// Cloned: the cache would otherwise pin the text around the name, such as a request body.
	name = strings.Clone(name)
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf(
			"time zone %.40q is not in the zone database; use an IANA name, such as Europe/Paris, or UTC", name)
	}
	kept, _ := zones.LoadOrStore(name, loc)
	return kept.(*time.Location), nil
}

// machineZone reports names that a machine's zone directory may hold beside the
// IANA names: the machine's own setting, and copies with other leap seconds.
func machineZone(name string) bool {
	switch name {
	case "Local", "localtime", "posixrules", "Factory":
		return true
	}
	return strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/")
}

// Today returns the date at now in loc. loc must not be nil.
func Today(now time.Time, loc *time.Location) Date { return Of(now.In(loc)) }

// In returns the start of the day in loc: the first instant at which a clock there shows d or a
// later date. That is midnight, unless the clocks skip midnight or, as in Pacific/Apia on
// 2011-12-30, the whole day. For the zero Date, In returns the zero time. loc must not be nil.
func (d Date) In(loc *time.Location) time.Time { return d.At(0, loc) }

// At returns the first instant at which a clock in loc shows this minute of d, counted from
// midnight, or a later one. If the clocks skip the minute, At returns the end of the gap. If they
// show it twice, At returns the first instant. For the zero Date, At returns the zero time. loc
// must not be nil.
func (d Date) At(minute int, loc *time.Location) time.Time {
	if d.IsZero() {
		return time.Time{}
	}
	wanted := int64(d.number()-unixNumber)*secondsPerDay + int64(minute)*60
	// No zone is two days from UTC, so every clock shows an earlier date here.
	t := time.Unix(wanted-2*secondsPerDay, 0).In(loc)
	for {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// In a leap year past a zone's listed changes, Go 1.26 gives the start of the last UTC day for
			// the bound on that day (golang/go#81583). The offset lasts to the end of the year.
			end = t.Truncate(secondsPerDay * time.Second).Add(secondsPerDay * time.Second)
		}
		start := max(t.Unix(), wanted-int64(offset))
		if end.IsZero() || start < end.Unix() {
			return time.Unix(start, 0).In(loc)
		}
		t = end
	}
}
