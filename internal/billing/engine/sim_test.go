package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
)

// A simulation is one seed: subscriptions, four hundred days, and everything that goes
// wrong in them. Processes that overlap are interleaved at every call of store and
// processor by the seed, one running at a time, so that a seed replays exactly.
type simulation struct {
	w      *world
	rng    *rand.Rand
	drains *rand.Rand // of the outbox
	back   *rand.Rand // of what is taken back: simreturn_test.go
	ups    *rand.Rand // of upgrades
	names  []billing.Name
	seed   uint64
	days   int
	did    map[string]int // what befell: so that a toothless simulation is seen

	disputed map[string]bool // refs that were disputed
	disputes []string        // ids of disputes

	hostile bool                    // hostile_test.go
	spoilt  map[billing.Name]spoilt // amounts that cannot be read for now
}

// interleave runs the threads one at a time, and changes at every edge by chance.
func interleave(rng *rand.Rand, threads []func(edge func())) {
	type thread struct{ resume chan struct{} }
	at := make(chan bool) // a thread has come to an edge (true) or to its end
	var waiting []*thread
	for _, run := range threads {
		th := &thread{make(chan struct{})}
		waiting = append(waiting, th)
		go func() {
			<-th.resume
			run(func() { at <- true; <-th.resume })
			at <- false
		}()
	}
	for len(waiting) > 0 {
		i := rng.IntN(len(waiting))
		waiting[i].resume <- struct{}{}
		if !<-at {
			waiting = append(waiting[:i], waiting[i+1:]...)
		}
	}
}

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

