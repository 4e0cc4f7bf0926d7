package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// An outcome is what the processor makes of the charge.
type outcome struct {
	name     string
	method   string
	script   []scripted
	fallback string // the account's second method
	byWire   bool
	customer string // what happens to an intent that waits: authenticates, pays, bounces or nothing
}

func outcomes() []outcome {
	return []outcome{
		{name: "pays", method: "pm_card_visa"},
		{name: "soft decline", method: "pm_card_visa_chargeDeclined"},
		{name: "hard decline", method: "pm_card_visa_chargeDeclinedLostCard"},
		{name: "hard decline, the fallback pays", method: "pm_card_visa_chargeDeclinedLostCard", fallback: "pm_card_visa"},
		{name: "unknown token, the fallback is declined", method: "pm_nobody_knows", fallback: "pm_card_visa_chargeDeclined"},
		{name: "unknown token", method: "pm_nobody_knows"},
		{name: "flaky", method: "pm_sandbox_flaky"},
		{name: "timeout", method: "pm_sandbox_timeout"},
		{name: "authenticates", method: "pm_card_authenticationRequired", customer: "authenticates"},
		{name: "never authenticates", method: "pm_card_authenticationRequired", customer: "gives up"},
		{name: "processing, pays", method: "pm_sandbox_processing", customer: "pays"},
		{name: "processing, bounces", method: "pm_sandbox_processing", customer: "bounces"},
		{name: "cached 500 on open", method: "pm_card_visa", script: []scripted{{"cached", "open", 4}}},
		{name: "cached 500 on confirm", method: "pm_card_visa", script: []scripted{{"cached", "confirm", 1}}},
		{name: "cached 500 on every confirm", method: "pm_card_visa", script: []scripted{{"cached", "confirm", 4}}},
		{name: "lost requests", method: "pm_card_visa", script: []scripted{{"lost", "", 7}}},
		{name: "lost replies", method: "pm_card_visa", script: []scripted{{"unknown", "", 7}}},
		{name: "lost replies to a flaky one", method: "pm_sandbox_flaky", script: []scripted{{"unknown", "", 5}}},
		{name: "lost cancel", method: "pm_card_visa_chargeDeclinedLostCard",
			script: []scripted{{"unknown", "cancel", 2}, {"lost", "cancel", 2}}},
		{name: "busy", method: "pm_card_visa", script: []scripted{{"busy", "", 5}}},
		{name: "by wire, pays", byWire: true, customer: "transfers"},
		{name: "by wire, never pays", byWire: true},
	}
}

// A request is what a person asks for between crash and recovery.
type request struct {
	name string
	do   func(c *crash, p *process)
	rare bool // no other request makes its moves: it is asked at each second point
}

