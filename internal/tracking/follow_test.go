package tracking_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
	"github.com/duesday/duesday/stripefake"
)

// A market is a fake of Stripe with an account whose owner sells with programs of its own.
type market struct {
	*shop
	line *line
	subs map[string]string // IDs of the owner's subscriptions, by what becomes of them
}

func newMarket(t testing.TB) *market {
	t.Helper()
	fake := stripefake.New(stripefake.Options{Now: func() time.Time { return shopStart }, Connected: []string{shopAt}})
	m := &market{shop: &shop{TB: t, fake: fake}, line: &line{fake: fake}, subs: map[string]string{}}
	client, err := api.New(api.Options{Key: secret.New("sk_test_duesday"), Base: "http://localhost:1", Rate: 1000, Now: fake.Now,
		Transport: m.line})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	m.tracker = sell.New(client)
	tea := m.post("products", "name=Tea").id()
	m.monthly = m.post("prices", "currency=usd", "unit_amount=1500", "recurring[interval]=month", "product="+tea).id()
	m.weekly = m.post("prices", "currency=usd", "unit_amount=700", "recurring[interval]=week", "product="+tea).id()
	return m
}

// owns creates a subscription of the owner's, which Duesday knows nothing of.
func (m *market) owns(name, card string, pairs ...string) string {
	m.Helper()
	buyer := []string{"email=" + name + "@example.com"}
	if card != "" {
		buyer = append(buyer, "payment_method="+card, "invoice_settings[default_payment_method]="+card)
	}
	pairs = append(pairs, "customer="+m.post("customers", buyer...).id())
	if !slices.ContainsFunc(pairs, func(p string) bool { return strings.HasPrefix(p, "items") }) {
		pairs = append(pairs, "items[0][price]="+m.monthly)
	}
	m.subs[name] = m.post("subscriptions", pairs...).id()
	return m.subs[name]
}

func (m *market) change(name string, pairs ...string) {
	m.post("subscriptions/"+m.subs[name], pairs...)
}

func (m *market) cancel(name string) { m.do(http.MethodDelete, "subscriptions/"+m.subs[name]) }

// card attaches another card to a subscription.
func (m *market) card(name, method string) {
	m.Helper()
	customer := m.do(http.MethodGet, "subscriptions/"+m.subs[name]).str("customer")
	m.change(name, "default_payment_method="+m.post("payment_methods/"+method+"/attach", "customer="+customer).id())
}

// intent returns a payment of the subscription's latest invoice.
func (m *market) intent(name string) string {
	m.Helper()
	invoice := m.do(http.MethodGet, "subscriptions/"+m.subs[name]).str("latest_invoice")
	for _, p := range m.do(http.MethodGet, "invoice_payments?invoice="+invoice)["data"].([]any) {
		return p.(map[string]any)["payment"].(map[string]any)["payment_intent"].(string)
	}
	m.Fatalf("%s has no payment", name)
	return ""
}

// A tenant is an installation that follows the market.
type tenant struct {
	*house
	m     *market
	store store.Store
	heard map[string]bool // events that it has taken
}

func (m *market) tenant(on store.Store, change ...func(*tracking.Options)) *tenant {
	m.Helper()
	t := &tenant{newHouse(m.TB, on, m.tracker, m.tracker, nil, change...), m, on, map[string]bool{}}
	t.clock = m.fake.Now()
	if _, err := t.service.Register(m.Context(), shopAccount, shopAt); err != nil {
		m.Fatal(err)
	}
	return t
}

// follows imports, and works off what waits.
func (t *tenant) follows(change ...func(*poller.ImportOptions)) poller.ImportReport {
	t.Helper()
	r, err := t.imports(t.Context(), change...)
	if err != nil {
		t.Fatal(err)
	}
	t.m.must(t.settle(t.store))
	return r
}

func (t *tenant) imports(ctx context.Context, change ...func(*poller.ImportOptions)) (poller.ImportReport, error) {
	t.clock = t.m.fake.Now()
	o := poller.ImportOptions{Ledger: t.service, Lister: t.m.tracker, Now: t.clock, Payments: t.clock.Add(-400 * 24 * time.Hour),
		Each: func(poller.ImportRow) {}, Step: func() {}}
	for _, c := range change {
		c(&o)
	}
	return poller.Import(ctx, shopAt, o)
}

