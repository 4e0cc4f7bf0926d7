package tracking_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// The exploration walks the graph of all states that a flow can reach. A node consists of the
// stored data, without times, versions and histories, and of the jobs done so far. From each node,
// every event can arrive, either for the first time or again, and a worker can process any row of
// the inbox or the actions. Each such step ends at every point where a crash can end it. The
// exploration also repeats the step with each of its commits lost and with each reply lost (at
// every fourth node in make check, and at every eighth in go test). It does not follow a node that
// it has already seen, because everything after that node is the same. It therefore covers every
// order of the events, each delivered any number of times.
//
// The clock stands still, except that it advances to the due time of a row that is processed later.

// mostFaults is the maximum number of faults reported for one flow.
const mostFaults = 3

// A node is a reached state.
type node struct {
	store *memstore.Store
	view  *view
	jobs  []string
	from  *node
	by    string
	back  map[*node]bool // that lead here
	end   bool           // nothing is left to be done
	good  bool           // an end is reached from here
}

func nodeKey(v *view, jobs []string) [sha256.Size]byte {
	return sha256.Sum256(append(v.key[:], strings.Join(jobs, " ")...))
}

// path returns the steps by which the exploration first reached the node.
func (n *node) path() string {
	var steps []string
	for ; n != nil; n = n.from {
		steps = append(steps, n.by)
	}
	slices.Reverse(steps)
	return strings.Join(steps, "\n\t")
}

// An explorer explores one flow.
type explorer struct {
	tape   *tape
	house  *house
	events []stripefake.Event
	seen   map[[sha256.Size]byte]*node
	queue  []*node
	ends   map[string]int // nodes at which nothing is left to do, by what was done
	wrong  []string       // what must not happen
	all    bool           // automations fail too, and commits are lost at every node
	most   int            // nodes, after which it is given up
	left   map[string]int // rows that were taken away, by id
	doubts []doubt        // of them, that are to be tried out
	whole  bool           // there was time for all nodes

	steps, crashes, lost, edges, setbacks, expanded int
}

// explore follows every step from every root, up to a maximum number of nodes and faults.
func explore(t testing.TB, tp *tape, events []stripefake.Event, most, faults int, change ...func(*tracking.Options)) *explorer {
	t.Helper()
	x := &explorer{tape: tp, events: events, seen: map[[sha256.Size]byte]*node{}, ends: map[string]int{},
		left: map[string]int{}, all: soaktest.On(), most: most}
	x.house = tp.house(t, tp.roots[0].Snapshot(), change...)
	for i, root := range tp.roots {
		x.reach(nil, fmt.Sprintf("root %d", i), state{root.Snapshot(), nil})
	}
	programme := soaktest.Start(t) // a case is a node
	for len(x.queue) > 0 && len(x.wrong) < faults && len(x.seen) < x.most && programme.Next() {
		n := x.queue[0]
		x.queue = x.queue[1:]
		x.expand(n)
		n.store, n.view = nil, nil // they are not needed again
		if err := x.dispel(); err != nil {
			x.fault(n, "what is left", err.Error())
		}
	}
	if x.whole = programme.Whole(); len(x.queue) == 0 {
		x.finish()
	}
	return x
}

// A state is the result of a step or of a part of a step.
type state struct {
	store *memstore.Store
	jobs  []string
}

// reach records a state, and checks it if it is new.
func (x *explorer) reach(from *node, by string, s state) (*node, *view) {
	v, err := see(s.store, x.tape.purchase, true)
	if err == nil {
		s.store, v, err = x.clean(s.store, v)
	}
	if err != nil {
		x.fault(from, by, err.Error())
		return from, from.view
	}
	x.edges++
	key := nodeKey(v, s.jobs)
	n, there := x.seen[key]
	if !there {
		n = &node{store: s.store, view: v, jobs: s.jobs, from: from, by: by, back: map[*node]bool{}}
		x.seen[key] = n
		x.queue = append(x.queue, n)
		for _, text := range v.wrong {
			x.fault(from, by, text)
		}
		x.judge(n)
	}
	if from == nil || from == n {
		return n, v
	}
	for _, text := range v.after(from.view, true, x.tape.billed()) {
		x.fault(from, by, text)
	}
	n.back[from] = true
	return n, v
}

