package tracking_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// A flow is a possible course of a purchase. It lists the data that must be stored and the jobs
// that must be done after all events have arrived, in whatever order.
type flow struct {
	name    string
	order   tracking.Order
	endedBy []string
	then    func(s *shop, c *tracking.Created) // what happens after the purchase was made

	// told are beginnings of the types of the events that are explored in every order, quick of
	// those that are without DUESDAY_SOAK; none: told. last: without it only the first one is, and
	// the last so many; 0: all. The rest is in the samples.
	told, quick []string
	last        int

	// go test explores the first and the last two of these events, and in both forms the first, the last
	// and its twin. Some ends need more: whole explores all of them. oneForm leaves the flow's second way
	// to make check.
	whole, oneForm bool

	payments, subscriptions []string // sorted
	jobs                    []string // that may be done, space between them; the first is what comes of the events in their order
}

// A tape is the recording of a flow in the fake Stripe.
type tape struct {
	*flow
	purchase string
	finder   *memory
	seller   *look
	roots    []*memstore.Store             // what may be stored when the events begin to come
	events   map[string][]stripefake.Event // snapshots, by version
	thin     []stripefake.Event            // the thin ones, of the same changes in the same order
}

// billed reports whether Stripe shows a paid invoice that fulfils the purchase.
func (tp *tape) billed() bool {
	sale, err := tp.seller.once()
	return err == nil && slices.ContainsFunc(sale.Objects, func(o tracking.Object) bool {
		return o.Kind == tracking.KindInvoice && o.Status == "paid"
	})
}

// play has the flow happen, and stores nothing but what creating the purchase stores: as it is
// after each commit of that, where a crash may have ended it, and not at all.
func play(t testing.TB, f *flow, versions ...string) *tape {
	t.Helper()
	s := newShop(t)
	s.must(s.fake.SetEvents(stripefake.BothEvents))
	tp := &tape{flow: f, finder: &memory{Finder: s.tracker, told: map[string]told{}},
		events: map[string][]stripefake.Event{}}
	empty := salted(t)
	faulty := storetest.NewFaulty(empty)
	h := newHouse(t, faulty, s.tracker, s.tracker, f.endedBy)
	if _, err := h.service.Register(t.Context(), shopAccount, shopAt); err != nil {
		t.Fatal(err)
	}
	if err := h.settle(faulty); err != nil {
		t.Fatal(err)
	}
	tp.roots = append(tp.roots, empty.Snapshot())
	faulty.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		if op.Kind == storetest.Commit && phase == storetest.After {
			tp.roots = append(tp.roots, empty.Snapshot())
		}
		return nil
	}
	o := f.order
	o.Merchant, o.Key = shopAccount, "one"
	switch o.Price {
	case "monthly":
		o.Price = s.monthly
	case "weekly":
		o.Price = s.weekly
	}
	c, err := h.service.CreatePurchase(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	if tp.purchase = c.Purchase.ID; f.then != nil {
		f.then(s, c)
	}
	ordered := tracking.Order{Tag: tracking.Tag{Installation: installation, Purchase: tp.purchase, Kind: o.Kind},
		At: shopAt, Merchant: shopAccount,
		Kind: o.Kind, Key: o.Key, Amount: o.Amount, Currency: o.Currency, Price: o.Price, Payments: o.Payments,
		Email: o.Email, PaymentMethod: o.PaymentMethod}
	tp.seller = &look{Seller: s.tracker,
		once: sync.OnceValues(func() (tracking.Sale, error) { return s.tracker.Find(context.Background(), ordered) })}
	for _, v := range append(versions, stripefake.NewestVersion) {
		tp.events[v], tp.thin = nil, nil
		for _, e := range s.fake.Events(shopAt, false, v) {
			if isThin(e) {
				tp.thin = append(tp.thin, e)
			} else {
				tp.events[v] = append(tp.events[v], e)
			}
		}
	}
	return tp
}

func memory0(t testing.TB) *memstore.Store {
	t.Helper()
	m, err := memstore.Open(used, func() time.Time { return shopStart })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// salted returns a store that only has its Stripe account and the salt of its purchase IDs. With a
// random salt, the order of the rows and so the test cases would differ each time.
func salted(t testing.TB) *memstore.Store {
	t.Helper()
	m := memory0(t)
	own := store.NewItem(store.Attribute{Name: schema.PK, Value: store.S("OWN")},
		store.Attribute{Name: schema.SK, Value: store.S("OWN")},
		store.Attribute{Name: schema.TrackedStripeAccount, Value: store.S(stripefake.DefaultAccount)},
		store.Attribute{Name: schema.TrackedSalt, Value: store.S("salt")})
	if err := m.Commit(t.Context(), store.Put(tables.Tracking.Registry.Name, own)); err != nil {
		t.Fatal(err)
	}
	return m
}

// explored returns the events that TestEveryOrder delivers in every order. In both forms, only the
// last event has a twin without DUESDAY_SOAK.
func (tp *tape) explored(form stripefake.EventForm, version string) []stripefake.Event {
	if form == stripefake.BothEvents {
		list, thin := tp.explored(stripefake.SnapshotEvents, version), tp.explored(stripefake.ThinEvents, version)
		switch {
		case soaktest.On():
			return append(list, thin...)
		case !soaktest.Checked():
			list = slices.Delete(list, 1, len(list)-1)
		}
		return append(list, thin[len(thin)-1])
	}
	prefixes := tp.told
	if tp.quick != nil && !soaktest.On() {
		prefixes = tp.quick
	}
	list := slices.DeleteFunc(slices.Clone(tp.inForm(form, version)), func(e stripefake.Event) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(v1(e.Type), prefix) })
	})
	last := len(list) - 1
	if tp.last > 0 && !soaktest.On() {
		last = tp.last
	}
	if last > 2 && !tp.whole && !soaktest.Checked() {
		last = 2
	}
	return slices.Delete(list, 1, len(list)-last)
}

