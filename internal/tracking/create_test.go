package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// A line is a connection to the fake that can lose one request.
type line struct {
	fake *stripefake.Fake

	mu    sync.Mutex
	n     int                           // requests so far; guarded by mu
	fault func(n int, after bool) error // asked before each request, and after; guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.n++
	n, fault := l.n, l.fault
	l.mu.Unlock()
	if fault != nil {
		if err := fault(n, false); err != nil {
			return nil, err
		}
	}
	in := httptest.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, r.URL.String(), http.NoBody)
	for name, values := range r.Header {
		in.Header[http.CanonicalHeaderKey(name)] = values // as it is over the wire
	}
	if r.Body != nil {
		in.Body = r.Body
	}
	answer := httptest.NewRecorder()
	l.fake.ServeHTTP(answer, in)
	if fault != nil {
		if err := fault(n, true); err != nil {
			return nil, err
		}
	}
	return answer.Result(), nil
}

func (l *line) arm(fault func(n int, after bool) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.fault = 0, fault
}

// A counter creates purchases with the real tracking service and a fake of Stripe.
type counter struct {
	*desk
	shop    *shop
	line    *line
	tracker sell.Tracker
}

func newCounter(t testing.TB, change ...func(*tracking.Options)) *counter {
	t.Helper()
	fake := stripefake.New(stripefake.Options{Now: func() time.Time { return shopStart }, Connected: []string{shopAt}})
	c := &counter{shop: &shop{TB: t, fake: fake}, line: &line{fake: fake}}
	client, err := api.New(api.Options{Key: secret.New("sk_test_duesday"), Base: "http://localhost:1", Rate: 1000,
		Now: c.shop.fake.Now, Transport: c.line})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	c.tracker = sell.New(client)
	tea := c.shop.post("products", "name=Tea").id()
	c.shop.monthly = c.shop.post("prices", "currency=usd", "unit_amount=1500", "recurring[interval]=month",
		"product="+tea).id()
	c.shop.weekly = c.shop.post("prices", "currency=usd", "unit_amount=1500", "recurring[interval]=week",
		"product="+tea).id()
	c.desk = newDesk(t, append([]func(*tracking.Options){func(o *tracking.Options) {
		o.Finder, o.Seller = c.tracker,
			c.tracker
	}}, change...)...)
	return c
}

func (c *counter) order(k tracking.Kind, method string) tracking.Order {
	if k == tracking.Legacy {
		method = ""
	}
	o := buys(k, method)
	o.Merchant, o.Key, o.Description = shopAccount, "one", "Tea"
	o.Price = map[string]string{"monthly": c.shop.monthly, "weekly": c.shop.weekly}[o.Price]
	return o
}

// on returns a process that uses another store.
func (c *counter) on(mem *memstore.Store) *counter {
	other := *c
	d := *c.desk
	d.mem, d.house = mem, newHouse(c.TB, mem, c.tracker, c.tracker, nil)
	d.clock = c.clock
	other.desk = &d
	return &other
}

// charges returns the successful charges of the account.
func (c *counter) charges() (n int) {
	for e := range c.shop.fake.Ledger() {
		if e.Type == "charge" && e.Account == shopAt {
			n++
		}
	}
	return n
}

// hearAll delivers all available events and drains the inbox before it searches for any purchase.
func (c *counter) hearAll() {
	c.Helper()
	for _, e := range c.shop.fake.Events(shopAt, false, "") {
		c.take(e.Body)
	}
	c.drain()
}

// sold returns the stored data of a purchase without the parts that differ between two equal
// purchases.
func (c *counter) sold(id string) string {
	c.Helper()
	story, err := c.service.Timeline(c.Context(), id)
	if errors.Is(err, store.ErrNotFound) {
		return "nothing"
	} else if err != nil {
		c.Fatal(err)
	}
	p := story.Purchase
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%s fulfil:%s unsubscribe:%s", p.Kind, p.Fulfilment.State, p.Unsubscribe.State))
	for _, pay := range story.Payments {
		text.WriteString(fmt.Sprintf(" payment:%s %d%s recurring:%v", pay.Status, pay.Amount, pay.Currency,
			pay.Subscription != ""))
	}
	for _, s := range story.Subscriptions {
		text.WriteString(fmt.Sprintf(" subscription:%s %s scheduled:%v", s.Status, s.Detail, s.Schedule != ""))
	}
	return text.String()
}