// clean removes outbox rows that a crash has left behind although their work is done. Processing
// such a row only removes it, at any time. The doubts test that often enough, and following each
// row would cover the same states a thousand times.
func (x *explorer) clean(s *memstore.Store, v *view) (*memstore.Store, *view, error) {
	was := s
	for _, r := range v.rows {
		if r.dead || !v.idle(r) {
			continue
		}
		with := s
		s = s.Snapshot()
		if err := s.Commit(context.Background(), store.Delete(tables.Outbox.Name, r.key)); err != nil {
			return nil, nil, err
		}
		if x.left[r.id]++; x.left[r.id] <= leftTries {
			x.doubts = append(x.doubts, doubt{with, s, r})
		}
	}
	if s == was {
		return s, v, nil
	}
	v, err := see(s, x.tape.purchase, true)
	return s, v, err
}

// leftTries is how often the exploration tests that a leftover row has no effect.
const leftTries = 25

// A doubt is a pair of stores, with and without a row that should have no effect.
type doubt struct {
	with, without *memstore.Store
	row           row
}

// dispel processes the rows that should have no effect.
func (x *explorer) dispel() error {
	for _, d := range x.doubts {
		with := d.with.Snapshot()
		if _, err := x.house.work(with, d.row); err != nil {
			return err
		}
		got, err := see(with, x.tape.purchase, true)
		if err != nil {
			return err
		}
		if want, err := see(d.without, x.tape.purchase, true); err != nil || got.key != want.key {
			return fmt.Errorf("what is left of %s does something: %w", d.row.id, err)
		}
	}
	x.doubts = nil
	return nil
}

func (x *explorer) fault(n *node, by, text string) {
	if len(x.wrong) < mostFaults {
		x.wrong = append(x.wrong, fmt.Sprintf("%s, by\n\t%s\n\t%s", text, n.path(), by))
	}
}

// expand performs every step from the node.
func (x *explorer) expand(n *node) {
	x.expanded++
	for i, e := range x.events {
		_, stored := n.view.events[e.ID]
		status := 0
		x.step(n, fmt.Sprintf("event %d %s", i, e.Type), !stored, func(on store.Store, faulty bool) string {
			x.house.stage.Store = on
			if status = x.house.hear(e.Body); status != 200 && (status != 503 || !faulty) {
				return fmt.Sprintf("it is answered with %d", status)
			}
			return ""
		}, func(end *node, v *view) string {
			if _, there := v.events[e.ID]; status == 200 && !there {
				return "it is answered with 200, and not stored"
			}
			if stored && end != n {
				return "it was stored before, and changes something"
			}
			return ""
		})
	}
	for _, r := range n.view.rows {
		work := func(on store.Store, faulty bool) string {
			report, err := x.house.work(on, r)
			x.setbacks += report.Failed
			if err != nil && !faulty {
				return err.Error()
			}
			return ""
		}
		fine := func(*node, *view) string { return "" }
		x.step(n, string(r.lane)+" "+r.id, true, work, fine)
		if r.lane == outbox.Actions && !r.told && x.all {
			x.house.robot.fails = true
			x.step(n, "in vain "+r.id, false, work, fine)
			x.house.robot.fails = false
		}
	}
}

// step performs an operation from the node, first without a fault. With all, it repeats the
// operation with each commit lost. Each point where a crash can end the operation is a separate
// state.
func (x *explorer) step(n *node, by string, all bool, do func(on store.Store, faulty bool) (wrong string),
	is func(*node, *view) (wrong string)) {
	commits := x.run(n, by, func(int, storetest.Phase) error { return nil },
		func(on store.Store) string { return do(on, false) }, is)
	if !all || !x.all && x.expanded%soaktest.Share(8, 4) != 1 {
		return
	}
	for at := 1; at <= commits; at++ {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			x.lost++
			x.run(n, fmt.Sprintf("%s, commit %d lost (%d)", by, at, phase), func(commit int, now storetest.Phase) error {
				if commit == at && now == phase {
					return store.ErrUnknown
				}
				return nil
			}, func(on store.Store) string { return do(on, true) }, is)
		}
	}
}

