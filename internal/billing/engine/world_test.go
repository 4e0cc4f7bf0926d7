package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/recipient"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
)

// A world is everything outside the processes that work in it, and survives them: the
// clock, the store, the processor with its ledger. What goes wrong is noted as a
// violation, at the moment it is seen (spy.go) or by audit at the end.
type world struct {
	clock   atomic.Int64 // Unix nanoseconds
	tables  schema.Tables
	spy     *spy
	box     bank
	cfg     engine.Config
	cardURL string
	plant   planted
	script  script

	look   sync.Once
	looker *process // has no faults and only reads

	mu         sync.Mutex
	violations []string                // guarded by mu
	canceled   map[string]int          // subscription -> lines in the ledger when "canceled" was answered; guarded by mu
	amounts    map[string]money.Amount // subscription/period -> what it must be charged; guarded by mu
	befell     map[string]int          // moves that are wanted in every sample: see theMoves; guarded by mu

	ticks       bool // each look at the clock is a millisecond later, so that no two runs begin at once
	twins       bool // answers were lost to processes that overlapped
	records     bool // a commit that begins the record of a run is a point, too
	shards      int  // per date; 0 is one
	reopens     bool // an intent whose key is answered by a saved 500 is asked for under another
	early       bool // a run had a business day in the future
	foreign     bool // another tool has written items
	remindAgain bool // a reminder may be set again for one period

	ends []func() // at the end of the world
}

func (w *world) end() {
	for _, end := range w.ends {
		end()
	}
}

// A bank is the processor, the customers who authenticate, the banks that decide, and the
// ledger of what truly happened. The sandbox is one; stripe_test.go has another.
type bank interface {
	processor.Charger
	Authenticate(ref string) error
	Finish(ref string, ok bool) error
	Entries() iter.Seq[sandbox.Entry]
}

// A wholeBank keeps cards and gives money back, too.
type wholeBank interface {
	bank
	processor.Wallet
	processor.Refunder
}

// planted is a bug put between the engine and the world: see planted_test.go.
type planted struct {
	store  func(*world, store.Store) store.Store
	proc   func(*world, processor.Charger) processor.Charger
	engine func(*world) store.Store // no bug: another engine, which may give the tables other names
	bank   func(*world) bank        // no bug: another processor than the sandbox
}

func newWorld(at string, p planted) *world {
	w := &world{tables: schema.New(schema.DefaultPrefix), cfg: engine.DefaultConfig(), plant: p,
		canceled: map[string]int{}, amounts: map[string]money.Amount{}, befell: map[string]int{}}
	w.set(at)
	mem, err := memstore.Open(w.tables.All(), w.now)
	if err != nil {
		panic(err)
	}
	w.spy = newSpy(w, mem)
	if p.engine != nil {
		w.spy.Store = p.engine(w)
	}
	if w.box, err = sandbox.Open("", sandbox.Options{Now: w.now}); err != nil {
		panic(err)
	}
	if p.bank != nil {
		w.box = p.bank(w)
	}
	return w
}

// keyed returns a context whose commits belong to a request with the idempotency key, or to none if it is
// empty.
func (w *world) keyed(ctx context.Context, key string) context.Context {
	return call.With(ctx, &call.Call{Key: key, Table: w.tables.RecurringPayments.Name, Now: w.now})
}

func (w *world) now() time.Time {
	if w.ticks {
		return time.Unix(0, w.clock.Add(int64(time.Millisecond))).UTC()
	}
	return time.Unix(0, w.clock.Load()).UTC()
}

func (w *world) today() civil.Date { return civil.Of(w.now()) }

// set moves the clock to an instant such as 2024-01-31T09:00.
func (w *world) set(at string) {
	t, err := time.Parse("2006-01-02T15:04", at)
	if err != nil {
		panic(err)
	}
	w.clock.Store(t.UnixNano())
}

func (w *world) pass(d time.Duration) { w.clock.Add(int64(d)) }

// tomorrow moves the clock to nine o'clock of the next day.
func (w *world) tomorrow() { w.goTo(w.today().AddDays(1)) }

func (w *world) goTo(d civil.Date) {
	w.clock.Store(d.In(time.UTC).Add(9 * time.Hour).UnixNano())
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) < 20 {
		w.violations = append(w.violations, w.now().Format("2006-01-02T15:04 ")+fmt.Sprintf(format, args...))
	}
}

