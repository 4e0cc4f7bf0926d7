package billingapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billingapi"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/spectest"
	"github.com/duesday/duesday/internal/web"
)

const today = "2027-01-31" // of the world's clock, at noon

// A world is a store and a processor, before which one process after another serves the API.
type world struct {
	*testing.T
	mem    *memstore.Store
	tables schema.Tables
	box    *sandbox.Sandbox
	days   atomic.Int64 // that the clock is ahead
	hours  atomic.Int64 // that the clock is ahead besides
	spec   *spectest.Spec
	keys   map[string]string // texts by scope, and of a merchant's key
	faults *faulty           // of the process that serves
	h      http.Handler
	runs   *billingapi.Runs
	asked  int
	match  string // If-Match of the requests

	lease  time.Duration // of the next process; 0: the store is not shared
	claims *store.Claims // of all processes on a folder; nil: none
}

var (
	parsed sync.Once // openapi.json, which takes longer than a test
	spec   *spectest.Spec
)

func newWorld(t *testing.T) *world {
	t.Helper()
	parsed.Do(func() { spec = spectest.New(t) })
	w := &world{T: t, tables: schema.New(schema.DefaultPrefix), keys: map[string]string{}, spec: spec}
	var err error
	if w.mem, err = memstore.Open(w.tables.All(), w.now); err != nil {
		t.Fatal(err)
	}
	if w.box, err = sandbox.Open("", sandbox.Options{Now: w.now}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	ring := key.New(key.Options{Store: w.mem, Table: w.tables.RecurringPayments.Name, Now: w.now})
	for _, k := range []key.Key{{Scope: key.Read}, {Scope: key.Write}, {Scope: key.Charge}, {Scope: key.Admin},
		{Scope: key.Admin, Merchant: "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"}} {
		name := string(k.Scope)
		if k.Merchant != "" {
			name = "merchant"
		}
		k.Name = name
		text, err := ring.Create(t.Context(), &k)
		if err != nil {
			t.Fatal(err)
		}
		w.keys[name] = text.Reveal()
	}
	return w
}

func (w *world) now() time.Time {
	at, _ := time.Parse(time.DateOnly, today)
	return at.Add(time.Duration(12+w.hours.Load())*time.Hour).AddDate(0, 0, int(w.days.Load()))
}

// restart lets the next process serve.
func (w *world) restart() {
	w.Helper()
	w.faults = &faulty{Store: w.mem}
	var s store.Store = w.faults
	if w.claims != nil {
		s = claiming{w.faults, w.claims}
	}
	e, err := engine.Open(w.Context(), engine.Options{Store: s, Lease: w.lease, Tables: w.tables, Processor: w.box, Now: w.now,
		Config: engine.DefaultConfig(), Making: billing.MakeNew, KeepSettings: true})
	if err != nil {
		w.Fatal(err)
	}
	messages := delivery.New(delivery.Options{Store: w.faults, Tables: w.tables, Now: w.now,
		Days: func(context.Context) (int, error) { return 30, nil }})
	ring := key.New(key.Options{Store: w.faults, Table: e.Table, Now: w.now})
	w.runs = billingapi.NewRuns(func(ctx context.Context, kind billing.Kind, o job.Options) error {
		run := job.Payments
		if kind == billing.Reminders {
			run = job.Reminders
		}
		_, err := run(ctx, e, o)
		return err
	}, e.Reconcile)
	w.h = w.spec.Wrap(w.T, web.New(web.Options{Log: slog.New(slog.NewTextHandler(w.Output(), nil)), Keys: ring, Store: w.faults, Table: e.Table, Now: w.now,
		Routes: billingapi.Routes(billingapi.Options{Engine: e, Keys: ring, Messages: messages, Runs: w.runs,
			Mails: &maillog.Log{Store: w.faults, Tables: w.tables, Now: w.now}, Render: rendered,
			Look: func(context.Context) []status.Check {
				return []status.Check{{Name: "store", State: status.OK, Text: "format 4",
					Values: []status.Value{{Metric: "duesday_look_timestamp_seconds", Number: 1801396799.25}}}}
			}})}))
}

// rendered is a text that has the mail's address.
func rendered(_ context.Context, e outbox.Effect) (subject, text string, err error) {
	return e.Kind, "To " + e.Data[outbox.DataEmail], nil
}

// A claiming store keeps claims, as a folder does.
type claiming struct {
	store.Store
	*store.Claims
}

// An answer is one of the API.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

// ask sends a request with the key of the scope and, for a POST, the idempotency key.
func (w *world) ask(scope, method, path, idempotency, body string) answer {
	w.Helper()
	var in *bytes.Reader
	r := httptest.NewRequestWithContext(w.Context(), method, path, nil)
	if body != "" {
		in = bytes.NewReader([]byte(body))
		r = httptest.NewRequestWithContext(w.Context(), method, path, in)
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+w.keys[scope])
	if idempotency != "" {
		r.Header.Set("Idempotency-Key", idempotency)
	}
	if w.match != "" {
		r.Header.Set("If-Match", w.match)
	}
	out := httptest.NewRecorder()
	w.h.ServeHTTP(out, r)
	a := answer{status: out.Code, header: out.Header(), text: out.Body.String()}
	if err := json.Unmarshal(out.Body.Bytes(), &a.body); err != nil && out.Code != http.StatusNoContent {
		w.Errorf("%s %s: %d %s: %v", method, path, a.status, a.text, err)
	}
	return a
}

// must sends a request with an admin's key and a new idempotency key, which must succeed.
func (w *world) must(method, path, body string) answer {
	w.Helper()
	w.asked++
	idempotency := ""
	if method == http.MethodPost {
		idempotency = fmt.Sprint("must ", w.asked)
	}
	a := w.ask("admin", method, path, idempotency, body)
	if a.status >= 300 {
		w.Fatalf("%s %s %s: %d %s", method, path, body, a.status, a.text)
	}
	return a
}

const visa = `,"payment_method":"pm_card_visa"`

const subscription = "/v1/accounts/ada/subscriptions/s1"

// signUp creates an account with a subscription that is due today.
func (w *world) signUp(more string) {
	w.Helper()
	w.must("POST", "/v1/accounts", `{"id":"ada","email":"ada@example.com"}`)
	w.must("POST", "/v1/accounts/ada/subscriptions", `{"id":"s1","sku":"gym","amount":1299,"currency":"EUR","payment_day":31,`+
		more[1:]+`}`)
}

// charged returns how often the processor was paid, and fails for a second time in one period.
func (w *world) charged() (n int) {
	w.Helper()
	seen := map[string]bool{}
	for x := range w.box.Entries() {
		if x.State == processor.Succeeded {
			n++
			name := fmt.Sprint(x.Tag.Account, "/", x.Tag.Subscription, " ", x.Tag.Period)
			if seen[name] {
				w.Errorf("%s was charged twice", name)
			}
			seen[name] = true
		}
	}
	return n
}

// A faulty store cuts a process off: after a number of commits, everything fails.
type faulty struct {
	store.Store
	left atomic.Int64 // commits until everything fails; 0: never
	lost atomic.Bool  // the reply of the last one of them is lost
	dead atomic.Bool
	bad  atomic.Bool  // the next commit of a request panics
	done atomic.Int64 // commits
	scan func()       // called at each scan; may be nil
}

func (f *faulty) Scan(ctx context.Context, sc store.Scan) iter.Seq2[store.Item, error] {
	if f.scan != nil {
		f.scan()
	}
	return f.Store.Scan(ctx, sc)
}

func (f *faulty) Commit(ctx context.Context, writes ...store.Write) error {
	if f.dead.Load() {
		return store.ErrClosed
	}
	if !writes[0].Set.Has(schema.UsedDate) && f.bad.CompareAndSwap(true, false) {
		panic("planted")
	}
	err := f.Store.Commit(ctx, writes...)
	if err != nil || writes[0].Set.Has(schema.UsedDate) { // the key's last use is stored beside the request, at any time
		return err
	}
	f.done.Add(1)
	if f.left.Load() > 0 && f.left.Add(-1) == 0 {
		f.dead.Store(true)
		if f.lost.Load() {
			return store.ErrUnknown
		}
	}
	return nil
}

func (f *faulty) Get(ctx context.Context, table string, k store.Key) (store.Item, error) {
	if f.dead.Load() {
		return nil, store.ErrClosed
	}
	return f.Store.Get(ctx, table, k)
}

// names returns the fields that a problem names.
func (a answer) names() string {
	var names []string
	list, _ := a.body["errors"].([]any)
	for _, x := range list {
		pointer, ok := x.(map[string]any)["pointer"].(string)
		if !ok {
			pointer, _ = x.(map[string]any)["parameter"].(string)
		}
		names = append(names, strings.TrimPrefix(pointer, "#/"))
	}
	return strings.Join(names, " ")
}

// splitPattern returns the method, and a path with values.
func splitPattern(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	for name, value := range map[string]string{"{account}": "ada", "{subscription}": "s1", "{period}": "0", "{number}": "20270131-0-0",
		"{run}": "none", "{key}": "dd_none", "{endpoint}": "ep_none"} {
		path = strings.ReplaceAll(path, name, value)
	}
	return method, path
}
