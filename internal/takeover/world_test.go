package takeover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/takeover"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

const merchant = "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"

// A world has a fake of Stripe with a memory, over HTTP, and one store with both halves.
type world struct {
	testing.TB
	at      atomic.Pointer[time.Time] // the handler of a request that a dead process abandoned may still read it
	fake    *stripefake.Fake
	server  *httptest.Server
	tables  schema.Tables
	inner   store.Store
	lease   time.Duration // of a store that machines share
	store   *storetest.Faulty
	proc    *stripe.Processor
	engine  *engine.Engine
	tracked *tracking.Service
	mu      sync.Mutex // guards done and left: jobs are delivered at the same time
	done    map[tracking.Action]int
	left    []string // purchases that were unsubscribed
	read    int      // events ingested
	crash   *crash
	before  func(*http.Request) // is called before each of Duesday's requests
}

// A crash ends the process at a request or a commit: before it, or after it, so that its answer is lost.
type crash struct {
	left  atomic.Int64 // points until then
	ended atomic.Bool
	stop  context.CancelCauseFunc
}

// point counts one, and returns an error at the crash and afterwards.
func (c *crash) point() error {
	if c == nil {
		return nil
	}
	if c.left.Add(-1) < 0 {
		c.ended.Store(true)
		c.stop(storetest.ErrCrash)
	}
	if c.ended.Load() {
		return storetest.ErrCrash
	}
	return nil
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.crash.point(); err != nil {
		return nil, err
	}
	if w.before != nil {
		w.before(r)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if lost := w.crash.point(); lost != nil && err == nil {
		res.Body.Close()
		return nil, lost
	}
	return res, err
}

func newWorld(t testing.TB, watch ...func(http.Handler) http.Handler) *world {
	t.Helper()
	w := newFake(t, watch...)
	w.tables = schema.New(schema.DefaultPrefix)
	mem, err := memstore.Open(w.tables.All(), w.now)
	w.must(err)
	w.inner = mem
	w.start(nil)
	return w
}

// newFake returns a world without a store.
func newFake(t testing.TB, watch ...func(http.Handler) http.Handler) *world {
	t.Helper()
	w := &world{TB: t, done: map[tracking.Action]int{}}
	w.at.Store(new(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)))
	w.fake = stripefake.New(stripefake.Options{Now: w.now})
	serve := http.Handler(w.fake)
	for _, watch := range watch {
		serve = watch(serve)
	}
	w.server = httptest.NewServer(serve)
	t.Cleanup(func() {
		w.proc.Close()
		w.server.Close()
		w.must(w.fake.Close())
	})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start begins a process on the store, which ends at the crash; nil: it does not.
func (w *world) start(c *crash) {
	w.Helper()
	w.crash = nil
	w.store = storetest.NewFaulty(w.inner)
	if w.proc != nil {
		w.proc.Close()
	}
	var err error
	w.proc, err = stripe.New(stripe.Options{API: api.Options{Key: secret.New("sk_test_duesday"), Base: w.server.URL, Now: w.now, Rate: api.MaxRate,
		Transport: w}})
	w.must(err)
	w.engine, err = engine.Open(context.Background(), engine.Options{Store: w.store, Tables: w.tables, Processor: w.proc, Now: w.now,
		Config: engine.DefaultConfig(), KeepSettings: true, Lease: w.lease})
	w.must(err)
	own, live, err := w.proc.API().Own(context.Background())
	w.must(err)
	asked := sell.New(w.proc.API())
	w.tracked, err = tracking.Open(context.Background(), tracking.Options{Store: w.store, Tables: w.tables, Now: w.now, Own: own, Live: live,
		Decode: event.Decode, Finder: asked, Seller: asked, Settler: w.engine, Installation: w.engine.Opened.Installation, Automations: []tracking.Automation{w}})
	w.must(err)
	if c != nil {
		w.store.Hook = func(o storetest.Operation, _ storetest.Phase) error {
			if o.Kind != storetest.Commit {
				return nil
			}
			return c.point()
		}
	}
	w.crash = c
}

// Name, Takes and Do make the world an automation that counts.
func (w *world) Name() string               { return "count" }
func (w *world) Takes(tracking.Action) bool { return true }
func (w *world) Do(_ context.Context, j tracking.Job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[j.Action]++
	if j.Action == tracking.ActionUnsubscribe {
		w.left = append(w.left, j.Purchase)
	}
	return nil
}

func (w *world) service() *takeover.Service {
	v, err := takeover.New(w.engine)
	w.must(err)
	return v
}

type thing map[string]any

func (o thing) id() string { return o["id"].(string) }

// stripe sends a request of the shop's own to the fake.
func (w *world) stripe(method, path string, pairs ...string) thing {
	w.Helper()
	form := url.Values{}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		form.Add(name, value)
	}
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(form.Encode())
	} else if len(form) > 0 {
		path += "?" + form.Encode()
	}
	r, err := http.NewRequestWithContext(context.Background(), method, w.server.URL+"/v1/"+path, body)
	w.must(err)
	r.Header.Set("Authorization", "Bearer sk_test_duesday")
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := http.DefaultClient.Do(r)
	w.must(err)
	defer res.Body.Close()
	var o thing
	w.must(json.NewDecoder(res.Body).Decode(&o))
	if res.StatusCode != http.StatusOK {
		w.Fatalf("%s %s: %d %v", method, path, res.StatusCode, o)
	}
	return o
}

