package engine_test

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/stripefake"
)

// A stripeBank is Stripe's fake over real HTTP, with faults of its own, and Duesday's client
// of it. Its ledger is read from the fake's objects by plain requests.
type stripeBank struct {
	*stripe.Processor
	t      testing.TB
	fake   *stripefake.Fake
	server *httptest.Server
	client *http.Client // for plain requests
}

const fakeKey = "sk_test_duesday"

// stripeFaults are the rates of the programme: one request in nine goes wrong.
func stripeFaults(seed uint64) stripefake.Faults {
	return stripefake.Faults{LostRequests: 0.02, LostReplies: 0.04, Errors: 0.01, LateErrors: 0.02, Busy: 0.02, Seed: seed}
}

// newStripeBank makes a bank by the world's clock.
func newStripeBank(t testing.TB, w *world, faults stripefake.Faults) *stripeBank {
	w.reopens = faults.Errors+faults.LateErrors > 0
	b := &stripeBank{t: t, fake: stripefake.New(stripefake.Options{Now: w.now, Faults: faults})}
	b.server = httptest.NewServer(b.fake)
	b.client = b.server.Client()
	b.connect(api.Options{Base: b.server.URL, Now: w.now})
	return b
}

func (b *stripeBank) connect(o api.Options) {
	o.Key, o.Rate = secret.New(fakeKey), 1000
	var err error
	b.Processor, err = stripe.New(stripe.Options{API: o, ReturnURL: "https://shop.example/thanks"})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *stripeBank) close() {
	b.Processor.Close()
	b.server.Close()
	b.client.CloseIdleConnections()
	b.fake.Close()
}

// methods are the sandbox's payment methods that Stripe has under other names, or not at all.
var stripeMethods = map[string]string{"pm_sandbox_processing": "pm_usBankAccount_success"}

// Confirm translates the method.
func (b *stripeBank) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	r.Method = cmp.Or(stripeMethods[r.Method], r.Method)
	return b.Processor.Confirm(ctx, r)
}

// Open translates the method.
func (b *stripeBank) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	r.Method = cmp.Or(stripeMethods[r.Method], r.Method)
	return b.Processor.Open(ctx, r)
}

func (b *stripeBank) Authenticate(ref string) error    { return b.fake.Authenticate(ref, true) }
func (b *stripeBank) Finish(ref string, ok bool) error { return b.fake.Finish(ref, ok) }

// A fakeIntent is what the ledger needs of a payment intent.
type fakeIntent struct {
	ID       string            `json:"id"`
	Amount   int64             `json:"amount"`
	Currency string            `json:"currency"`
	Status   string            `json:"status"`
	Created  int64             `json:"created"`
	Canceled int64             `json:"canceled_at"`
	Metadata map[string]string `json:"metadata"`
}

type fakeCharge struct {
	ID       string `json:"id"`
	Intent   string `json:"payment_intent"`
	Status   string `json:"status"`
	Created  int64  `json:"created"`
	Code     string `json:"failure_code"`
	Amount   int64  `json:"amount"`
	Captured bool   `json:"captured"`
}

// Entries gives the fake's intents and charges the form of the sandbox's ledger.
func (b *stripeBank) Entries() iter.Seq[sandbox.Entry] {
	charges := map[string][]fakeCharge{}
	for _, c := range oldestFirst(fetchAll[fakeCharge](b, "/v1/charges")) {
		charges[c.Intent] = append(charges[c.Intent], c)
	}
	var all []sandbox.Entry
	for _, in := range oldestFirst(fetchAll[fakeIntent](b, "/v1/payment_intents")) {
		e := sandbox.Entry{Intent: processor.Intent{Ref: in.ID, Tag: tagOf(in.Metadata), Amount: usd(in.Amount),
			State: processor.Opened, Changed: time.Unix(in.Created, 0).UTC()}}
		all = append(all, e)
		if in.Metadata["duesday_attempt"] != "" { // refused before there was a charge, or one of another method
			e := e
			e.State, e.Latest = processor.Declined, in.Metadata["duesday_attempt"]
			all = append(all, e)
		}
		for i, c := range charges[in.ID] {
			e := e
			e.Attempt, e.Latest, e.Code, e.Changed, e.Amount = i+1, c.ID, c.Code, time.Unix(c.Created, 0).UTC(), usd(c.Amount)
			switch {
			case c.Status == "succeeded":
				e.State = processor.Succeeded
			case c.Status == "pending":
				e.State = processor.Processing
			case c.Code == "authentication_required":
				e.State = processor.RequiresAction
			default:
				e.State = processor.Declined
			}
			all = append(all, e)
		}
		switch in.Status {
		case "canceled":
			e.State, e.Changed = processor.Canceled, time.Unix(in.Canceled, 0).UTC()
			all = append(all, e)
		case "requires_action":
			e.State = processor.RequiresAction
			all = append(all, e)
		}
	}
	return slices.Values(all)
}

