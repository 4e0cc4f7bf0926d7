package tracking_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

const (
	otherAccount = "5d1c9a52-8a0e-4b62-9f0d-2f6f5f0f6a11"
	otherAt      = "acct_other"
	aPurchase    = "0198f2c0-1111-7222-8333-444455556666"
	bPurchase    = "0198f2c0-1111-7222-8333-777755556666"
)

// A stub is a Stripe whose answers a test sets by hand. It is safe for concurrent use.
type stub struct {
	mu        sync.Mutex
	objects   map[string]tracking.Object // by their id
	connected map[string]error           // by account; "": of all the others
	down      error                      // of whatever is asked
	sale      tracking.Sale
	refuses   error // what Sell returns
	asked     []string
	meanwhile func() // happens while an object is fetched, once
}

func (s *stub) ask(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
	return s.down
}

// Object implements tracking.Finder.
func (s *stub) Object(_ context.Context, at, kind, id string) (tracking.Object, error) {
	what := map[string]string{tracking.KindPayment: "payment", tracking.KindSchedule: "schedule"}[kind]
	if err := s.ask(cmp.Or(what, kind) + " " + at + "/" + id); err != nil {
		return tracking.Object{}, err
	}
	if do := s.meanwhile; do != nil {
		s.meanwhile = nil
		do()
	}
	o, there := s.objects[id]
	if !there {
		return o, tracking.ErrGone
	}
	return o, nil
}

// Connected implements tracking.Finder.
func (s *stub) Connected(_ context.Context, at string) error {
	if err := s.ask("connected " + at); err != nil {
		return err
	}
	return errors.Join(s.connected[at], s.connected[""])
}

// Check implements tracking.Seller.
func (s *stub) Check(tracking.Order) error { return nil }

// Sell implements tracking.Seller.
func (s *stub) Sell(_ context.Context, o tracking.Order, again bool) (tracking.Sale, error) {
	if err := s.ask(fmt.Sprintf("sell %s %v", o.Tag.Purchase, again)); err != nil {
		return tracking.Sale{}, err
	}
	return s.sale, s.refuses
}

// Find implements tracking.Seller.
func (s *stub) Find(_ context.Context, o tracking.Order) (tracking.Sale, error) {
	return s.sale, s.ask("find " + o.Tag.Purchase)
}

// A desk is a house with a store that can fail and, by default, a stub of Stripe. The account
// shopAt is registered.
type desk struct {
	*house
	mem    *memstore.Store
	faulty *storetest.Faulty
	stub   *stub
	said   *lockedBuffer // what was logged
}

// A lockedBuffer is safe for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newDesk(t testing.TB, change ...func(*tracking.Options)) *desk {
	t.Helper()
	d := &desk{stub: &stub{objects: map[string]tracking.Object{}, connected: map[string]error{}}, said: &lockedBuffer{}}
	mem, err := memstore.Open(used, func() time.Time {
		if d.house == nil {
			return shopStart
		}
		return d.clock
	})
	if err != nil {
		t.Fatal(err)
	}
	d.mem, d.faulty = mem, storetest.NewFaulty(mem)
	changes := append([]func(*tracking.Options){func(o *tracking.Options) {
		o.Log = slog.New(slog.NewTextHandler(d.said,
			nil))
	}}, change...)
	d.house = newHouse(t, d.faulty, d.stub, d.stub, nil, changes...)
	if _, err := d.service.Register(t.Context(), shopAccount, shopAt); err != nil {
		t.Fatal(err)
	}
	d.clock = shopStart.Add(time.Minute) // nothing waits from now on
	d.drain()
	d.waits(0, 0, 0)
	d.clock = shopStart
	return d
}

// another returns a second process on the same store. Its store operations do not fail.
func (d *desk) another(change ...func(*tracking.Options)) *house {
	d.Helper()
	h := newHouse(d.TB, d.mem, d.stub, d.stub, nil, change...)
	h.clock = d.clock
	return h
}

