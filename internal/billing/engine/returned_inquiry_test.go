package engine_test

import (
	"testing"

	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/stripefake"
)

// TestInquiryLeavesTheMoney: a bank that only asks has no money yet: a refund is possible, and
// may be the answer.
func TestInquiryLeavesTheMoney(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31", method("pm_card_createDisputeInquiry")))
	w.start().run(civil.Date{})
	e := b.mustEngine(w)
	run(t, e)
	var states []string
	for r, err := range e.GetReversalsByAccount(t.Context(), n.Account) {
		mustNot(t, err)
		states = append(states, string(r.State))
	}
	equal(t, states, []string{string(processor.ReversalInquiry)})
	r, _, err := e.Refunds().Refund(t.Context(), refund.Order{Name: n, Period: 0})
	if err != nil || r.State != processor.ReversalSucceeded || r.Amount != usd(1299) {
		t.Errorf("refund %+v, %v", r, err)
	}
	w.report(t)
}
