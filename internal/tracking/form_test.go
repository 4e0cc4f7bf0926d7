package tracking_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
	"github.com/duesday/duesday/stripefake"
)

func isThin(e stripefake.Event) bool { return strings.HasPrefix(e.Type, "v1.") }

// v1 returns the event type without the prefix of thin events.
func v1(typ string) string { return strings.TrimPrefix(typ, "v1.") }

// undeclined removes the decline codes, because a payment fetched at a later time may not show the
// earlier ones.
func undeclined(payments []string) (list []string) {
	for _, p := range payments {
		before, _, _ := strings.Cut(p, ", declined")
		list = append(list, before)
	}
	return list
}

// A moment is the state of an object after one of a tape's changes.
type moment struct {
	change int // its place among the snapshots
	o      tracking.Object
}

// alone reports whether there is a thin event without its twin.
func alone(events []stripefake.Event) bool {
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ID] = true
	}
	return slices.ContainsFunc(events, func(e stripefake.Event) bool { return isThin(e) && !ids[twinOf(e)] })
}

// twinOf returns the ID of the snapshot event that reports the same change.
func twinOf(e stripefake.Event) string {
	told, err := event.Decode(e.Body)
	if err != nil {
		panic(err) // unreachable: the fake made it
	}
	return told.Twin
}

// A past is a Finder that returns an object as it was at any time between the newest event that has
// arrived and the end. The dice choose that time. The object's links are those at the end. A past
// is safe for concurrent use.
type past struct {
	tracking.Finder
	objects map[string][]moment // by id, oldest first
	changes map[string]int      // by event, of either form

	mu   sync.Mutex
	now  int        // the newest change that has come
	dice *rand.Rand // that say how much later it is
}

// past returns a Finder for the tape's objects.
func (tp *tape) past(t testing.TB, seed uint64) *past {
	t.Helper()
	p := &past{Finder: tp.finder, objects: map[string][]moment{}, changes: map[string]int{},
		dice: rand.New(rand.NewPCG(seed, 6))}
	for i, e := range tp.events[stripefake.NewestVersion] {
		p.changes[e.ID] = i
		told, err := event.Decode(e.Body)
		if err != nil {
			t.Fatal(err)
		}
		p.objects[told.Object.ID] = append(p.objects[told.Object.ID], moment{i, told.Object})
	}
	for _, e := range tp.thin {
		p.changes[e.ID] = p.changes[twinOf(e)]
	}
	return p
}

// comes records that these events have arrived, so Stripe has made their changes.
func (p *past) comes(events ...stripefake.Event) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		p.now = max(p.now, p.changes[e.ID])
	}
}

