package engine_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// A giver is a process's way to a processor that gives money back.
type giver struct {
	*wire
	box processor.Refunder
}

// gives lets a world's processes give money back.
func gives(_ *world, p processor.Charger) processor.Charger {
	x := p.(*wire)
	return &giver{x, x.inner.(processor.Refunder)}
}

// through is wire.call for any answer.
func through[T any](x *wire, op, key string, do func() (T, error)) (v T, err error) {
	var none T
	if x.p.edge != nil && !x.p.faults.died() {
		x.p.edge()
	}
	if err := x.p.faults.at(processor.ErrUnknown); err != nil {
		return none, err
	}
	lost, err := x.p.w.script.before(x.p.w.now(), op, key)
	if err == nil {
		if v, err = do(); err == nil && lost {
			err = processor.ErrUnknown
		}
	}
	if hit := x.p.faults.at(processor.ErrUnknown); hit != nil {
		err = hit
	}
	if err != nil {
		return none, err
	}
	return v, nil
}

func (g *giver) Refund(ctx context.Context, r processor.RefundRequest) (processor.Reversal, error) {
	return through(g.wire, "refund", r.Key, func() (processor.Reversal, error) { return g.box.Refund(ctx, r) })
}

func (g *giver) ReversalsOf(ctx context.Context, ref string) ([]processor.Reversal, error) {
	return through(g.wire, "returns", "", func() ([]processor.Reversal, error) { return g.box.ReversalsOf(ctx, ref) })
}

func (g *giver) Reversals(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Reversal, error] {
	return func(yield func(processor.Reversal, error) bool) {
		list, err := through(g.wire, "returns", "", func() (list []processor.Reversal, err error) {
			for seen, err := range g.box.Reversals(ctx, r) {
				if err != nil {
					return nil, err
				}
				list = append(list, seen)
			}
			return list, nil
		})
		for _, seen := range list {
			if !yield(seen, nil) {
				return
			}
		}
		if err != nil {
			yield(processor.Reversal{}, err)
		}
	}
}

// balanced looks after every commit whether more is recorded as given back than was charged.
type balanced struct {
	store.Store
	w *world
}

func (b *balanced) Commit(ctx context.Context, writes ...store.Write) error {
	err := b.Store.Commit(ctx, writes...)
	if !slices.ContainsFunc(writes, func(w store.Write) bool { return isRef(w.Item.Str(schema.SK)) || isRef(w.Key.SK) }) {
		return err
	}
	sum := int64(0)
	for it := range b.Store.Query(ctx,
		store.Query{Table: b.w.tables.RecurringPayments.Name, Partition: "ACC#a1", Prefix: "REF#"}) {
		if state := it.Str(schema.State); state != "failed" && state != "canceled" && it.Str(schema.Kind) == "refund" {
			sum += cents(it.Str(schema.Amount))
		}
	}
	if sum > 1299 {
		b.w.violate("%d cents are recorded as given back, of 1299", sum)
	}
	return err
}

func cents(text string) (n int64) {
	_, _ = fmt.Sscan(strings.ReplaceAll(text, ".", ""), &n)
	return n
}