// made returns the Stripe objects that carry the purchase and are not void.
func (c *counter) made(path string) (n int) {
	c.Helper()
	query := path + "?limit=100"
	if path == "subscriptions" {
		query += "&status=all"
	}
	list, _ := c.shop.do("GET", query)["data"].([]any)
	for _, of := range list {
		o, _ := of.(map[string]any)
		meta, _ := o["metadata"].(map[string]any)
		if meta[tracking.MetaPurchase] != nil && o["status"] != "void" && o["status"] != "canceled" &&
			o["status"] != "incomplete_expired" {
			n++
		}
	}
	return n
}

// oneSet checks that every created object exists at most once.
func (c *counter) oneSet(name string) {
	c.Helper()
	for _, path := range []string{"payment_intents", "invoices", "subscriptions", "subscription_schedules"} {
		if n := c.made(path); n > 1 {
			c.Errorf("%s: %d %s", name, n, path)
		}
	}
	if list, _ := c.shop.do("GET", "customers?limit=100")["data"].([]any); len(list) > 1 {
		c.Errorf("%s: %d customers", name, len(list))
	}
	if n := c.charges(); n > 1 {
		c.Errorf("%s: CHARGED %d TIMES", name, n)
	}
}

const actionCard = "pm_card_authenticationRequired"

// A trouble is a fault at one commit or one Stripe request while a purchase is created.
type trouble struct {
	what  string
	phase storetest.Phase
	at    int
}

// befalls arms the fault. After the operation the caller calls met, which disarms the fault and
// reports whether it has happened.
func (x trouble) befalls(c *counter) (ctx context.Context, met func() bool) {
	ctx, die := context.WithCancel(c.Context())
	var mu sync.Mutex
	hit, dead := false, false
	strike := func() error {
		mu.Lock()
		defer mu.Unlock()
		switch hit = true; x.what {
		case "commit unknown":
			return store.ErrUnknown
		case "request breaks":
			return io.ErrUnexpectedEOF
		}
		dead = true
		die()
		return storetest.ErrCrash
	}
	isDead := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return dead
	}
	commits := strings.HasPrefix(x.what, "commit")
	c.faulty.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		if isDead() {
			return storetest.ErrCrash
		}
		if commits && op.Kind == storetest.Commit && phase == storetest.Before {
			mu.Lock()
			x.at--
			mu.Unlock()
		}
		if commits && op.Kind == storetest.Commit && x.at == 0 && phase == x.phase {
			x.at = -1
			return strike()
		}
		return nil
	}
	c.line.arm(func(n int, after bool) error {
		if isDead() {
			return context.Canceled
		}
		if !commits && n == x.at && after == (x.phase == storetest.After) {
			return strike()
		}
		return nil
	})
	return ctx, func() bool {
		c.faulty.Hook = nil
		c.line.arm(nil)
		die()
		mu.Lock()
		defer mu.Unlock()
		return hit
	}
}

// TestCreatePurchase_Crashes causes a crash or a lost reply at every commit and every request.
// After that the events, the inbox five minutes later, or a caller with the same key complete the
// purchase. Stripe's own ledger shows at most one charge.
func TestCreatePurchase_Crashes(t *testing.T) {
	cards := []string{goodCard, badCard, actionCard}
	for _, kind := range []tracking.Kind{tracking.Legacy, tracking.Product, tracking.Subscribe, tracking.SplitPayment} {
		for _, card := range cards {
			if card != goodCard && (kind == tracking.Legacy || kind == tracking.SplitPayment) { // nothing is paid at once
				continue
			}
			t.Run(string(kind)+" "+card, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { crashesAll(t, kind, card) }) // nobody waits for tries of a request
			})
		}
	}
}

// crashesAll tests every moment of one purchase. With -short it tests every third.
func crashesAll(t *testing.T, kind tracking.Kind, card string) {
	right := newCounter(t)
	made, err := right.service.CreatePurchase(t.Context(), right.order(kind, card))
	if err != nil {
		t.Fatal(err)
	}
	right.hearAll()
	want, charges := right.sold(made.Purchase.ID), right.charges()
	if asked := made.Purchase.Fulfilment.State == tracking.Asked; asked != right.deserved() {
		t.Errorf("%d charges, and %s", charges, want)
	}
	moments, step := 0, 1
	if testing.Short() {
		step = 3
	}
	for _, what := range troubles(card) {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			for at := 1; crashes(t, trouble{what, phase, at}, kind, card, want, charges); at += step {
				moments += step
			}
		}
	}
	if moments < 8 {
		t.Errorf("only %d moments", moments)
	}
	t.Logf("%d moments; %s", moments, want)
}