func (w *world) post(path string, pairs ...string) thing {
	w.Helper()
	return w.stripe(http.MethodPost, path, pairs...)
}

// customer makes a customer with a card, which pays its invoices.
func (w *world) customer(n int) (customer, method string) {
	w.Helper()
	c := w.post("customers", fmt.Sprintf("email=c%d@example.com", n), fmt.Sprintf("name=Customer %d", n))
	m := w.post("payment_methods/pm_card_visa/attach", "customer="+c.id())
	w.post("customers/"+c.id(), "invoice_settings[default_payment_method]="+m.id())
	return c.id(), m.id()
}

func (w *world) price(pairs ...string) string {
	w.Helper()
	product := w.post("products", "name=Gym")
	return w.post("prices", append([]string{"product=" + product.id(), "currency=usd", "unit_amount=1500", "recurring[interval]=month"}, pairs...)...).id()
}

// follow has the tracking half read every event that it has not read yet, and deliver what they ask for.
func (w *world) follow() {
	w.Helper()
	own, live, err := w.proc.API().Own(context.Background())
	w.must(err)
	all := w.fake.Events(own, live, "")
	for _, e := range all[w.read:] {
		_, err := w.tracked.Ingest(context.Background(), e.Body, tracking.Origin{})
		w.must(err)
	}
	w.read = len(all)
	_, err = w.tracked.DrainInbox(context.Background())
	w.must(err)
	_, err = w.tracked.Deliver(context.Background())
	w.must(err)
}

// run runs the payments.
func (w *world) run() *job.Report {
	w.Helper()
	r, err := job.Payments(context.Background(), w.engine, job.Options{Workers: 2})
	w.must(err)
	return r
}

// days passes so many days: each has a run at nine, and whatever Stripe does meanwhile.
func (w *world) days(n int) {
	w.Helper()
	for range n {
		w.pass(24 * time.Hour)
		w.fake.SetNow(w.now())
		w.run()
	}
}

func (w *world) now() time.Time       { return *w.at.Load() }
func (w *world) pass(d time.Duration) { w.at.Store(new(w.now().Add(d))) }
func (w *world) today() civil.Date    { return civil.Of(w.now()) }

// take takes over whatever can be, and returns the entries by their subscription at Stripe.
func (w *world) take(ctx context.Context, f takeover.Filter) (map[string]takeover.Entry, error) {
	found, first := map[string]takeover.Entry{}, error(nil)
	err := w.service().Start(ctx, f, func(e takeover.Entry, err error) {
		found[e.Theirs.ID] = e
		first = errors.Join(first, err)
	})
	return found, errors.Join(err, first)
}

func (w *world) verify() *audit.Report {
	w.Helper()
	r, err := w.engine.Verify(context.Background())
	w.must(err)
	return r
}

func (w *world) ours(n billing.Name) *billing.Subscription {
	w.Helper()
	s, err := w.engine.Subscription(context.Background(), n)
	w.must(err)
	return s
}

// idle passes so many days without a run.
func (w *world) idle(n int) {
	for range n {
		w.pass(24 * time.Hour)
		w.fake.SetNow(w.now())
	}
}