// run performs the operation once. A process can die before and after each commit, and the next
// process then finds what is stored at that point.
func (x *explorer) run(n *node, by string, fault func(commit int, phase storetest.Phase) error,
	do func(store.Store) (wrong string), is func(*node, *view) (wrong string)) (commits int) {
	x.steps++
	s := n.store.Snapshot()
	x.house.robot.done = slices.Clone(n.jobs)
	landed := &landing{Store: s}
	faulty := storetest.NewFaulty(landed)
	at, jobs, end, v := 0, len(n.jobs), n, n.view // what was looked at last
	look := func(how string) {
		if landed.commits == at && len(x.house.robot.jobs()) == jobs {
			return // nothing has changed
		}
		at, jobs = landed.commits, len(x.house.robot.jobs())
		end, v = x.reach(n, by+how, state{s.Snapshot(), x.jobs(n, by)})
	}
	faulty.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		if op.Kind != storetest.Commit {
			return nil
		}
		x.crashes++
		look(fmt.Sprintf(", died at commit %d (%d)", op.Commit, phase))
		return fault(op.Commit, phase)
	}
	wrong := do(faulty)
	faulty.Hook = nil
	if look(""); wrong == "" {
		wrong = is(end, v)
	}
	if wrong != "" {
		x.fault(end, by, wrong)
	}
	return faulty.Commits()
}

// A landing counts the commits that have succeeded.
type landing struct {
	store.Store
	commits int
}

// Commit implements store.Store.
func (l *landing) Commit(ctx context.Context, writes ...store.Write) error {
	err := l.Store.Commit(ctx, writes...)
	if err == nil {
		l.commits++
	}
	return err
}

func (x *explorer) jobs(n *node, by string) []string {
	list, wrong := order(x.house.robot.jobs(), x.tape.purchase)
	if wrong != "" {
		x.fault(n, by, wrong)
	}
	return list
}

// order returns the jobs done, each once. It allows a repetition if no other job was done in
// between.
func order(done []string, purchase string) (list []string, wrong string) {
	for _, id := range done {
		at := slices.Index(list, id)
		if at < 0 {
			list = append(list, id)
		} else if at != len(list)-1 {
			wrong = "repeated too late: " + id
		}
	}
	if want := []string{"fulfil/" + purchase, "unsubscribe/" + purchase}; len(list) > 2 ||
		!slices.Equal(list, want[:len(list)]) {
		wrong = fmt.Sprintf("jobs %q", list)
	}
	return list, wrong
}

// judge checks whether the node is an end, and whether that end is correct.
func (x *explorer) judge(n *node) {
	if len(n.view.rows) > 0 || slices.ContainsFunc(x.events,
		func(e stripefake.Event) bool { return !n.view.events[e.ID].Final() }) {
		return
	}
	n.end = true
	x.ends[verbs(n.jobs)]++
	for _, text := range x.tape.judge(n.view, n.jobs, x.events) {
		x.fault(n, "the end", text)
	}
}

// finish checks that an end can be reached from every node.
func (x *explorer) finish() {
	var reached []*node
	for _, n := range x.seen {
		if n.end {
			n.good = true
			reached = append(reached, n)
		}
	}
	for len(reached) > 0 {
		n := reached[0]
		reached = reached[1:]
		for b := range n.back {
			if !b.good {
				b.good = true
				reached = append(reached, b)
			}
		}
	}
	for _, n := range x.seen {
		if !n.good {
			x.fault(n, "nothing", "no end is reached from here")
		}
	}
}

// verbs returns the actions of the jobs.
func verbs(jobs []string) string {
	var list []string
	for _, id := range jobs {
		verb, _, _ := strings.Cut(id, "/")
		list = append(list, verb)
	}
	return strings.Join(list, " ")
}

