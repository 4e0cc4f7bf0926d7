package tracking_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// A mutant is a service with a deliberate defect in its surroundings, which stands for a defect in
// the service. The test program must detect it.
type mutant struct {
	name, flow string
	form       stripefake.EventForm // of the events; "": snapshot
	change     func(tp *tape, o *tracking.Options)
	says       string // part of a fault that is found
}

// without is a store that drops some conditions or some writes of a commit.
type without struct {
	store.Store
	condition func(w *store.Write) bool // whose conditions are lost
	write     func(w *store.Write) bool // that are lost themselves
	change    func(all []store.Write)   // of what is left
}

// Commit implements store.Store.
func (s without) Commit(ctx context.Context, writes ...store.Write) error {
	var kept []store.Write
	for _, w := range writes {
		if s.write != nil && s.write(&w) {
			continue
		}
		if s.condition != nil && s.condition(&w) {
			w.If = nil
		}
		kept = append(kept, w)
	}
	if s.change != nil {
		s.change(kept)
	}
	if len(kept) == 0 {
		return nil
	}
	return s.Store.Commit(ctx, kept...)
}

// lying is a Finder that returns a wrong answer.
type lying struct {
	tracking.Finder
	payment, subscription func(*tracking.Object)
}

// Object implements tracking.Finder.
func (l lying) Object(ctx context.Context, at, kind, id string) (tracking.Object, error) {
	o, err := l.Finder.Object(ctx, at, kind, id)
	switch {
	case kind == tracking.KindPayment && l.payment != nil:
		l.payment(&o)
	case kind == tracking.KindSubscription && l.subscription != nil:
		l.subscription(&o)
	}
	return o, err
}

func decoding(change func(e *tracking.Event)) func(*tape, *tracking.Options) {
	return func(_ *tape, o *tracking.Options) {
		o.Decode = func(body []byte) (tracking.Event, error) {
			e, err := event.Decode(body)
			change(&e)
			return e, err
		}
	}
}

func storing(s without) func(*tape, *tracking.Options) {
	return func(_ *tape, o *tracking.Options) {
		s.Store = o.Store
		o.Store = s
	}
}

func finding(l lying) func(*tape, *tracking.Options) {
	return func(_ *tape, o *tracking.Options) {
		l.Finder = o.Finder
		o.Finder = l
	}
}

func to(table string) func(*store.Write) bool {
	return func(w *store.Write) bool { return w.Table == table }
}

func rowOfOutbox(prefix string) func(*store.Write) bool {
	return func(w *store.Write) bool {
		return w.Op == store.OpPut && w.Table == tables.Outbox.Name && strings.Contains(w.Item.Str("SK"), "#"+prefix)
	}
}

// ofThin returns the write that stores a thin event, or nil if there is none.
func ofThin(all []store.Write) *store.Write {
	for i, w := range all {
		if w.Op == store.OpPut && w.Item.Has(schema.TrackedToldType) {
			return &all[i]
		}
	}
	return nil
}

// ownEffects gives a fulfilment that a thin event requests its own ID.
func ownEffects(all []store.Write) {
	for i, w := range all {
		if rowOfOutbox("fulfil/")(&w) && ofThin(all) != nil {
			all[i].Item = w.Item.Clone()
			all[i].Item.Set(schema.SK, store.S(w.Item.Str(schema.SK)+"/thin"))
		}
	}
}

// noStatus stores thin events without a status.
func noStatus(all []store.Write) {
	if w := ofThin(all); w != nil {
		w.Item = w.Item.Clone()
		w.Item.Set(schema.TrackedStatus, store.S(""))
	}
}