// hears takes the webhooks that it has not had, and works off what waits.
func (t *tenant) hears() {
	t.Helper()
	t.clock = t.m.fake.Now()
	for _, e := range t.m.fake.Events(shopAt, false, "") {
		if !t.heard[e.ID] {
			if code := t.hear(e.Body); code != http.StatusOK {
				t.Fatalf("%s is answered with %d", e.ID, code)
			}
			t.heard[e.ID] = true
		}
	}
	t.m.must(t.settle(t.store))
}

// skips the webhooks until now, which came when it did not exist.
func (t *tenant) skips() {
	for _, e := range t.m.fake.Events(shopAt, false, "") {
		t.heard[e.ID] = true
	}
}

// pass lets days pass, and the tenants hear of them.
func (m *market) pass(days int, tenants ...*tenant) {
	m.Helper()
	for step := 0; days > 0; days -= step {
		step = min(days, 5)
		m.fake.Advance(time.Duration(step) * 24 * time.Hour)
		for _, t := range tenants {
			t.hears()
		}
	}
}

// unlike are attributes that an import cannot know or that are about the time of a change here: texts, the
// order, all decline codes of the past, and what a charge has told of refunds.
var unlike = map[string]bool{
	schema.TrackedVersion: true, schema.TrackedHistory: true, schema.TrackedUpdated: true, schema.TrackedImported: true,
	schema.TrackedOrder: true, schema.TrackedKeyHash: true, schema.TrackedAutomations: true, schema.TrackedProblem: true,
	schema.TrackedCode: true, schema.TrackedToldRefunded: true, schema.EffectAsked: true, schema.EffectDone: true,
	schema.TrackedReason: true,
}

// tracked returns the tenant's purchases, subscriptions and payments as text, without what an import cannot know.
func (t *tenant) tracked() map[string]string {
	t.Helper()
	all := map[string]string{}
	tr := tables.Tracking
	for _, table := range []string{tr.Purchases.Name, tr.Subscriptions.Name, tr.Payments.Name} {
		for it, err := range t.store.Scan(t.Context(), store.Scan{Table: table}) {
			if err != nil {
				t.Fatal(err)
			}
			id := it.Str(schema.TrackedID)
			if table == tr.Purchases.Name && it.Has(schema.TrackedOrder) { // the order came before its objects
				it.Set(schema.TrackedCreated, store.S("before"))
			}
			all[id] = plain(it)
		}
	}
	return all
}

func plain(it store.Item) string {
	var b strings.Builder
	for _, a := range it {
		switch {
		case unlike[a.Name]:
		case a.Value.Kind() == store.KindMap:
			fmt.Fprintf(&b, "%s={%s} ", a.Name, plain(a.Value.Map()))
		default:
			fmt.Fprintf(&b, "%s=%s ", a.Name, textOf(a.Value))
		}
	}
	return b.String()
}

// same holds the rows of two tenants against each other. Orders that only the first knows have another time.
func same(t testing.TB, when string, a, b *tenant) {
	t.Helper()
	left, right := a.tracked(), b.tracked()
	for _, id := range slices.Sorted(maps.Keys(left)) {
		l, r := left[id], right[id]
		if strings.Contains(l, "created=before ") { // of an order
			l, r = uncreated(l), uncreated(r)
		}
		if l != r {
			t.Errorf("%s: %s is\n\t%s\nfor the one that heard everything, and after the import\n\t%s", when, id, l, r)
		}
	}
	for id, r := range right {
		if left[id] == "" {
			t.Errorf("%s: only the import has %s: %s", when, id, r)
		}
	}
}

func uncreated(text string) string {
	before, after, _ := strings.Cut(text, "created=")
	_, after, _ = strings.Cut(after, " customer=")
	return before + after
}

