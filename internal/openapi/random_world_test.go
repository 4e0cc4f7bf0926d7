package openapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
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
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/delivery/cause"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
	"github.com/duesday/duesday/stripefake"
)

const (
	merchant      = "6f2c0f5e-0b7e-4d7e-9d0a-1c2d3e4f5a6b"
	otherMerchant = "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"
)

// A world is a running server with both halves, and what is behind it.
type world struct {
	*testing.T
	ahead   atomic.Int64 // nanoseconds, of the clock
	store   *recorder
	tables  schema.Tables
	callers []caller
	log     lastLines
	address string // of the API
	hook    string // URL of a receiver of deliveries
	conn    net.Conn
	in      *bufio.Reader
	stop    func() error
}

// A caller has an API key, whose scope is "" if it is not valid.
type caller struct {
	header, merchant string // header: the value of Authorization
	scope            key.Scope
}

func (w *world) now() time.Time {
	return time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC).Add(time.Duration(w.ahead.Load()))
}

// A recorder notes what each commit writes, by the id of the request; "": none.
type recorder struct {
	store.Store
	mu      sync.Mutex
	written map[string][]store.Write
}

func (s *recorder) Commit(ctx context.Context, writes ...store.Write) error {
	err := s.Store.Commit(ctx, writes...)
	if err == nil {
		id := web.RequestID(ctx)
		if ctx.Value(ofRun{}) != nil {
			id = runID
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, w := range writes {
			if w.Op == store.OpPut {
				w.Key = store.Key{PK: w.Item.Str(schema.PK), SK: w.Item.Str(schema.SK)} // of a table with other keys: empty
			}
			if w.Op != store.OpCheck {
				s.written[id] = append(s.written[id], w)
			}
		}
	}
	return err
}

// take returns what was written since the last call, by request.
func (s *recorder) take() map[string][]store.Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.written
	s.written = map[string][]store.Write{}
	return all
}

// ofRun marks the context of requested runs, whose writes have runID.
type ofRun struct{}

const runID = "run"

type marked struct{ *billingapi.Runs }

func (m marked) Run(ctx context.Context) error {
	return m.Runs.Run(context.WithValue(ctx, ofRun{}, true))
}

// lastLines has the last lines of the log.
type lastLines struct {
	mu  sync.Mutex
	all []string
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all[max(0, len(l.all)-4):], string(p))
	return len(p), nil
}

func (l *lastLines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.all, "")
	l.all = nil
	return text
}

// inMemory sends requests to a handler.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	a := httptest.NewRecorder()
	m.ServeHTTP(a, r)
	return a.Result(), r.Context().Err()
}

// failing is an automation that fails for some purchases, so that jobs wait.
type failing struct{}

func (failing) Name() string               { return "failing" }
func (failing) Takes(tracking.Action) bool { return true }
func (failing) Do(_ context.Context, j tracking.Job) error {
	if strings.HasPrefix(j.Purchase, "0") || strings.HasPrefix(j.Purchase, "1") {
		return outbox.ErrPermanent
	}
	return nil
}