func newSimulation(seed uint64, p planted) *simulation {
	if p.proc == nil && p.bank == nil {
		p.proc = gives
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	s := &simulation{w: newWorld("2023-11-20T09:00", p), rng: rng, drains: rand.New(rand.NewPCG(seed, 29)),
		back: rand.New(rand.NewPCG(seed, 31)), ups: rand.New(rand.NewPCG(seed, 37)), seed: seed, did: map[string]int{}, days: 400,
		spoilt: map[billing.Name]spoilt{}, disputed: map[string]bool{}}
	s.w.ticks = true // the random ids of runs that begin at once would decide their order
	s.w.shards = pick(rng, 1, 1, 3)
	s.w.cfg.ReceiptMonths = pick(rng, 0, 1, 6)
	if s.taxed() {
		s.w.cfg.Tax, s.w.cfg.ReceiptMonths = settings.On, 0
	}
	s.w.cfg.AfterFailure = pick(rng, settings.Forgive, settings.Collect)
	s.w.cfg.AfterReversal = pick(s.back, settings.Nothing, settings.Park)
	// One that lost an answer sends again, under the next key, what a twin may have sent
	// since it looked: an attempt may then run twice, and only one of them succeed.
	s.w.twins = true
	s.w.remindAgain = true // who resumes is reminded again
	chaos := rand.New(rand.NewPCG(seed, 8))
	rate := pick(rng, 0, 0.02, 0.1)
	s.w.script.chance = func() string {
		if chaos.Float64() >= rate {
			return ""
		}
		return pick(chaos, "busy", "lost", "cached", "unknown", "unknown")
	}
	for i := range 20 + rng.IntN(41) {
		s.names = append(s.names, s.w.create(s.subscription(i)))
	}
	return s
}

func (s *simulation) method() string {
	return pick(s.rng, "pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_sandbox_flaky", "pm_sandbox_timeout",
		"pm_card_visa_chargeDeclined",
		"pm_card_visa_chargeDeclinedLostCard", "pm_card_authenticationRequired", "pm_sandbox_processing")
}

func (s *simulation) subscription(i int) billing.NewSubscription {
	rng := s.rng
	n := billing.NewSubscription{Account: fmt.Sprintf("a%d", i/3), ID: fmt.Sprintf("s%d", i),
		SKU:    pick(rng, "gold", "tin"),
		Amount: usd(100 + rng.Int64N(9900)), PaymentDay: pick(rng, 1, 15, 28, 29, 30, 31, 31), Method: s.method(),
		ReminderDays: pick(rng, 0, 3, 7), Installments: pick(rng, 0, 0, 0, 4)}
	if i%3 == 0 {
		n.Email = fmt.Sprintf("a%d@example.com", i/3)
		n.TimeZone = pick(rng, "UTC", "Pacific/Kiritimati", "Pacific/Honolulu", "Europe/Berlin")
	}
	n.Terms = s.terms(i)
	if i%7 == 3 {
		n.Collection = billing.ByWire
	}
	switch rng.IntN(6) {
	case 0:
		n.Interval, n.PaymentDay = civil.Interval{N: 1 + rng.IntN(2), Unit: civil.Week}, 1+rng.IntN(7)
	case 1:
		n.Interval = civil.Interval{N: 3, Unit: civil.Month}
	case 2:
		n.Interval = civil.Interval{N: 1, Unit: civil.Year}
	case 3:
		n.Interval, n.PaymentDay = civil.Interval{N: 7 + rng.IntN(30), Unit: civil.Day}, rng.IntN(2)*n.PaymentDay
	}
	if rng.IntN(4) == 0 { // a trial
		n.Start = date("2023-12-20")
	}
	return n
}

// faults cuts the process off, or loses an answer, at a point that it may come to.
func (s *simulation) faults() []fault {
	var list []fault
	for s.rng.IntN(3) == 0 {
		list = append(list, fault{1 + s.rng.IntN(40), s.rng.IntN(3) > 0})
	}
	return list
}

// moment lets some jobs and people work at one time.
func (s *simulation) moment() {
	var processes []*process
	var threads []func(func())
	add := func(do func(p *process)) {
		p := s.w.start(s.faults()...)
		processes = append(processes, p)
		threads = append(threads, func(edge func()) { p.edge = edge; do(p) })
	}
	for range 1 + s.rng.IntN(4) {
		add(func(p *process) { p.run(civil.Date{}) })
	}
	if s.rng.IntN(3) == 0 {
		add(func(p *process) { p.remind() })
	}
	jobs := len(processes)
	for s.rng.IntN(2) == 0 {
		name, what, rng := pick(s.rng, s.names...), s.rng.IntN(23), rand.New(rand.NewPCG(s.rng.Uint64(), 0))
		if s.ups.IntN(16) == 0 { // one that can be upgraded is rare
			what = upgrading
		}
		add(func(p *process) { s.ask(p, name, what, rng) })
		if s.hostile {
			processes[len(processes)-1].faults.set(fault{1 + s.rng.IntN(6), s.rng.IntN(4) == 0})
		}
	}
	interleave(s.rng, threads)
	for i, p := range processes {
		if i >= jobs && p.faults.struck() && !p.faults.died() {
			s.did["lost reply to a person"]++
		}
		if p.faults.died() {
			s.did["crash"]++
		} else if p.faults.struck() {
			s.did["lost answer"]++
		}
	}
}

// ask is a person's request.
func (s *simulation) ask(p *process, n billing.Name, what int, rng *rand.Rand) {
	ctx := context.Background()
	var err error
	switch what {
	case 0:
		var sub *billing.Subscription
		if rng.IntN(3) == 0 {
			sub, err = p.Cancel(ctx, n, false)
			s.w.noteCanceled(sub, err)
		} else if rng.IntN(4) == 0 {
			s.w.cancelCollecting(p, n, func(e error) { err = e })
			s.did["cancel, collecting"]++
		}
	case 1:
		if rng.IntN(4) == 0 {
			if _, bad := s.spoilt[n]; !bad {
				if due, e := s.w.sub(n).Due(); e == nil && !due.After(s.w.today()) {
					s.did["end with arrears"]++
				}
			}
			_, err = p.Cancel(ctx, n, true)
		}
	case 2, 3:
		_, err = p.Pause(ctx, n)
	case 4, 5, 6:
		_, err = p.Resume(ctx, n)
	case 7:
		amount := usd(100 + rng.Int64N(9900))
		change := billing.Change{Amount: &amount}
		if rng.IntN(2) == 0 {
			change.SKU, change.From = new(pick(rng, "gold", "silver", "bronze")), s.w.today().AddDays(rng.IntN(90)-10)
			s.did["change of the plan"]++
		}
		if _, err = p.UpdateSubscription(ctx, n, change); tooMuch(err) {
			err = nil
		}
	case 22:
		if err = s.changePrice(p, n, rng); tooMuch(err) {
			err = nil
			s.did["discount of everything, refused"]++
		}
	case upgrading:
		if err = s.upgrade(p, n, rng); tooMuch(err) {
			err = nil
		}
	case 8, 9:
		method := pick(rng, "pm_card_visa", "pm_card_visa", "pm_sandbox_flaky", "pm_card_visa_chargeDeclined")
		_, err = p.UpdateSubscription(ctx, n, billing.Change{Method: &method})
	case 10:
		_, err = p.CreateReceipt(ctx, n, s.cash(rng))
		if wrong, is := errors.AsType[*billing.FieldError](err); is && wrong.Field == "amount" {
			err = nil
			s.did["part payment, refused"]++
		}
		if wrong, is := errors.AsType[*billing.FieldError](err); is && wrong.Field == "period" { // two are due
			err = nil
			s.did["manual, of which period"]++
		}
	case 11:
		_, _, err = p.ChargeParked(ctx, n)
	case 12:
		if _, err = p.SkipParked(ctx, n); rng.IntN(2) == 0 {
			_, err = p.SkipUntil(ctx, n, s.w.today().AddDays(-rng.IntN(2))) // today, or where it has not begun yet
		}
	case 14, 15, 16:
		err = s.chargePeriod(p, n, rng)
	case 13:
		_, err = p.SetEmail(ctx, n.Account, fmt.Sprintf("new%d@example.com", rng.IntN(5)))
	case 20:
		if rng.IntN(3) == 0 { // whoever has a failing method of one subscription is charged by it from now on
			_, err = p.Attach(ctx, n.Account, billing.Attachment{Method: pick(rng, "pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclined")})
			if _, same := errors.AsType[*billing.FieldError](err); same { // it is the account's fallback
				err = nil
			}
			s.did["method of the account"]++
			break
		}
		fallback := pick(rng, "", "pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclined", "pm_sandbox_processing")
		_, err = p.Attach(ctx, n.Account, billing.Attachment{Fallback: &fallback})
		if _, same := errors.AsType[*billing.FieldError](err); same { // it is the account's first one
			err = nil
		} else if err == nil && fallback != "" {
			s.did["fallback"]++
		}
	case 21:
		c := billing.Change{Collection: new(pick(rng, billing.Automatic, billing.ByWire))}
		if _, err = p.UpdateSubscription(ctx, n, c); err == nil {
			s.did["collection"]++
		}
	case 17, 18, 19: // perhaps of a past period, and perhaps told of before
		period := max(0, s.w.spy.period(n)-rng.IntN(3))
		var r *engine.Recorded
		r, err = p.CreateReceipt(s.w.keyed(ctx, fmt.Sprint("wire ", n, period)), n, engine.ManualPayment{Period: &period, Note: "wire"})
		if err == nil {
			s.note(r)
		}
	}
	switch {
	case err == nil:
		s.did["request"]++
	case errors.Is(err, billing.ErrState):
	case s.isSpoilt(err):
		s.did["request for what cannot be read"]++
	case !p.faults.struck() && !errors.Is(err, processor.ErrUnknown) && !errors.Is(err, processor.ErrNotExecuted):
		s.w.violate("request %d on %s: %v", what, n, err)
	}
}

// cash is a manual payment: of what is owed, less, or more.
func (s *simulation) cash(rng *rand.Rand) engine.ManualPayment {
	m := engine.ManualPayment{Note: "cash"}
	switch rng.IntN(4) {
	case 0:
		m.Amount = usd(1)
	case 1:
		m.Amount, m.Overpaid = usd(20000), true
		s.did["overpaid"]++
	}
	return m
}

// chargePeriod has one of the latest periods charged, mostly one that did not end paid.
func (s *simulation) chargePeriod(p *process, n billing.Name, rng *rand.Rand) error {
	if _, bad := s.spoilt[n]; bad {
		return nil
	}
	next := s.w.sub(n).Period
	period := next - rng.IntN(4)
	for e, err := range p.GetEndedPeriods(context.Background(), s.w.sub(n).Name) {
		if err == nil && rng.IntN(3) > 0 {
			period = e.Period
		}
	}
	period = max(0, period)
	a, err := p.ChargePeriod(context.Background(), n, engine.PeriodCharge{Period: period, Reopen: pick(rng, "", "she used it")})
	if err == nil && a.Paid {
		s.did["charge of a paid period"]++
	}
	for _, r := range a.Results {
		if r.Period == period && period < next {
			s.did["past period "+string(r.Outcome)]++
		}
	}
	return err
}

// note counts what became of a manual payment.
func (s *simulation) note(r *engine.Recorded) {
	switch {
	case r.Repeated:
		s.did["manual, repeated"]++
		s.w.happened(moveRepeated)
	case r.Requested:
		s.did["manual, requested"]++
	case r.Receipt != nil && r.Receipt.Kind == billing.Overpayment:
		s.did["manual, overpaid"]++
	default:
		s.did["manual"]++
	}
}

// customers authenticate, and banks decide, after a while.
func (s *simulation) customers(all bool) {
	for _, n := range s.names {
		if _, bad := s.spoilt[n]; bad {
			continue
		}
		sub := s.w.sub(n)
		if sub.Open == nil || (!all && s.rng.IntN(3) > 0) {
			continue
		}
		if sub.Open.ByWire() {
			if s.rng.IntN(4) == 0 {
				s.ask(s.w.start(), n, 19, s.rng)
			}
			continue
		}
		switch s.w.state(sub.Open.Ref) {
		case processor.RequiresAction:
			_ = s.w.box.Authenticate(sub.Open.Ref)
		case processor.Processing:
			_ = s.w.box.Finish(sub.Open.Ref, s.rng.IntN(3) > 0)
		}
		if s.rng.IntN(2) == 0 { // and the processor tells of it, now or once more
			s.did["heard"]++
			_ = s.w.start().Heard(context.Background(), n.Account, n.ID, sub.Open.Ref)
		}
	}
}

// play plays the seed and returns its violations.
func (s *simulation) play() []string {
	w := s.w
	end := w.today().AddDays(s.days)
	for w.today().Before(end) {
		at := w.today().In(time.UTC).Add(time.Duration(s.rng.IntN(24*60)) * time.Minute)
		w.clock.Store(max(w.now().UnixNano(), at.UnixNano())) // nothing was charged before the store was made
		s.moment()
		s.customers(false)
		s.returns()
		if n := s.drains.IntN(12); n < 10 { // it dies around one of its first commits, or ends; sometimes none works
			w.number(n, storetest.Before+storetest.Phase(n%2))
		}
		if s.hostile {
			s.hands()
			s.jump()
		}
		next := w.today().AddDays(1)
		if s.rng.IntN(60) == 0 {
			next = w.today().AddDays(1 + s.rng.IntN(60))
			s.did["downtime"]++
		}
		w.clock.Store(max(w.now().UnixNano(), next.In(time.UTC).UnixNano()))
		if w.bad() {
			break // what follows from it is of no interest
		}
	}
	w.script.chance = nil
	s.mend(w.today().AddDays(s.days))
	for range 25 { // peace: everything must come to its end
		w.tomorrow()
		p := w.start()
		p.remind()
		p.run(civil.Date{})
		s.customers(true)
		s.persons(p)
	}
	w.start().run(civil.Date{})
	s.redone()
	for _, n := range s.names {
		// A period may be younger than its retries take; none is overdue.
		sub := w.sub(n)
		due, err := sub.Due()
		overdue := err == nil && due.Before(w.today().AddDays(-1)) && sub.Status == billing.Active
		if sub.Open != nil {
			retries := 12
			if sub.Open.Debit { // its retry days are further apart
				retries = 24
			}
			overdue = sub.Open.Opened.Before(w.now().AddDate(0, 0, -retries)) && !sub.Open.ByWire() ||
				sub.Open.ByWire() && sub.Open.PayBy.Before(w.today())
		}
		if overdue {
			w.violate("%s is not settled: %s", n, w.describe(n))
		}
	}
	for _, a := range w.accounts() {
		if a.Copying {
			if _, err := w.start().SetEmail(context.Background(), a.ID, a.Email); err != nil {
				w.violate("address of %s: %v", a.ID, err)
			}
		}
	}
	w.number(0, 0)
	w.audit()
	if !s.hostile { // other tools write receipts without a row
		w.unnumbered()
		s.taxes()
	}
	return w.violations
}

// persons end every parked period, and answer for each that was perhaps paid twice.
func (s *simulation) persons(p *process) {
	for _, n := range s.names {
		doubts, err := p.AnswerDoubts(context.Background(), n)
		if s.did["perhaps paid twice"] += doubts; err != nil || doubts > 0 && s.did["moved date"] == 0 {
			s.w.violate("%s: perhaps paid twice: %d, %v", n, doubts, err)
		}
		for s.w.sub(n).Status == billing.ParkedState {
			before := s.w.sub(n)
			if s.did["parked"]++; s.rate(p, before) {
				break
			}
			if s.rng.IntN(2) == 0 && !before.PaidByWire(before.Period) {
				if _, _, err := p.ChargeParked(context.Background(), n); err != nil {
					s.w.violate("charge %s: %v", n, err)
				}
			}
			if now := s.w.sub(n); now.Status == billing.ParkedState && now.Period == before.Period {
				_, err := p.SkipParked(context.Background(), n)
				if due, e := now.Due(); reversal.Holds(now) && e == nil && due.After(s.w.today()) {
					_, err = p.Resume(context.Background(), n) // it parks before its period is due
				}
				if errors.Is(err, billing.ErrState) && s.w.sub(n).Requested == billing.RequestSkip {
					break // a bank is still deciding: the intent cannot be cancelled yet, a later run ends the period
				}
				if err != nil {
					s.w.violate("skip %s: %v", n, err)
					return
				}
			}
		}
	}
}

func (w *world) bad() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.violations) > 0 }

