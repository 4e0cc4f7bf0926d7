package takeover_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/takeover"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// A member is a subscription of the shop at Stripe.
type member struct {
	id, customer string
	stays        bool
	undone       bool       // its takeover was undone
	ends         civil.Date // of its discount
	soon         bool       // when the takeovers began, its renewal was so near that it may stay
}

// kinds make subscriptions that can be taken over, and then those that stay.
var kinds = []struct {
	name  string
	stays bool
	price []string // parameters of the price
	sub   []string // of the subscription
	later []string // of a change of it
}{
	{name: "plain"},
	{name: "two of it", sub: []string{"items[0][quantity]=2"}},
	{name: "yearly", price: []string{"recurring[interval]=year"}},
	{name: "every other week", price: []string{"recurring[interval]=week", "recurring[interval_count]=2"}},
	{name: "trial", sub: []string{"trial_period_days=20"}},
	{name: "discount", sub: []string{"discounts[0][coupon]=TEN"}},
	{name: "discount for a time", sub: []string{"discounts[0][coupon]=MONTHS"}},
	{name: "own method", sub: []string{"default_payment_method=METHOD"}},
	{name: "ends", stays: true, later: []string{"cancel_at_period_end=true"}},
	{name: "paused", stays: true, later: []string{"pause_collection[behavior]=void"}},
	{name: "two items", stays: true, sub: []string{"items[1][price]=PRICE"}},
	{name: "soon", stays: true, price: []string{"recurring[interval]=day"}},
	{name: "past due", stays: true, sub: []string{"default_payment_method=DECLINED", "trial_period_days=1"}},
	{name: "pending item", stays: true},
	{name: "canceled", stays: true},
}

// members creates n subscriptions, of each kind in turn, over three weeks. All but those of two
// items are tracked: some were sold through Duesday, and the others are imported.
func (w *world) members(n int) (all []*member) {
	w.Helper()
	_, err := w.tracked.Register(context.Background(), merchant, w.own())
	w.must(err)
	w.post("coupons", "id=TEN", "percent_off=10", "duration=forever")
	w.post("coupons", "id=MONTHS", "amount_off=300", "currency=usd", "duration=repeating", "duration_in_months=3")
	prices := map[string]string{}
	for _, k := range kinds {
		prices[k.name] = w.price(k.price...)
	}
	for i := range n {
		k := kinds[i%len(kinds)]
		customer, method := w.customer(i)
		m := &member{customer: customer, stays: k.stays}
		if tracks := i%2 == 0 && (k.name == "plain" || k.name == "yearly" || k.name == "every other week"); tracks {
			c, err := w.tracked.CreatePurchase(context.Background(), tracking.Order{Merchant: merchant, Kind: tracking.Subscribe, Key: fmt.Sprint("k", i),
				Price: prices[k.name], Customer: customer, PaymentMethod: method})
			w.must(err)
			for id := range c.Purchase.Subscriptions {
				m.id = id
			}
		} else {
			form := []string{"customer=" + customer, "items[0][price]=" + prices[k.name]}
			for _, p := range k.sub {
				switch p {
				case "items[1][price]=PRICE":
					p = "items[1][price]=" + prices["plain"]
				case "default_payment_method=METHOD":
					p = "default_payment_method=" + method
				case "default_payment_method=DECLINED":
					p = "default_payment_method=" + w.post("payment_methods/pm_card_chargeCustomerFail/attach", "customer="+customer).id()
				}
				form = append(form, p)
			}
			m.id = w.post("subscriptions", form...).id()
		}
		if k.later != nil {
			w.post("subscriptions/"+m.id, k.later...)
		}
		switch k.name {
		case "pending item":
			w.post("invoiceitems", "customer="+customer, "amount=500", "currency=usd")
		case "canceled":
			w.stripe("DELETE", "subscriptions/"+m.id)
		}
		if k.name == "discount for a time" {
			d := w.stripe("GET", "subscriptions/"+m.id, "expand[]=discounts")["discounts"].([]any)[0].(map[string]any)
			m.ends = civil.Of(time.Unix(int64(d["end"].(float64)), 0).UTC())
		}
		all = append(all, m)
		w.pass(21 * 24 * time.Hour / time.Duration(n))
		w.fake.SetNow(w.now())
	}
	w.pass(48 * time.Hour)
	w.fake.SetNow(w.now())
	w.follow()
	_, err = poller.Import(context.Background(), w.own(), poller.ImportOptions{Ledger: w.tracked, Lister: sell.New(w.proc.API()), Now: w.now(),
		Payments: w.now().AddDate(-1, 0, 0), Each: func(poller.ImportRow) {}, Step: func() {}})
	w.must(err)
	return all
}

func (w *world) own() string {
	own, _, err := w.proc.API().Own(context.Background())
	w.must(err)
	return own
}

