package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// settings changes settings, as another process.
func (w *world) settings(t *testing.T, pairs ...string) {
	t.Helper()
	_, err := settings.Change(t.Context(), w.start().Records, func(s *settings.Settings) error {
		for _, pair := range pairs {
			name, text, _ := strings.Cut(pair, "=")
			if err := s.Set(name, text); err != nil {
				return err
			}
		}
		return nil
	})
	mustNot(t, err)
}

// note returns the settings in the latest payment run's item.
func (w *world) note(t *testing.T) (note string) {
	for it, err := range w.start().LatestRuns(t.Context(), billing.Payments, 1) {
		mustNot(t, err)
		note = it.Str(schema.Settings)
	}
	return note
}

func TestSettings_ARunFreezesThem(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	for _, id := range []string{"s1", "s2", "s3"} {
		w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined"), func(n *billing.NewSubscription) { n.ID = id }))
	}
	p := w.start()
	run := func(during func()) *job.Report {
		r, err := job.Payments(t.Context(), p.Engine, job.Options{Workers: 1, Each: func(engine.Result) { during() }})
		mustNot(t, err)
		return r
	}
	changed := false
	r := run(func() {
		if !changed {
			changed = true
			w.settings(t, "retry-days=none", "receipt-months=0")
		}
	})
	if r.Counts[engine.OutcomeRetry] != 3 {
		t.Errorf("a change in the middle: %v; want 3 to be tried again, by the settings at its start", r.Counts)
	}
	equal(t, []string{w.note(t)}, []string{"version=0 receipt-months=6 retry-days=1,3,5,7 debit-retry-days=7,14 catch-up=3 action-days=14 " +
		"after-failure=forgive collect-days=30 after-reversal=nothing"})
	w.tomorrow()
	if r := run(func() {}); r.Counts[engine.OutcomeFailed] != 3 {
		t.Errorf("the run after it: %v; want 3 to fail: there is no retry any more", r.Counts)
	}
	equal(t, []string{w.note(t)}, []string{"version=1 receipt-months=0 retry-days=none debit-retry-days=7,14 catch-up=3 action-days=14 " +
		"after-failure=forgive collect-days=30 after-reversal=nothing"})
}

// TestSettings_Wrong: another program has written a value that is none. Reading goes on.
func TestSettings_Wrong(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.start()
	it := billing.ItemAt(settings.Key, store.Attribute{Name: schema.Version, Value: store.Int(1)},
		store.Attribute{Name: schema.Data,
			Value: store.M(store.NewItem(store.Attribute{Name: "retry-days", Value: store.S("soon")}))})
	mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
	o := engine.Options{Store: w.spy, Tables: w.tables, Processor: w.box, Now: w.now, Config: w.cfg}
	if _, err := engine.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), `retry-days: must be at most 8`) {
		t.Errorf("%v; want the name of the setting, and what would be right", err)
	}
	o.ReadOnly = true
	e, err := engine.Open(t.Context(), o)
	mustNot(t, err)
	r, err := e.Verify(t.Context())
	mustNot(t, err)
	if len(r.Problems) != 1 || r.Problems[0].Kind != "unreadable settings" ||
		!strings.Contains(r.Problems[0].Detail, "retry-days") {
		t.Errorf("verify: %+v", r.Problems)
	}
	_, err = settings.Change(t.Context(), e.Records, func(s *settings.Settings) error { return s.Set("retry-days", "") })
	mustNot(t, err)
	_, err = engine.Open(t.Context(), engine.Options{Store: w.spy, Tables: w.tables, Now: w.now})
	mustNot(t, err)
}

// TestSettings_ALongerExpiry: receipts that expired by an earlier setting are not missed.
func TestSettings_ALongerExpiry(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.settings(t, "receipt-months=1")
	n := w.create(one("2024-01-31"))
	for range 150 {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	if got := len(w.paidOn(n)); got != 5 {
		t.Fatalf("charged %d times in five months", got)
	}
	verify := func() []string {
		var found []string
		r, err := w.start().Verify(context.Background())
		mustNot(t, err)
		for _, p := range r.Problems {
			found = append(found, p.Kind)
		}
		return found
	}
	w.settings(t, "receipt-months=12")
	equal(t, verify(), nil)
	w.settings(t, "receipt-months=0")
	equal(t, verify(), nil)
}