// The moves that a sample of the programme must have seen.
const (
	moveCollected   = "past period paid"
	moveLive        = "manual payment against a live intent"
	moveOverpaid    = "overpayment recorded"
	moveDoubted     = "perhaps paid twice"
	moveRepeated    = "key repeated"
	moveFallback    = "fallback tried"
	movePlan        = "plan changed"
	moveAsked       = "asked to pay by wire"
	moveUnpaid      = "not paid by wire"
	moveSkipped     = "periods skipped"
	moveDiscounted  = "period with a discount"
	moveUnits       = "period of several units"
	moveUpgraded    = "upgraded now"
	moveNotUpgraded = "not upgraded"
	sampleHasMoves  = 20 // cases, from which on a sample has them
)

func theMoves() []string {
	return []string{moveCollected, moveLive, moveOverpaid, moveRepeated, moveFallback, movePlan, moveAsked, moveUnpaid, moveDiscounted, moveUnits}
}

func (w *world) happened(move string) { w.mu.Lock(); defer w.mu.Unlock(); w.befell[move]++ }

// moves counts what befell in all worlds of a programme.
type moves struct {
	mu    sync.Mutex
	count map[string]int // guarded by mu
}

func (m *moves) add(w *world) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count == nil {
		m.count = map[string]int{}
	}
	for move, n := range w.befell {
		m.count[move] += n
	}
}

// wantEach fails the test if one of the moves has not befallen, but for those named.
func (m *moves) wantEach(t testing.TB, but ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	t.Logf("soak: moves: %v", m.count)
	for _, move := range theMoves() {
		if m.count[move] == 0 && !slices.Contains(but, move) {
			t.Errorf("no %s: the programme has lost its teeth", move)
		}
	}
}

// A process is one life of the program: an engine over the world's store and processor,
// with faults of its own. When it dies, nothing works for it any more.
type process struct {
	*engine.Engine
	w       *world
	faults  faults
	edge    func() // the scheduler's, before every call; nil: none
	running atomic.Bool
	handled chan struct{} // a row has been dealt with
}

// Recipients are the customers to whom the process's mail goes.
func (p *process) Recipients() *recipient.Directory {
	return &recipient.Directory{Cards: p.Cards(), CardURL: p.w.cardURL}
}

// start starts a process; it panics when even that fails without a fault.
func (w *world) start(f ...fault) *process {
	p := &process{w: w, handled: make(chan struct{}, 1)}
	var s store.Store = p.faulty(w.spy)
	if w.plant.store != nil {
		s = w.plant.store(w, s)
	}
	var proc processor.Charger = &wire{p: p, inner: w.box}
	if b, ok := w.box.(wholeBank); ok {
		proc = &wholeWire{proc.(*wire), b}
	}
	if w.plant.proc != nil {
		proc = w.plant.proc(w, proc)
	}
	e, err := engine.Open(context.Background(),
		engine.Options{Store: &serial{Store: s, p: p}, Tables: w.tables, Processor: proc, Now: w.now, Config: w.cfg,
			Shards: w.shards, Making: billing.MakeAdopted})
	if err != nil {
		panic(err)
	}
	p.Engine = e
	if e.Opened.Looked.IsZero() && !w.foreign { // it has just been made: Verify also holds its lookup rows to the items
		e.Opened.Looked = w.now()
		set := store.NewItem(store.Attribute{Name: schema.LookupDate, Value: store.S(billing.Stamp(w.now()))})
		err := store.Retry(context.Background(), "META", func() error {
			return e.Store.Commit(context.Background(), store.Update(e.Table, billing.MetaKey, set, nil))
		})
		if err != nil {
			panic(err)
		}
	}
	e.StandStill()
	p.faults.set(f...)
	return p
}

// run runs the payment job as its own worker, and holds the report against what landed.
func (p *process) run(day civil.Date) *job.Report {
	before := p.w.spy.tally()
	p.w.spy.business(day)
	p.running.Store(true)
	seen := map[string]engine.Outcome{}
	results := 0
	rep, err := job.Payments(context.Background(), p.Engine, job.Options{Date: day, Workers: 1,
		Progress: func(int64) { p.handled <- struct{}{} },
		Each: func(r engine.Result) {
			results++
			key := fmt.Sprintf("%s/%d", r.Name, r.Period)
			if was, ok := seen[key]; ok {
				p.w.violate("one run counted %s as %s and as %s", key, was, r.Outcome)
			}
			seen[key] = r.Outcome
		}})
	p.running.Store(false)
	p.w.spy.business(civil.Date{})
	if err != nil {
		if !p.faults.struck() {
			p.w.violate("a run without a fault: %v", err)
		}
		return rep
	}
	if rep.Due() != results {
		p.w.violate("report: due %d, but %d results", rep.Due(), results)
	}
	if after := p.w.spy.tally(); !p.faults.struck() && p.edge == nil {
		if got, want := rep.Counts[engine.OutcomePaid], after.receipts-before.receipts; got != want {
			p.w.violate("report: paid %d, but %d receipts were written", got, want)
		}
		if got, want := rep.Counts[engine.OutcomeFailed], after.failed-before.failed; got != want {
			p.w.violate("report: failed %d, but %d periods were", got, want)
		}
	}
	return rep
}