func (w *world) accounts() []*billing.Account {
	var list []*billing.Account
	for a, err := range w.start().Accounts(context.Background()) {
		if err != nil {
			panic(err)
		}
		list = append(list, a)
	}
	return list
}

// inParallel plays the seeds, so many of them at a time.
func inParallel(workers int, seeds iter.Seq[uint64], play func(seed uint64)) {
	next := make(chan uint64)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for seed := range next {
				play(seed)
			}
		})
	}
	for seed := range seeds {
		next <- seed
	}
	close(next)
	running.Wait()
}

// TestSimulation plays seeds. DUESDAY_SEED=n plays that one alone, DUESDAY_SEEDS=n so many.
func TestSimulation(t *testing.T) {
	t.Parallel()
	usual, seeds := 16, 0
	if engine.Raced {
		usual = 8
	}
	var mu sync.Mutex
	did := map[string]int{}
	var moves moves
	var failed, charges atomic.Int64
	inParallel(runtime.GOMAXPROCS(0), soaktest.Seeds(t, usual, 3000), func(seed uint64) {
		s := newSimulation(seed, planted{})
		violations := s.play()
		if len(violations) > 0 && failed.Add(1) <= 3 {
			for _, v := range violations {
				t.Errorf("DUESDAY_SEED=%d: %s", seed, v)
			}
		}
		for _, e := range s.w.ledger() {
			if e.State == processor.Succeeded {
				charges.Add(1)
			}
		}
		moves.add(s.w)
		mu.Lock()
		defer mu.Unlock()
		seeds++
		for what, n := range s.did {
			did[what] += n
		}
	})
	t.Logf("%d seeds, %d charges, %v; %d seeds with violations", seeds, charges.Load(), did, failed.Load())
	if seeds >= 16 {
		var but []string
		if seeds < 100 { // in a few seeds, nobody need tell of a payment just when the intent is paid
			but = append(but, moveOverpaid)
		}
		moves.wantEach(t, but...)
	}
	for _, what := range []string{"crash", "lost answer", "request", "downtime", "parked", "past period paid", "taken back",
		"dispute decided", "refund", "paid instead", "upgrade charged", "upgrade declined", "tax", "parked without a rate"} {
		if seeds > 1 && did[what] < seeds/4 {
			t.Errorf("%s befell only %d times in %d seeds", what, did[what], seeds)
		}
	}
}

