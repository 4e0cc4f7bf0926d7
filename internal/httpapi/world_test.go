package httpapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/openapi"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

const (
	apiKey        = apiKeyID + "_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	apiKeyID      = "dd_aaaaaaaaab"
	account       = "6f2c0f5e-0b7e-4d7e-9d0a-1c2d3e4f5a6b"
	other         = "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58" // another merchant
	purchaseID    = "5a72bd8a-6bd8-83c3-9945-bb77f527af5c"
	stripeAccount = "acct_1A2b3C"
	platformPath  = "/webhooks/stripe"
	connectPath   = "/webhooks/stripe/connect"
)

// The secrets of the two endpoints: an old and a new one, and that for connected accounts.
var (
	oldSecret     = secret.New("whsec_old")
	newSecret     = secret.New("whsec_new")
	connectSecret = secret.New("whsec_connect")
)

// A world is a server over real HTTP, and what is behind it: everything it was asked, and
// what it answers.
type world struct {
	take func(ctx context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error)
	fail error // of everything but Ingest; of a list after its rows

	checks bool // an order is checked, as the service does

	mu    sync.Mutex
	asked []string // calls, but for Ingest
	taken []tracking.Origin
	log   bytes.Buffer
	order tracking.Order

	created    *tracking.Created
	timeline   *tracking.Timeline
	purchases  []*tracking.Purchase
	payments   []*tracking.Payment
	events     []tracking.EventRow
	event      *tracking.Event
	unfinished []*tracking.Event
	accounts   []*tracking.ConnectedAccount
	query      tracking.EventQuery
	after      tracking.Mark
	now        time.Time
	keys       *key.Ring
	store      store.Store
	jobs       []tracking.WaitingJob
}

func newWorld() *world {
	w := &world{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		created: &tracking.Created{Purchase: &tracking.Purchase{ID: purchaseID}}}
	w.take = func(context.Context, []byte, tracking.Origin) (tracking.Verdict, error) {
		return tracking.Verdict{Event: "evt_1", Status: tracking.Applied}, nil
	}
	s, err := memstore.Open(schema.New("").All(), func() time.Time { return w.now })
	if err != nil {
		panic(err)
	}
	w.keys = key.New(key.Options{Store: s, Table: schema.New("").RecurringPayments.Name,
		Now: func() time.Time { return w.now }})
	storeAPIKey(s)
	w.store = s
	return w
}

// storeAPIKey stores the key apiKey: of scope admin, and of all merchants.
func storeAPIKey(s store.Store) {
	it := store.NewItem()
	for name, text := range map[string]string{schema.PK: "KEYS", schema.SK: apiKeyID, schema.Name: "test", schema.Scope: "admin",
		schema.SecretHash: fmt.Sprintf("%x", sha256.Sum256([]byte(apiKey[len(apiKeyID)+1:]))), schema.CreatedDate: "2026-01-01T00:00:00.000Z"} {
		it.Set(name, store.S(text))
	}
	if err := s.Commit(context.Background(), store.Put(schema.New("").RecurringPayments.Name, it, store.Absent())); err != nil {
		panic(err)
	}
}

// key makes a key of the scope and merchant.
func (w *world) key(t testing.TB, scope key.Scope, merchant string) string {
	t.Helper()
	k := key.Key{Name: fmt.Sprint(scope, "-", merchant), Scope: scope, Merchant: merchant}
	text, err := w.keys.Create(t.Context(), &k)
	if err != nil {
		t.Fatal(err)
	}
	return text.Reveal()
}

// Write takes the log.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

func (w *world) origins() []tracking.Origin {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]tracking.Origin(nil), w.taken...)
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, fmt.Sprintf(format, args...))
}