func webhook(connect bool) tracking.Origin {
	return tracking.Origin{Connect: connect, Source: tracking.FromWebhook}
}

// take delivers an event of a connected account, which the service must accept.
func (d *desk) take(body []byte) tracking.Verdict {
	d.Helper()
	v, err := d.service.Ingest(d.Context(), body, webhook(true))
	if err != nil {
		d.Fatalf("%v\n%s", err, body)
	}
	return v
}

// takes delivers an event like take, and checks its resulting status.
func (d *desk) takes(body []byte, status tracking.EventStatus) tracking.Verdict {
	d.Helper()
	v := d.take(body)
	if v.Status != status || v.Duplicate {
		d.Errorf("got %+v, want it %s", v, status)
	}
	return v
}

func (d *desk) event(id string) *tracking.Event {
	d.Helper()
	e, err := d.service.Event(d.Context(), id)
	if err != nil {
		d.Fatalf("event %s: %v", id, err)
	}
	return e
}

// is checks the status of an event.
func (d *desk) is(id string, status tracking.EventStatus) *tracking.Event {
	d.Helper()
	e := d.event(id)
	if e.Status != status {
		d.Errorf("event %s is %s (%s), want it %s", id, e.Status, e.Reason, status)
	}
	return e
}

func (d *desk) purchase(id string) *tracking.Purchase {
	d.Helper()
	p, err := d.service.Purchase(d.Context(), id)
	if err != nil {
		d.Fatalf("purchase %s: %v", id, err)
	}
	return p
}

func (d *desk) drain() outbox.Report {
	d.Helper()
	r, err := d.service.DrainInbox(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	return r
}

func (d *desk) deliver() outbox.Report {
	d.Helper()
	r, err := d.service.Deliver(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	return r
}

// waits checks the number of waiting inbox rows, action rows and dead letters.
func (d *desk) waits(inbox, actions, dead int) {
	d.Helper()
	i, a, l, err := d.service.Pending(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	if got, want := [3]int{i, a, l}, [3]int{inbox, actions, dead}; got != want {
		d.Errorf("inbox, actions, dead letters: got %v, want %v", got, want)
	}
}

// items returns the items of the named tables as text, or of all tables if none is named.
func (d *desk) items(names ...string) []string {
	d.Helper()
	return itemsOf(d.TB, d.mem, names...)
}

func itemsOf(t testing.TB, s store.Store, names ...string) (list []string) {
	t.Helper()
	for _, table := range used {
		if len(names) > 0 && !slices.Contains(names, table.Name) {
			continue
		}
		for it, err := range s.Scan(t.Context(), store.Scan{Table: table.Name}) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, table.Name+" "+textOf(store.M(it)))
		}
	}
	return list
}

// textOf returns the complete content of a value as text.
func textOf(v store.Value) string {
	var b strings.Builder
	switch v.Kind() {
	case store.KindMap:
		for _, a := range v.Map() {
			fmt.Fprintf(&b, " %s=%s", a.Name, textOf(a.Value))
		}
		return "{" + strings.TrimSpace(b.String()) + "}"
	case store.KindList:
		for _, of := range v.List() {
			b.WriteString(" " + textOf(of))
		}
		return "[" + strings.TrimSpace(b.String()) + "]"
	}
	return fmt.Sprint(cmp.Or(v.Str(), v.Num(), v.Raw(), fmt.Sprint(v.Bool())))
}

// state returns the items of all tables except the events table.
func (d *desk) state() string {
	d.Helper()
	tr := tables.Tracking
	return strings.Join(d.items(tr.Purchases.Name, tr.Payments.Name, tr.Subscriptions.Name, tr.Registry.Name,
		tables.Outbox.Name), "\n")
}

// during runs the function with the hook installed.
func (d *desk) during(hook storetest.Hook, do func()) {
	d.faulty.Hook = hook
	defer func() { d.faulty.Hook = nil }()
	do()
}

// failing returns a hook that fails the n-th operation among those of the given kinds, in the given
// phase.
func failing(at int, phase storetest.Phase, err error, kinds ...storetest.Kind) (hook storetest.Hook, met func() bool) {
	n, target, hit := 0, 0, false
	var mu sync.Mutex // guards them: drains have several workers
	return func(op storetest.Operation, p storetest.Phase) error {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(kinds, op.Kind) {
			return nil
		}
		if p == storetest.Before {
			if n++; n == at {
				target = op.N
			}
		}
		if op.N == target && p == phase && !hit {
			hit = true
			return err
		}
		return nil
	}, func() bool { mu.Lock(); defer mu.Unlock(); return hit }
}

// dying returns a hook like failing, but the process dies there, so no later operation works.
func dying(at int, phase storetest.Phase) (hook storetest.Hook, met func() bool) {
	n, dead := 0, false
	var mu sync.Mutex // guards them
	return func(op storetest.Operation, p storetest.Phase) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == storetest.Commit && p == storetest.Before {
			n++
		}
		dead = dead || op.Kind == storetest.Commit && n == at && p == phase
		if dead {
			return storetest.ErrCrash
		}
		return nil
	}, func() bool { mu.Lock(); defer mu.Unlock(); return dead }
}