// remind runs the reminder job.
func (p *process) remind() *job.Report {
	p.running.Store(true)
	defer p.running.Store(false)
	rep, err := job.Reminders(context.Background(), p.Engine,
		job.Options{Workers: 1, Progress: func(int64) { p.handled <- struct{}{} }})
	if err != nil && !p.faults.struck() {
		p.w.violate("a reminder run without a fault: %v", err)
	}
	return rep
}

// A fault strikes at a point: points are counted before and after every commit and every
// call of the processor, from 1.
type fault struct {
	point int
	crash bool // else the request (before) or the reply (after) is lost
}

type faults struct {
	mu     sync.Mutex
	points int          // guarded by mu
	plan   map[int]bool // point -> crash; guarded by mu
	dead   bool         // guarded by mu
	hit    bool         // guarded by mu
}

func (f *faults) set(plan ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.points, f.plan = 0, map[int]bool{}
	for _, p := range plan {
		if p.point > 0 {
			f.plan[p.point] = p.crash
		}
	}
}

// at passes one point; lost is the error of a lost answer there.
func (f *faults) at(lost error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return storetest.ErrCrash
	}
	f.points++
	crash, ok := f.plan[f.points]
	if !ok {
		return nil
	}
	f.hit = true
	if f.dead = crash; crash {
		return storetest.ErrCrash
	}
	return lost
}

func (f *faults) died() bool   { f.mu.Lock(); defer f.mu.Unlock(); return f.dead }
func (f *faults) struck() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.hit }
func (f *faults) passed() int  { f.mu.Lock(); defer f.mu.Unlock(); return f.points }

// faulty is the process's way to the store.
func (p *process) faulty(s store.Store) store.Store {
	f := storetest.NewFaulty(s)
	f.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		if p.faults.died() {
			return storetest.ErrCrash
		}
		if !p.w.records && beginsRun(op) {
			return nil
		}
		if phase == storetest.Before && p.edge != nil {
			p.edge()
		}
		if op.Kind != storetest.Commit {
			return nil
		}
		return p.faults.at(store.ErrUnknown)
	}
	return f
}

// beginsRun reports whether the commit writes the record of a run that begins, or a part of its list of
// unpaid periods, by which nothing is decided. A crash around it is one around the next point for everybody
// but TestRunRecord_Killed; without it, programmes of pairs of crashes are a third shorter.
func beginsRun(op storetest.Operation) bool {
	if op.Kind == storetest.Commit && len(op.Writes) > 0 && strings.HasPrefix(op.Writes[0].Item.Str(schema.PK), "UNPAID#") {
		return true
	}
	return op.Kind == storetest.Commit && len(op.Writes) == 1 && op.Writes[0].Op == store.OpPut &&
		strings.HasPrefix(op.Writes[0].Item.Str(schema.PK), "RUN#") && !op.Writes[0].Item.Has(schema.EndedDate) &&
		op.Writes[0].Item.Has(schema.StartedDate)
}

// serial makes a run with one worker a single thread: the next row of an index is yielded
// only when the one before has been dealt with. So a fault is always at the same place.
type serial struct {
	store.Store
	p *process
}

func (s *serial) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	rows := s.Store.Query(ctx, q)
	if q.Index == "" || q.Limit > 0 || !s.p.running.Load() {
		return rows
	}
	return func(yield func(store.Item, error) bool) {
		for it, err := range rows {
			if !yield(it, err) || err != nil {
				return
			}
			select {
			case <-s.p.handled:
			case <-ctx.Done():
			}
		}
	}
}

// wire is the process's way to the processor.
type wire struct {
	p     *process
	inner processor.Charger
}

func (x *wire) call(op, key string, do func() (processor.Intent, error)) (processor.Intent, error) {
	if x.p.edge != nil && !x.p.faults.died() {
		x.p.edge()
	}
	if err := x.p.faults.at(processor.ErrUnknown); err != nil {
		return processor.Intent{}, err
	}
	lost, err := x.p.w.script.before(x.p.w.now(), op, key)
	var in processor.Intent
	if err == nil {
		if in, err = do(); err == nil && lost {
			err = processor.ErrUnknown
		}
	}
	if hit := x.p.faults.at(processor.ErrUnknown); hit != nil {
		err = hit
	}
	if err != nil {
		in = processor.Intent{}
	}
	return in, err
}

func (x *wire) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	return x.call("open", r.Key, func() (processor.Intent, error) { return x.inner.Open(ctx, r) })
}

func (x *wire) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	return x.call("confirm", r.Key, func() (processor.Intent, error) {
		x.p.w.spy.mayConfirm(r.Ref)
		return x.inner.Confirm(ctx, r)
	})
}