func requests() []request {
	ctx := context.Background()
	update := func(change func(*billing.Change)) func(*crash, *process) {
		return func(c *crash, p *process) {
			var ch billing.Change
			change(&ch)
			if _, err := p.UpdateSubscription(ctx, c.name, ch); err != nil && !errors.Is(err, billing.ErrState) {
				c.refused(p, err)
			}
		}
	}
	return []request{
		{name: "cancel", do: func(c *crash, p *process) {
			s, err := p.Cancel(ctx, c.name, false)
			c.w.noteCanceled(s, err)
			c.refused(p, err)
		}},
		{name: "cancel at period end", do: func(c *crash, p *process) {
			_, err := p.Cancel(ctx, c.name, true)
			c.refused(p, err)
		}},
		{name: "cancel at period end, with arrears", do: func(c *crash, p *process) {
			c.w.pass(32 * 24 * time.Hour)
			_, err := p.Cancel(ctx, c.name, true)
			c.refused(p, err)
		}},
		{name: "cancel, collecting", do: func(c *crash, p *process) {
			c.w.pass(32 * 24 * time.Hour)
			c.w.cancelCollecting(p, c.name, func(err error) { c.refused(p, err) })
		}},
		{name: "skip until tomorrow", do: func(c *crash, p *process) {
			c.skip(p, c.w.today().AddDays(1))
		}},
		{name: "skip until, twice", do: func(c *crash, p *process) {
			c.skip(p, c.w.today())
			c.skip(p, c.w.today())
		}},
		{name: "pause, resume", do: func(c *crash, p *process) {
			_, err := p.Pause(ctx, c.name)
			c.refused(p, err)
			p.run(civil.Date{})
			c.w.pass(3 * 24 * time.Hour)
			_, err = p.Resume(ctx, c.name)
			c.refused(p, err)
		}},
		{name: "pause, resume at once", do: func(c *crash, p *process) {
			_, err := p.Pause(ctx, c.name)
			c.refused(p, err)
			_, err = p.Resume(ctx, c.name)
			c.refused(p, err)
		}},
		{name: "price", do: func(c *crash, p *process) {
			c.price(p, usd(1999))
		}},
		{name: "plan", do: func(c *crash, p *process) {
			c.change(p, billing.Change{SKU: new("platinum"), Amount: new(usd(2999))})
		}},
		{name: "quantity and discount", do: func(c *crash, p *process) {
			clear(c.w.amounts) // the spy computes each period's amount
			update(func(ch *billing.Change) {
				ch.Quantity, ch.Discount = new(3), &price.Discount{Percent: 100_000, Periods: 1}
			})(c, p)
		}, rare: true},
		{name: "good method", do: update(func(ch *billing.Change) { ch.Method = new("pm_card_visa") })},
		{name: "bad method", do: update(func(ch *billing.Change) { ch.Method = new("pm_card_visa_chargeDeclined") })},
		{name: "day", do: update(func(ch *billing.Change) { ch.PaymentDay = new(15) })},
		{name: "by wire", do: update(func(ch *billing.Change) { ch.Collection = new(billing.ByWire) })},
		{name: "by wire, and back", do: func(c *crash, p *process) {
			for _, to := range []billing.Collection{billing.ByWire, billing.Automatic} {
				_, err := p.UpdateSubscription(ctx, c.name, billing.Change{Collection: &to, Method: new("pm_card_visa")})
				c.refused(p, err)
			}
		}},
		{name: "receipt", do: func(c *crash, p *process) {
			_, err := p.CreateReceipt(ctx, c.name, engine.ManualPayment{Note: "cash"})
			c.refused(p, err)
		}},
		{name: "receipt with a key, twice", do: func(c *crash, p *process) {
			for range 2 {
				r, err := p.CreateReceipt(c.w.keyed(ctx, "wire"), c.name, engine.ManualPayment{Period: new(int)})
				c.refused(p, err)
				if err == nil && r.Repeated {
					c.w.happened(moveRepeated)
				}
			}
		}, rare: true},
	}
}

// anotherTool spoils the amount between crash and recovery, and corrects it after a run.
var anotherTool = request{name: "unreadable amount, for a run", do: func(c *crash, p *process) {
	amount := c.w.rawOf(c.name).Get(schema.PaymentAmount)
	c.w.byTool(c.name, schema.PaymentAmount, store.S("twelve"))
	before := c.w.dealings()
	rep, err := job.Payments(context.Background(), p.Engine, job.Options{Workers: 1})
	if err == nil && (rep.Due() != rep.Counts[engine.OutcomeUnreadable] || c.w.dealings() != before) {
		c.w.violate("a run over an unreadable row: %v", rep.Counts)
	}
	c.refused(p, err)
	c.w.byTool(c.name, schema.PaymentAmount, amount)
}}