// troubles returns the faults to test. Without DUESDAY_SOAK it returns only some of them.
func troubles(card string) []string {
	switch {
	case soaktest.On():
		return []string{"commit dies", "commit unknown", "request dies", "request breaks"}
	case card == goodCard:
		return []string{"commit dies", "request dies"}
	}
	return []string{"request dies"}
}

// deserved reports whether Stripe has an object that requires fulfilment. That is a charge, or the
// subscription of a split payment, whose first invoice stays a draft for an hour.
func (c *counter) deserved() bool {
	c.Helper()
	return c.charges() > 0 || c.made("subscription_schedules") > 0
}

// crashes tests one moment, and reports whether the fault has happened.
func crashes(t *testing.T, x trouble, kind tracking.Kind, card, want string, charges int) bool {
	t.Helper()
	c := newCounter(t)
	o := c.order(kind, card)
	ctx, met := x.befalls(c)
	_, err := c.service.CreatePurchase(ctx, o)
	if !met() {
		return false
	}
	name := fmt.Sprintf("%s %d phase %d", x.what, x.at, x.phase)
	if _, known := errors.AsType[*tracking.FieldError](err); known || errors.Is(err, tracking.ErrOrder) ||
		errors.Is(err, tracking.ErrOther) {
		t.Errorf("%s: it says that it knows: %v", name, err)
	}
	purchase := ""
	for it, err := range c.mem.Scan(t.Context(), store.Scan{Table: tables.Tracking.Purchases.Name}) {
		if err != nil {
			t.Fatal(err)
		}
		purchase = it.Str("id")
	}
	charged, deserved := c.charges(), c.deserved()
	c.oneSet(name)

	// The events alone, and the inbox alone, come to the same.
	told, looked := c.on(c.mem.Snapshot()), c.on(c.mem.Snapshot())
	told.hearAll()
	looked.clock = looked.clock.Add(5 * time.Minute)
	looked.drain()
	if purchase != "" {
		if a, b := told.sold(purchase), looked.sold(purchase); a != b {
			t.Errorf("%s: the events come to\n\t%s\nand the inbox to\n\t%s", name, a, b)
		}
		for _, by := range []*counter{told, looked} {
			if p := by.purchase(purchase); (p.Fulfilment.State == tracking.Asked) != deserved || p.Merchant != shopAccount {
				t.Errorf("%s: %d charges, and %s", name, charged, by.sold(purchase))
			}
		}
		looked.hearAll()
		told.clock = told.clock.Add(5 * time.Minute)
		told.drain()
		if a, b := told.sold(purchase), looked.sold(purchase); a != b {
			t.Errorf("%s: then %s, and %s", name, a, b)
		}
		for _, by := range []*counter{told, looked} {
			by.deliver()
			if jobs := by.robot.jobs(); len(jobs) > 1 || (len(jobs) == 1) != deserved {
				t.Errorf("%s: %d charges, and jobs %v", name, charged, jobs)
			}
			noSecrets(t, by.items())
		}
	}
	if n := c.charges(); n != charged {
		t.Errorf("%s: looking for it has charged", name)
	}

	// Whoever calls again gets what there is, or has it made.
	again := c.on(c.mem.Snapshot())
	made, err := again.service.CreatePurchase(t.Context(), o)
	if err != nil {
		t.Errorf("%s: called again: %v", name, err)
		return true
	}
	if n := c.charges(); n != charges {
		t.Errorf("%s: called again: %d charges, want %d", name, n, charges)
	}
	if declined := made.Sale.Declined != ""; declined != (card == badCard) || made.Sale.Action != (card == actionCard) ||
		made.Sale.ClientSecret.IsZero() == (card == actionCard || kind == tracking.Legacy) {
		t.Errorf("%s: called again: declined %q, action %v, a secret %v", name, made.Sale.Declined, made.Sale.Action,
			!made.Sale.ClientSecret.IsZero())
	}
	again.hearAll()
	again.clock = again.clock.Add(5 * time.Minute)
	again.drain()
	c.oneSet(name + ", again")
	if got := again.sold(made.Purchase.ID); got != want {
		t.Errorf("%s: called again: got\n\t%s\nwant\n\t%s", name, got, want)
	}
	again.deliver()
	if jobs := again.robot.jobs(); len(jobs) > 1 || (len(jobs) == 1) != again.deserved() {
		t.Errorf("%s: called again: %d charges, and jobs %v", name, charges, jobs)
	}
	noSecrets(t, again.items())
	noSecrets(t, again.bodies())
	return true
}

