package engine_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

func (w *world) side() move.Side { return move.Side{Store: w.spy, Tables: w.tables} }

// item reads a subscription's item around all faults.
func (w *world) item(t *testing.T, n billing.Name) store.Item {
	t.Helper()
	it, err := w.spy.Get(t.Context(), w.tables.RecurringPayments.Name,
		store.Key{PK: "ACC#" + n.Account, SK: "SUB#" + n.ID + "#SKU#" + n.SKU})
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// TestMark: a marked subscription is refused to whoever reads it (and unreadable, as no copy has
// fenced this store), and a conflict for who read it before; without its mark it is as it was, but
// for its version.
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
	if r, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1}); r.Counts[engine.OutcomePaid] > 0 ||
		len(w.ledger()) > 0 {
		t.Errorf("a run: %v, %v, ledger %v", r.Counts, err, w.ledger())
	}
	if _, err := w.start().Pause(t.Context(), n); !errors.Is(err, billing.ErrStrayMark) {
		t.Errorf("paused: %v", err)
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
	if got := move.Unmoved(after, 1); !got.Equal(want) {
		t.Errorf("to the destination: %v, want %v", got, want)
	}
}

// TestMark_OfAnotherTool: an item that Duesday has never written gets no version from being
// marked, unmarked or copied: it is still another tool's, to be adopted with care. Whoever read
// it before the mark gets a conflict all the same.
func TestMark_OfAnotherTool(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.start()
	side, table := w.side(), w.tables.RecurringPayments.Name
	before := w.item(t, n)
	before.Remove(schema.Version)
	before.Set(schema.TimeZone, store.S("Mars/Olympus")) // it cannot be charged as it is
	if err := w.spy.Commit(t.Context(), store.Put(table, before)); err != nil {
		t.Fatal(err)
	}
	mark, after, ok := side.Mark(before, "copy")
	if err := w.spy.Commit(t.Context(), mark); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got := w.item(t, n); !got.Equal(after) || got.Has(schema.Version) {
		t.Errorf("marked: %v, foretold %v", got, after)
	}
	if again, _, _ := side.Mark(before, "another"); !errors.Is(w.spy.Commit(t.Context(), again), store.ErrConflict) {
		t.Error("a write from the reading before the mark has landed")
	}
	moved := move.Unmoved(after, 1)
	if !moved.Equal(before) {
		t.Errorf("to the destination: %v, want %v", moved, before)
	}
	unmark, ok := side.Unmark(after, "copy")
	if err := w.spy.Commit(t.Context(), unmark); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got := w.item(t, n); !got.Equal(before) {
		t.Errorf("unmarked: %v, want %v", got, before)
	}
	var why string
	r, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1, Each: func(r engine.Result) { why = r.Reason }})
	if err != nil || r.Counts[engine.OutcomeUnreadable] != 1 || why != "TimeZone is not an IANA name" || len(w.ledger()) > 0 {
		t.Errorf("a run: %v, %v, %q, ledger %v", err, r, why, w.ledger())
	}
}

// TestMark_AnotherToolsWorker: a worker that has read another tool's item, and is about to
// write it for the first time, gets a conflict when it is marked meanwhile.
func TestMark_AnotherToolsWorker(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	e, side, table := w.start(), w.side(), w.tables.RecurringPayments.Name
	before := w.item(t, n)
	before.Remove(schema.Version)
	mark, after, _ := side.Mark(before, "copy")
	if err := w.spy.Commit(t.Context(), store.Put(table, before)); err != nil {
		t.Fatal(err)
	}
	f := storetest.NewFaulty(w.spy)
	var marked atomic.Bool
	f.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		if op.Kind != storetest.Commit || phase != storetest.Before ||
			op.Writes[0].Item.Str(schema.SK) != before.Str(schema.SK) ||
			!marked.CompareAndSwap(false, true) {
			return nil
		}
		return w.spy.Commit(t.Context(), mark)
	}
	asleep, err := engine.Open(t.Context(),
		engine.Options{Store: f, Tables: w.tables, Processor: w.box, Now: w.now, Config: engine.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = job.Payments(t.Context(), asleep, job.Options{Workers: 1})
	paid := slices.ContainsFunc(w.ledger(), func(entry sandbox.Entry) bool { return entry.State == processor.Succeeded })
	if !marked.Load() || paid || !w.item(t, n).Equal(after) {
		t.Errorf("marked %v, run: %v, ledger %v, item %v", marked.Load(), err, w.ledger(), w.item(t, n))
	}
	if m, err := e.Meta(t.Context()); err != nil || !m.Charging {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestMarks_UnderTheirCondition: marks are set only while the source is fenced for their copy,
// as it was seen, and taken off only when the copy has been given up.
func TestMarks_UnderTheirCondition(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.start()
	side, ctx := w.side(), t.Context()
	hold := func(when, want string) {
		t.Helper()
		var got strings.Builder
		for _, c := range []struct {
			name string
			w    store.Write
		}{{"fenced", side.StillFenced("one", false)}, {"final", side.StillFenced("one", true)},
			{"lifting", side.StillLifting("one")},
			{"free", side.StillLifting("")}, {"another", side.StillFenced("two", false)},
			{"another", side.StillLifting("two")}} {
			switch err := w.spy.Commit(ctx, c.w); {
			case err == nil:
				got.WriteString(c.name + " ")
			case !errors.Is(err, store.ErrConflict):
				t.Fatal(err)
			}
		}
		if got.String() != want {
			t.Errorf("%s: %q, want %q", when, got.String(), want)
		}
	}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hold("at first", "free ")
	step(side.Fence(ctx, "one", "pebble:there"))
	hold("fenced", "fenced ")
	step(side.Finish(ctx, "one"))
	hold("final", "final ")
	step(side.GiveUp(ctx, "one", true))
	hold("given up", "lifting ")
	step(side.Unfence(ctx, "one"))
	hold("lifted", "free ")
}

// TestClaim_SaysWhatItIs: who opens an unfinished or a canceled copy is told what it is, and
// what to do.
func TestClaim_SaysWhatItIs(t *testing.T) {
	from, to := newWorld("2024-01-31T09:00", planted{}), newWorld("2024-01-31T09:00", planted{})
	from.start()
	ctx, side := t.Context(), to.side()
	st, err := from.side().State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	opened := func(want string) {
		t.Helper()
		_, err := engine.Open(ctx, engine.Options{Store: to.spy, Tables: to.tables, Now: to.now})
		if !errors.Is(err, billing.ErrMoved) || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := side.Claim(ctx, st, "one", "pebble:there", 1); err != nil {
		t.Fatal(err)
	}
	opened("moved to another store: this is an unfinished copy of pebble:there; nobody charges before the same " +
		"duesday store copy has finished it, or given it up with --cancel")
	if err := side.CancelCopy(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	opened("moved to another store: this is a canceled copy, of no use to anybody: drop it")
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
		if st, err := side.State(ctx); err != nil || st.Charging || st.Moved != "pebble:there" || st.MovedID != "one" {
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

// TestRestored: after a restore both jobs look at every date since the store was made, and
// charging is off.
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
	if _, err := p.Restored(t.Context(), w.now(), "backup", ""); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []billing.Kind{billing.Payments, billing.Reminders} {
		if from, err := p.WalkStart(t.Context(), kind); err != nil || from.After(created) {
			t.Errorf("%s after: %s, %v", kind, from, err)
		}
	}
	if m, err := p.Meta(t.Context()); err != nil || m.Charging || !strings.Contains(m.Reason, "duesday reconcile") {
		t.Errorf("charging: %+v, %v; want it off until the lost time is reconciled", m, err)
	}
}
