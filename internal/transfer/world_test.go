package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/transfer"
)

// A world is two stores, one processor and one clock, which survive every process.
type world struct {
	t        testing.TB
	clock    atomic.Int64
	from, to move.Side // tables of different names
	box      *sandbox.Sandbox
	shared   bool
	shards   int
}

const subscriptions = 4

func newWorld(t testing.TB, shared bool) *world {
	t.Helper()
	w := &world{t: t, shared: shared}
	w.clock.Store(time.Date(2024, 1, 31, 9, 0, 0, 0, time.UTC).UnixNano())
	for prefix, side := range map[string]*move.Side{"a-": &w.from, "b-": &w.to} {
		side.Tables = schema.New(prefix)
		mem, err := memstore.Open(side.Tables.All(), w.now)
		if err != nil {
			t.Fatal(err)
		}
		side.Store = mem
	}
	var err error
	if w.box, err = sandbox.Open("", sandbox.Options{Now: w.now}); err != nil {
		t.Fatal(err)
	}
	methods := []string{"pm_card_visa", "pm_sandbox_timeout", "pm_card_visa", "pm_sandbox_flaky"}
	e := w.open(w.from, w.box)
	for i := range subscriptions {
		usd, err := money.ParseCurrency("USD")
		if err != nil {
			t.Fatal(err)
		}
		amount, err := money.Parse("12.99", usd)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.CreateSubscription(t.Context(), billing.NewSubscription{Account: fmt.Sprint("a", i%3),
			Email: "a@example.com",
			ID:    fmt.Sprint("s", i), SKU: "gold", Amount: amount, PaymentDay: 31, Method: methods[i], NextPayment: w.today(),
			ReminderDays: 7}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) now() time.Time       { return time.Unix(0, w.clock.Load()).UTC() }
func (w *world) today() civil.Date    { return civil.Of(w.now()) }
func (w *world) pass(d time.Duration) { w.clock.Add(int64(d)) }

func (w *world) options(s move.Side, p processor.Charger) engine.Options {
	o := engine.Options{Store: s.Store, Tables: s.Tables, Processor: p, Now: w.now, Config: engine.DefaultConfig()}
	if w.shared {
		o.Lease = time.Minute
	}
	return o
}

func (w *world) open(s move.Side, p processor.Charger) *engine.Engine {
	w.t.Helper()
	e, err := engine.Open(context.Background(), w.options(s, p))
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// A strike is a hook that is told which store it is called by.
type strike func(side int, op storetest.Operation, phase storetest.Phase) error

// copy returns the copy as a new process begins or goes on with it.
func (w *world) copy(strike strike) *transfer.Copy {
	from, to := w.from, w.to
	if strike != nil {
		for i, side := range []*move.Side{&from, &to} {
			f := storetest.NewFaulty(side.Store)
			f.Hook = func(op storetest.Operation, phase storetest.Phase) error { return strike(i, op, phase) }
			side.Store = f
		}
	}
	return &transfer.Copy{From: from, To: to, FromName: "mem:a", ToName: "mem:b", Shared: w.shared,
		Shards: w.shards, Segments: 2,
		Now: w.now, Wait: func(ctx context.Context, d time.Duration) error { w.pass(d); return ctx.Err() }}
}

// at strikes at the n-th commit to either store, before or after it has landed, with the
// error that do returns; points counts the commits.
func at(n int64, phase storetest.Phase, points *atomic.Int64, do func() error) strike {
	var mu sync.Mutex
	side, number := -1, 0 // of the n-th commit
	return func(by int, op storetest.Operation, now storetest.Phase) error {
		if op.Kind != storetest.Commit {
			return nil
		}
		mu.Lock()
		if now == storetest.Before && points.Add(1) == n {
			side, number = by, op.N
		}
		hit := now == phase && side == by && number == op.N
		mu.Unlock()
		if hit {
			return do()
		}
		return nil
	}
}

// crashAt kills the process at its n-th commit.
func crashAt(n int64, phase storetest.Phase, points *atomic.Int64) strike {
	var dead atomic.Bool
	point := at(n, phase, points, func() error { dead.Store(true); return nil })
	return func(side int, op storetest.Operation, now storetest.Phase) error {
		if err := point(side, op, now); err != nil || !dead.Load() {
			return err
		}
		return storetest.ErrCrash
	}
}

// finish runs the copy until it is live, mending on the way.
func (w *world) finish() *transfer.Report {
	w.t.Helper()
	var r *transfer.Report
	for range 5 {
		var err error
		if r, err = w.copy(nil).Run(w.t.Context()); errors.Is(err, transfer.ErrOvertaken) {
			continue // by what another copier had under way
		} else if err != nil {
			w.t.Fatal(err)
		}
		if r.Live {
			return r
		}
	}
	w.t.Fatalf("not live: %+v", r)
	return nil
}

// able returns which of the stores a new process could charge on.
func (w *world) able() (able []string) {
	for name, s := range map[string]move.Side{"source": w.from, "destination": w.to} {
		if _, err := s.State(context.Background()); errors.Is(err, store.ErrNotFound) {
			continue
		}
		e, err := engine.Open(context.Background(), w.options(s, w.box))
		if errors.Is(err, billing.ErrMoved) {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if m, err := e.Meta(context.Background()); err != nil || m.Charging {
			able = append(able, name)
		}
	}
	return able
}

// settle runs the payment job on the side for a few days, and holds the ledger and the
// audit: every subscription's first period was charged once.
func (w *world) settle(s move.Side) {
	w.t.Helper()
	for range 4 {
		if _, err := job.Payments(w.t.Context(), w.open(s, w.box), job.Options{Workers: 1}); err != nil {
			w.t.Errorf("run: %v", err)
		}
		w.pass(25 * time.Hour)
	}
	w.once()
	a, err := w.open(s, w.box).Verify(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if !a.OK || a.Subscriptions != subscriptions || a.Charges != subscriptions {
		w.t.Errorf("audit: %d subscriptions, %d charges, %+v", a.Subscriptions, a.Charges, a.Problems)
	}
}

func (w *world) once() {
	w.t.Helper()
	n := map[string]int{}
	for in, err := range w.box.List(context.Background(), processor.ListRequest{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		n[fmt.Sprintf("%s/%d", in.Tag.Subscription, in.Tag.Period)]++
	}
	for i := range subscriptions {
		if got := n[fmt.Sprintf("s%d/0", i)]; got != 1 {
			w.t.Errorf("s%d was charged %d times", i, got)
		}
	}
}

// A sleeper is a worker's way to its store and processor. Before its n-th call of either it
// falls asleep, until it is woken.
type sleeper struct {
	store.Store
	processor.Charger
	n      int64
	calls  atomic.Int64
	asleep chan struct{} // closed when it sleeps
	awake  chan struct{} // closed to wake it
}

func newSleeper(s store.Store, p processor.Charger, n int) *sleeper {
	return &sleeper{Store: s, Charger: p, n: int64(n), asleep: make(chan struct{}), awake: make(chan struct{})}
}

func (s *sleeper) edge() {
	if s.calls.Add(1) == s.n {
		close(s.asleep)
		<-s.awake
	}
}

// sleepingStore and sleepingProcessor are the two faces of one sleeper.
type (
	sleepingStore     struct{ *sleeper }
	sleepingProcessor struct{ *sleeper }
)

func (s sleepingStore) Get(ctx context.Context, table string, k store.Key) (store.Item, error) {
	s.edge()
	return s.Store.Get(ctx, table, k)
}

func (s sleepingStore) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	s.edge()
	return s.Store.Query(ctx, q)
}

func (s sleepingStore) Scan(ctx context.Context, q store.Scan) iter.Seq2[store.Item, error] {
	return s.Store.Scan(ctx, q)
}

func (s sleepingStore) Commit(ctx context.Context, writes ...store.Write) error {
	s.edge()
	return s.Store.Commit(ctx, writes...)
}

func (s sleepingStore) Close() error { return nil }

func (s sleepingProcessor) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	s.edge()
	return s.Charger.Open(ctx, r)
}

func (s sleepingProcessor) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	s.edge()
	return s.Charger.Confirm(ctx, r)
}

func (s sleepingProcessor) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	s.edge()
	return s.Charger.Lookup(ctx, ref)
}

// work begins a payment run on the source that falls asleep before its n-th call, counted
// from when it has read META. ended is closed when the run is over.
func (w *world) work(n int) (s *sleeper, ended chan struct{}) {
	s = newSleeper(w.from.Store, w.box, 0)
	o := w.options(w.from, sleepingProcessor{s})
	o.Store = sleepingStore{s}
	e, err := engine.Open(context.Background(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	s.calls.Store(0)
	s.n = int64(n)
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		// It may end with any error: what counts is what it has done to the ledger.
		_, _ = job.Payments(context.Background(), e, job.Options{Workers: 1})
	}()
	select {
	case <-s.asleep:
	case <-ended:
	}
	return s, ended
}
