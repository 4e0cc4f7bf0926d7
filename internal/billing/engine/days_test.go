package engine_test

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// tenDays makes a subscription of every ten days.
func tenDays(n *billing.NewSubscription) { n.Interval = civil.Interval{N: 10, Unit: civil.Day} }

// TestDays_NoPaymentDay: intervals in days count from the first payment, whatever PaymentDay another tool
// writes, and a person cannot change it.
func TestDays_NoPaymentDay(t *testing.T) {
	for _, day := range []string{"1", "31", "0", "99"} {
		w := newWorld("2024-02-20T09:00", planted{})
		n := w.create(one("2024-02-20", tenDays))
		w.daily("2024-02-25")
		w.byTool(n, schema.PaymentDay, store.S(day))
		err := engineError(w.start().UpdateSubscription(t.Context(), n, billing.Change{PaymentDay: new(15)}))
		if err == nil || !strings.Contains(err.Error(), "payment_day: cannot be changed for an interval in days") {
			t.Errorf("a new payment day: %v", err)
		}
		_, err = w.start().Pause(t.Context(), n)
		mustNot(t, err)
		w.goTo(date("2024-03-04"))
		_, err = w.start().Resume(t.Context(), n)
		mustNot(t, err)
		w.daily("2024-03-22")
		equal(t, w.paidOn(n), []string{"2024-02-20", "2024-03-11", "2024-03-21"})
		w.report(t)
	}
}

func engineError(_ *billing.Subscription, err error) error { return err }

// TestDays_UnknownUnit: a version that does not know an interval's unit charges nothing, names the
// subscription, and goes on once it can read the interval.
func TestDays_UnknownUnit(t *testing.T) {
	w := newWorld("2024-02-20T09:00", planted{})
	n := w.create(one("2024-02-20", tenDays))
	w.daily("2024-02-21")
	w.byTool(n, schema.Interval, store.S("10 moons"))
	w.goTo(date("2024-03-02"))
	if r := w.start().run(civil.Date{}); r.Counts[engine.OutcomeUnreadable] != 1 || !r.NeedsPerson() || len(w.paidOn(n)) != 1 {
		t.Errorf("a run over an unknown unit: %v, paid on %v", r.Counts, w.paidOn(n))
	}
	w.byTool(n, schema.Interval, store.S("10 days"))
	w.daily("2024-03-12")
	equal(t, w.paidOn(n), []string{"2024-02-20", "2024-03-02", "2024-03-11"})
	w.report(t)
}