// house returns a process that works on the given store.
func (tp *tape) house(t testing.TB, on store.Store, change ...func(*tracking.Options)) *house {
	t.Helper()
	return newHouse(t, on, tp.finder, tp.seller, tp.endedBy, change...)
}

const (
	goodCard = "pm_card_visa"
	badCard  = "pm_card_chargeCustomerFail" // can be attached, and is declined
)

func buys(k tracking.Kind, method string) tracking.Order {
	o := tracking.Order{Kind: k, Email: "ann@example.com", PaymentMethod: method}
	switch k {
	case tracking.Legacy, tracking.Product:
		o.Amount, o.Currency = 1500, "USD"
	case tracking.Subscribe:
		o.Price = "monthly"
	case tracking.SplitPayment:
		o.Price, o.Payments = "weekly", 2
	}
	return o
}

func objectOf(s *shop, c *tracking.Created, kind string) string {
	s.Helper()
	for _, o := range c.Sale.Objects {
		if o.Kind == kind {
			return o.ID
		}
	}
	s.Fatalf("the sale has no %s: %+v", kind, c.Sale.Objects)
	return ""
}

func payment(s *shop, c *tracking.Created) string { return objectOf(s, c, tracking.KindPayment) }

func subscription(s *shop, c *tracking.Created) string {
	return objectOf(s, c, tracking.KindSubscription)
}

func confirm(s *shop, c *tracking.Created, method string) {
	s.call("POST", "payment_intents/"+payment(s, c)+"/confirm", "payment_method="+method,
		"return_url=https://shop.example")
}

func cancelSubscription(s *shop, c *tracking.Created) {
	s.do("DELETE", "subscriptions/"+subscription(s, c))
}

// card changes the payment card of the subscription's customer.
func card(s *shop, c *tracking.Created, method string) {
	added := s.post("payment_methods/"+method+"/attach", "customer="+c.Sale.Customer)
	s.post("subscriptions/"+subscription(s, c), "default_payment_method="+added.id())
}

// payLatest pays the latest invoice of the subscription.
func payLatest(s *shop, c *tracking.Created, method string) {
	sub := s.do("GET", "subscriptions/"+subscription(s, c))
	added := s.post("payment_methods/"+method+"/attach", "customer="+c.Sale.Customer)
	s.post("invoices/"+sub.str("latest_invoice")+"/pay", "payment_method="+added.id())
}

func refund(amount string) func(*shop, *tracking.Created) {
	return func(s *shop, c *tracking.Created) {
		pairs := []string{"payment_intent=" + payment(s, c)}
		if amount != "" {
			pairs = append(pairs, "amount="+amount)
		}
		s.post("refunds", pairs...)
	}
}

func dispute(verdict string) func(*shop, *tracking.Created) {
	return func(s *shop, c *tracking.Created) {
		id, err := s.fake.Dispute(payment(s, c), "")
		s.must(err)
		s.must(s.fake.CloseDispute(id, verdict))
	}
}

// revoked lets the merchant revoke our access to the Stripe account and grant it again.
func revoked(s *shop, _ *tracking.Created) {
	s.must(s.fake.Disconnect(shopAt))
	s.fake.Advance(time.Hour)
	s.must(s.fake.Connect(shopAt, ""))
}

// ends sets whether Stripe cancels the subscription at the end of its period.
func ends(yes string) func(*shop, *tracking.Created) {
	return func(s *shop, c *tracking.Created) {
		s.post("subscriptions/"+subscription(s, c), "cancel_at_period_end="+yes)
	}
}

// appeal plays an appeal of the payment's lost dispute.
func appeal(verdict string) func(*shop, *tracking.Created) {
	return func(s *shop, c *tracking.Created) {
		id := s.do("GET", "disputes", "payment_intent="+payment(s, c))["data"].([]any)[0].(map[string]any)["id"].(string)
		s.must(s.fake.AppealDispute(id))
		s.must(s.fake.AppealDispute(id))
		s.must(s.fake.CloseDispute(id, verdict))
	}
}

const day = 24 * time.Hour

// second creates another subscription of the same purchase, by hand.
func second(s *shop, c *tracking.Created) string {
	return s.post("subscriptions", "customer="+c.Sale.Customer, "items[0][price]="+s.weekly,
		"default_payment_method="+methodOf(s, c),
		"metadata[duesday_installation]="+installation, "metadata[duesday_purchase]="+c.Purchase.ID,
		"metadata[duesday_purchase_kind]="+string(c.Purchase.Kind)).id()
}

func methodOf(s *shop, c *tracking.Created) string {
	return s.do("GET", "subscriptions/"+subscription(s, c)).str("default_payment_method")
}

// foreign sells something unrelated to Duesday through the same account.
func foreign(s *shop, _ *tracking.Created) {
	s.post("payment_intents", "amount=700", "currency=usd", "confirm=true", "payment_method="+goodCard,
		"return_url=https://shop.example")
	who := s.post("customers", "payment_method="+goodCard, "invoice_settings[default_payment_method]="+goodCard)
	sub := s.post("subscriptions", "customer="+who.id(), "items[0][price]="+s.weekly)
	s.do("DELETE", "subscriptions/"+sub.id())
}

func both(do ...func(*shop, *tracking.Created)) func(*shop, *tracking.Created) {
	return func(s *shop, c *tracking.Created) {
		for _, f := range do {
			f(s, c)
		}
	}
}

func later(d time.Duration) func(*shop, *tracking.Created) {
	return func(s *shop, _ *tracking.Created) { s.fake.Advance(d) }
}