// movingTool takes the payment itself, between crash and recovery: it moves NextPaymentDate to the next
// period's day. What was not confirmed then is never charged unasked; what was is settled and named.
var movingTool = request{name: "moved date, until a person answers", do: func(c *crash, p *process) {
	ctx, to := context.Background(), "2024-02-29"
	was := c.w.sub(c.name)
	if due, _ := was.Due(); was.Status != billing.Active || was.Collecting() || due != c.due || c.past {
		return
	}
	c.w.byTool(c.name, schema.NextPaymentDate, store.S(to))
	before, took := c.w.tried(was.Period)
	for c.w.today().Before(date(to)) {
		c.w.tomorrow()
	}
	for range 3 {
		rep, err := job.Payments(ctx, p.Engine, job.Options{Workers: 1})
		if c.refused(p, err); err == nil && len(rep.Doubts) > 0 {
			c.w.happened(moveDoubted)
		}
	}
	s := c.w.sub(c.name)
	doubts, err := processor.Gather(c.w.start().Doubts(ctx))
	after, paid := c.w.tried(was.Period)
	switch {
	case err != nil:
		c.w.violate("doubts: %v", err)
	case p.faults.struck():
	case !took && after != before:
		c.w.violate("charged although another tool has moved the date: %s", c.w.describe(c.name))
	case paid && was.Open != nil && len(doubts) != 1:
		c.w.violate("another tool moved the date, and the charge is not named: %v, %s", doubts, c.w.describe(c.name))
	case !paid && s.Period == was.Period && s.Status != billing.ParkedState:
		c.w.violate("another tool moved the date: %s", c.w.describe(c.name))
	}
	for day := range 40 { // a person
		p = c.w.start()
		p.run(civil.Date{})
		_, err := p.AnswerDoubts(ctx, c.name)
		if err == nil && c.w.sub(c.name).Status == billing.ParkedState {
			_, err = p.SkipParked(ctx, c.name)
		}
		if s := c.w.sub(c.name); err == nil && s.Status != billing.ParkedState && s.Open == nil {
			return
		}
		c.customer(p, day+1) // a bank decides first
		c.w.tomorrow()
	}
}}

// tried counts the attempts of the period at the processor, and reports whether one has succeeded.
func (w *world) tried(period int) (n int, paid bool) {
	type attempt struct {
		ref    string
		number int
	}
	seen := map[attempt]bool{}
	for _, e := range w.ledger() {
		if e.Tag.Period == period && e.Attempt > 0 {
			seen[attempt{e.Ref, e.Attempt}] = true
			paid = paid || e.State == processor.Succeeded
		}
	}
	return len(seen), paid
}

// A crash is one case of the programme: a first life that is cut at a point, a request,
// a second life that may be cut as well, and then peace until all is settled.
type crash struct {
	outcome outcome
	first   []fault
	delay   time.Duration
	request *request
	during  fault // strikes the request
	second  fault // strikes the recovery
	again   time.Duration
	plant   planted
	past    bool // a person has a period collected that failed before
	last    bool // and the due date of the next one comes on the next day
	upgrade bool // a person upgrades the subscription now, instead

	w    *world
	name billing.Name

	lives    [3]int // points in the first life, the request, and the first run of the recovery
	recovery int    // points of the whole recovery
	due      civil.Date
}

func (c *crash) String() string {
	text := fmt.Sprintf("%s, first %v, after %s", c.outcome.name, c.first, c.delay)
	if c.upgrade {
		text = fmt.Sprintf("upgrade (late: %t), %s", c.last, text)
	}
	if c.past {
		text = fmt.Sprintf("past period (late: %t), %s", c.last, text)
	}
	if c.request != nil {
		text += ", " + c.request.name + fmt.Sprintf(" %v", c.during)
	}
	if c.second.point > 0 {
		text += fmt.Sprintf(", second %v after %s", c.second, c.again)
	}
	return text
}

// refused: a person's request may be refused for the state it meets, or end with the
// process; nothing else.
func (c *crash) refused(p *process, err error) {
	if err != nil && !errors.Is(err, billing.ErrState) && !p.faults.struck() && len(c.outcome.script) == 0 {
		c.w.violate("request refused: %v", err)
	}
}

// skip skips the periods due before the day. Once that is done, no due date before it is left.
func (c *crash) skip(p *process, day civil.Date) {
	before := c.w.sub(c.name)
	s, err := p.SkipUntil(context.Background(), c.name, day)
	c.refused(p, err)
	if err != nil {
		return
	}
	if due, err := s.Due(); s.Status == billing.Active && (err != nil || due.Before(day) || s.Unfinished()) {
		c.w.violate("skipped until %s, and due on %s: %s", day, due, c.w.describe(c.name))
	}
	if s.Period > before.Period {
		c.w.happened(moveSkipped)
	}
}

// price changes the price, and notes what the periods must be charged from now on.
func (c *crash) price(p *process, a money.Amount) { c.change(p, billing.Change{Amount: &a}) }