// TestSimulationReplays: a seed that fails can be played again.
func TestSimulationReplays(t *testing.T) {
	t.Parallel()
	lines := func() (text string) {
		s := newSimulation(5, planted{})
		s.days = soaktest.Cases(t, 60, s.days, s.days)
		s.play()
		for _, e := range s.w.ledger() {
			text += fmt.Sprintf("%s %s/%s %d %d %s\n", e.Changed, e.Tag.Account, e.Tag.Subscription, e.Tag.Period, e.Attempt,
				e.State)
		}
		return text
	}
	if first, second := lines(), lines(); first != second {
		t.Errorf("two plays of one seed differ: %d and %d bytes", len(first), len(second))
	}
}

// TestConcurrentEngines lets engines really run at once, each with several workers, with
// people in between; under -race it also proves that they share nothing unguarded.
func TestConcurrentEngines(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	var names []billing.Name
	for i := range 40 {
		n := one("2024-01-31")
		n.Account, n.ID = fmt.Sprintf("a%d", i/2), fmt.Sprintf("s%d", i)
		n.Method = []string{"pm_card_visa", "pm_sandbox_flaky", "pm_sandbox_timeout",
			"pm_card_visa_chargeDeclinedLostCard"}[i%4]
		names = append(names, w.create(n))
	}
	for day := range 45 {
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				if _, err := job.Payments(context.Background(), w.start().Engine, job.Options{Workers: 4}); err != nil {
					t.Error(err)
				}
			})
		}
		running.Go(func() {
			p, n, ctx := w.start(), names[day%len(names)], context.Background()
			var err error
			switch day % 4 {
			case 0:
				_, err = p.Pause(ctx, n)
			case 1:
				_, err = p.UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
			case 2:
				var s *billing.Subscription
				s, err = p.Cancel(ctx, n, false)
				w.noteCanceled(s, err)
			case 3:
				_, err = job.Reminders(ctx, p.Engine, job.Options{Workers: 4})
			}
			if err != nil && !errors.Is(err, billing.ErrState) && !errors.Is(err, store.ErrConflict) {
				t.Error(err)
			}
		})
		running.Wait()
		w.tomorrow()
	}
	for _, n := range names {
		if !w.settled(n) {
			t.Errorf("%s is not settled: %s", n, w.describe(n))
		}
	}
	w.report(t)
}