func (p *past) at(id string, o tracking.Object, err error) (tracking.Object, error) {
	list := p.objects[id]
	if err != nil || len(list) == 0 {
		return o, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	when := p.now + p.dice.IntN(len(p.changes)-p.now) // half of the time it is the end, since twins have one change
	then := list[0].o
	for _, m := range list {
		if m.change <= when {
			then = m.o
		}
	}
	o.Status, o.Failed, o.Code, o.Refunded = then.Status, then.Failed, then.Code, then.Refunded
	o.Refunds, o.Schedule = then.Refunds, cmp.Or(then.Schedule, o.Schedule)
	return o, nil
}

// Object implements tracking.Finder.
func (p *past) Object(ctx context.Context, at, kind, id string) (tracking.Object, error) {
	o, err := p.Finder.Object(ctx, at, kind, id)
	return p.at(id, o, err)
}

// inForm returns a tape's events in the given form: snapshot, thin or both.
func (tp *tape) inForm(form stripefake.EventForm, version string) []stripefake.Event {
	switch form {
	case stripefake.ThinEvents:
		return tp.thin
	case stripefake.BothEvents:
		return slices.Concat(tp.events[version], tp.thin)
	}
	return tp.events[version]
}

// A lister lists a tape's events in a form, as Stripe would.
type lister struct {
	tape    *tape
	form    stripefake.EventForm
	version string
}

// round runs a poller that lists the missing events.
func (l *lister) round(h *house) error {
	var last time.Time
	for _, e := range l.tape.events[l.version] {
		last = slices.MaxFunc([]time.Time{last, e.Created}, time.Time.Compare)
	}
	last = last.Add(time.Hour)
	p := poller.New(poller.Options{Ledger: h.service, Lister: listing{l, last}, Now: func() time.Time { return last }})
	r, err := p.Round(context.Background(), true)
	if err == nil && (r.Failed > 0 || r.Accounts != 1) {
		err = fmt.Errorf("the poller: %+v", r)
	}
	return err
}

type listing struct {
	*lister
	now time.Time
}

// ListEvents implements poller.Lister.
func (l listing) ListEvents(_ context.Context, _ string, _ time.Time, each func(poller.RawEvent) error) (time.Time,
	error) {
	if l.form == stripefake.ThinEvents { // there may be such accounts
		return l.now, nil
	}
	return l.now, l.list(l.tape.events[l.version], each)
}

// ListThin implements poller.Lister.
func (l listing) ListThin(_ context.Context, _ string, _ time.Time, each func(poller.RawEvent) error) error {
	if l.form == stripefake.SnapshotEvents {
		return poller.ErrNoThin
	}
	return l.list(l.tape.thin, each)
}

func (l listing) list(events []stripefake.Event, each func(poller.RawEvent) error) error {
	for _, e := range slices.Backward(events) {
		if err := each(poller.RawEvent{ID: e.ID, Created: e.Created, Body: e.Body}); err != nil {
			return err
		}
	}
	return nil
}

// ListObjects implements poller.Lister.
func (l listing) ListObjects(context.Context, string, time.Time, func(tracking.Object) error) error {
	return nil
}

// A loss is a way in which events arrive or get lost.
type loss struct {
	name     string
	shuffled bool // each one to three times, in any order, with faults
	// lost reports whether an event does not arrive, depending on its change, its form and the
	// dice.
	lost  func(thin bool, change int, dice *rand.Rand) bool
	polls bool // the poller finds the lost ones
	forms []stripefake.EventForm
}

func losses() []loss {
	all := []stripefake.EventForm{stripefake.SnapshotEvents, stripefake.ThinEvents, stripefake.BothEvents}
	half := func(_ bool, _ int, dice *rand.Rand) bool { return dice.IntN(2) == 0 }
	one := func(thin bool, change int, _ *rand.Rand) bool { return thin == (change%2 == 0) }
	other := func(thin bool, change int, _ *rand.Rand) bool { return thin == (change%2 == 1) }
	return []loss{{name: "in order", forms: all}, {name: "doubled", shuffled: true, forms: all},
		{name: "lost, polled", shuffled: true, lost: half, polls: true, forms: all},
		{name: "one of two", shuffled: true, lost: one, forms: all[2:]},
		{name: "other of two", shuffled: true, lost: other, forms: all[2:]}}
}

// TestForms plays all flows in every form, with events in order, doubled and lost. A fetch returns
// the object as it was at any time between the newest event that has arrived and the end. With -v
// the test prints how many events were delivered for each flow, form and loss. It fails on a wrong
// state or on an extra effect.
func TestForms(t *testing.T) {
	times := 2
	if soaktest.On() {
		times = 200
	}
	soaktest.Divide(t, len(flows()))
	var mu sync.Mutex // guards the rows
	rows, total := map[string][]string{}, map[string]int{}
	t.Cleanup(func() {
		var head []string
		for _, l := range losses() {
			for _, form := range l.forms {
				head = append(head, fmt.Sprintf("%s, %s", form, l.name))
			}
		}
		t.Logf("| flow | %s |", strings.Join(head, " | "))
		for _, f := range flows() {
			t.Logf("| %s | %s |", f.name, strings.Join(rows[f.name], " | "))
		}
		t.Logf("in all: %v", total)
	})
	for i, f := range flows() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			tp, programme := play(t, f), soaktest.Start(t)
			var cells []string
			for _, l := range losses() {
				for _, form := range l.forms {
					heard := 0
					for n := range times {
						if !programme.Next() {
							break
						}
						w := tp.inLoss(t, l, form, uint64(i*1000+n))
						err := w.run(t, tp.inForm(form, stripefake.NewestVersion), l.shuffled)
						if err != nil {
							t.Fatalf("%s, %s, walk %d: %v%s", form, l.name, n, err, w.path())
						}
						heard += w.heard
						mu.Lock()
						total["walks"]++
						total["events"] += w.heard
						total["jobs"] += len(w.house.robot.jobs())
						mu.Unlock()
					}
					cells = append(cells, fmt.Sprint(heard))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			rows[f.name] = cells
		})
	}
}

// inLoss returns a walk whose events arrive with the given loss.
func (tp *tape) inLoss(t testing.TB, l loss, form stripefake.EventForm, seed uint64,
	change ...func(*tracking.Options)) *walk {
	t.Helper()
	past, faults := tp.past(t, seed), 0
	if l.shuffled {
		faults = 3
	}
	change = append(change, func(o *tracking.Options) { o.Finder = past })
	w := newWalk(t, tp, tp.roots[int(seed)%len(tp.roots)].Snapshot(), seed, faults, change...)
	w.past = past
	if l.lost != nil {
		dice := rand.New(rand.NewPCG(seed, 7))
		w.lost = func(e stripefake.Event) bool { // without a thin event the poller would not ask for them
			return l.lost(isThin(e), past.changes[e.ID], dice) && (!l.polls || e.ID != tp.thin[0].ID)
		}
	}
	if l.polls {
		w.poll = &lister{tp, form, stripefake.NewestVersion}
	}
	return w
}

// ListFollowed implements poller.Lister.
func (listing) ListFollowed(context.Context, string, time.Time, time.Time, time.Time, func(tracking.Object, string) error) error {
	return nil
}
