package api

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	ClockKind = "test_helpers.test_clock"
	Hour      = int64(60 * 60)
	Day       = 24 * Hour
)

// An agenda holds the objects that will change by one clock. Entries may be out of date: see dueAt.
type agenda struct {
	items  []due            // in the order of their time
	queued map[string]int64 // by id: the time of the next look; other items of the id are out of date
}

// A Timed kind has objects that change by themselves when their time has come.
type Timed struct {
	Rank    int                        // the order of kinds within one second
	Due     func(object) (int64, bool) // the Unix second of the next change, if there is one
	Happens func(*Call, object)        // carries out one change, now
}

// maxAtOnce limits the changes of one object at the same second: an error would go on for ever.
const maxAtOnce = 100

// A due is the time at which the fake looks at an object.
type due struct {
	at    int64 // Unix seconds
	kind  string
	rank  int // of the kind
	id    string
	space *Space
}

func (d due) compare(e due) int {
	return cmp.Or(cmp.Compare(d.at, e.at), cmp.Compare(d.rank, e.rank), strings.Compare(d.id, e.id))
}

func newAgenda() *agenda { return &agenda{queued: map[string]int64{}} }

// agendaOf returns the agenda of a test clock; "": of the fake's own clock.
func (c *Call) agendaOf(clock string) *agenda {
	o := c.Space.Get(ClockKind, clock)
	if o == nil {
		return c.own
	}
	a, ok := o["_agenda"].(*agenda)
	if !ok {
		a = newAgenda()
		o["_agenda"] = a
	}
	return a
}

// Plan notes when the object changes by itself. The caller must call it after every change of a
// subscription, an invoice or a schedule, and for a new checkout session.
func (c *Call) Plan(o object) {
	when, ok := c.dueAt(o)
	if !ok {
		return
	}
	a := c.agendaOf(o.Str("test_clock"))
	when = max(when, c.Now)
	if at, there := a.queued[o.ID()]; there && at <= when {
		return
	}
	a.queued[o.ID()] = when
	d := due{when, o.Str("object"), c.Options.Timed[o.Str("object")].Rank, o.ID(), c.Space}
	at, _ := slices.BinarySearchFunc(a.items, d, due.compare)
	a.items = slices.Insert(a.items, at, d)
}

// Tick carries out every change that is due on the fake's own clock, each at its own time, in every
// account. It costs nearly nothing when none is due. The caller holds Mu.
func (f *Fake) Tick() {
	c := f.System(f.In(DefaultAccount, false))
	c.Run(nil, c.Now)
}

// Run carries out every change that is due on the test clock, up to and including the Unix second
// until. A nil clock is the fake's own. Each change happens at its own time, in however many steps.
func (c *Call) Run(clock object, until int64) {
	a := c.agendaOf(clock.ID())
	if len(a.items) == 0 || a.items[0].at > until {
		return
	}
	asked := *c
	c.Form, c.params, c.Path, c.key, c.id, c.route = shape.Params{}, nil, nil, "", "", nil
	last, times := due{}, 0
	for len(a.items) > 0 && a.items[0].at <= until {
		d := a.items[0]
		a.items = a.items[1:]
		if a.queued[d.id] != d.at {
			continue
		}
		delete(a.queued, d.id)
		c.Space, c.Now = d.space, d.at
		o := d.space.Get(d.kind, d.id)
		when, ok := c.dueAt(o)
		if !ok || when > d.at {
			c.Plan(o)
			continue
		}
		if clock != nil {
			clock["frozen_time"] = d.at
		}
		if times++; d != last {
			last, times = d, 0
		}
		if times == maxAtOnce {
			c.Fake.Options.Log.Error("stripefake: an object stayed due after it was processed, and was dropped", "id", d.id, "at", d.at)
			continue
		}
		c.Options.Timed[d.kind].Happens(c, o)
		c.Plan(o)
	}
	*c = asked
}

// dueAt returns when something happens to the object by itself, in Unix seconds.
func (c *Call) dueAt(o object) (int64, bool) {
	kind, ok := c.Options.Timed[o.Str("object")]
	if !ok {
		return 0, false
	}
	return kind.Due(o)
}

// ClockNow returns the customer's time in Unix seconds: of its test clock, or of the fake's clock.
func (c *Call) ClockNow(customer object) int64 {
	if clock := c.Space.Get(ClockKind, customer.Str("test_clock")); clock != nil {
		return clock.Num("frozen_time")
	}
	return c.Now
}

// InTimeOf sets the call's time to the customer's, until the caller calls back.
func (c *Call) InTimeOf(customer object) (back func()) {
	now := c.Now
	c.Now = c.ClockNow(customer)
	return func() { c.Now = now }
}

// TimeOf is ClockNow for the id of a customer; "": none.
func (c *Call) TimeOf(customer string) int64 { return c.ClockNow(c.Space.Get("customer", customer)) }

// TimeNow is the fake's clock.
func (f *Fake) TimeNow() time.Time {
	defer f.lock()()
	return f.time()
}

// A Clock shows Start when Options.Now is Anchor, and advances Speed seconds per second.
type Clock struct {
	Start, Anchor time.Time
	Speed         int
}

func (c Clock) at(now time.Time) time.Time {
	speed := time.Duration(c.Speed)
	return c.Start.Add(min(now.Round(0).Sub(c.Anchor), math.MaxInt64/speed) * speed)
}

// Clock returns the fake's clock.
func (f *Fake) Clock() Clock {
	defer f.lock()()
	return f.clock
}

// SetClock sets the fake's clock to start, or leaves its time if start is nil, and its speed, or
// leaves that if speed is 0. It carries out every change that is due.
func (f *Fake) SetClock(start *time.Time, speed int) {
	defer f.lock()()
	now := f.Options.Now().Round(0)
	shown := f.clock.at(now)
	if start != nil {
		shown = *start
	}
	f.clock = Clock{shown, now, cmp.Or(speed, f.clock.Speed)}
	f.Tick()
}

// Advance moves the fake's clock forward, or back.
func (f *Fake) Advance(d time.Duration) {
	defer f.lock()()
	f.clock.Start = f.clock.Start.Add(d)
	f.Tick()
}
