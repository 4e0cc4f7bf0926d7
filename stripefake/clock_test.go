package stripefake

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func (s *shop) frozen(from time.Time) string {
	s.t.Helper()
	return s.post("test_helpers/test_clocks", fmt.Sprint("frozen_time=", from.Unix()), "name=a clock").id()
}

func (s *shop) advance(clock string, to time.Time) answer {
	s.t.Helper()
	return s.post("test_helpers/test_clocks/"+clock+"/advance", fmt.Sprint("frozen_time=", to.Unix()))
}

func TestClock(t *testing.T) {
	s := newShop(t)
	from := time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)
	clock := s.frozen(from)
	customer, _ := s.buyerWith("pm_card_visa", "test_clock="+clock)
	sub := s.subscribe(customer)
	s.is(sub, fmt.Sprint("created=", from.Unix()), "test_clock="+clock)
	s.is(s.advance(clock, from.AddDate(0, 0, 28).Add(time.Hour)), "status=advancing")
	s.is(s.get("test_helpers/test_clocks/"+clock), "status=ready")
	o := s.get("subscriptions/"+sub.id(), "expand[]=latest_invoice")
	s.is(o, "latest_invoice.status=paid", fmt.Sprint("latest_invoice.created=", from.AddDate(0, 0, 28).Unix()),
		fmt.Sprint("latest_invoice.status_transitions.paid_at=", from.AddDate(0, 0, 28).Add(time.Hour).Unix()))
	payments := s.get("payment_intents", "customer="+customer)
	if got, want := payments.body["data"].([]any)[0].(map[string]any)["created"],
		float64(from.AddDate(0, 0, 28).Add(time.Hour).Unix()); got != want {
		t.Errorf("the payment intent was created at %v, want %v", got, want)
	}
	s.is(s.try("test_helpers/test_clocks/"+clock+"/advance", fmt.Sprint("frozen_time=", from.Unix())),
		"error.param=frozen_time")
	s.is(s.try("test_helpers/test_clocks/"+clock+"/advance", fmt.Sprint("frozen_time=", from.AddDate(0, 4, 0).Unix())),
		"error.param=frozen_time")
	s.Advance(100 * 24 * time.Hour) // the fake's own clock is another
	equal(t, "invoices", len(s.get("invoices", "customer="+customer).ids()), 2)
	s.is(s.ok("DELETE", "/v1/test_helpers/test_clocks/"+clock, ""), "deleted=true")
	s.is(s.get("subscriptions/"+sub.id()), "status=canceled")
	s.is(s.get("customers/"+customer), "deleted=true")
	s.is(s.do("GET", "/v1/test_helpers/test_clocks/"+clock, ""), "error.code=resource_missing")
	s.is(s.do("POST", "/v1/test_helpers/test_clocks", "frozen_time=1", "Authorization", "Bearer "+liveKey),
		"error.type=invalid_request_error")
}

// books are what the customers' invoices have come to, without ids.
func (s *shop) books() []string {
	s.t.Helper()
	s.api.Mu.Lock()
	defer s.api.Mu.Unlock()
	var list []string
	space := s.api.In(DefaultAccount, false)
	for _, o := range space.All("invoice") {
		list = append(list, fmt.Sprint(o["created"], o["number"], o["status"], o["amount_paid"], o["attempt_count"],
			o["next_payment_attempt"], o["billing_reason"], o.Sub("status_transitions")))
	}
	for _, kind := range []string{"subscription", "subscription_schedule"} {
		for _, o := range space.All(kind) {
			var ends []any
			for _, item := range shape.ObjectsOf(o.Sub("items").List("data")) {
				ends = append(ends, item["current_period_end"])
			}
			list = append(list, fmt.Sprint(o["status"], o["ended_at"], o["canceled_at"], ends, o["completed_at"]))
		}
	}
	for _, o := range space.All("event") {
		list = append(list, fmt.Sprint(o["type"], o["created"]))
	}
	return list
}