func (w *world) options() httpapi.Options {
	return httpapi.Options{
		Inbox: w, Shop: w, Record: w, Backend: w, Verify: event.Verify,
		Import: func(_ context.Context, at string, plan, fulfil bool) (view.Object, error) {
			w.note("import %s %v %v", at, plan, fulfil)
			return view.Object{"stripe_account", at}, w.fail
		},
		Hooks: []httpapi.Hook{
			{Path: platformPath, Secrets: []secret.Text{oldSecret, newSecret}},
			{Path: connectPath, Connect: true, Secrets: []secret.Text{connectSecret}},
		},
		Options: web.Options{Keys: w.keys, Store: w.store, Table: schema.New("").RecurringPayments.Name, Now: func() time.Time { return w.now },
			Log: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))},
	}
}

func (w *world) handler(t testing.TB) http.Handler {
	t.Helper()
	return httpapi.New(w.options())
}

func (w *world) serve(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(w.handler(t))
	t.Cleanup(server.Close)
	return server
}

// A reply is an answer as it came.
type reply struct {
	status int
	header http.Header
	text   string
	code   string // of an error
	field  string // the first wrong one
	fields []string
	err    string
}

// do sends a request, and holds the answer to what all answers have.
func do(t testing.TB, r *http.Request) reply {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response)
}

func read(t testing.TB, response *http.Response) reply {
	t.Helper()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if kind := response.Header.Get("Content-Type"); kind != "application/json" && kind != "application/x-ndjson" && kind != "application/problem+json" {
		t.Errorf("got Content-Type %q with status %d", kind, response.StatusCode)
	}
	a := reply{status: response.StatusCode, header: response.Header,
		text: strings.Replace(string(text), response.Header.Get("Request-Id"), "ID", 1)} // so that the same problems are equal
	if response.Request.Method == http.MethodHead {
		return a
	}
	if response.Header.Get("Content-Type") == "application/json" && !json.Valid(text) {
		t.Errorf("the answer is no JSON: %q", text)
	}
	if response.StatusCode >= 400 {
		p := problem(t, response.StatusCode, response.Header, text)
		a.code, a.err = p.Code, p.Detail
		for _, f := range p.Errors {
			a.fields = append(a.fields, f.Parameter+strings.TrimPrefix(f.Pointer, "#/"))
			a.field = a.fields[0]
		}
	}
	return a
}

// A problemForm is a problem as callers get it.
type problemForm struct {
	Type, Title, Detail, Code, Object string
	Status                            int
	RequestID                         string `json:"request_id"`
	Errors                            []web.FieldProblem
}