// must ends the test after an error.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// open opens the store: in memory, or on disk for a test of all cases, so that the heap does not grow with it.
func (w *world) open() store.Store {
	if !soaktest.On() {
		return must[*memstore.Store](w)(memstore.Open(w.tables.All(), w.now))
	}
	return must[*pebblestore.Store](w)(pebblestore.Open(w.TempDir(), pebblestore.Options{Tables: w.tables.All(), Revision: schema.Revision,
		Names: schema.Names(), Now: w.now, Create: true, CacheBytes: 8 << 20}))
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, tables: schema.New(schema.DefaultPrefix)}
	w.store = &recorder{Store: w.open(), written: map[string][]store.Write{}}
	log := slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelError}))
	box := must[*sandbox.Sandbox](t)(sandbox.Open("", sandbox.Options{Now: w.now}))
	e := must[*engine.Engine](t)(engine.Open(t.Context(), engine.Options{Store: w.store, Tables: w.tables, Processor: box, Now: w.now,
		Config: engine.DefaultConfig(), Making: billing.MakeNew, KeepSettings: true, Log: log}))
	messages := delivery.New(delivery.Options{Store: w.store, Tables: w.tables, Now: w.now, Log: log,
		Days: func(context.Context) (int, error) { return 30, nil }})
	cause.Of(e.Records, messages)
	ring := key.New(key.Options{Store: w.store, Table: e.Table, Now: w.now, Log: log})
	w.addCallers(ring)
	runs := billingapi.NewRuns(func(ctx context.Context, kind billing.Kind, o job.Options) error {
		run := job.Payments
		if kind == billing.Reminders {
			run = job.Reminders
		}
		_, err := run(ctx, e, o)
		return err
	}, e.Reconcile)
	receiver := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "fail") {
			a.WriteHeader(http.StatusInternalServerError)
		}
	}))
	w.hook = receiver.URL
	hooks, listener := w.listen(), w.listen()
	w.address = listener.Addr().String()
	const platform, connect = "whsec_platform", "whsec_connect"
	transport := &http.Transport{}
	fake := stripefake.New(stripefake.Options{Now: w.now, Connected: []string{"acct_shop", "acct_other", "acct_third"}, Transport: transport,
		Webhooks: []stripefake.Webhook{{URL: "http://" + hooks.Addr().String() + server.HookPath, Secret: platform},
			{URL: "http://" + hooks.Addr().String() + server.ConnectPath, Secret: connect, Connect: true}}})
	client := must[*api.Client](t)(api.New(api.Options{Key: secret.New("sk_test_duesday"), Base: "http://localhost", Now: w.now,
		Transport: inMemory{fake}, Rate: api.MaxRate}))
	stripe := sell.New(client)
	service := must[*tracking.Service](t)(tracking.Open(t.Context(), tracking.Options{Store: w.store, Tables: w.tables,
		Installation: e.Opened.Installation, Own: stripefake.DefaultAccount, Now: w.now, Log: log, Decode: event.Decode, Finder: stripe,
		Seller: stripe, Automations: []tracking.Automation{failing{}}}))
	for id, at := range map[string]string{merchant: "acct_shop", otherMerchant: "acct_other"} {
		must[*tracking.ConnectedAccount](t)(service.Register(t.Context(), id, at))
	}
	served := must[*server.Server](t)(server.New(server.Options{Service: service, Lister: stripe, Hooks: hooks, API: listener, Connections: 100,
		Requested: marked{runs}, Deliveries: messages.NewSender(w.now, true), Events: stripe, PollSecret: secret.New(strings.Repeat("p", 32)),
		StripeNow: w.now, WebhookSecrets: []secret.Text{secret.New(platform)}, ConnectSecrets: []secret.Text{secret.New(connect)},
		Now: w.now, Clock: clock.Machine(w.now), Log: log, HTTP: httpapi.Options{Options: web.Options{Keys: ring, Store: w.store, Table: e.Table,
			Routes: billingapi.Routes(billingapi.Options{Engine: e, Keys: ring, Messages: messages, Runs: runs, Look: look,
				Mails: &maillog.Log{Store: w.store, Tables: w.tables, Now: w.now}, Render: func(_ context.Context, e outbox.Effect) (subject, text string, err error) {
					return e.Kind, "text", nil
				}}),
			Metrics: http.HandlerFunc(func(a http.ResponseWriter, _ *http.Request) { fmt.Fprintln(a, "duesday_up 1") })}}}))
	w.store.take()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- served.Run(ctx) }()
	w.stop = sync.OnceValue(func() error {
		if w.conn != nil {
			_ = w.conn.Close()
		}
		_ = fake.Close()
		cancel()
		err := <-ended
		ring.Wait()
		receiver.Close()
		transport.CloseIdleConnections()
		if disk, ok := w.store.Store.(io.Closer); ok {
			err = errors.Join(err, disk.Close())
		}
		return err
	})
	t.Cleanup(func() { _ = w.stop() })
	return w
}

func look(context.Context) []status.Check {
	return []status.Check{{Name: "store", State: status.OK, Text: "format 4"}, {Name: "mail", State: status.Wrong, Text: "mail is late", Next: "look"}}
}

func (w *world) listen() net.Listener { return must[net.Listener](w)(net.Listen("tcp", "127.0.0.1:0")) }

// addCallers creates keys of every scope, with and without merchants, and some that are not valid.
func (w *world) addCallers(ring *key.Ring) {
	w.callers = []caller{{}, {header: "Bearer wrong"}, {header: "Basic YTpi"}, {header: "Bearer dd_aaaaaaaaaa_" + strings.Repeat("0", 64)}}
	for _, scope := range key.Scopes() {
		for _, of := range []string{"", "", "", merchant, otherMerchant, "revoked"} {
			k := key.Key{Name: fmt.Sprintf("%s.%d", scope, len(w.callers)), Scope: scope, Merchant: strings.TrimSuffix(of, "revoked")}
			c := caller{"Bearer " + must[secret.Text](w)(ring.Create(w.Context(), &k)).Reveal(), k.Merchant, scope}
			if of == "revoked" {
				must[*key.Key](w)(ring.Revoke(w.Context(), k.ID))
				c.scope = ""
			}
			w.callers = append(w.callers, c)
		}
	}
}

// send sends the bytes of a request, and returns the answer with its body.
func (w *world) send(raw []byte, method string) (a *http.Response, text []byte, err error) {
	if w.conn == nil {
		if w.conn, err = net.Dial("tcp", w.address); err != nil {
			return nil, nil, err
		}
		w.in = bufio.NewReader(w.conn)
	}
	_ = w.conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err = w.conn.Write(raw); err == nil {
		a, err = http.ReadResponse(w.in, &http.Request{Method: method})
	}
	if err == nil {
		text, err = io.ReadAll(a.Body)
	}
	if err != nil || a.Close {
		_ = w.conn.Close()
		w.conn = nil
	}
	return a, bytes.TrimSpace(text), err
}
