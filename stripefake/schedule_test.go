package stripefake

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// split is a schedule of three monthly payments.
func (s *shop) split(customer string, pairs ...string) answer {
	s.t.Helper()
	if len(pairs) == 0 || !strings.HasPrefix(pairs[0], "start_date=") {
		pairs = append(pairs, "start_date=now")
	}
	return s.post("subscription_schedules", append([]string{"customer=" + customer, "phases[0][items][0][price]=" +
		s.monthly,
		"phases[0][duration][interval]=month", "phases[0][duration][interval_count]=3"}, pairs...)...)
}

func TestSchedule_threePayments(t *testing.T) {
	for _, tt := range []struct {
		behavior, status, sub string
		invoices              int // half a year later
		story                 string
	}{
		{"cancel", "completed", "canceled", 3, "customer.subscription.deleted subscription_schedule.completed"},
		{"release", "released", "active", 6, "customer.subscription.updated subscription_schedule.released"},
	} {
		t.Run(tt.behavior, func(t *testing.T) {
			s := newShop(t)
			customer, _ := s.buyerWith("pm_card_visa")
			s.story()
			o := s.split(customer, "end_behavior="+tt.behavior)
			s.heard("it begins", "customer.subscription.created", "invoice.created", "subscription_schedule.created")
			sub := fmt.Sprint(o.at("subscription"))
			s.is(o, "status=active", fmt.Sprint("current_phase.end_date=", at(t, "2026-04-30T12:00:00Z")))
			s.is(s.get("subscriptions/"+sub, "expand[]=schedule"), "status=active", "schedule.id="+o.id())
			s.until("2026-01-31T13:00:00Z")
			s.heard("the first payment", "payment_intent.created", "invoice.updated", "invoice.finalized", "charge.succeeded",
				"payment_intent.succeeded",
				"invoice_payment.paid", "invoice.updated", "invoice.paid", "invoice.payment_succeeded")
			s.until("2026-04-30T11:00:00Z")
			if story := s.story(); !strings.Contains(story, "subscription_schedule.expiring") {
				t.Errorf("a week before the end: %s", story)
			}
			equal(t, "payments", len(s.get("charges").ids()), 3)
			s.until("2026-04-30T12:00:00Z")
			if story := s.story(); !strings.HasPrefix(story, tt.story) {
				t.Errorf("the end: %s, want %s", story, tt.story)
			}
			o = s.get("subscription_schedules/" + o.id())
			s.is(o, "status="+tt.status, "current_phase=<nil>")
			s.until("2026-07-30T00:00:00Z")
			s.is(s.get("subscriptions/"+sub), "status="+tt.sub)
			equal(t, "invoices", len(s.get("invoices", "subscription="+sub, "status=paid").ids()), tt.invoices)
			s.is(s.try("subscription_schedules/"+o.id()+"/cancel"), "error.type=invalid_request_error")
		})
	}
}

func TestSchedule_ends(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	waiting := s.split(customer, fmt.Sprint("start_date=", testStart.Unix()+86400))
	s.is(waiting, "status=not_started", "subscription=<nil>")
	s.story()
	s.is(s.post("subscription_schedules/"+waiting.id()+"/cancel"), "status=canceled")
	s.heard("cancelled before it starts", "subscription_schedule.canceled")

	running := s.split(customer)
	s.story()
	s.is(s.post("subscription_schedules/"+running.id()+"/cancel"), "status=canceled")
	s.heard("cancelled", "invoice.updated", "customer.subscription.deleted", "subscription_schedule.canceled")
	s.is(s.get("subscriptions/"+fmt.Sprint(running.at("subscription"))), "status=canceled")

	running = s.split(customer, "end_behavior=cancel")
	sub := fmt.Sprint(running.at("subscription"))
	s.is(s.get("subscriptions/"+sub), fmt.Sprint("cancel_at=", at(t, "2026-04-30T12:00:00Z")))
	s.story()
	s.is(s.post("subscription_schedules/"+running.id()+"/release"), "status=released", "released_subscription="+sub,
		"subscription=<nil>")
	s.heard("released", "customer.subscription.updated", "subscription_schedule.released")
	s.is(s.get("subscriptions/"+sub), "cancel_at=<nil>", "schedule=<nil>")

	running = s.split(customer)
	s.story()
	s.ok("DELETE", "/v1/subscriptions/"+fmt.Sprint(running.at("subscription")), "")
	s.heard("its subscription is cancelled", "invoice.updated", "customer.subscription.deleted",
		"subscription_schedule.canceled")

	later := s.split(customer, fmt.Sprint("start_date=", testStart.Add(time.Hour).Unix()))
	s.story()
	s.Advance(time.Hour)
	s.is(s.get("subscription_schedules/"+later.id()), "status=active")
	if story := s.story(); !strings.HasPrefix(story, "customer.subscription.created invoice.created "+
		"subscription_schedule.updated") {
		t.Errorf("a start later: %s", story)
	}
	equal(t, "scheduled", len(s.get("subscription_schedules", "scheduled=true").ids()), 0)
}

func TestSchedule_phases(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	dear := s.post("prices", "currency=usd", "unit_amount=9900", "recurring[interval]=month", "product="+s.product).id()
	sub := s.subscribe(customer)
	o := s.post("subscription_schedules", "from_subscription="+sub.id())
	s.is(o, "status=active", "subscription="+sub.id())
	s.is(s.post("subscription_schedules/"+o.id(), "end_behavior=cancel",
		"phases[0][items][0][price]="+s.monthly, fmt.Sprint("phases[0][start_date]=", testStart.Unix()),
		fmt.Sprint("phases[0][end_date]=", at(t, "2026-02-28T12:00:00Z")),
		"phases[1][items][0][price]="+dear, "phases[1][items][0][quantity]=2", "phases[1][duration][interval]=month"),
		"end_behavior=cancel")
	s.until("2026-03-01T00:00:00Z")
	s.is(s.get("subscriptions/"+sub.id(), "expand[]=latest_invoice"), "latest_invoice.amount_paid=19800", "status=active")
	s.until("2026-04-01T00:00:00Z")
	s.is(s.get("subscriptions/"+sub.id()), "status=canceled", fmt.Sprint("ended_at=", at(t, "2026-03-28T12:00:00Z")))
	s.is(s.get("subscription_schedules/"+o.id()), "status=completed")

	yearly := s.post("subscription_schedules", "customer="+customer, "start_date=now",
		"phases[0][items][0][price]="+s.monthly,
		"phases[0][duration][interval]=month", "phases[1][items][0][price]="+s.yearly, "phases[1][duration][interval]=year")
	s.until("2026-05-02T00:00:00Z")
	s.is(s.get("subscriptions/"+fmt.Sprint(yearly.at("subscription")), "expand[]=latest_invoice"),
		"latest_invoice.amount_paid=12000")

	// iterations were taken until 2025-09-30.clover.
	old := s.ok("POST", "/v1/subscription_schedules", params([]string{"customer=" + customer, "start_date=now",
		"phases[0][items][0][price]=" + s.monthly,
		"phases[0][iterations]=3"}), "Stripe-Version", "2020-08-27")
	s.is(old, fmt.Sprint("current_phase.end_date=", at(t, "2026-08-02T00:00:00Z")), "billing_mode=<nil>")
	handler := s.handler
	s.handler = s.Fake
	s.is(s.try("subscription_schedules", "customer="+customer, "phases[0][items][0][price]="+s.monthly,
		"phases[0][iterations]=3"), "error.code=parameter_unknown")
	s.handler = handler
}

func at(t testing.TB, text string) int64 {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when.Unix()
}