// change is price for a change that may be of the plan, too: then no due period is charged by it.
func (c *crash) change(p *process, ch billing.Change) {
	a := *ch.Amount
	before := c.w.sub(c.name)
	_, err := p.UpdateSubscription(context.Background(), c.name, ch)
	c.refused(p, err)
	if c.upgrade || p.faults.struck() { // it may have landed or not, or an upgrade comes after it
		clear(c.w.amounts)
		return
	}
	if err != nil {
		return
	}
	for n := range 24 {
		due, err := before.Schedule().Due(n)
		if err == nil && ch.SKU != nil && !due.After(c.w.today()) {
			continue
		}
		if n > before.Period || (n == before.Period && before.NextOpen() == nil) {
			c.w.amounts[fmt.Sprintf("ACC#a1/s1/%d", n)] = a
		}
	}
}

// play plays the case and returns its violations.
func (c *crash) play() []string {
	c.w = newWorld("2024-01-31T09:00", c.plant)
	w := c.w
	defer w.end()
	c.due = w.today()
	c.name = w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		if c.outcome.byWire {
			n.Collection = billing.ByWire
		}
		if n.Method = c.outcome.method; c.past {
			n.Method = "pm_card_visa_chargeDeclinedLostCard"
		}
		if c.upgrade {
			n.Method = "pm_card_visa"
		}
	}))
	if c.outcome.fallback != "" {
		if _, err := w.start().Attach(context.Background(), "a1", billing.Attachment{Fallback: &c.outcome.fallback}); err != nil {
			w.violate("fallback: %v", err)
		}
	}
	for n := range 24 {
		w.amounts[fmt.Sprintf("ACC#a1/s1/%d", n)] = usd(1299)
	}
	if c.past {
		c.failFirst()
	}
	if c.upgrade {
		c.payFirst()
	}
	w.script.left = append([]scripted(nil), c.outcome.script...)

	p := w.start(c.first...)
	c.ask(p)
	c.days(p, nil)
	c.lives[0] = p.faults.passed()
	if p.faults.died() {
		w.pass(c.delay)
		if c.request != nil {
			q := w.start(c.during)
			c.request.do(c, q)
			c.lives[1] = q.faults.passed()
			if q.faults.died() {
				w.pass(c.again)
			}
		}
		p = w.start(c.second)
		c.ask(p)
		c.days(p, &c.lives[2])
		c.recovery = p.faults.passed()
		if p.faults.died() {
			w.pass(c.again)
		}
	}
	p = w.start()
	c.ask(p)
	c.days(p, nil)
	if !w.settled(c.name) && !p.faults.died() {
		w.violate("not settled after %d days: %s", patience, w.describe(c.name))
	}
	c.collected()
	c.upgraded()
	c.next(p)
	w.number(0, 0)
	return w.audit()
}

// failFirst has the first period fail, and then gives the outcome's card.
func (c *crash) failFirst() {
	p := c.w.start()
	for day := 0; c.w.sub(c.name).Period == 0 && day < patience; day++ {
		p.run(civil.Date{})
		if c.w.sub(c.name).Period == 0 { // a bank that loses answers
			c.w.tomorrow()
		}
	}
	for range 50 {
		_, err := p.UpdateSubscription(context.Background(), c.name, billing.Change{Method: &c.outcome.method})
		if err == nil {
			break
		}
	}
	if c.last {
		c.w.clock.Store(max(c.w.clock.Load(), date("2024-02-28").In(time.UTC).Add(9*time.Hour).UnixNano()))
	}
}

// ask has the failed period collected, unless the first life has done with it.
func (c *crash) ask(p *process) {
	if c.upgrade {
		c.askUpgrade(p)
		return
	}
	if c.past && c.w.ending(c.name, 0).Generation == 0 {
		_, err := p.ChargePeriod(context.Background(), c.name, engine.PeriodCharge{})
		c.refused(p, err)
	}
}