// TestCreatePurchase_AtOnce checks that eight concurrent callers with the same key create one
// purchase, one set of Stripe objects, and one charge.
func TestCreatePurchase_AtOnce(t *testing.T) {
	for _, kind := range []tracking.Kind{tracking.Legacy, tracking.Product, tracking.Subscribe, tracking.SplitPayment} {
		c := newCounter(t)
		o := c.order(kind, goodCard)
		ids := make(chan string, 8)
		var callers sync.WaitGroup
		for range cap(ids) {
			callers.Go(func() {
				for range 20 { // an error says that it is not known, and to call again
					if made, err := c.service.CreatePurchase(context.Background(), o); err == nil {
						ids <- made.Purchase.ID
						return
					} else if errors.Is(err, tracking.ErrOrder) || errors.Is(err, tracking.ErrOther) {
						t.Errorf("%s: %v", kind, err)
						return
					}
				}
			})
		}
		callers.Wait()
		close(ids)
		n, first := 0, ""
		for id := range ids {
			if n++; first != "" && id != first {
				t.Errorf("%s: two purchases", kind)
			}
			first = id
		}
		if n != cap(ids) {
			t.Errorf("%s: %d of %d callers have an answer", kind, n, cap(ids))
		}
		c.shop.fake.Advance(2 * time.Hour) // the first invoice of a split payment is paid
		c.hearAll()
		c.oneSet(string(kind))
		if want := map[bool]int{true: 0, false: 1}[kind == tracking.Legacy]; c.charges() != want {
			t.Errorf("%s: %d charges, want %d", kind, c.charges(), want)
		}
		if n := len(c.items(tables.Tracking.Purchases.Name)); n != 1 {
			t.Errorf("%s: %d purchases", kind, n)
		}
	}
}