func tagOf(m map[string]string) processor.Tag {
	period, _ := strconv.Atoi(m["duesday_period"])
	generation, _ := strconv.Atoi(m["duesday_generation"])
	return processor.Tag{Installation: m["duesday_installation"], Account: m["duesday_account"],
		Subscription: m["duesday_subscription"],
		SKU:          m["duesday_sku"], Period: period, Generation: generation}
}

func oldestFirst[T any](list []T) []T {
	slices.Reverse(list)
	return list
}

// fetchAll lists all objects at the path, as often as it takes.
func fetchAll[T any](b *stripeBank, path string) (all []T) {
	after := ""
	for more := true; more; {
		var page struct {
			Data []json.RawMessage `json:"data"`
			More bool              `json:"has_more"`
		}
		if err := b.get(path+"?limit=100"+after, &page); err != nil {
			continue // a fault: once more
		}
		for _, raw := range page.Data {
			var o T
			var named struct {
				ID string `json:"id"`
			}
			if err := cmp.Or(json.Unmarshal(raw, &o), json.Unmarshal(raw, &named)); err != nil {
				panic(err)
			}
			all = append(all, o)
			after = "&starting_after=" + named.ID
		}
		more = page.More
	}
	return all
}

func (b *stripeBank) get(path string, into any) error {
	r, err := http.NewRequest(http.MethodGet, b.server.URL+path, nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+fakeKey)
	resp, err := b.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.200s", path, resp.Status, text)
	}
	return json.Unmarshal(text, into)
}

// TestExactlyOnceOnStripe is a seeded sample of the crash programme (crash_test.go) with
// Stripe as the processor, over HTTP, with faults on the way and at Stripe: crashes at any
// point, twice, a day and more between them, with requests in between. DUESDAY_SOAK=1 plays
// 4,000 cases.
func TestExactlyOnceOnStripe(t *testing.T) {
	t.Parallel()
	var cases, bad, successes atomic.Int64
	var moves moves
	inParallel(8, soaktest.Seeds(t, 30, 4000), func(seed uint64) { // they wait for HTTP
		cases.Add(1)
		rng := rand.New(rand.NewPCG(seed, 13))
		c := sampleCrash(rng, seed)
		var b *stripeBank
		c.plant.bank = func(w *world) bank {
			b = newStripeBank(t, w, stripeFaults(seed))
			return b
		}
		violations := c.play()
		moves.add(c.w)
		for e := range b.fake.Ledger() {
			if e.Type == "charge" {
				successes.Add(1)
			}
		}
		b.close()
		if len(violations) > 0 && bad.Add(1) <= 5 {
			for _, v := range violations {
				t.Errorf("DUESDAY_SEED=%d: %s: %s", seed, c, v)
			}
		}
	})
	t.Logf("soak: %d cases, %d charges; %d with violations", cases.Load(), successes.Load(), bad.Load())
	if cases.Load() >= sampleHasMoves {
		moves.wantEach(t, moveDiscounted, moveUnits) // their request is rare
	}
}

// TestSimulationOnStripe plays seeds of the simulation (sim_test.go) with Stripe as the
// processor: overlapping processes, people and downtime. DUESDAY_SOAK=1 plays 60 of 400 days.
func TestSimulationOnStripe(t *testing.T) {
	t.Parallel()
	seeds, successes := 0, 0
	for seed := range soaktest.Seeds(t, 1, 60) {
		seeds++
		synctest.Test(t, func(t *testing.T) { successes += simulateOnStripe(t, seed) })
	}
	t.Logf("%d seeds, %d charges", seeds, successes)
	if successes < 5*seeds {
		t.Errorf("only %d charges in %d seeds", successes, seeds)
	}
}

// simulateOnStripe plays one seed in a bubble, and returns the number of its charges.
func simulateOnStripe(t *testing.T, seed uint64) (successes int) {
	var b *stripeBank
	s := newSimulation(seed, planted{bank: func(w *world) bank {
		b = newPipedBank(t, w, stripeFaults(seed))
		return b
	}})
	defer b.close()
	if !soaktest.On() {
		s.days = 25
	}
	for _, v := range s.play() {
		t.Errorf("DUESDAY_SEED=%d: %s", seed, v)
	}
	t.Logf("seed %d: %v, %v", seed, s.w.befell, s.did)
	for e := range b.fake.Ledger() {
		if e.Type == "charge" {
			successes++
		}
	}
	return successes
}