// titles are those of the codes in openapi.json.
var titles = sync.OnceValue(func() map[string]string {
	var d struct {
		Components struct {
			Schemas struct {
				Problem struct {
					Codes map[string]struct{ Title string } `json:"x-codes"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(openapi.Text()), &d); err != nil {
		panic(err)
	}
	all := map[string]string{}
	for code, of := range d.Components.Schemas.Problem.Codes {
		all[code] = of.Title
	}
	return all
})

// problem holds an error's answer to RFC 9457.
func problem(t testing.TB, status int, header http.Header, text []byte) (p problemForm) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&p); err != nil || header.Get("Content-Type") != "application/problem+json" || p.Status != status ||
		p.Type != "/docs#error-"+p.Code || p.Code == "" || p.Title == "" || p.Title == http.StatusText(status) ||
		p.RequestID == "" || p.RequestID != header.Get("Request-Id") || (p.Code == "field") != (len(p.Errors) > 0) {
		t.Errorf("status %d, not a problem: %s, %v", status, text, err)
	}
	if title, ok := titles()[p.Code]; ok && p.Title != title {
		t.Errorf("the title of %s is %q, and in openapi.json %q", p.Code, p.Title, title)
	}
	for _, f := range p.Errors {
		if f.Code == "" || f.Detail == "" || f.Pointer != "" && f.Parameter != "" || f.Pointer != "" && !strings.HasPrefix(f.Pointer, "#") {
			t.Errorf("not the problem of a field: %+v", f)
		}
	}
	return p
}

func request(t testing.TB, method, url, body string, header ...string) *http.Request {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return r
}

// authorized is a request with the key, and JSON in it.
func authorized(t testing.TB, method, url, body string, header ...string) *http.Request {
	t.Helper()
	header = append([]string{"Authorization", "Bearer " + apiKey}, header...)
	if body != "" {
		header = append([]string{"Content-Type", "application/json"}, header...)
	}
	return request(t, method, url, body, header...)
}

func sequence[T any](all []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

func (w *world) Ingest(ctx context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error) {
	w.mu.Lock()
	w.taken = append(w.taken, from)
	w.mu.Unlock()
	return w.take(ctx, body, from)
}

func (w *world) CreatePurchase(_ context.Context, o tracking.Order) (*tracking.Created, error) {
	if err := o.Check(); err != nil && w.checks {
		return nil, err
	}
	w.note("create %s", o.Key)
	w.order = o
	if w.fail != nil {
		return nil, w.fail
	}
	return w.created, nil
}

func (w *world) Purchases(_ context.Context, account string, after tracking.Mark) iter.Seq2[*tracking.Purchase, error] {
	w.note("purchases of %s", account)
	w.after = after
	return sequence(w.purchases, w.fail)
}

func (w *world) Timeline(_ context.Context, id string) (*tracking.Timeline, error) {
	w.note("timeline %s", id)
	return w.timeline, w.fail
}

func (w *world) Payments(_ context.Context, account string, after tracking.Mark) iter.Seq2[*tracking.Payment, error] {
	w.note("payments of %s", account)
	w.after = after
	return sequence(w.payments, w.fail)
}

func (w *world) Payment(_ context.Context, at, id string) (*tracking.Payment, error) {
	w.note("payment %s %s", at, id)
	if w.fail != nil {
		return nil, w.fail
	}
	return w.payments[0], nil
}

func (w *world) Events(_ context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error] {
	w.note("events")
	w.query = q
	return sequence(w.events, w.fail)
}

func (w *world) Undecided(_ context.Context, after string) iter.Seq2[*tracking.Event, error] {
	w.note("undecided after %s", after)
	return sequence(w.unfinished, w.fail)
}

func (w *world) Quarantined(_ context.Context, after tracking.Mark) iter.Seq2[*tracking.Event, error] {
	w.note("quarantined after %s %s", after.StripeAccount, after.ID)
	return sequence(w.unfinished, w.fail)
}

func (w *world) Replay(_ context.Context, id string) (tracking.Verdict, error) {
	w.note("replay event %s", id)
	return tracking.Verdict{}, w.fail
}

func (w *world) Event(_ context.Context, id string) (*tracking.Event, error) {
	w.note("event %s", id)
	return w.event, w.fail
}

func (w *world) Register(_ context.Context, merchant, stripeAccount string) (*tracking.ConnectedAccount, error) {
	w.note("register %s %s", merchant, stripeAccount)
	return &tracking.ConnectedAccount{Merchant: merchant, StripeAccount: stripeAccount}, w.fail
}

func (w *world) ConnectedAccount(_ context.Context, stripeAccount string) (*tracking.ConnectedAccount, error) {
	w.note("account %s", stripeAccount)
	return w.accounts[0], w.fail
}

func (w *world) Jobs(context.Context) iter.Seq2[tracking.WaitingJob, error] {
	w.note("jobs")
	return sequence(w.jobs, w.fail)
}

func (w *world) ReplayJob(_ context.Context, id string) error {
	w.note("replay %s", id)
	return w.fail
}

func (w *world) PurchaseOf(_ context.Context, merchant, key string) (*tracking.Purchase, error) {
	w.note("purchase of %s %s", merchant, key)
	return w.created.Purchase, w.fail
}

func (w *world) ConnectedAccounts(context.Context) iter.Seq2[*tracking.ConnectedAccount, error] {
	return func(yield func(*tracking.ConnectedAccount, error) bool) {
		w.note("accounts") // when it is read
		sequence(w.accounts, w.fail)(yield)
	}
}