// message returns an event in Stripe's format, from a connected account, or without an account if
// "".
func message(id, typ, at string, o thing, more ...thing) []byte {
	e := thing{"id": id, "object": "event", "type": typ, "created": shopStart.Unix(), "livemode": false,
		"api_version": stripefake.NewestVersion, "data": thing{"object": o}}
	if at != "" {
		e["account"] = at
	}
	for _, m := range more {
		maps.Copy(e, m)
	}
	b, err := json.Marshal(e)
	if err != nil {
		return nil // unreachable: it is made of texts and numbers
	}
	return b
}

func metadata(purchase string, k tracking.Kind) thing {
	return thing{tracking.MetaInstallation: installation, tracking.MetaPurchase: purchase, tracking.MetaKind: string(k)}
}

// object returns a Stripe object created for a purchase, or an unrelated object if the purchase is
// "".
func object(kind, id, status, purchase string, k tracking.Kind, more ...thing) thing {
	o := thing{"id": id, "object": kind, "status": status, "created": shopStart.Unix(), "metadata": thing{}}
	if purchase != "" {
		o["metadata"] = metadata(purchase, k)
	}
	if kind == tracking.KindPayment {
		o["amount"], o["currency"] = 1500, "usd"
	}
	for _, m := range more {
		maps.Copy(o, m)
	}
	return o
}

// paid is the event that reports the payment of a legacy purchase.
func paid(event, at, purchase string, more ...thing) []byte {
	return message(event, "payment_intent.succeeded", at,
		object(tracking.KindPayment, "pi_"+event, "succeeded", purchase, tracking.Legacy), more...)
}

func TestOpen(t *testing.T) {
	d := newDesk(t)
	open := func(change func(*tracking.Options)) error {
		o := tracking.Options{Store: d.mem, Tables: tables, Installation: installation, Own: stripefake.DefaultAccount,
			Decode: event.Decode}
		change(&o)
		_, err := tracking.Open(t.Context(), o)
		return err
	}
	for name, c := range map[string]struct {
		change func(*tracking.Options)
		want   error
	}{
		"again":       {func(*tracking.Options) {}, nil},
		"live":        {func(o *tracking.Options) { o.Live = true }, tracking.ErrOtherStripe},
		"another key": {func(o *tracking.Options) { o.Own = "acct_elsewhere" }, tracking.ErrOtherStripe},
		"store down":  {func(o *tracking.Options) { o.Store = down(d.mem) }, storetest.ErrCrash},
		"another inst": {func(o *tracking.Options) { o.Installation = "other" },
			nil}, // what is of it is told apart by the tag
	} {
		if err := open(c.change); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for _, change := range []func(*tracking.Options){func(o *tracking.Options) { o.Own = "" },
		func(o *tracking.Options) { o.Own = "sk_test" },
		func(o *tracking.Options) { o.Installation = "" }, func(o *tracking.Options) { o.EndedBy = []string{"canceled"} }} {
		if open(change) == nil {
			t.Error("opened with options that are wrong")
		}
	}
	own, live, err := tracking.Pinned(t.Context(), d.mem, tables)
	if own != stripefake.DefaultAccount || live || err != nil {
		t.Errorf("pinned: %s, %v, %v", own, live, err)
	}
	if _, _, err := tracking.Pinned(t.Context(), memory0(t), tables); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("pinned of a new store: %v", err)
	}
}