// TestPlantedBugsAtStripe: the programme sees what a wrong client would do.
func TestPlantedBugsAtStripe(t *testing.T) {
	for name, plant := range map[string]func(processor.Charger) processor.Charger{
		"a lost reply is a decline":  func(p processor.Charger) processor.Charger { return lostIsDeclined{p} },
		"an intent opened each time": func(p processor.Charger) processor.Charger { return &alwaysNew{Charger: p} },
		"random keys":                func(p processor.Charger) processor.Charger { return keysAtRandom{p} },
	} {
		caught := false
		for seed := uint64(1); seed <= 40 && !caught; seed++ {
			c := randomCrash(rand.New(rand.NewPCG(seed, 13)))
			c.outcome = outcomes()[0] // pays
			var b *stripeBank
			c.plant.bank = func(w *world) bank {
				b = newStripeBank(t, w, stripefake.Faults{LostReplies: 0.15, Seed: seed})
				return b
			}
			c.plant.proc = func(_ *world, p processor.Charger) processor.Charger { return plant(p) }
			caught = len(c.play()) > 0
			b.close()
		}
		if !caught {
			t.Errorf("%s: nothing noticed it", name)
		}
	}
}

// keysAtRandom is what a library does that makes up a key where it is given none.
type keysAtRandom struct{ processor.Charger }

func (p keysAtRandom) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	r.Key = "dd_" + crand.Text()
	return p.Charger.Open(ctx, r)
}

type lostIsDeclined struct{ processor.Charger }

func (p lostIsDeclined) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	in, err := p.Charger.Confirm(ctx, r)
	if err == nil || !errors.Is(err, processor.ErrUnknown) {
		return in, err
	}
	return processor.Intent{Ref: r.Ref, State: processor.Declined, Latest: "lost/" + r.Key, Amount: usd(1299),
		Code: "timeout"}, nil
}

// alwaysNew confirms an intent of its own making instead of the one that is bound, as who
// creates and confirms in one request does.
type alwaysNew struct {
	processor.Charger
	opened processor.OpenRequest
	n      int
}

func (p *alwaysNew) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	p.opened = r
	return p.Charger.Open(ctx, r)
}

func (p *alwaysNew) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	if p.n++; p.opened.Key != "" {
		p.opened.Key += strconv.Itoa(p.n)
		if in, err := p.Charger.Open(ctx, p.opened); err == nil {
			r.Ref = in.Ref
		}
	}
	return p.Charger.Confirm(ctx, r)
}

// A wholeWire is the way of a process to all that Stripe can do: a payment run takes over
// cards, records refunds and sweeps orphans besides. A process that has died does none of it.
type wholeWire struct {
	*wire
	bank wholeBank
}

func (x *wholeWire) alive() error {
	if x.p.edge != nil && !x.p.faults.died() {
		x.p.edge()
	}
	if x.p.faults.died() {
		return storetest.ErrCrash
	}
	return nil
}

func (x *wholeWire) MakeCustomer(ctx context.Context, r processor.CustomerRequest) (string, error) {
	if err := x.alive(); err != nil {
		return "", err
	}
	return x.bank.MakeCustomer(ctx, r)
}

func (x *wholeWire) Attach(ctx context.Context, p processor.Payer, method string) (processor.Card, error) {
	if err := x.alive(); err != nil {
		return processor.Card{}, err
	}
	return x.bank.Attach(ctx, p, method)
}

func (x *wholeWire) Card(ctx context.Context, at, method string) (processor.Card, error) {
	if err := x.alive(); err != nil {
		return processor.Card{}, err
	}
	return x.bank.Card(ctx, at, method)
}

func (x *wholeWire) CardLink(ctx context.Context, r processor.LinkRequest) (processor.CardLink, error) {
	if err := x.alive(); err != nil {
		return processor.CardLink{}, err
	}
	return x.bank.CardLink(ctx, r)
}

func (x *wholeWire) Setups(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Setup, error] {
	if err := x.alive(); err != nil {
		return func(yield func(processor.Setup, error) bool) { yield(processor.Setup{}, err) }
	}
	return x.bank.Setups(ctx, r)
}

func (x *wholeWire) Refund(ctx context.Context, r processor.RefundRequest) (processor.Reversal, error) {
	if err := x.alive(); err != nil {
		return processor.Reversal{}, err
	}
	return x.bank.Refund(ctx, r)
}

func (x *wholeWire) ReversalsOf(ctx context.Context, ref string) ([]processor.Reversal, error) {
	if err := x.alive(); err != nil {
		return nil, err
	}
	return x.bank.ReversalsOf(ctx, ref)
}

func (x *wholeWire) Reversals(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Reversal, error] {
	if err := x.alive(); err != nil {
		return func(yield func(processor.Reversal, error) bool) { yield(processor.Reversal{}, err) }
	}
	return x.bank.Reversals(ctx, r)
}