// collected: a past period that can be paid is paid, whatever was cut off, and one that cannot ends as
// it did before.
func (c *crash) collected() {
	if !c.past || c.request != nil {
		return
	}
	s := c.w.sub(c.name)
	paid := c.w.ending(c.name, 0).Ending == ""
	switch c.outcome.name {
	case "pays", "busy", "lost requests", "lost replies", "timeout":
		if !paid && len(c.first) == 1 {
			c.w.violate("period 0 was not collected: %s", c.w.describe(c.name))
		}
	case "soft decline", "hard decline", "unknown token", "processing, bounces":
		if paid {
			c.w.violate("period 0 was paid: %s", c.w.describe(c.name))
		}
	}
	if s.Collecting() || s.Collect > 0 {
		c.w.violate("period 0 is still being collected: %s", c.w.describe(c.name))
	}
}

// patience is after how many days without a fault everything must have been settled: three periods
// that a customer never pays by wire stay open for two weeks each, one after the other.
const patience = 45

// days runs the job day by day until all is settled or the process is dead.
func (c *crash) days(p *process, first *int) {
	for day := range patience {
		p.run(civil.Date{})
		if day == 0 && first != nil {
			*first = p.faults.passed()
		}
		if p.faults.died() || c.w.settled(c.name) {
			return
		}
		c.customer(p, day)
		c.w.tomorrow()
	}
}

// customer does what is not ours to do: an intent that waits is authenticated or decided.
func (c *crash) customer(p *process, day int) {
	s := c.w.sub(c.name)
	if day < 1 || s.Open == nil {
		return
	}
	if s.Open.ByWire() {
		if c.outcome.customer == "transfers" && day >= 3 {
			_, err := p.CreateReceipt(context.Background(), c.name, engine.ManualPayment{Period: &s.Open.Period, Note: "wire"})
			c.refused(p, err)
		}
		return
	}
	switch state := c.w.state(s.Open.Ref); {
	case state == processor.RequiresAction && c.outcome.customer == "authenticates":
		_ = c.w.box.Authenticate(s.Open.Ref)
	case state == processor.RequiresAction && day >= 10:
		s, err := p.Cancel(context.Background(), c.name, false)
		c.w.noteCanceled(s, err)
	case state == processor.Processing:
		_ = c.w.box.Finish(s.Open.Ref, c.outcome.customer != "bounces")
	}
}

// next goes on to the next due date: nothing of the past may stand in its way, or in for it.
func (c *crash) next(p *process) {
	s := c.w.sub(c.name)
	if s.Status == billing.ParkedState {
		c.w.violate("parked: %s", s.Parked)
	}
	if s.Status != billing.Active || s.Open != nil {
		return
	}
	n := s.Period
	due, err := s.Due()
	if err != nil || s.NextPayment != due {
		c.w.violate("period %d is due on %s, but NextPaymentDate is %s (%v)", n, due, s.NextPayment, err)
		return
	}
	if eve := due.AddDays(-1); c.w.today().Before(eve) { // on that day already: the clock must not go back to its morning
		c.w.goTo(eve)
	}
	if before := c.w.dealings(); s.NextPayment.After(c.w.today()) {
		p.run(civil.Date{})
		if c.w.dealings() != before {
			c.w.violate("something was done a day before %s", due)
		}
	}
	c.w.tomorrow()
	c.days(p, nil)
	if s = c.w.sub(c.name); s.Period == n && s.Status == billing.Active {
		c.w.violate("period %d, due on %s, was not dealt with by %s", n, due, c.w.today())
	}
}

// A programme counts the cases of a programme and keeps its first violations.
type programme struct {
	t     testing.TB
	cases atomic.Int64
	bad   atomic.Int64
	pairs atomic.Int64 // of crashes, without a request
	lost  atomic.Int64 // replies and requests of the store or the processor, to a person's request
	tools atomic.Int64 // writes of another tool
	moves moves
	soak  *soaktest.Programme
	*sampling
	queue chan *crash
	begin func(point int) crash // a case of the outcome under way
	wait  sync.WaitGroup
}

func newProgramme(t testing.TB, s sampling) *programme {
	s.rng = rand.New(rand.NewPCG(s.seed, 1))
	g := &programme{t: t, sampling: &s, soak: soaktest.Start(t), queue: make(chan *crash, 64)}
	for range runtime.GOMAXPROCS(0) {
		g.wait.Go(func() {
			for c := range g.queue {
				g.play(c)
			}
		})
	}
	return g
}