// TestOpen_LostReplies checks that the first start pins the store even if the reply is lost, and
// that only one of two first starts with different keys succeeds.
func TestOpen_LostReplies(t *testing.T) {
	for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
		mem := memory0(t)
		f := storetest.NewFaulty(mem)
		f.Hook, _ = failing(1, phase, store.ErrUnknown, storetest.Commit)
		o := tracking.Options{Store: f, Tables: tables, Installation: installation, Own: stripefake.DefaultAccount}
		if _, err := tracking.Open(t.Context(), o); err != nil {
			t.Errorf("phase %d: %v", phase, err)
		}
		o.Live = true
		if _, err := tracking.Open(t.Context(), o); !errors.Is(err, tracking.ErrOtherStripe) {
			t.Errorf("phase %d, the other mode: %v", phase, err)
		}
	}
	mem := memory0(t)
	f := storetest.NewFaulty(mem)
	o := tracking.Options{Tables: tables, Installation: installation, Own: stripefake.DefaultAccount}
	f.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		if op.Kind != storetest.Commit || phase != storetest.Before {
			return nil
		}
		other := o
		other.Store, other.Live = mem, true
		_, err := tracking.Open(t.Context(), other)
		return err
	}
	first := o
	first.Store = f
	if _, err := tracking.Open(t.Context(), first); !errors.Is(err, tracking.ErrOtherStripe) {
		t.Errorf("the slower of two: %v", err)
	}
}

// down is a store whose operations all fail.
func down(s store.Store) store.Store {
	f := storetest.NewFaulty(s)
	f.Hook = func(storetest.Operation, storetest.Phase) error { return storetest.ErrCrash }
	return f
}

// TestWake checks that new work in the inbox or the actions wakes the worker, and that nothing else
// does.
func TestWake(t *testing.T) {
	d := newDesk(t)
	awake := func() bool {
		select {
		case <-d.service.Wake():
			return true
		default:
			return false
		}
	}
	awake() // of Register
	d.takes(message("evt_1", "balance.available", shopAt, thing{"object": "balance"}), tracking.Ignored)
	if awake() {
		t.Error("an event that says nothing wakes")
	}
	d.takes(paid("evt_2", shopAt, aPurchase), tracking.Applied)
	if !awake() || awake() {
		t.Error("a fulfilment that is asked for has to wake, once")
	}
}

// unstored lists texts that no item may contain: the rest of a client secret, a card number and a
// key.
var unstored = regexp.MustCompile(`_secret_[A-Za-z0-9].{0,20}|4242424242424242|4000000000000002|sk_test.{0,20}`)

// noSecrets checks that the store does not contain any of the unstored texts.
func noSecrets(t testing.TB, items []string) {
	t.Helper()
	for _, it := range items {
		if bad := unstored.FindString(it); bad != "" {
			t.Errorf("%s is stored: %.100s", bad, it)
		}
	}
}

// bodies returns the bodies of all stored events, as the service reads them.
func (d *desk) bodies() (list []string) {
	d.Helper()
	for it, err := range d.mem.Scan(d.Context(), store.Scan{Table: tables.Tracking.Events.Name}) {
		if err != nil {
			d.Fatal(err)
		}
		list = append(list, string(d.event(it.Str(schema.TrackedID)).Body))
	}
	return list
}