// sells makes a purchase through Duesday.
func (m *market) sells(t *tenant, key string, k tracking.Kind) *tracking.Created {
	m.Helper()
	o := buys(k, "pm_card_visa")
	if k == tracking.Legacy {
		o.PaymentMethod = ""
	}
	o.Merchant, o.Key, o.Email = shopAccount, key, key+"@example.com"
	o.Price = map[string]string{"monthly": m.monthly, "weekly": m.weekly}[o.Price]
	c, err := t.service.CreatePurchase(m.Context(), o)
	if err != nil {
		m.Fatal(err)
	}
	for _, s := range c.Sale.Objects {
		if s.Kind == tracking.KindSubscription {
			m.subs[key] = s.ID
		}
	}
	return c
}

// opening has subscriptions of all states begin, half of them through Duesday.
func (m *market) opening(a *tenant) {
	m.owns("running", "pm_card_visa")
	m.owns("trial", "pm_card_visa", "trial_period_days=120")
	m.owns("past_due", "pm_card_visa", "items[0][price]="+m.weekly)
	m.owns("canceled", "pm_card_visa")
	m.owns("ending", "pm_card_visa")
	m.owns("collection", "pm_card_visa")
	m.owns("paused", "", "trial_period_days=10", "trial_settings[end_behavior][missing_payment_method]=pause")
	m.owns("later", "pm_card_visa")
	m.owns("changed", "pm_card_visa", "items[0][price]="+m.weekly, "items[0][quantity]=3")
	m.owns("expired", "pm_card_visa", "payment_behavior=default_incomplete")
	m.owns("refunded", "pm_card_visa")
	for _, key := range []string{"sold", "soldcanceled", "soldlater", "soldpastdue", "soldending"} {
		m.sells(a, key, tracking.Subscribe)
	}
	m.sells(a, "split", tracking.SplitPayment)
	confirm(m.shop, m.sells(a, "legacy", tracking.Legacy), "pm_card_visa")
	m.sells(a, "unpaid", tracking.Legacy)
	m.sells(a, "product", tracking.Product)
	a.follows()
}

// before is what happens before the import, 90 days in all.
func (m *market) before(a *tenant) {
	m.pass(20, a)
	m.card("soldpastdue", "pm_card_chargeCustomerFail")
	m.post("refunds", "payment_intent="+m.intent("refunded"), "amount=500")
	id, err := m.fake.Dispute(m.intent("sold"), "")
	m.must(err)
	m.must(m.fake.CloseDispute(id, "lost"))
	m.pass(20, a)
	m.cancel("canceled")
	m.cancel("soldcanceled")
	m.change("collection", "pause_collection[behavior]=void")
	m.pass(36, a)
	m.card("past_due", "pm_card_chargeCustomerFail")
	m.pass(4, a)
	m.change("ending", "cancel_at_period_end=true")
	m.change("soldending", "cancel_at_period_end=true")
	m.pass(4, a)
	m.owns("paying", "pm_card_visa", "payment_behavior=default_incomplete")
	m.owns("lapsing", "pm_card_visa", "payment_behavior=default_incomplete")
	m.sells(a, "lastsplit", tracking.SplitPayment)
	a.follows()
	a.hears()
}

// after is what happens after the import.
func (m *market) after(tenants ...*tenant) {
	m.post("payment_intents/"+m.intent("paying")+"/confirm", "payment_method=pm_card_visa", "return_url=https://shop.example")
	m.card("past_due", "pm_card_visa")
	m.pass(10, tenants...)
	m.cancel("later")
	m.cancel("soldlater")
	m.change("changed", "items[0][id]="+m.item("changed"), "items[0][quantity]=5", "proration_behavior=none")
	m.post("refunds", "payment_intent="+m.intent("running"))
	m.pass(80, tenants...)
}

func (m *market) item(name string) string {
	items := m.do(http.MethodGet, "subscriptions/"+m.subs[name])["items"].(map[string]any)
	return items["data"].([]any)[0].(map[string]any)["id"].(string)
}

// TestFollow_AsIfItHadHeardEverything: an installation that imports a running account stores what one that has
// heard every event stores, then and after further months, and does what the other does from then on.
func TestFollow_AsIfItHadHeardEverything(t *testing.T) {
	m := newMarket(t)
	a := m.tenant(salted(t))
	m.opening(a)
	m.before(a)
	followed(t, m, a, salted(t))
}