// judge describes what is wrong after all of these events have arrived and no work is left.
func (tp *tape) judge(v *view, jobs []string, events []stripefake.Event) (wrong []string) {
	payments, subscriptions := v.outcome()
	if ofPayments := slices.ContainsFunc(events,
		func(e stripefake.Event) bool { return strings.HasPrefix(v1(e.Type), "payment_intent.") }); ofPayments {
		want := tp.payments
		if !strings.Contains(want[0], " ") { // the sum of the invoice's own payment changes on the way
			for i, p := range payments {
				payments[i], _, _ = strings.Cut(p, " ")
			}
		}
		if alone(events) {
			payments, want = undeclined(payments), undeclined(want)
		}
		if !slices.Equal(payments, want) {
			wrong = append(wrong, fmt.Sprintf("payments %q, want %q", payments, want))
		}
	}
	if !slices.Equal(subscriptions, tp.subscriptions) {
		wrong = append(wrong, fmt.Sprintf("subscriptions %q, want %q", subscriptions, tp.subscriptions))
	}
	if !slices.Contains(tp.jobs, verbs(jobs)) {
		wrong = append(wrong, fmt.Sprintf("jobs %q, want one of %q", verbs(jobs), tp.jobs))
	}
	if asked := v.fulfil != tracking.NotAsked; asked != (len(jobs) > 0) || asked && v.fulfil != tracking.DoneWith {
		wrong = append(wrong, fmt.Sprintf("the fulfilment is %q after %q", v.fulfil, jobs))
	}
	if asked := v.unsubscribe != tracking.NotAsked; asked != (len(jobs) > 1) || asked &&
		v.unsubscribe != tracking.DoneWith {
		wrong = append(wrong, fmt.Sprintf("the unsubscribe is %q after %q", v.unsubscribe, jobs))
	}
	return wrong
}

// A way is an event form and an API version.
type way struct {
	form    stripefake.EventForm
	version string
}

// ways returns the ways in which TestEveryOrder explores the i-th flow.
func (f *flow) ways(i int) []way {
	list := []way{{stripefake.SnapshotEvents, stripefake.NewestVersion}, {stripefake.ThinEvents, stripefake.NewestVersion},
		{stripefake.BothEvents, stripefake.NewestVersion}}
	if soaktest.On() {
		return append(list, way{stripefake.SnapshotEvents, oldestVersion})
	}
	other := 1 + i%3 // each third flow has no other way
	if other == 3 || f.oneForm && !soaktest.Checked() {
		return list[:1]
	}
	return []way{list[0], list[other]}
}

// TestEveryOrder explores all flows, each with a few relevant events. DUESDAY_CHECK=1 explores more
// events, and DUESDAY_SOAK=1 explores up to seven, with failing automations.
func TestEveryOrder(t *testing.T) {
	soaktest.Divide(t, len(flows())*len(flows()[0].ways(0)))
	for i, f := range flows() {
		for _, w := range f.ways(i) {
			t.Run(fmt.Sprintf("%s %s %s", f.name, w.form, w.version), func(t *testing.T) {
				t.Parallel()
				tp := play(t, f, w.version)
				x := explore(t, tp, tp.explored(w.form, w.version), mostNodes, mostFaults)
				for _, text := range x.wrong {
					t.Error(text)
				}
				if len(x.seen) >= mostNodes {
					t.Errorf("given up after %d nodes", len(x.seen))
				}
				if in := f.jobs[0]; len(x.wrong) == 0 && len(x.queue) == 0 && x.ends[in] == 0 {
					t.Errorf("the jobs %q are never done", in)
				}
				t.Logf("%d events: %d nodes, %d edges, %d steps, %d crashes, %d commits lost, %d set back, ends %v",
					len(x.events), len(x.seen), x.edges, x.steps, x.crashes, x.lost, x.setbacks, x.ends)
			})
		}
	}
}

const (
	oldestVersion = "2020-08-27"
	mostNodes     = 200_000
)