func TestCreatePurchase_Key(t *testing.T) {
	c := newCounter(t)
	if _, err := c.service.Register(t.Context(), otherAccount, stripefake.DefaultAccount); err != nil {
		t.Fatal(err)
	}
	first, err := c.service.CreatePurchase(t.Context(), c.order(tracking.Product, goodCard))
	if err != nil || first.Repeated {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := c.service.CreatePurchase(t.Context(), c.order(tracking.Product, goodCard))
	if err != nil || !again.Repeated || again.Purchase.ID != first.Purchase.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	for name, change := range map[string]func(*tracking.Order){
		"amount":      func(o *tracking.Order) { o.Amount++ },
		"currency":    func(o *tracking.Order) { o.Currency = "EUR" },
		"description": func(o *tracking.Order) { o.Description = "" },
		"email":       func(o *tracking.Order) { o.Email = "bob@example.com" },
		"method":      func(o *tracking.Order) { o.PaymentMethod = badCard },
		"name":        func(o *tracking.Order) { o.Name = "Ann" },
		"kind":        func(o *tracking.Order) { *o = c.order(tracking.Legacy, "") },
	} {
		o := c.order(tracking.Product, goodCard)
		change(&o)
		if _, err := c.service.CreatePurchase(t.Context(), o); !errors.Is(err, tracking.ErrOther) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	o := c.order(tracking.Product, goodCard)
	o.Merchant = otherAccount
	other, err := c.service.CreatePurchase(t.Context(), o)
	if err != nil || other.Repeated || other.Purchase.ID == first.Purchase.ID ||
		other.Purchase.StripeAccount != stripefake.DefaultAccount {
		t.Errorf("the same key of another account: %+v, %v", other, err)
	}
	o.Merchant = "11111111-2222-4333-8444-555555555555"
	if _, err := c.service.CreatePurchase(t.Context(), o); !errors.Is(err, tracking.ErrUnregistered) {
		t.Errorf("of nobody: %v", err)
	}
	if n := c.charges(); n != 1 {
		t.Errorf("%d charges at the shop", n)
	}
}

// TestCreatePurchase_Refused checks that every attempt reports Stripe's refusal and charges
// nothing.
func TestCreatePurchase_Refused(t *testing.T) {
	for name, change := range map[string]func(*counter, *tracking.Order){
		"price":    func(_ *counter, o *tracking.Order) { o.Price = "price_none" },
		"customer": func(_ *counter, o *tracking.Order) { o.Customer = "cus_none" },
		"method":   func(_ *counter, o *tracking.Order) { o.PaymentMethod = "pm_none" },
	} {
		c := newCounter(t)
		o := c.order(tracking.Subscribe, goodCard)
		change(c, &o)
		for range 3 {
			_, err := c.service.CreatePurchase(t.Context(), o)
			if !errors.Is(err, tracking.ErrOrder) {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.hearAll()
		c.clock = c.clock.Add(5 * time.Minute)
		c.drain()
		if inbox, _, dead, err := c.service.Pending(t.Context()); inbox+dead > 0 || err != nil {
			t.Errorf("%s: %d rows wait, %d are dead, %v", name, inbox, dead, err)
		}
		for p, err := range c.service.Purchases(t.Context(), shopAccount, tracking.Mark{}) {
			if err != nil || p.Problem == "" || p.Fulfilment.State != tracking.NotAsked {
				t.Errorf("%s: %+v, %v", name, p, err)
			}
		}
		if c.charges() != 0 || c.made("subscriptions")+c.made("payment_intents") > 0 {
			t.Errorf("%s: something was made", name)
		}
	}
	c := newCounter(t)
	if err := c.shop.fake.Disconnect(shopAt); err != nil {
		t.Fatal(err)
	}
	if _, err := c.service.CreatePurchase(t.Context(), c.order(tracking.Product, goodCard)); !errors.Is(err,
		tracking.ErrDisconnected) {
		t.Errorf("disconnected: %v", err)
	}
	for p, err := range c.service.Purchases(t.Context(), shopAccount, tracking.Mark{}) {
		if err != nil || !strings.HasPrefix(p.Problem, "not made: ") {
			t.Errorf("disconnected: %+v, %v", p, err)
		}
	}
}

// TestCreatePurchase_Declined checks that after a failed payment the purchase stays new and gives
// the reason, and that another call does not charge again.
func TestCreatePurchase_Declined(t *testing.T) {
	for _, kind := range []tracking.Kind{tracking.Product, tracking.Subscribe} {
		c := newCounter(t)
		for range 2 {
			made, err := c.service.CreatePurchase(t.Context(), c.order(kind, badCard))
			if err != nil {
				t.Fatal(err)
			}
			if p := made.Purchase; made.Sale.Declined == "" || p.Fulfilled || p.Fulfilment.State != tracking.NotAsked ||
				!strings.HasPrefix(p.Problem, "declined: ") {
				t.Errorf("%s: %q, %+v", kind, made.Sale.Declined, p)
			}
		}
		c.hearAll()
		c.clock = c.clock.Add(48 * time.Hour)
		c.drain()
		c.waits(0, 0, 0)
		n := 0
		for p, err := range c.service.Payments(t.Context(), shopAccount, tracking.Mark{}) {
			if n++; err != nil || p.Status != tracking.PaymentFailed {
				t.Errorf("%s: %+v, %v", kind, p, err)
			}
		}
		if kind == tracking.Product && n != 1 || c.charges() != 0 {
			t.Errorf("%s: %d payments, %d charges", kind, n, c.charges())
		}
	}
}

// TestCreatePurchase_Action checks a payment that the buyer must authenticate. It is paid once the
// buyer has done so, and no item contains the client secret.
func TestCreatePurchase_Action(t *testing.T) {
	for _, kind := range []tracking.Kind{tracking.Product, tracking.Subscribe} {
		c := newCounter(t)
		made, err := c.service.CreatePurchase(t.Context(), c.order(kind, actionCard))
		if err != nil {
			t.Fatal(err)
		}
		if !made.Sale.Action || made.Sale.ClientSecret.IsZero() || made.Purchase.Fulfilment.State != tracking.NotAsked ||
			c.charges() != 0 {
			t.Errorf("%s: %+v, %d charges", kind, made, c.charges())
		}
		c.hearAll()
		if r := c.deliver(); r.Delivered != 0 {
			t.Errorf("%s: fulfilled: %+v", kind, r)
		}
		if err := c.shop.fake.Authenticate(payment(c.shop, made), true); err != nil {
			t.Fatal(err)
		}
		c.hearAll()
		c.deliver()
		if p := c.purchase(made.Purchase.ID); !p.Fulfilled || c.charges() != 1 {
			t.Errorf("%s: %s, %d charges", kind, c.sold(p.ID), c.charges())
		}
		noSecrets(t, c.items())
		noSecrets(t, c.bodies())
	}
}

// TestCreatePurchase_TooLate checks that a key used again after Stripe has forgotten it never
// creates an object that may already exist.
func TestCreatePurchase_TooLate(t *testing.T) {
	c := newCounter(t)
	o := c.order(tracking.Product, goodCard)
	ctx, met := trouble{"request dies", storetest.Before, 1}.befalls(c)
	_, err := c.service.CreatePurchase(ctx, o)
	if err == nil || !met() {
		t.Fatal("it did not die")
	}
	later := c.on(c.mem.Snapshot())
	later.clock = later.clock.Add(23 * time.Hour)
	if _, err := later.service.CreatePurchase(t.Context(), o); !errors.Is(err, tracking.ErrTooLate) || c.charges() != 0 {
		t.Errorf("nothing was made: %v, %d charges", err, c.charges())
	}
	later = c.on(c.mem.Snapshot())
	later.clock = later.clock.Add(22 * time.Hour)
	if _, err := later.service.CreatePurchase(t.Context(), o); err != nil || c.charges() != 1 {
		t.Errorf("in time: %v, %d charges", err, c.charges())
	}
	later.clock = later.clock.Add(48 * time.Hour)
	if made, err := later.service.CreatePurchase(t.Context(), o); err != nil ||
		made.Purchase.Fulfilment.State != tracking.Asked || c.charges() != 1 {
		t.Errorf("of one that was made: %v, %d charges", err, c.charges())
	}
}

func TestOrder_Check(t *testing.T) {
	product, split := buys(tracking.Product, goodCard), buys(tracking.SplitPayment, goodCard)
	product.Key, split.Key, split.Price = "k", "k", "price_1"
	sub, old := split, product
	sub.Kind, sub.Payments = tracking.Subscribe, 0
	old.Kind, old.PaymentMethod = tracking.Legacy, ""
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, c := range []struct {
		of     tracking.Order
		change func(*tracking.Order)
		field  string // "": it is right
	}{
		{product, func(*tracking.Order) {}, ""}, {split, func(*tracking.Order) {}, ""}, {sub, func(*tracking.Order) {}, ""},
		{old, func(*tracking.Order) {}, ""},
		{product, func(o *tracking.Order) { o.Price, o.Amount, o.Currency = "price_1", 0, "" }, ""},
		{product, func(o *tracking.Order) { o.Customer, o.Email = "cus_1", "" }, ""},
		{sub, func(o *tracking.Order) { o.Price = "gold-21323_B" }, ""},
		{product, func(o *tracking.Order) { o.Currency = "eur" }, ""},
		{product, func(o *tracking.Order) { o.Currency = "XXY" }, "currency"},
		{product, func(o *tracking.Order) { o.Currency = "XAU" }, "currency"},
		{product, func(o *tracking.Order) { o.Email = "Ann <ann@example.com>" }, "email"},
		{product, func(o *tracking.Order) { o.Email = "ann@example" }, "email"},
		{product, func(o *tracking.Order) { o.Email = "ann@example.com, bob@example.com" }, "email"},
		{product, func(o *tracking.Order) { o.Email = "ann@.com" }, "email"},
		{product, func(o *tracking.Order) { o.Customer = "cus_a-b" }, "customer"},
		{product, func(o *tracking.Order) { o.PaymentMethod = "pm_a-b" }, "payment_method"},
		{product, func(o *tracking.Order) { o.Description, o.Name = long(500), long(200) }, ""},
		{product, func(o *tracking.Order) { o.Key = long(255) }, ""},
		{product, func(o *tracking.Order) { o.Amount = 99_999_999 }, ""},
		{split, func(o *tracking.Order) { o.Payments = 120 }, ""},

		{product, func(o *tracking.Order) { o.Key = "" }, "key"},
		{product, func(o *tracking.Order) { o.Key = long(256) }, "key"},
		{product, func(o *tracking.Order) { o.Key = "a\nb" }, "key"},
		{product, func(o *tracking.Order) { o.Key = "4242 4242 4242 4242" }, "key"},
		{product, func(o *tracking.Order) { o.Key = "pi_1_secret_abc" }, "key"},
		{product, func(o *tracking.Order) { o.Kind = "" }, "kind"},
		{product, func(o *tracking.Order) { o.Kind = "gift" }, "kind"},
		{product, func(o *tracking.Order) { o.Description = long(501) }, "description"},
		{product, func(o *tracking.Order) { o.Description = "a\xff" }, "description"},
		{product, func(o *tracking.Order) { o.Description = "a\x00" }, "description"},
		{product, func(o *tracking.Order) { o.Description = "card 4242-4242-4242-4242" }, "description"},
		{product, func(o *tracking.Order) { o.Name = long(201) }, "name"},
		{product, func(o *tracking.Order) { o.Name = "4000000000000002" }, "name"},
		{product, func(o *tracking.Order) { o.Email = "ann" }, "email"},
		{product, func(o *tracking.Order) { o.Email = "4242424242424242@example.com" }, "email"},
		{product, func(o *tracking.Order) { o.Email = "" }, "customer"},
		{product, func(o *tracking.Order) { o.Customer = "ann" }, "customer"},
		{product, func(o *tracking.Order) { o.Customer = "cus_1/2" }, "customer"},
		{product, func(o *tracking.Order) { o.PaymentMethod = "" }, "payment_method"},
		{product, func(o *tracking.Order) { o.PaymentMethod = "tok_visa" }, "payment_method"},
		{product, func(o *tracking.Order) { o.PaymentMethod = "4242424242424242" }, "payment_method"},
		{product, func(o *tracking.Order) { o.Amount = 0 }, "amount"},
		{product, func(o *tracking.Order) { o.Amount = -1 }, "amount"},
		{product, func(o *tracking.Order) { o.Amount = 100_000_000 }, "amount"},
		{product, func(o *tracking.Order) { o.Price = "price_1" }, "amount"},
		{product, func(o *tracking.Order) { o.Currency = "" }, "currency"},
		{product, func(o *tracking.Order) { o.Currency = "US1" }, "currency"},
		{product, func(o *tracking.Order) { o.Payments = 3 }, "payments"},
		{old, func(o *tracking.Order) { o.Price = "price_1" }, "price"},
		{old, func(o *tracking.Order) { o.PaymentMethod = goodCard }, "payment_method"},
		{sub, func(o *tracking.Order) { o.Price = "" }, "price"},
		{sub, func(o *tracking.Order) { o.Price = "gold 1" }, "price"},
		{sub, func(o *tracking.Order) { o.Price = "gold/1" }, "price"},
		{sub, func(o *tracking.Order) { o.Price = ".." }, "price"},
		{sub, func(o *tracking.Order) { o.Price = strings.Repeat("p", 256) }, "price"},
		{sub, func(o *tracking.Order) { o.Amount = 1 }, "amount"},
		{sub, func(o *tracking.Order) { o.Currency = "USD" }, "amount"},
		{sub, func(o *tracking.Order) { o.Payments = 2 }, "payments"},
		{split, func(o *tracking.Order) { o.Payments = 1 }, "payments"},
		{split, func(o *tracking.Order) { o.Payments = 121 }, "payments"},
	} {
		o := c.of
		c.change(&o)
		err := o.Check()
		f, ok := errors.AsType[*tracking.FieldError](err)
		if ok != (c.field != "") || ok && f.Field != c.field || !ok && err != nil {
			t.Errorf("%+.120v: got %v, want %q", o, err, c.field)
		}
		if ok && slices.ContainsFunc([]string{"4242", "4000", "_secret_"},
			func(bad string) bool { return strings.Contains(err.Error(), bad) }) {
			t.Errorf("it repeats what it must not: %v", err)
		}
	}
	d := newDesk(t)
	for field, change := range map[string]func(*tracking.Order){"account": func(o *tracking.Order) { o.Merchant = "12" },
		"kind": func(o *tracking.Order) { o.Kind = "gift" }} {
		o := product
		o.Merchant = shopAccount
		change(&o)
		if f, ok := errors.AsType[*tracking.FieldError](func() error {
			_,
				err := d.service.CreatePurchase(t.Context(), o)
			return err
		}()); !ok || f.Field != field {
			t.Errorf("%s: %v", field, f)
		}
	}
	if len(d.items(tables.Tracking.Purchases.Name)) > 0 {
		t.Error("what is wrong was stored")
	}
}
