package status

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// The last look of a process that serves is an item ALARMS / LOOK#<process>. Other processes take
// from it what they cannot see themselves.
const (
	lookPrefix = "LOOK#"
	keepEvery  = 10 * time.Minute // a look that found nothing new is stored so often
	freshLook  = 25 * time.Minute // an older look says nothing about now, unless Installation.Fresh is longer
	goneLook   = 24 * time.Hour   // an older look of another process is deleted
)

// A look is a stored look.
type look struct {
	by     string
	at     time.Time
	over   bool // its process has stopped
	checks map[string]Check
}

// A served is what a process that does not serve knows of those that do.
type served struct {
	fresh   []look // of processes that serve now
	since   string // when anything has looked last, for people
	follows bool   // Stripe is followed, by a process that serves
}

// keepLook stores the look of a process that serves; over: its last one.
func (in *Installation) keepLook(ctx context.Context, by string, checks []Check, over bool) error {
	e := in.Engine
	if err := e.Live(ctx); err != nil { // nobody reads a store that was moved
		return nil
	}
	var data store.Item
	for _, c := range checks {
		data.Set(c.Name, store.M(store.NewItem(store.Attribute{Name: schema.State, Value: store.S(string(c.State))},
			store.Attribute{Name: schema.Reason, Value: store.S(c.Text)}, store.Attribute{Name: schema.PollNext,
				Value: store.S(c.Next)})))
	}
	it := billing.ItemAt(store.Key{PK: alarmKey.PK, SK: lookPrefix + by}, store.Attribute{Name: schema.Completed,
		Value: store.Bool(over)}, store.Attribute{Name: schema.Data, Value: store.M(data)},
		store.Attribute{Name: schema.SeenDate, Value: store.S(billing.Stamp(e.Now()))})
	return e.Store.Commit(ctx, store.Put(e.Table, it))
}

// looks returns the stored looks, the latest first.
func (in *Installation) looks(ctx context.Context) (list []look, err error) {
	e := in.Engine
	for it, err := range e.Store.Query(ctx, store.Query{Table: e.Table, Partition: alarmKey.PK, Prefix: lookPrefix}) {
		if err != nil {
			return nil, err
		}
		l := look{it.Str(schema.SK)[len(lookPrefix):], billing.ParseStamp(it.Str(schema.SeenDate)),
			it.Get(schema.Completed).Bool(), map[string]Check{}}
		for _, a := range it.Get(schema.Data).Map() {
			c := a.Value.Map()
			l.checks[a.Name] = Check{Name: a.Name, State: State(c.Str(schema.State)), Text: c.Str(schema.Reason),
				Next: c.Str(schema.PollNext)}
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b look) int { return b.at.Compare(a.at) })
	return list, nil
}

// forgetLooks deletes the looks that are as old. Those of processes that serve come again.
func (in *Installation) forgetLooks(ctx context.Context, age time.Duration) error {
	list, err := in.looks(ctx)
	for _, l := range list {
		if err == nil && in.Engine.Now().Sub(l.at).Abs() >= age {
			err = in.Engine.Store.Commit(ctx, store.Delete(in.Engine.Table, store.Key{PK: alarmKey.PK, SK: lookPrefix + l.by}))
		}
	}
	return err
}

// fresh removes the looks that say nothing about now.
func (in *Installation) fresh(all []look, now time.Time) []look {
	return slices.DeleteFunc(all, func(l look) bool { return l.over || now.Sub(l.at).Abs() > max(freshLook, in.Fresh) })
}

// wellEverywhere reports whether no fresh look has found anything wrong or unknown.
func (in *Installation) wellEverywhere(ctx context.Context) (bool, error) {
	all, err := in.looks(ctx)
	for _, l := range in.fresh(all, in.Engine.Now()) {
		if len(Alarms(slices.Collect(maps.Values(l.checks)))) > 0 {
			return false, err
		}
	}
	return err == nil, err
}

// others returns what the stored looks say. The holder is the process that serves; it is not known
// of a store whose processes do not know of each other.
func (v *view) others(ctx context.Context, holder string, known bool) (*served, error) {
	all, err := v.looks(ctx)
	if err != nil {
		return nil, err
	}
	s := &served{since: "no process has run the checks yet"}
	if len(all) > 0 {
		s.since = "no process has run the checks since " + at(all[0].at)
	}
	s.fresh = v.fresh(all, v.now)
	if known && !slices.ContainsFunc(s.fresh, func(l look) bool { return l.by == holder }) {
		s.fresh = nil // of killed processes
	}
	_, _, err = tracking.Pinned(ctx, v.Engine.Store, v.Engine.Tables)
	s.follows = err == nil && (len(all) > 0 || !v.times.None())
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrMissing) {
		err = nil
	}
	return s, err
}

// told returns the check as the processes that serve know it, where they know more or worse. A part
// that they alone can know is Unknown if none of them has looked lately.
func (v *view) told(c Check) Check {
	if c.Text == "" && v.served.follows && len(v.served.fresh) == 0 {
		c.mark(Unknown, "start it: "+v.Hint("serve"), "only a running serve can check this; %s", v.served.since)
	}
	for _, l := range v.served.fresh {
		t := l.checks[c.Name]
		if t.Text != "" && t.Text != unfollowed && (c.Text == "" || t.State.rank() > c.State.rank()) {
			c.mark(t.State, t.Next, "%s (process %s, %s ago)", t.Text, l.by, v.ago(l.at))
		}
	}
	if c.Name == "stripe" {
		v.follow(v.served, &c)
	}
	return c
}

const unfollowed = "no process that serves follows Stripe"

// follow marks the check of Stripe, of which this process does not know, if the store follows
// Stripe and no other process does.
func (v *view) follow(s *served, c *Check) {
	for _, l := range s.fresh {
		if t := l.checks["stripe"].Text; t != "" && t != unfollowed {
			return
		}
	}
	if c.Text == "" && s.follows {
		c.mark(Unknown, "start one with Stripe's key: "+v.Hint("serve"), unfollowed)
	}
}