func (x *wire) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	return x.call("lookup", "", func() (processor.Intent, error) { return x.inner.Lookup(ctx, ref) })
}

func (x *wire) Cancel(ctx context.Context, ref string) (processor.Intent, error) {
	return x.call("cancel", "", func() (processor.Intent, error) { return x.inner.Cancel(ctx, ref) })
}

// Identity asks the bank until it is told: a store is opened without faults.
func (x *wire) Identity(ctx context.Context) (identity string, err error) {
	i, ok := x.inner.(processor.Identified)
	if !ok {
		return "", nil
	}
	for range 50 {
		if identity, err = i.Identity(ctx); !errors.Is(err, processor.ErrUnknown) && !errors.Is(err, processor.ErrNotExecuted) {
			break
		}
	}
	return identity, err
}

func (x *wire) List(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Intent, error] {
	return func(yield func(processor.Intent, error) bool) {
		if x.p.faults.died() {
			yield(processor.Intent{}, storetest.ErrCrash)
			return
		}
		x.inner.List(ctx, r)(yield)
	}
}

// A script is what the processor does to the next calls, whoever makes them.
type script struct {
	mu     sync.Mutex
	left   []scripted           // guarded by mu
	chance func() string        // a fate for any call, "" for none; guarded by mu
	spoilt map[string]time.Time // keys that replay a saved 500 for a day; guarded by mu
}

type scripted struct {
	fate string // busy, lost, cached or unknown
	op   string // "" for every call
	n    int
}

// before returns an error when the call is not done, and whether its answer is lost.
func (s *script) before(now time.Time, op, key string) (lost bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.spoilt[key]; ok && key != "" && now.Sub(at) < 24*time.Hour {
		return false, processor.ErrUnknown
	}
	fate := ""
	for i := range s.left {
		if l := &s.left[i]; l.n > 0 && (l.op == "" || l.op == op) {
			l.n--
			fate = l.fate
			break
		}
	}
	if fate == "" && s.chance != nil {
		fate = s.chance()
	}
	switch fate {
	case "busy":
		return false, processor.ErrNotExecuted
	case "cached":
		if s.spoilt == nil {
			s.spoilt = map[string]time.Time{}
		}
		s.spoilt[key] = now
		return false, processor.ErrUnknown
	case "lost":
		return false, processor.ErrUnknown
	case "refused":
		return false, processor.ErrRefused
	}
	return fate == "unknown", nil
}

// usd is an amount of cents.
func usd(cents int64) money.Amount {
	c, err := money.ParseCurrency("USD")
	if err != nil {
		panic(err)
	}
	return money.New(cents, c)
}

func date(text string) civil.Date {
	d, err := civil.Parse(text)
	if err != nil {
		panic(err)
	}
	return d
}

// one is a monthly subscription a1/s1 of $12.99, due first on the day.
func one(due string, change ...func(*billing.NewSubscription)) billing.NewSubscription {
	n := billing.NewSubscription{Account: "a1", Email: "ada@example.com", ID: "s1", SKU: "gold", Amount: usd(1299),
		PaymentDay: date(due).Day(), Method: "pm_card_visa", NextPayment: date(due), ReminderDays: 7}
	for _, c := range change {
		c(&n)
	}
	return n
}

// create stores the subscription without any fault.
func (w *world) create(n billing.NewSubscription) billing.Name {
	s, err := w.start().CreateSubscription(context.Background(), n)
	if err != nil {
		panic(err)
	}
	return s.Name
}

// sub reads the subscription around all faults.
func (w *world) sub(n billing.Name) *billing.Subscription {
	w.look.Do(func() { w.looker = w.start() })
	s, err := w.looker.Subscription(context.Background(), n)
	if err != nil {
		panic(err)
	}
	return s
}

// settled reports whether nothing of the subscription is left to be done by today.
func (w *world) settled(n billing.Name) bool {
	s := w.sub(n)
	due, err := s.Due()
	return s.Open == nil && s.Collect == 0 && !s.Upgrading() && (s.Status != billing.Active || err != nil || due.After(w.today()))
}

// describe says where a subscription stands.
func (w *world) describe(n billing.Name) string {
	s := w.sub(n)
	text := fmt.Sprintf("%s, period %d, looked at on %s, requested %q", s.Status, s.Period, s.NextPayment, s.Requested)
	if s.Open != nil {
		text += fmt.Sprintf(", open %+v", *s.Open)
	}
	return text
}

// report fails the test with what the world has seen.
func (w *world) report(t *testing.T) {
	t.Helper()
	for _, v := range w.audit() {
		t.Error(v)
	}
}

func mustNot(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func wantAny(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
