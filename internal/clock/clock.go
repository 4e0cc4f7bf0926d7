// Package clock provides the clock of a process, which is the machine's clock or a test clock with another
// start and speed, and measures how far a server's clock differs from it.
//
// It does not read the machine's clock itself, and does not decide what is due.
package clock

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// The bounds of a test clock's speed, and the shortest wait by one.
const (
	leastSpeed = time.Second     // in a second of the machine's: as fast as that
	mostSpeed  = 240 * time.Hour // in a second of the machine's
	leastWait  = 5 * time.Millisecond
)

// A Clock shows the time. It is safe for concurrent use.
type Clock struct {
	real   func() time.Time
	start  time.Time // shown at anchor; zero: the machine's clock
	anchor time.Time // by the machine's clock
	speed  int64     // seconds in a second of the machine's
}

// Machine returns a clock that shows the time of real.
func Machine(real func() time.Time) *Clock { return &Clock{real: real, speed: 1} }

// Parse reads a test clock: START[,SPEED[,ANCHOR]]. START is the time that the clock shows at ANCHOR:
// a time such as 2026-01-01T06:00:00Z, or a date, which means its start in UTC. SPEED is how far the
// clock advances per second, from 1s/s, the default, to 240h/s, in whole seconds. ANCHOR is a time of
// the machine's clock, by default now. On one machine, clocks parsed from the same text with an
// ANCHOR show the same time.
func Parse(text string, real func() time.Time) (*Clock, error) {
	wrong := func(what, part string) (*Clock, error) {
		return nil, fmt.Errorf("%s %.40q: a test clock must be START[,SPEED], such as 2026-01-01,1h/s for one hour per second "+
			"from 1 January, UTC; a speed must have whole seconds, 1s/s to 240h/s", what, part)
	}
	parts := strings.Split(text, ",")
	if len(parts) > 3 {
		return wrong("too many parts", text)
	}
	c := &Clock{real: real, speed: 1, anchor: real().Round(0)} // the wall clock: other processes share it
	var err error
	if c.start, err = time.Parse(time.RFC3339Nano, parts[0]); err != nil {
		c.start, err = time.Parse(time.DateOnly, parts[0])
	}
	if err != nil || c.start.Year() < 1970 || c.start.Year() > 9000 {
		return wrong("start", parts[0])
	}
	c.start = c.start.UTC()
	if len(parts) > 1 {
		each, ok := strings.CutSuffix(parts[1], "/s")
		speed, err := time.ParseDuration(each)
		if !ok || err != nil || speed < leastSpeed || speed > mostSpeed || speed%time.Second != 0 {
			return wrong("speed", parts[1])
		}
		c.speed = int64(speed / time.Second)
	}
	if len(parts) > 2 {
		if c.anchor, err = time.Parse(time.RFC3339Nano, parts[2]); err != nil {
			return wrong("anchor", parts[2])
		}
	}
	return c, nil
}

// Now returns the time that the clock shows. A test clock does not advance before its anchor, or
// after 292 years.
func (c *Clock) Now() time.Time {
	if !c.Test() {
		return c.real()
	}
	passed := min(max(0, c.real().Round(0).Sub(c.anchor)), math.MaxInt64/time.Duration(c.speed))
	return c.start.Add(passed * time.Duration(c.speed))
}

// Test reports whether the clock is a test clock.
func (c *Clock) Test() bool { return !c.start.IsZero() }

// Machine returns the machine's clock, on which a test clock is based.
func (c *Clock) Machine() func() time.Time { return c.real }

// Real returns how long the machine's clock takes while this clock advances by d. For a test clock,
// the result is at least 5 ms, so that a fast clock does not wake its callers constantly.
func (c *Clock) Real(d time.Duration) time.Duration {
	if !c.Test() {
		return d
	}
	return max(leastWait, d/time.Duration(c.speed))
}

// Shown returns how far this clock advances while the machine's clock advances by d.
func (c *Clock) Shown(d time.Duration) time.Duration { return d * time.Duration(c.speed) }

// After returns a channel that receives a value when the clock has advanced by d.
func (c *Clock) After(d time.Duration) <-chan time.Time { return time.After(c.Real(d)) }

// String returns a text that Parse accepts in another process on the same machine. It is empty for
// the machine's clock.
func (c *Clock) String() string {
	if !c.Test() {
		return ""
	}
	return Text(c.start, int(c.speed), c.anchor)
}

// Text returns the text, for Parse, of a test clock that shows start at anchor, a time of the machine's
// clock, and advances speed seconds per second.
func Text(start time.Time, speed int, anchor time.Time) string {
	return fmt.Sprintf("%s,%s/s,%s", start.UTC().Format(time.RFC3339Nano), time.Duration(speed)*time.Second,
		anchor.UTC().Format(time.RFC3339Nano))
}

// Speed returns how many seconds the clock advances per second of the machine's clock.
func (c *Clock) Speed() int { return int(c.speed) }

// Wait waits for the time by the machine's clock, or returns why ctx has ended first.
func Wait(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// A Peer is the clock of a server, as its answers show it. The zero Peer has shown nothing. It is
// safe for concurrent use.
type Peer struct {
	last atomic.Pointer[comparison]
}

type comparison struct {
	ahead time.Duration
	at    time.Time
}

// Note compares the Date of an answer with the span from sending to receiving, by our clock: a slow
// answer is no difference. An answer without a Date, or from a cache (Age), shows nothing.
func (p *Peer) Note(h http.Header, sent, received time.Time) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil || h.Get("Age") != "" {
		return
	}
	var ahead time.Duration
	switch next := at.Add(time.Second); { // a Date is in whole seconds
	case at.After(received):
		ahead = at.Sub(received.Round(0))
	case next.Before(sent):
		ahead = next.Sub(sent.Round(0))
	}
	p.last.Store(&comparison{ahead, received.Round(0)})
}

// Ahead returns how far the server's clock was ahead of ours when its last answer came, at that
// time of our clock; a zero time before one.
func (p *Peer) Ahead() (ahead time.Duration, at time.Time) {
	if c := p.last.Load(); c != nil {
		return c.ahead, c.at
	}
	return 0, time.Time{}
}