func followed(t *testing.T, m *market, a *tenant, on store.Store) {
	b := m.tenant(on)
	b.skips()
	r := b.follows()
	t.Logf("%+v", r)
	if r.Skipped != 0 || r.Imported != len(m.subs) || r.Payments < len(m.subs) {
		t.Errorf("got %+v of %d", r, len(m.subs))
	}
	if jobs := b.robot.jobs(); len(jobs) > 0 {
		t.Errorf("the import did %v", jobs)
	}
	states := map[string]int{}
	for text := range maps.Values(b.tracked()) {
		if _, status, is := strings.Cut(text, "stripe_status="); is {
			states[strings.Fields(status)[0]]++
		}
	}
	t.Log(states)
	for _, s := range []string{"active", "trialing", "past_due", "canceled", "paused", "incomplete", "incomplete_expired"} {
		if states[s] == 0 {
			t.Errorf("no subscription is %s: %v", s, states)
		}
	}
	same(t, "after the import", a, b)
	before := b.tracked()
	if again := b.follows(); again.Imported != 0 || again.Known != r.Imported || again.Changed != 0 || again.Payments != 0 ||
		!maps.Equal(before, b.tracked()) {
		t.Errorf("imported again: %+v", again)
	}
	old := len(a.robot.jobs())
	m.after(a, b)
	same(t, "after further months", a, b)
	got, want := slices.Sorted(slices.Values(b.robot.jobs())), slices.Sorted(slices.Values(a.robot.jobs()[old:]))
	if !slices.Equal(got, want) || len(slices.Compact(got)) != len(want) || len(want) < 5 {
		t.Errorf("since the import did %v, want %v", got, want)
	}
	step := tracking.RebuildSteps{Read: func() {}, Folded: func(int, int) {}}
	rebuilt, err := b.service.Rebuild(t.Context(), []string{shopAt}, step)
	if err != nil || len(rebuilt[0].Differences) > 0 || rebuilt[0].Compared == 0 {
		t.Errorf("rebuilt: %+v, %v", rebuilt[0], err)
	}
}

// followsOn imports a market into the store, and holds it against one in memory, then and after what comes next.
func followsOn(t *testing.T, on store.Store) {
	m := small(t)
	a := m.tenant(salted(t))
	fill(t, on, a.store) // with the same salt
	b := m.tenant(on)
	a.follows(fulfils)
	for range 2 {
		b.follows(fulfils)
		same(t, "after the import", a, b)
	}
	a.skips()
	b.skips()
	m.cancel("running")
	m.post("payment_intents/"+m.intent("incomplete")+"/confirm", "payment_method=pm_card_visa", "return_url=https://shop.example")
	m.pass(35, a, b)
	same(t, "afterwards", a, b)
	if got, want := b.robot.jobs(), a.robot.jobs(); len(got) != 3 || len(want) != 3 {
		t.Errorf("did %v and %v", got, want)
	}
}

// TestFollow_Rebuild: a rebuild keeps what an import brought, and reports no difference, although the stored events of
// the time before are only a part and were ignored.
func TestFollow_Rebuild(t *testing.T) {
	m := newMarket(t)
	b := m.tenant(salted(t))
	m.owns("ended", "pm_card_visa")
	m.owns("refunded", "pm_card_visa")
	b.hears()
	m.cancel("ended") // its event never comes, as those of the refund
	m.post("refunds", "payment_intent="+m.intent("refunded"), "amount=500")
	m.fake.Advance(time.Hour)
	b.skips()
	if r := b.follows(); r.Imported != 2 || r.Payments != 2 {
		t.Errorf("got %+v", r)
	}
	before := b.tracked()
	step := tracking.RebuildSteps{Read: func() {}, Folded: func(int, int) {}}
	list, err := b.service.Rebuild(t.Context(), []string{shopAt}, step)
	if err != nil || len(list[0].Differences) > 0 || list[0].Compared != 4 || list[0].Ahead != 2 {
		t.Errorf("got %+v, %v", list[0], err)
	}
	if !maps.Equal(before, b.tracked()) {
		t.Error("the rebuild changed something")
	}
}
