package tracking_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
	"github.com/duesday/duesday/stripefake"
)

const (
	shopAccount  = "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"
	shopAt       = "acct_shop"
	installation = "inst-explored"
	hookPath     = "/webhooks/connect"
)

var (
	shopStart  = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	hookSecret = secret.New("whsec_connect_of_the_test")
	tables     = schema.New(dynamotest.Prefix(nil)) // no other test has them
	used       = append([]store.Table{tables.Outbox}, tables.Tracking.All()...)
)

// TestMain reduces the frequency of garbage collection, which took a third of the time because the
// test programs keep copying stores.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// A shop is a fake Stripe over real HTTP with one connected account that sells.
type shop struct {
	testing.TB
	fake            *stripefake.Fake
	tracker         sell.Tracker
	monthly, weekly string // prices of 15.00
}

func newShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{TB: t, fake: stripefake.New(stripefake.Options{Now: func() time.Time { return shopStart },
		Connected: []string{shopAt}})}
	server := httptest.NewServer(s.fake)
	client, err := api.New(api.Options{Key: secret.New("sk_test_duesday"), Base: server.URL, Rate: 1000, Now: s.fake.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := s.fake.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	s.tracker = sell.New(client)
	tea := s.post("products", "name=Tea")
	for at, interval := range map[*string]string{&s.monthly: "month", &s.weekly: "week"} {
		*at = s.post("prices", "currency=usd", "unit_amount=1500", "recurring[interval]="+interval,
			"product="+tea.id())["id"].(string)
	}
	return s
}

// A thing is a Stripe object.
type thing map[string]any

func (o thing) id() string { return o.str("id") }

func (o thing) str(name string) string {
	s, _ := o[name].(string)
	return s
}

// call sends a request for the connected account. The answer may be an error.
func (s *shop) call(method, path string, pairs ...string) thing {
	s.Helper()
	form := url.Values{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		form.Add(name, value)
	}
	r := httptest.NewRequestWithContext(s.Context(), method, "/v1/"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer sk_test_duesday")
	r.Header.Set("Stripe-Account", shopAt)
	answer := httptest.NewRecorder()
	s.fake.ServeHTTP(answer, r)
	var o thing
	if err := json.Unmarshal(answer.Body.Bytes(), &o); err != nil {
		s.Fatalf("%s %s: %s", method, path, answer.Body)
	}
	return o
}

func (s *shop) do(method, path string, pairs ...string) thing {
	s.Helper()
	o := s.call(method, path, pairs...)
	if o["error"] != nil {
		s.Fatalf("%s %s: %v", method, path, o)
	}
	return o
}

func (s *shop) post(path string, pairs ...string) thing {
	s.Helper()
	return s.do(http.MethodPost, path, pairs...)
}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// A memory is a Finder that asks Stripe once for each object, because the state in Stripe does not
// change any more. It is safe for concurrent use.
type memory struct {
	tracking.Finder
	mu   sync.Mutex
	told map[string]told
}

type told struct {
	o   tracking.Object
	err error
}

func (m *memory) once(id string, ask func() (tracking.Object, error)) (tracking.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, there := m.told[id]
	if !there {
		if t.o, t.err = ask(); !errors.Is(t.err, context.Canceled) { // of another row's failure
			m.told[id] = t
		}
	}
	return t.o, t.err
}

// Object implements tracking.Finder.
func (m *memory) Object(ctx context.Context, at, kind, id string) (tracking.Object, error) {
	return m.once(at+id, func() (tracking.Object, error) { return m.Finder.Object(ctx, at, kind, id) })
}

// A look is a Seller that calls Find once and then repeats the answer.
type look struct {
	tracking.Seller
	once func() (tracking.Sale, error)
}

// Find implements tracking.Seller.
func (l *look) Find(context.Context, tracking.Order) (tracking.Sale, error) { return l.once() }

// A stage is a store that a test can replace between two calls.
type stage struct{ store.Store }

// A spotlight restricts a drain of the outbox to a single row.
type spotlight struct {
	store.Store
	on store.Key
}

// Query implements store.Store.
func (l spotlight) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	if q.Table != tables.Outbox.Name {
		return l.Store.Query(ctx, q)
	}
	return func(yield func(store.Item, error) bool) {
		if q.Partition != l.on.PK {
			return
		}
		for it, err := range l.Store.Query(ctx, q) {
			if (err != nil || it.Str(schema.SK) == l.on.SK) && !yield(it, err) {
				return
			}
		}
	}
}

// A robot is an automation that records its jobs and fails on request.
type robot struct {
	mu    sync.Mutex
	done  []string // job ids, in the order in which they were done
	fails bool
}

// Name implements tracking.Automation.
func (*robot) Name() string { return "robot" }

// Takes implements tracking.Automation.
func (*robot) Takes(tracking.Action) bool { return true }

// Do implements tracking.Automation.
func (r *robot) Do(_ context.Context, j tracking.Job) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails {
		return errors.New("the robot is out of order")
	}
	r.done = append(r.done, j.ID)
	return nil
}