// put has a case played, unless the time is over.
func (g *programme) put(c *crash) {
	if !g.over() && g.soak.Next() {
		g.queue <- c
	}
}

func (g *programme) play(c *crash) {
	g.cases.Add(1)
	if c.request != nil && c.during.point > 0 && !c.during.crash {
		g.lost.Add(1)
	}
	if c.request != nil && (c.request.name == anotherTool.name || c.request.name == movingTool.name) {
		g.tools.Add(1)
	}
	violations := c.play()
	g.moves.add(c.w)
	if len(violations) == 0 {
		return
	}
	if g.bad.Add(1) == 1 && g.planted() {
		g.t.Logf("found after %d cases: %s: %s", g.cases.Load(), c, violations[0])
	} else if g.bad.Load() <= 5 && !g.planted() {
		for _, v := range violations {
			g.t.Errorf("%s: %s", c, v)
		}
	}
}

// planted reports whether the programme looks for a planted bug.
func (g *programme) planted() bool { return g.plant.store != nil || g.plant.proc != nil }

// over reports whether no more cases are begun: the time is over, or the planted bug is found.
func (g *programme) over() bool { return !g.soak.Whole() || g.planted() && g.bad.Load() > 0 }

func (g *programme) end() {
	close(g.queue)
	g.wait.Wait()
}

var delays = []time.Duration{time.Second, 25 * time.Hour, 10 * 24 * time.Hour}

// TestExactlyOnce_EveryCrashPoint is the exhaustive programme: every point at which the
// first life can be cut (before and after each commit and each call of the processor), in
// a crash or by a lost answer, for every outcome, times the delay until the recovery,
// times every point at which the first run of the recovery can be cut, or a request in
// between. Each such pair of cuts has one of the delays. DUESDAY_SOAK=1 plays all delays, and cuts
// the whole recovery, and the requests, at every point too.
func TestExactlyOnce_EveryCrashPoint(t *testing.T) {
	t.Parallel()
	everyCrashPoint(t, anyPeriod().checked(100))
}

// TestExactlyOnce_Collecting is the same programme for a period that failed before, and that a person
// has collected: long before the next due date, or on the day before it.
func TestExactlyOnce_Collecting(t *testing.T) {
	t.Parallel()
	everyCrashPoint(t, pastPeriod().checked(25))
}

// A sampling decides which cases everyCrashPoint plays without DUESDAY_SOAK.
type sampling struct {
	past  bool // the period failed before, and a person has it collected
	now   bool // a person upgrades the subscription
	part  int  // per cent of the usual share of pairs of cuts
	each  int  // a request is asked at one of so many points
	waits int  // after a crash, one of so many delays is played
	least int  // cases, or the programme has lost its teeth
	seed  uint64
	rng   *rand.Rand
	plant planted // the programme ends when it finds this bug
}

// anyPeriod and pastPeriod are the shares of go test. TestShares_FindPlantedBugs holds what they find.
func anyPeriod() sampling { return sampling{part: 25, each: 5, waits: 3, least: 2500, seed: 1} }
func pastPeriod() sampling {
	return sampling{part: 8, each: 5, waits: 3, least: 2500, seed: 1, past: true}
}

// checked is the share of make check, with another part.
func (s sampling) checked(part int) sampling {
	if soaktest.Checked() {
		s.part, s.each, s.waits = part, 1, 1
	}
	return s
}

func (s *sampling) draws(percent int) bool {
	if engine.Raced {
		percent /= 4
	}
	return soaktest.On() || s.rng.IntN(10000) < percent*s.part
}

// asks reports whether the i-th request is asked after a crash at the point. Five seeds ask each one
// at each point.
func (s *sampling) asks(point, i int, r request) bool {
	each := s.each
	if r.rare {
		each = min(2, each)
	}
	return soaktest.On() || (point+i+int(s.seed))%each == 0
}