// TestTakeover_Thousand takes over a shop of mixed subscriptions, with a process that dies again and again: at
// a request or a commit, before it or after it. Some takeovers are undone. Ninety days follow, with runs every
// day. By Stripe's own ledger each customer paid for each period once, at Stripe or here. No purchase was
// unsubscribed, except those that stayed and ended.
func TestTakeover_Thousand(t *testing.T) {
	n, crashes := 45, 30
	if soaktest.On() {
		n, crashes = 1000, 300
	}
	w := newWorld(t)
	all := w.members(n)
	random := rand.New(rand.NewPCG(1, 2))
	undo := map[string]bool{}
	for i, m := range all {
		if m.undone = i%7 == 3 && !m.stays; m.undone {
			undo[m.id] = true
		}
	}
	died, began := 0, w.now()
	for _, m := range all {
		if s, err := w.proc.Subscription(t.Context(), m.id); err == nil && s.PeriodEnd.Before(w.now().Add(takeover.Ahead+6*time.Hour)) {
			m.soon = true
		}
	}
	for {
		var c *crash
		if died < crashes {
			c = new(crash)
			c.left.Store(random.Int64N(int64(n) * 14 / int64(max(crashes/8, 1))))
		}
		w.start(c)
		ctx, stop := context.WithCancelCause(t.Context())
		if c != nil {
			c.stop = stop // nothing waits in a dead process
		}
		err := w.all(ctx, undo)
		stop(nil)
		if c == nil || !c.ended.Load() {
			w.must(err)
			if c == nil {
				break
			}
			continue
		}
		if err == nil {
			t.Fatal("it died, and returned no error")
		}
		died++
		w.pass(time.Minute)
	}
	w.start(nil)
	w.follow()
	for range 9 {
		w.days(10)
		w.follow()
	}
	if r := w.verify(); !r.OK {
		t.Errorf("%+v", r.Problems)
	}
	taken := w.paid(all, began)
	t.Logf("%d subscriptions, %d taken over, %d deaths", n, taken, died)
}

// all takes over what can be, except what an earlier process has handed back, and hands some back.
func (w *world) all(ctx context.Context, undo map[string]bool) error {
	v := w.service()
	for e, err := range v.Plan(ctx, takeover.Filter{}) {
		wanted, listed := undo[e.Theirs.ID]
		if err == nil && e.Stays == "" && (wanted || !listed) {
			e, err = v.Take(ctx, e)
		}
		if err == nil && e.Stored && wanted {
			_, err = v.Undo(ctx, e.Ours.Name)
			undo[e.Theirs.ID] = err != nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// paid compares what each customer has paid since then, by the fake's charges, with the due dates and prices
// of the subscription. It returns how many were taken over.
func (w *world) paid(all []*member, since time.Time) (taken int) {
	w.Helper()
	here := 0
	for i, m := range all {
		kind := kinds[i%len(kinds)].name
		sub := w.stripe("GET", "subscriptions/"+m.id, "expand[]=discounts")
		ours := w.oursOf(m)
		if ours == nil && m.soon { // it renewed in less than 24 hours
			continue
		}
		if there := ours != nil && ours.Status != billing.CanceledSub; there != (!m.stays && !m.undone) {
			w.Errorf("%s %s: here %v", kind, m.id, there)
		}
		if s, err := w.tracked.Subscription(context.Background(), w.own(), m.id); kind != "two items" && (err != nil || !m.stays && slices.Contains(w.left, s.Purchase)) {
			w.Errorf("%s %s was unsubscribed, or is not tracked: %v", kind, m.id, err)
		}
		if m.stays || m.undone {
			for _, c := range w.list("charges", "customer="+m.customer) {
				if c["metadata"].(map[string]any)["duesday_account"] != nil {
					w.Errorf("%s %s was charged here", kind, m.id)
				}
			}
			if status := sub["status"]; m.undone && (status != "active" || sub["cancel_at_period_end"] == true) {
				w.Errorf("%s %s was handed back, and is %v", kind, m.id, status)
			}
			continue
		}
		if taken++; sub["status"] != "canceled" && ours.Period > 0 {
			w.Errorf("%s %s is %v at Stripe", kind, m.id, sub["status"])
		}
		var want []int64
		schedule, unit := ours.Schedule(), map[string]int64{"two of it": 3000, "discount": 1350}[kind]
		schedule.From = 0
		for n := 0; ; n++ {
			due, err := schedule.Due(n)
			w.must(err)
			if !due.Before(w.today()) {
				break
			}
			want = append(want, w.amount(m, cmp.Or(unit, 1500), due))
		}
		var got []int64
		var last civil.Date
		for _, c := range w.list("charges", "customer="+m.customer) {
			if created := int64(c["created"].(float64)); created >= since.Unix() && c["status"] == "succeeded" {
				if got = append(got, int64(c["amount"].(float64))); c["metadata"].(map[string]any)["duesday_account"] != nil {
					here++
				}
				if day := civil.Of(time.Unix(created, 0).UTC()); day.After(last) {
					last = day
				}
			}
		}
		slices.Reverse(got) // Stripe lists the newest first
		if len(got) == len(want)+1 && last == w.today() && ours.NextPayment.After(w.today()) {
			got = got[:len(want)] // that of today
		}
		if !slices.Equal(got, want) {
			w.Errorf("%s %s, %s: paid %v, want %v", kind, m.id, ours.Name, got, want)
		}
	}
	if here == 0 {
		w.Error("no charge is known to be from here")
	}
	return taken
}

// amount is what the period due on the day costs at Stripe.
func (w *world) amount(m *member, usual int64, due civil.Date) int64 {
	if due.Before(m.ends) {
		return usual - 300
	}
	return usual
}

func (w *world) list(path string, pairs ...string) (all []thing) {
	for _, o := range w.stripe("GET", path, append(pairs, "limit=100")...)["data"].([]any) {
		all = append(all, o.(map[string]any))
	}
	return all
}

// oursOf returns our newest subscription that was made from the member's, or nil.
func (w *world) oursOf(m *member) (found *billing.Subscription) {
	w.Helper()
	for s, err := range w.engine.GetSubscriptionsByAccount(context.Background(), m.customer) {
		w.must(err)
		if s.Takeover.From == m.id {
			found = s
		}
	}
	return found
}