func (r *robot) jobs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.done)
}

// A house is the part of Duesday that handles purchases: the service and its webhook endpoint.
type house struct {
	testing.TB
	stage   *stage
	robot   *robot
	clock   time.Time
	service *tracking.Service
	hooks   http.Handler
}

// newHouse opens a service on the store. The change functions can install a defect.
func newHouse(t testing.TB, on store.Store, finder tracking.Finder, seller tracking.Seller, endedBy []string,
	change ...func(*tracking.Options)) *house {
	t.Helper()
	h := &house{TB: t, stage: &stage{on}, robot: &robot{}, clock: shopStart}
	now := func() time.Time { return h.clock }
	o := tracking.Options{Store: h.stage, Tables: tables, Installation: installation, Own: stripefake.DefaultAccount,
		Now: now, Decode: event.Decode,
		Finder: finder, Seller: seller, EndedBy: endedBy, Automations: []tracking.Automation{h.robot}}
	for _, c := range change {
		c(&o)
	}
	if r, is := o.Automations[0].(*robot); is {
		h.robot = r
	}
	var err error
	if h.service, err = tracking.Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	h.hooks = httpapi.New(httpapi.Options{Inbox: h.service, Shop: h.service,
		Verify: event.Verify,
		Hooks:  []httpapi.Hook{{Path: hookPath, Connect: true, Secrets: []secret.Text{hookSecret}}}, Options: web.Options{Now: now}})
	return h
}

// with lets the robot of another process receive the jobs.
func with(r *robot) func(*tracking.Options) {
	return func(o *tracking.Options) { o.Automations = []tracking.Automation{r} }
}

// hear sends a signed webhook to the endpoint and returns the status of the response.
func (h *house) hear(body []byte) int {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, hookPath, bytes.NewReader(body))
	r.Header.Set("Stripe-Signature", event.Sign(body, hookSecret, h.clock))
	answer := httptest.NewRecorder()
	h.hooks.ServeHTTP(answer, r)
	return answer.Code
}

// work has one row of the outbox worked on, when it is due.
func (h *house) work(on store.Store, r row) (outbox.Report, error) {
	before := h.clock
	defer func() { h.clock = before }()
	h.stage.Store, h.clock = spotlight{on, r.key}, r.due
	if r.lane == outbox.Actions {
		return h.service.Deliver(context.Background())
	}
	return h.service.DrainInbox(context.Background())
}

// settle lets time pass until nothing waits, as in a process that runs undisturbed.
func (h *house) settle(on store.Store) error {
	h.stage.Store, h.robot.fails = on, false
	before := h.clock
	defer func() { h.clock = before }()
	for range 40 {
		_, err := h.service.DrainInbox(context.Background())
		_, wrong := h.service.Deliver(context.Background())
		if err = errors.Join(err, wrong); err != nil {
			return err
		}
		inbox, actions, dead, err := h.service.Pending(context.Background())
		if err != nil || dead > 0 || inbox+actions == 0 {
			return errors.Join(err, deadLetters(dead))
		}
		h.clock = h.clock.Add(3 * time.Hour)
	}
	return errors.New("something waits for ever")
}

func deadLetters(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d dead letters", n)
}

// laneOf says which lane a row of the outbox is in.
func laneOf(k store.Key) outbox.Queue {
	lane, _, _ := strings.Cut(k.PK, "#")
	return outbox.Queue(lane)
}
