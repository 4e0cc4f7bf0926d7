package engine_test

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestFormat_BeforePastPeriods: on a shared store on which an older Duesday may be at work no past
// period is opened, none is promised, and no manual payment waits for a live intent.
func TestFormat_BeforePastPeriods(t *testing.T) {
	w, n := failed(t)
	w.newMethod(n, "pm_card_visa")
	live := w.create(one("2024-02-01", func(n *billing.NewSubscription) { n.ID, n.Method = "s2", "pm_sandbox_processing" }))
	w.start().run(civil.Date{})
	format := func(f int64) *engine.Engine {
		e := w.start().Engine
		set := store.NewItem(store.Attribute{Name: schema.Format, Value: store.Int(f)})
		mustNot(t, e.Store.Commit(t.Context(), store.Update(e.Table, billing.MetaKey, set, nil)))
		e.Opened.Format, e.Shared = int(f), true
		return e
	}
	old := format(2)
	_, err := old.ChargePeriod(t.Context(), n, engine.PeriodCharge{})
	wantErr(t, err, billing.ErrState)
	_, err = old.CreateReceipt(t.Context(), live, engine.ManualPayment{})
	wantErr(t, err, billing.ErrState)
	if s := w.sub(n); s.Collect != 0 {
		t.Errorf("%s", w.describe(n))
	}
	migrated := format(3)
	_, err = migrated.ChargePeriod(t.Context(), n, engine.PeriodCharge{})
	mustNot(t, err)
	_, err = migrated.CreateReceipt(t.Context(), live, engine.ManualPayment{})
	mustNot(t, err)
}
