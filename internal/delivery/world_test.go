package delivery

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// start is a whole second: the standard's timestamps have no fraction.
var start = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// A world is a store with its clock.
type world struct {
	*testing.T
	mu     sync.Mutex
	time   time.Time // guarded by mu
	tables schema.Tables
	store  store.Store
	*Service
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, time: start, tables: schema.New("")}
	s, err := memstore.Open(w.tables.All(), w.clock)
	if err != nil {
		t.Fatal(err)
	}
	w.store = s
	w.Service = w.service(s)
	return w
}

// service returns a Service as another process has it.
func (w *world) service(s store.Store) *Service {
	return New(Options{Store: s, Tables: w.tables, Now: w.clock, Days: func(context.Context) (int, error) { return 30, nil }})
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.time
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = w.time.Add(d)
}

// create creates an endpoint, and waits until every process knows it.
func (w *world) create(url string, types ...string) *Endpoint {
	w.Helper()
	e, from, err := w.Create(w.Context(), url, types)
	if err != nil {
		w.Fatal(err)
	}
	w.pass(from.Sub(w.clock()))
	return e
}

// cause commits an effect with the events.
func (w *world) cause(id string, types ...string) {
	w.Helper()
	w.causeBy(w.Service, id, types...)
}

func (w *world) causeBy(s *Service, id string, types ...string) {
	w.Helper()
	var events []Event
	for _, kind := range types {
		events = append(events, Event{kind, map[string]any{"account": "1", "version": 2}})
	}
	writes, err := s.Effect(w.Context(), id, events...)
	if err == nil && len(writes) > 0 {
		err = w.store.Commit(w.Context(), writes...)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// sender returns a Sender that may connect to this host, and is closed at the end of the test.
func (w *world) sender() *Sender {
	x := w.NewSender(w.clock, true)
	w.Cleanup(func() { x.Close(context.WithoutCancel(w.Context())) })
	return x
}

// drain drains until nothing is due and no request is under way.
func (w *world) drain(x *Sender) {
	w.Helper()
	for range 50 {
		if _, err := x.Drain(w.Context()); err != nil {
			w.Fatal(err)
		}
		x.running.Wait()
		b, err := outbox.New(w.store, w.tables.Outbox, w.clock, nil, nil).On(outbox.Deliveries).Backlog(w.Context(), 0)
		if err != nil {
			w.Fatal(err)
		}
		if b.Due == 0 {
			return
		}
	}
	w.Fatal("messages stay due")
}

// states counts the messages by state.
func (w *world) states() map[string]int {
	w.Helper()
	n := map[string]int{}
	for _, m := range w.messages(Filter{}) {
		n[m.State]++
	}
	return n
}

func (w *world) messages(f Filter) (list []*Message) {
	w.Helper()
	for m, err := range w.Messages(w.Context(), f, "") {
		if err != nil {
			w.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// A receiver is a test server that records what it gets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []request
	answer func(w http.ResponseWriter, n int) // of the nth request, from 1; nil: 204
}

type request struct {
	http.Header
	body string
}

func (r *request) id() string { return r.Get("Webhook-Id") }

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, n int)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		body, _ := io.ReadAll(in.Body)
		r.mu.Lock()
		r.got = append(r.got, request{in.Header.Clone(), string(body)})
		n := len(r.got)
		r.mu.Unlock()
		if r.answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		r.answer(w, n)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// healthy compares the endpoint's health.
func (w *world) healthy(endpoint string, want Health) {
	w.Helper()
	e, none := &Endpoint{ID: endpoint}, &Endpoint{ID: "ep_none"}
	if err := w.Examine(w.Context(), e, none); err != nil || *e.Health != want || *none.Health != (Health{}) {
		w.Errorf("the endpoint's health is %+v, want %+v, %v", *e.Health, want, err)
	}
}
