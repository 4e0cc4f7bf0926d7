package api

import (
	"container/heap"
	"strings"
)

// An agenda is what is going to happen by itself on one clock. It may hold what has been
// settled in the meantime, or is due later by now: dueAt decides, when the time has come.
type agenda struct {
	items  []due
	queued map[string]int64 // the earliest time at which an id is to be looked at; what is in items besides is out of date
}

// A Timed kind is one whose objects change by themselves when their time has come.
type Timed struct {
	Rank    int                        // kinds that are due at the same second are looked at in this order
	Due     func(object) (int64, bool) // the Unix second of the next change, if there is one
	Happens func(*Call, object)        // carries out the one change that is due now
}

// maxAtOnce is how often one object may be due at the same second. It is never reached but by
// an error of the fake, which would go on for ever.
const maxAtOnce = 100

// A due is when the fake has to look at an object.
type due struct {
	at    int64 // Unix seconds
	kind  string
	rank  int // of the kind
	id    string
	space *Space
}

func (a *agenda) Len() int      { return len(a.items) }
func (a *agenda) Swap(i, j int) { a.items[i], a.items[j] = a.items[j], a.items[i] }
func (a *agenda) Push(x any)    { a.items = append(a.items, x.(due)) }
func (a *agenda) Pop() any {
	last := a.items[len(a.items)-1]
	a.items = a.items[:len(a.items)-1]
	return last
}

func (a *agenda) Less(i, j int) bool {
	x, y := a.items[i], a.items[j]
	if x.at != y.at {
		return x.at < y.at
	}
	if x.rank != y.rank {
		return x.rank < y.rank
	}
	return strings.Compare(x.id, y.id) < 0
}

func newAgenda() *agenda { return &agenda{queued: map[string]int64{}} }

// agendaOf returns that of a test clock, or of the fake's own clock if id is empty.
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

// Plan has the fake look at the object when something of it is due. It has to be called after
// every change of a subscription, an invoice or a schedule, and for a new checkout session.
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
	heap.Push(a, due{when, o.Str("object"), c.Options.Timed[o.Str("object")].Rank, o.ID(), c.Space})
}

// tick carries out everything that is due on the fake's own clock up to c.now, each thing at
// its own time, in every account. It costs next to nothing when nothing is due.
func (c *Call) tick() { c.Run(nil, c.Now) }

// Tick is a call's, for what is no API request. mu is held.
func (f *Fake) Tick() { f.System(f.In(DefaultAccount, false)).tick() }

// Run carries out what is due on a test clock (nil: on the fake's own) up to and including a
// Unix second, as if nobody had asked for it. Each thing makes its objects and events at the
// time at which it is due, so that it does not matter in how many steps a clock is moved.
func (c *Call) Run(clock object, until int64) {
	a := c.agendaOf(clock.ID())
	if a.Len() == 0 || a.items[0].at > until {
		return
	}
	asked := *c
	c.Form, c.Path, c.key, c.id, c.route = form{}, nil, "", "", nil
	last, times := due{}, 0
	for a.Len() > 0 && a.items[0].at <= until {
		d := heap.Pop(a).(due)
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
			c.Fake.Options.Log.Error("stripefake: something is due again and again and is dropped", "id", d.id, "at", d.at)
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