// TestClock_stepsDoNotMatter: in however many steps a clock gets to where it goes, what
// happens on the way is the same.
func TestClock_stepsDoNotMatter(t *testing.T) {
	const days = 46
	begin := func() *shop {
		s := newShop(t)
		s.handler = s.Fake // what it answers is checked elsewhere
		good, _ := s.buyerWith("pm_card_visa")
		bad, _ := s.buyerWith("pm_card_visa")
		s.subscribe(good)
		s.subscribe(good, "trial_period_days=20")
		s.subscribe(bad)
		s.subscribe(bad, "payment_behavior=default_incomplete")
		weekly := s.post("prices", "currency=usd", "unit_amount=300", "recurring[interval]=week", "product="+s.product).id()
		s.post("subscription_schedules", "customer="+good, "start_date=now", "phases[0][items][0][price]="+weekly,
			"phases[0][duration][interval]=week", "phases[0][duration][interval_count]=3", "end_behavior=cancel")
		broken := s.post("payment_methods/pm_card_chargeCustomerFail/attach", "customer="+bad).id()
		s.post("customers/"+bad, "invoice_settings[default_payment_method]="+broken)
		return s
	}
	once := begin()
	once.Advance(days * 24 * time.Hour)
	want := once.books()
	if len(want) < 60 {
		t.Fatalf("only %d things have happened", len(want))
	}
	Seeded(t, 100, func(t *testing.T, r *rand.Rand) {
		s := begin()
		left := int64(days * 24 * 3600)
		for left > 0 {
			step := min(left, 1+r.Int64N(12*24*3600))
			s.Advance(time.Duration(step) * time.Second)
			left -= step
		}
		got := s.books()
		if len(got) != len(want) {
			t.Fatalf("%d things have happened, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("thing %d is %s, want %s", i, got[i], want[i])
			}
		}
	})
}

// TestClock_events holds the events of all that happens in a year against the specification.
func TestClock_events(t *testing.T) {
	s := newShop(t)
	spec := stripetest.Load(t)
	clock := s.frozen(testStart)
	customer, _ := s.buyerWith("pm_card_visa", "test_clock="+clock)
	bad, _ := s.buyerWith("pm_card_authenticationRequired")
	s.subscribe(customer, "trial_period_days=5")
	s.subscribe(bad)
	s.split(customer, "end_behavior=cancel")
	for step := range 6 {
		s.advance(clock, testStart.AddDate(0, 0, 59*(step+1)))
	}
	s.Advance(24 * time.Hour)
	seen := map[string]bool{}
	s.api.Mu.Lock()
	defer s.api.Mu.Unlock()
	for _, e := range s.api.In(DefaultAccount, false).All("event") {
		seen[e.Str("type")] = true
		shown := e.Clone().Strip()
		for _, problem := range spec.CheckEvent(shape.Encode(shown)) {
			t.Errorf("%s %s: %s", e.Str("type"), e.ID(), problem)
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d types of events: %v", len(seen), seen)
	}
}

// TestClock_everyAccount: the fake's clock renews what connected accounts have, as theirs.
func TestClock_everyAccount(t *testing.T) {
	s := newShop(t)
	if err := s.Connect("acct_tea", DefaultAccount); err != nil {
		t.Fatal(err)
	}
	post := func(path string, pairs ...string) answer {
		return s.ok("POST", "/v1/"+path, params(pairs), "Stripe-Account", "acct_tea")
	}
	price := post("prices", "currency=usd", "unit_amount=700", "recurring[interval]=week", "product_data[name]=Tea").id()
	customer := post("customers", "payment_method=pm_card_visa",
		"invoice_settings[default_payment_method]=pm_card_visa").id()
	post("subscriptions", "customer="+customer, "items[0][price]="+price)
	s.Advance(15 * 24 * time.Hour)
	theirs := s.ok("GET", "/v1/invoices", "status=paid", "Stripe-Account", "acct_tea")
	equal(t, "their invoices", len(theirs.ids()), 3)
	equal(t, "the platform's", len(s.get("invoices").ids()), 0)
}