func mutants() []mutant {
	t := tables.Tracking
	const both, thin = stripefake.BothEvents, stripefake.ThinEvents
	return []mutant{
		{"the twin of an event is stored in its place", "subscription then canceled", both,
			storing(without{condition: to(t.Events.Name)}), ""},
		{"each form asks for effects of its own", "legacy success", thin, storing(without{change: ownEffects}), "lost"},
		{"a thin event has no status", "legacy success", thin, storing(without{change: noStatus}), "is "},
		{"what a thin event names is not read", "subscription, processing for days", thin,
			decoding(func(e *tracking.Event) { e.Object.ID = "" }), "want"},
		{"the inbox forgets a thin event", "legacy success", thin, storing(without{write: rowOfOutbox("event/")}),
			"nobody works on it"},
		{"what a thin event names is another's", "subscription then canceled", both,
			finding(lying{subscription: func(o *tracking.Object) { o.Tag = tracking.Tag{} },
				payment: func(o *tracking.Object) { o.Tag = tracking.Tag{} }}), ""},
		{"an event is seen, and what it says is not kept", "product refunded in part", "",
			storing(without{write: to(t.Payments.Name)}), "nothing is active or paid"},
		{"an event that came is stored once more", "subscription then canceled", "",
			storing(without{condition: to(t.Events.Name)}), "changes something"},
		{"the inbox forgets", "subscription then canceled", "", storing(without{write: rowOfOutbox("event/")}),
			"nobody works on it"},
		{"a fulfilment is lost", "legacy success", "", storing(without{write: rowOfOutbox("fulfil/")}), "lost"},
		{"an unsubscribe is lost", "subscription then canceled", "", storing(without{write: rowOfOutbox("unsubscribe/")}),
			"lost"},
		{"a payment of a subscription is said to be none", "subscription then canceled", "",
			finding(lying{payment: func(o *tracking.Object) { o.Invoice, o.Subscription = "", "" }}), "payments"},
		{"what Stripe answers is of another time", "renewal, past due, recovered", "",
			finding(lying{subscription: func(o *tracking.Object) { o.Status = "past_due" }}), "subscriptions"},
		{"a refund is not told", "product refunded in part", "",
			decoding(func(e *tracking.Event) { e.Object.Refunds, e.Object.Refunded = nil, 0 }), "payments"},
		{"a schedule that has run its course is said to be canceled", "split completed", "", decoding(func(e *tracking.Event) {
			if e.Object.Kind == tracking.KindSchedule && e.Object.Status == "completed" {
				e.Object.Status = "canceled"
			}
		}), "completed"},
		{"an end is not told", "subscription then canceled", "", decoding(func(e *tracking.Event) {
			if e.Type == "customer.subscription.deleted" {
				e.Object.Status = "active"
			}
		}), ""},
		{"whose purchase it is is not told", "subscription declined, then expired", "",
			decoding(func(e *tracking.Event) { e.Object.Tag = tracking.Tag{} }), "subscriptions"},
	}
}

// TestExplore_Mutants checks that the exploration detects each deliberate defect, in a flow and a
// form that TestEveryOrder explores.
func TestExplore_Mutants(t *testing.T) {
	byName, explored := map[string]*flow{}, map[string][]way{}
	for i, f := range flows() {
		byName[f.name], explored[f.name] = f, f.ways(i)
	}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if w := (way{cmp.Or(m.form, stripefake.SnapshotEvents), stripefake.NewestVersion}); !slices.Contains(explored[m.flow], w) {
				t.Errorf("TestEveryOrder does not explore %q in the form %s", m.flow, w.form)
			}
			tp := play(t, byName[m.flow])
			x := explore(t, tp, tp.explored(m.form, stripefake.NewestVersion), soaktest.Cases(t, 3000, 3000, 30_000), 1, func(o *tracking.Options) { m.change(tp, o) })
			if len(x.wrong) == 0 && !x.whole {
				t.Skipf("SKIPPED: the soak's time was over after %d nodes", len(x.seen))
			}
			if len(x.wrong) == 0 {
				t.Fatalf("nothing is found on %d nodes", len(x.seen))
			}
			if all := strings.Join(x.wrong, "\n"); !strings.Contains(all, m.says) {
				t.Errorf("want %q, found\n%s", m.says, all)
			}
			t.Log(x.wrong[0])
		})
	}
}

// TestSampledOrders_Mutants checks that the samples detect a lost condition, which only shows if
// one process overtakes another.
func TestSampledOrders_Mutants(t *testing.T) {
	t.Parallel()
	of := map[string]struct {
		table store.Table
		found int // the walk that found it before, which is taken first
	}{
		"two subscriptions, both ended": {tables.Tracking.Purchases, 303},
		"split completed":               {tables.Tracking.Subscriptions, 202},
		"product refunded twice":        {tables.Tracking.Payments, 26},
	}
	for _, f := range flows() {
		m, is := of[f.name]
		if !is {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			tp := play(t, f)
			broken := func(o *tracking.Options) { storing(without{condition: to(m.table.Name)})(tp, o) }
			for n := range 500 {
				i := (m.found + n) % 500
				w := newWalk(t, tp, tp.roots[i%2].Snapshot(), uint64(i), 3, broken)
				if err := w.run(t, tp.events[stripefake.NewestVersion], true); err != nil {
					t.Logf("walk %d, the %dth: %v", i, n+1, err)
					return
				}
			}
			t.Error("nothing is found in 500 walks")
		})
	}
}
