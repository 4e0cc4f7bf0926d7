package billing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

func (w *world) side() billing.Side { return billing.Side{Store: w.spy, Tables: w.tables} }

// item reads a subscription's item around all faults.
func (w *world) item(t *testing.T, n billing.Name) store.Item {
	t.Helper()
	it, err := w.spy.Get(t.Context(), w.tables.RecurringPayments.Name, store.Key{PK: "ACC#" + n.Account, SK: "SUB#" + n.ID + "#SKU#" + n.SKU})
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// TestMark: a marked subscription is refused to whoever reads it, and a conflict for who read
// it before; without its mark it is as it was, but for its version.
func TestMark(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	side := w.side()
	before := w.item(t, n)
	mark, after, ok := side.Mark(before, "copy")
	if err := w.spy.Commit(t.Context(), mark); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got := w.item(t, n); !got.Equal(after) || got.Int(schema.Version) != before.Int(schema.Version)+1 {
		t.Errorf("marked: %v, foretold %v", got, after)
	}
	if err := w.spy.Commit(t.Context(), mark); !errors.Is(err, store.ErrConflict) {
		t.Errorf("marked from an old reading: %v", err)
	}
	if _, _, ok := side.Mark(after, "copy"); ok {
		t.Error("marked twice")
	}
	if _, err := w.start().RunPayments(t.Context(), billing.RunOptions{Workers: 1}); !errors.Is(err, billing.ErrMoved) || len(w.ledger()) > 0 {
		t.Errorf("a run: %v, ledger %v", err, w.ledger())
	}
	if _, ok := side.Unmark(after, "another"); ok {
		t.Error("another copy's mark was taken off")
	}
	unmark, ok := side.Unmark(after, "copy")
	if err := w.spy.Commit(t.Context(), unmark); !ok || err != nil {
		t.Fatal(ok, err)
	}
	want := before.Clone()
	want.Set(schema.Version, store.Int(before.Int(schema.Version)+2))
	if got := w.item(t, n); !got.Equal(want) {
		t.Errorf("unmarked: %v, want %v", got, want)
	}
	want.Set(schema.Version, store.Int(before.Int(schema.Version)+1))
	if got := billing.Unmoved(after, 1); !got.Equal(want) {
		t.Errorf("to the destination: %v, want %v", got, want)
	}
}

// TestFence_OneCopyAlone: a source is fenced for one copy, which alone can lift it; what it
// was before comes back.
func TestFence_OneCopyAlone(t *testing.T) {
	for _, reason := range []string{"", "holiday"} {
		w := newWorld("2024-01-31T09:00", planted{})
		e, ctx := w.start(), t.Context()
		if reason != "" {
			if err := e.SetCharging(ctx, false, reason); err != nil {
				t.Fatal(err)
			}
		}
		side := w.side()
		for range 2 {
			if err := side.Fence(ctx, "one", "pebble:there"); err != nil {
				t.Fatal(err)
			}
		}
		if err := side.Fence(ctx, "two", "pebble:elsewhere"); !errors.Is(err, billing.ErrMoved) {
			t.Errorf("for another copy: %v", err)
		}
		if err := e.SetCharging(ctx, true, ""); !errors.Is(err, billing.ErrMoved) {
			t.Errorf("charging on: %v", err)
		}
		if err := side.Unfence(ctx, "two"); err != nil {
			t.Error(err)
		}
		if st, err := side.MoveState(ctx); err != nil || st.Charging || st.Moved != "pebble:there" || st.MovedID != "one" {
			t.Errorf("fenced: %+v, %v", st, err)
		}
		if err := side.Unfence(ctx, "one"); err == nil {
			t.Error("lifted though the copy has not been given up")
		}
		if err := side.GiveUp(ctx, "one", false); err != nil {
			t.Error(err)
		}
		if err := side.Finish(ctx, "one"); !errors.Is(err, store.ErrConflict) {
			t.Errorf("finishing a copy that was given up: %v", err)
		}
		if err := side.Unfence(ctx, "one"); err != nil {
			t.Error(err)
		}
		if m, err := e.Meta(ctx); err != nil || m.Moved != "" || m.Charging != (reason == "") || m.Reason != reason {
			t.Errorf("lifted: %+v, %v", m, err)
		}
	}
}

// TestRestored: after a restore both jobs look at every date since the store was made.
func TestRestored(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	p := w.start()
	for range 60 { // walks begin further and further on
		w.tomorrow()
		p.run(civil.Date{})
		p.remind()
	}
	w.pass(time.Hour)
	created := date("2024-01-31")
	for _, kind := range []billing.Kind{billing.Payments, billing.Reminders} {
		if from, err := p.WalkStart(t.Context(), kind); err != nil || !from.After(created.AddDays(-40)) || from == created {
			t.Errorf("%s before: %s, %v", kind, from, err)
		}
	}
	w.pass(60 * 24 * time.Hour)
	if err := p.Restored(t.Context(), w.now(), "backup"); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []billing.Kind{billing.Payments, billing.Reminders} {
		if from, err := p.WalkStart(t.Context(), kind); err != nil || from.After(created) {
			t.Errorf("%s after: %s, %v", kind, from, err)
		}
	}
	if m, err := p.Meta(t.Context()); err != nil || !m.Charging {
		t.Errorf("charging: %+v, %v", m, err)
	}
}
