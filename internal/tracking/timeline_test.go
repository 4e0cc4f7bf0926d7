package tracking_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// TestTimeline checks that a timeline shows the order, the events and the completed actions with
// their times, in order.
func TestTimeline(t *testing.T) {
	d := newDesk(t)
	if _, err := d.service.Timeline(t.Context(), aPurchase); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
	o := buys(tracking.Subscribe, goodCard)
	o.Merchant, o.Key, o.Price = shopAccount, "1", "price_1"
	c, err := d.service.CreatePurchase(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	id := c.Purchase.ID
	step := func(event, typ string, of thing) {
		t.Helper()
		d.clock = d.clock.Add(time.Minute)
		d.takes(message(event, typ, shopAt, of, thing{"created": d.clock.Unix()}), tracking.Applied)
	}
	step("evt_1", "customer.subscription.created",
		object(tracking.KindSubscription, "sub_1", "incomplete", id, tracking.Subscribe))
	step("evt_2", "invoice.paid", object(tracking.KindInvoice, "in_1", "paid", id, tracking.Subscribe,
		thing{"payment_intent": "pi_1", "subscription": "sub_1"}, thing{"api_version": ""}))
	step("evt_3", "customer.subscription.updated",
		object(tracking.KindSubscription, "sub_1", "active", id, tracking.Subscribe))
	d.clock = d.clock.Add(time.Minute)
	d.deliver()
	step("evt_4", "customer.subscription.updated",
		object(tracking.KindSubscription, "sub_1", "active", id, tracking.Subscribe))
	step("evt_5", "customer.subscription.deleted",
		object(tracking.KindSubscription, "sub_1", "canceled", id, tracking.Subscribe))
	d.clock = d.clock.Add(time.Minute)
	d.deliver()
	s, err := d.service.Timeline(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, st := range s.Steps {
		if i > 0 && st.At.Before(s.Steps[i-1].At) {
			t.Errorf("step %d is before the one before: %+v", i, st)
		}
		got = append(got, fmt.Sprint(int(st.At.Sub(shopStart).Minutes()), " ", strings.Split(st.What, ":")[0], " ", st.Event,
			" ", st.Detail))
	}
	for _, want := range []string{"0 asked for  ", "1 subscription.created",
		"3 active evt_3 customer.subscription.updated", "4 fulfil  ",
		"6 terminated evt_5 customer.subscription.deleted", "6 unsubscribe asked for evt_5 customer.subscription.deleted",
		"7 unsubscribe  ", "3 fulfil asked for evt_3"} {
		at, what, _ := strings.Cut(want, " ")
		if want == "1 subscription.created" {
			if !slices.ContainsFunc(got, func(g string) bool {
				return strings.HasPrefix(g, "1 ") && strings.Contains(g, "evt_1 customer.subscription.created")
			}) {
				t.Errorf("the creation is not in\n\t%s", strings.Join(got, "\n\t"))
			}
			continue
		}
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, at+" "+what) }) {
			t.Errorf("%q is not in\n\t%s", want, strings.Join(got, "\n\t"))
		}
	}
	if slices.ContainsFunc(s.Steps, func(st tracking.Step) bool { return st.Event == "evt_4" }) {
		t.Error("an event that changed nothing is a step")
	}
	if len(s.Payments) != 1 || s.Payments[0].ID != "pi_1" || len(s.Subscriptions) != 1 || s.Purchase.ID != id {
		t.Errorf("got %+v, %+v", s.Payments, s.Subscriptions)
	}
	// What was done stays when the events have expired.
	d.clock = d.clock.Add(40 * 24 * time.Hour)
	s, err = d.service.Timeline(t.Context(), id)
	if err != nil || !slices.ContainsFunc(s.Steps,
		func(st tracking.Step) bool { return st.Event == "evt_5" && strings.HasPrefix(st.What, "terminated") }) {
		t.Errorf("later: %+v, %v", s, err)
	}
}

// TestTimeline_Long checks that an object's history has a maximum length and keeps the first and
// the latest changes.
func TestTimeline_Long(t *testing.T) {
	d := newDesk(t)
	d.takes(paid("evt_0", shopAt, aPurchase), tracking.Applied)
	for i := range 300 {
		d.clock = d.clock.Add(time.Second)
		d.takes(message(fmt.Sprint("evt_r", i), "refund.created", shopAt,
			object(tracking.KindRefund, fmt.Sprint("re_", i), "succeeded", aPurchase, tracking.Legacy,
				thing{"payment_intent": "pi_evt_0", "amount": 1})), tracking.Applied)
	}
	p, err := d.service.Payment(t.Context(), shopAt, "pi_evt_0")
	if err != nil || len(p.History) > 100 || p.History[0].Event != "evt_0" ||
		p.History[len(p.History)-1].Event != "evt_r299" || p.Refunded != 300 {
		t.Errorf("%d changes, %d refunded, %v", len(p.History), p.Refunded, err)
	}
}