// everyCrashPoint plays the programme.
func everyCrashPoint(t *testing.T, s sampling) {
	g := newProgramme(t, s)
	g.outcomes()
	t.Logf("soak: crashes: %d cases (%d of them exhaustive pairs of crashes, %d with a reply to a person lost, %d with an item that "+
		"another tool changes), %d with violations", g.cases.Load(), g.pairs.Load(), g.lost.Load(), g.tools.Load(),
		g.bad.Load())
	if !g.soak.Whole() {
		return
	}
	var but []string
	if !s.past {
		but = append(but, moveCollected)
	}
	if s.now {
		but = theMoves()
		if g.moves.count[moveUpgraded] == 0 || g.moves.count[moveNotUpgraded] == 0 {
			t.Errorf("moves: %v", g.moves.count)
		}
	}
	g.moves.wantEach(t, but...)
	if !s.past && !s.now && g.moves.count[moveSkipped] == 0 {
		t.Error("no request has skipped a period")
	}
	if !s.past && !s.now && g.moves.count[moveDoubted] == 0 {
		t.Error("no charge was perhaps made twice")
	}
	if g.cases.Load() < int64(s.least) {
		t.Errorf("only %d cases: the programme has lost its teeth", g.cases.Load())
	}
}

// outcomes plays all cases.
func (g *programme) outcomes() {
	for _, o := range outcomes() {
		if o.byWire && (g.past || g.now) { // nothing is charged
			continue
		}
		g.begin = func(point int) crash {
			return crash{outcome: o, past: g.past, upgrade: g.now, last: (g.past || g.now) && point%2 == 1, plant: g.plant}
		}
		calm := g.begin(1)
		g.play(&calm)
		for point := 1; point <= calm.lives[0] && !g.over(); point++ {
			for later := point; later <= min(calm.lives[0], point+12); later++ { // a lost answer, and perhaps a crash soon after
				if later == point || g.draws(4) {
					first := []fault{{point, false}}
					if later > point {
						first = append(first, fault{later, true})
					}
					g.put(g.crash(point, func(c *crash) { c.first, c.delay = first, delays[0] }))
				}
			}
			for i, delay := range delays {
				if soaktest.On() || (point+i+int(g.seed))%g.waits == 0 {
					g.crashAt(point, delay)
				}
			}
		}
	}
	g.end()
}

// crash returns a case that begins at the point.
func (g *programme) crash(point int, change func(*crash)) *crash {
	c := g.begin(point)
	change(&c)
	return &c
}

// crashAt plays all that may follow one crash in the first life.
func (g *programme) crashAt(point int, delay time.Duration) {
	if g.over() {
		return
	}
	after := func(change func(*crash)) *crash {
		return g.crash(point, func(c *crash) {
			c.first, c.delay = []fault{{point, true}}, delay
			change(c)
		})
	}
	once := after(func(*crash) {})
	g.play(once)
	points := once.lives[2]
	if soaktest.On() {
		points = once.recovery
	}
	for second := 1; second <= points; second++ {
		if !soaktest.On() && (delays[(point+second)%3] != delay || !g.draws(100)) {
			continue
		}
		g.pairs.Add(1)
		g.put(after(func(c *crash) { c.second, c.again = fault{second, true}, delays[(second+point)%3] }))
		if g.draws(6) {
			g.put(after(func(c *crash) { c.second = fault{second, false} }))
		}
	}
	for i, r := range append(requests(), anotherTool, movingTool) {
		if !g.asks(point, i, r) || delays[(point+i)%3] != delay && !g.draws(8) { // after one of the delays at least
			continue
		}
		asked := after(func(c *crash) { c.request = &r })
		g.play(asked)
		for cut := 1; cut <= asked.lives[1]; cut++ {
			if g.draws(4) {
				g.put(after(func(c *crash) { c.request, c.during, c.again = &r, fault{cut, true}, delays[cut%3] }))
			}
			if g.draws(3) {
				g.put(after(func(c *crash) { c.request, c.during, c.again = &r, fault{cut, false}, delays[cut%3] }))
			}
		}
		for second := 1; second <= asked.lives[2]; second++ {
			if g.draws(3) {
				g.put(after(func(c *crash) { c.request, c.second, c.again = &r, fault{second, true}, delays[second%3] }))
			}
		}
	}
}