// passes reports whether the error says that the same order may be done later.
func passes(err error) bool {
	for _, e := range []error{processor.ErrUnknown, processor.ErrNotExecuted, processor.ErrRefused, store.ErrUnknown} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func isRef(sk string) bool { return strings.HasPrefix(sk, "REF#") }

// charged is a world in which a1/s1 has paid $12.99 for period 0.
func charged(p planted) (*world, billing.Name) {
	if p.proc == nil {
		p.proc = gives
	}
	w := newWorld("2024-01-31T09:00", p)
	n := w.create(one("2024-01-31"))
	w.start().run(civil.Date{})
	w.pass(time.Hour)
	w.spy.Store = &balanced{w.spy.Store, w}
	return w, n
}

func (w *world) sandbox() *sandbox.Sandbox { return w.box.(*sandbox.Sandbox) }

// collect is what the payment job does about refunds.
func (p *process) collect() (int, error) {
	return p.Refunds().Collect(context.Background(), p.w.now().AddDate(0, 0, -120))
}

// asked asks again and again, a day apart, until the order is done or refused for good.
func (p *process) asked(o refund.Order, key ...string) (r *billing.ReversalRecord, err error) {
	for range 6 {
		_, cerr := p.collect()
		if r, _, err = p.Refunds().Refund(p.w.keyed(context.Background(), strings.Join(key, "")), o); cerr == nil && (err == nil || !passes(err)) {
			return r, err
		}
		p.w.pass(24 * time.Hour)
	}
	p.w.violate("not done after 6 days: %v", err)
	return r, err
}

func (w *world) inAccount(prefix string) (items []store.Item) {
	for it, err := range w.spy.Query(context.Background(),
		store.Query{Table: w.tables.RecurringPayments.Name, Partition: "ACC#a1", Prefix: prefix}) {
		if err != nil {
			w.violate("%v", err)
		}
		items = append(items, it)
	}
	return items
}

// gaveBack notes where the processor's refunds are not what was asked for, once each, or the
// records say something else than the processor.
func (w *world) gaveBack(want ...int64) {
	var got []int64
	made := map[string]processor.Reversal{}
	for _, r := range w.sandbox().AllReversals() {
		made[r.ID] = r
		if r.Kind == processor.Refunded && r.State == processor.ReversalSucceeded {
			got = append(got, r.Amount.Minor())
		}
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		w.violate("the processor gave back %v, want %v", got, want)
	}
	ids := map[string]bool{}
	for r, err := range w.start().GetReversalsByAccount(context.Background(), "a1") {
		if err != nil {
			w.violate("%v", err)
			return
		}
		seen := made[r.Ref]
		switch {
		case ids[r.ReversalID] || r.Ref != "" && ids[r.Ref]:
			w.violate("%s, %s is recorded twice", r.ReversalID, r.Ref)
		case r.State == processor.ReversalFailed && r.Ref == "":
		case r.State != seen.State || r.Amount != seen.Amount || r.Kind != seen.Kind || r.Charge != seen.Ref ||
			r.Period != 0 || r.AskedHere() != (seen.Request != ""):
			w.violate("the record is %+v, the processor has %+v", r, seen)
		}
		ids[r.ReversalID], ids[r.Ref] = true, true
		delete(made, r.Ref)
	}
	for _, r := range made {
		w.violate("%s %s of %s is not recorded", r.Kind, r.ID, r.Amount)
	}
	for it, err := range w.spy.Query(context.Background(),
		store.Query{Table: w.tables.RecurringPayments.Name, Partition: "REFUNDS"}) {
		w.violate("left among the unfinished: %v (%v)", it.Str(schema.SK), err)
	}
}

// A giveback is one case of the programme: an order is cut at a point, somebody goes on with
// it, who may be cut as well, and then comes peace.
type giveback struct {
	fates  []scripted
	first  fault
	delay  time.Duration
	second fault
	again  time.Duration
	job    bool // the payment job goes on with it, and not the command
	plant  planted

	lives [2]int
}

func (c *giveback) String() string {
	return fmt.Sprintf("%v, first %v, after %s, second %v after %s, by the job: %t", c.fates, c.first, c.delay, c.second,
		c.again, c.job)
}

func (c *giveback) play() []string {
	ctx := context.Background()
	w, n := charged(c.plant)
	receipts := w.inAccount("REC#")
	w.script.left = slices.Clone(c.fates)
	order := refund.Order{Name: n, Amount: usd(500), Reason: processor.Duplicate}
	p := w.start(c.first)
	_, _, err := p.Refunds().Refund(ctx, order)
	c.lives[0] = p.faults.passed()
	if err == nil && p.faults.died() {
		w.violate("a dead process was told that its refund is done")
	}
	if err != nil {
		w.pass(c.delay)
		p = w.start(c.second)
		if c.job {
			_, _ = p.collect()
		} else {
			_, _, _ = p.Refunds().Refund(ctx, order)
		}
		if c.lives[1] = p.faults.passed(); p.faults.died() {
			w.pass(c.again)
		}
	}
	p = w.start()
	if r, err := p.asked(order); err != nil || r.State != processor.ReversalSucceeded || r.Amount != usd(500) ||
		r.Reason != "duplicate" {
		w.violate("in the end: %+v, %v", r, err)
	}
	for i, o := range []refund.Order{{Amount: usd(500)}, {}, {}, {Amount: usd(500)}} {
		o.Name = n
		if _, _, err := p.Refunds().Refund(w.keyed(ctx, []string{"another", "", "", ""}[i]), o); err != nil {
			w.violate("%+v: %v", o, err)
		}
	}
	w.gaveBack(500, 500, 299)
	if now := w.inAccount("REC#"); len(now) != 1 || !now[0].Equal(receipts[0]) {
		w.violate("the receipt was %v and is %v", receipts, now)
	}
	return w.audit()
}

func refundFates() [][]scripted {
	return [][]scripted{
		nil,
		{{"lost", "refund", 1}}, {{"lost", "refund", 3}}, {{"unknown", "refund", 1}}, {{"unknown", "refund", 3}},
		{{"busy", "refund", 2}}, {{"cached", "refund", 1}}, {{"refused", "refund", 1}},
		{{"unknown", "refund", 1}, {"lost", "returns", 4}}, {{"unknown", "returns", 2}},
	}
}

// refundCases plays the cases of the programme until enough says stop: every point at which
// the first life can be cut, by a crash or a lost answer, times the delay until somebody goes
// on, times every point at which that one can be cut.
func refundCases(p planted, yield func(*giveback) bool) {
	for _, fates := range refundFates() {
		calm := giveback{fates: fates, plant: p}
		calm.play()
		for point := range calm.lives[0] + 1 {
			for _, crash := range []bool{true, false} {
				for i, delay := range []time.Duration{time.Second, 25 * time.Hour} {
					c := &giveback{fates: fates, plant: p, first: fault{point, crash}, delay: delay, job: (point+i)%2 == 0}
					if !yield(c) {
						return
					}
					for second := 1; second <= c.lives[1]; second++ {
						again := []time.Duration{25 * time.Hour, time.Second}[(second+i)%2]
						if !yield(&giveback{fates: fates, plant: p, first: c.first, delay: delay, job: c.job,
							second: fault{second, second%5 != 0}, again: again}) {
							return
						}
					}
				}
			}
		}
	}
}

// refundShare yields all cases that are cut once. Of those that are cut twice it yields two in seven,
// -short one in seven, and make check all.
func refundShare(t testing.TB, p planted, yield func(*giveback) bool) {
	planned, share := 0, soaktest.Cases(t, 1, soaktest.Share(2, 7), 7)
	refundCases(p, func(c *giveback) bool {
		planned++
		return c.second.point > 0 && planned%7 >= share || yield(c)
	})
}

// TestRefund_EveryCrashPoint is the programme of the refund protocol: each crash, and each other one
// after it.
func TestRefund_EveryCrashPoint(t *testing.T) {
	t.Parallel()
	cases := 0
	refundShare(t, planted{}, func(c *giveback) bool {
		cases++
		for _, v := range c.play() {
			t.Errorf("%s: %s", c, v)
		}
		return !t.Failed()
	})
	t.Logf("%d cases", cases)
	if cases < 500 && !t.Failed() {
		t.Errorf("only %d cases: the programme has lost its teeth", cases)
	}
}

// TestRefund_OnPebble plays every first crash on the engine that people use.
func TestRefund_OnPebble(t *testing.T) {
	cases := 0
	refundCases(planted{engine: func(w *world) store.Store {
		s, err := pebblestore.Open("duesday",
			pebblestore.Options{Tables: w.tables.All(), Names: schema.Names(), Now: w.now, Create: true,
				FS: vfs.NewMem(), CacheBytes: 1 << 20, Fatal: func(err error) { t.Errorf("the disk has failed: %v", err) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}}, func(c *giveback) bool {
		if c.second.point == 0 {
			cases++
			for _, v := range c.play() {
				t.Errorf("%s: %s", c, v)
			}
		}
		return len(c.fates) == 0 && !t.Failed()
	})
	if cases < 20 && !t.Failed() {
		t.Errorf("only %d cases", cases)
	}
}

// refundTwins lets two commands run at once, interleaved by chance at each call, each with a
// fault: on one order, and on two orders of which one fits.
func refundTwins(p planted) []string {
	for seed := range uint64(300) {
		w, n := charged(p)
		rng := seeded(seed)
		if rng.IntN(3) == 0 {
			w.script.left = pick(rng, refundFates()...)
		}
		orders := [2]refund.Order{{Name: n, Amount: usd(600)}, {Name: n, Amount: usd(600)}}
		want, keys := int64(600), [2]string{}
		if seed%2 == 0 {
			orders = [2]refund.Order{{Name: n, Amount: usd(800)}, {Name: n, Amount: usd(800)}}
			want, keys = 800, [2]string{"x", "y"}
		}
		var threads []func(func())
		for i := range orders {
			q := w.start(fault{rng.IntN(40), rng.IntN(2) == 0})
			threads = append(threads, func(edge func()) {
				q.edge = func() { w.pass(time.Millisecond); edge() }
				_, _, _ = q.Refunds().Refund(w.keyed(context.Background(), keys[i]), orders[i])
			})
		}
		interleave(rng, threads)
		w.pass(pick(rng, time.Second, 25*time.Hour))
		done := 0
		for i, o := range orders {
			if _, err := w.start().asked(o, keys[i]); err == nil {
				done++
			}
		}
		if done != 1 && keys[0] != keys[1] {
			w.violate("%d of two orders are done, of which one fits", done)
		}
		w.gaveBack(want)
		if v := w.audit(); len(v) > 0 {
			return append(v, fmt.Sprintf("seed %d", seed))
		}
	}
	return nil
}

func TestRefund_Twins(t *testing.T) {
	for _, v := range refundTwins(planted{}) {
		t.Error(v)
	}
}

// bentGiver is a giver with a bug.
type bentGiver struct {
	*giver
	refund func(*processor.RefundRequest)
	blind  bool
}

func (b *bentGiver) Refund(ctx context.Context, r processor.RefundRequest) (processor.Reversal, error) {
	if b.refund != nil {
		b.refund(&r)
	}
	return b.giver.Refund(ctx, r)
}

func (b *bentGiver) ReversalsOf(ctx context.Context, ref string) ([]processor.Reversal, error) {
	if b.blind {
		return nil, nil
	}
	return b.giver.ReversalsOf(ctx, ref)
}

// without is a store that loses the writes that are not wanted.
type without struct {
	store.Store
	unwanted func(w store.Write, all []store.Write) bool
}

func (s *without) Commit(ctx context.Context, writes ...store.Write) error {
	left := slices.DeleteFunc(slices.Clone(writes), func(w store.Write) bool { return s.unwanted(w, writes) })
	return s.Store.Commit(ctx, left...)
}

// TestRefund_PlantedBugs: what the programmes above cannot see, they do not prove.
func TestRefund_PlantedBugs(t *testing.T) {
	first := func(p planted) (found []string) {
		refundShare(t, p, func(c *giveback) bool {
			found = c.play()
			return len(found) == 0
		})
		return found
	}
	noBump := func(_ *world, s store.Store) store.Store {
		return &without{s, func(w store.Write, all []store.Write) bool {
			return w.Op == store.OpPut && w.Item.Str(schema.SK) == "ACC" && len(all) > 1 && isRef(all[1].Item.Str(schema.SK))
		}}
	}
	noName := func(_ *world, s store.Store) store.Store {
		return &without{s, func(w store.Write, _ []store.Write) bool {
			return w.Item.Str(schema.PK) == "REFUNDS" || w.Key.PK == "REFUNDS"
		}}
	}
	for _, test := range []struct {
		bug   string
		plant planted
		run   func(planted) []string
		want  string
	}{
		{"no look before a request is sent again", planted{proc: func(w *world, p processor.Charger) processor.Charger {
			return &bentGiver{giver: gives(w, p).(*giver), blind: true}
		}}, first, "refunded twice"},
		{"no new version of the account", planted{proc: gives, store: noBump}, refundTwins,
			"cents are recorded|recorded twice"},
		{"another key for each request", planted{proc: func(w *world, p processor.Charger) processor.Charger {
			return &bentGiver{giver: gives(w, p).(*giver), refund: func(r *processor.RefundRequest) { r.Key = rand.Text() }}
		}}, refundTwins, "the processor gave back [600 600]"},
		{"no name among the unfinished", planted{proc: gives, store: noName}, unfinishedByJob, "the processor gave back []"},
	} {
		t.Run(test.bug, func(t *testing.T) {
			found := test.run(test.plant)
			for _, v := range found {
				for want := range strings.SplitSeq(test.want, "|") {
					if strings.Contains(v, want) {
						t.Log(v)
						return
					}
				}
			}
			t.Errorf("nobody sees it: %q", found)
		})
	}
}

// unfinishedByJob cuts an order before its request, and lets the payment job alone go on.
func unfinishedByJob(p planted) []string {
	w, n := charged(p)
	w.script.left = []scripted{{"lost", "refund", 3}}
	if _, _, err := w.start().Refunds().Refund(context.Background(), refund.Order{Name: n, Amount: usd(500)}); err == nil {
		w.violate("done without an answer")
	}
	w.tomorrow()
	w.start().run(civil.Date{})
	w.gaveBack(500)
	return w.audit()
}

func TestRefund_ThePaymentJobFinishesIt(t *testing.T) {
	for _, v := range unfinishedByJob(planted{}) {
		t.Error(v)
	}
}
