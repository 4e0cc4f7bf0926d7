package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/stripefake"
)

// lose gives the world an empty store.
func (w *world) lose(t *testing.T) {
	t.Helper()
	mem, err := memstore.Open(w.tables.All(), w.now)
	mustNot(t, err)
	w.spy = newSpy(w, mem)
}

// TestInstallation_AStoreLostAndMadeAgain charges nobody whom the lost one has charged, until a person
// has accepted the lost one's charges.
func TestInstallation_AStoreLostAndMadeAgain(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31"))
	lost := b.mustEngine(w)
	run(t, lost)
	w.lose(t)
	e := b.mustEngine(w)
	run(t, e) // of the empty store: serve --create runs at once
	w.create(one("2024-01-31"))
	w.tomorrow()
	refused := func() {
		t.Helper()
		_, err := job.Payments(t.Context(), e, job.Options{Workers: 1})
		wantErr(t, err, charging.ErrOtherInstallation)
		if !strings.Contains(err.Error(), "--accept-other-installation "+lost.Opened.Installation) {
			t.Errorf("%v; want what to say", err)
		}
		_, _, err = e.CollectNow(t.Context(), n)
		wantErr(t, err, charging.ErrOtherInstallation)
		if m, err := e.Meta(t.Context()); err != nil || m.Charging || !strings.Contains(m.Reason, "another installation") {
			t.Errorf("charging %t, %q, %v", m.Charging, m.Reason, err)
		}
		if got := len(w.paidOn(n)); got != 1 {
			t.Fatalf("charged %d times", got)
		}
	}
	refused()
	mustNot(t, e.SetCharging(t.Context(), true, "")) // alone it accepts nothing
	refused()
	a, err := e.Verify(t.Context())
	mustNot(t, err)
	if len(a.Problems) != 1 || a.Problems[0].Kind != "charged by another installation" || a.Others != 1 {
		t.Errorf("verify: %+v", a)
	}
	wantAny(t, e.Charging().Accept(t.Context(), e.Opened.Installation))
	mustNot(t, e.Charging().Accept(t.Context(), "ANOTHER"))
	mustNot(t, e.SetCharging(t.Context(), true, ""))
	refused()
	mustNot(t, e.Charging().Accept(t.Context(), lost.Opened.Installation))
	mustNot(t, e.SetCharging(t.Context(), true, ""))
	e = b.mustEngine(w)
	if r := run(t, e); r.Counts[engine.OutcomePaid] != 1 {
		t.Errorf("accepted: %v", r.Counts)
	}
	audited(t, e)
}

// TestInstallation_Others: charges of another installation for other subscriptions refuse nothing,
// but are noted: for days after the first run they are still looked for.
func TestInstallation_Others(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	w.create(one("2024-01-31"))
	run(t, b.mustEngine(w))
	w.lose(t)
	n := w.create(one("2024-01-31", of("a2")))
	e := b.mustEngine(w)
	if r := run(t, e); r.Counts[engine.OutcomePaid] != 1 {
		t.Errorf("another account: %v", r.Counts)
	}
	audited(t, e)
	w.create(one("2024-02-01")) // the rest of a lost book
	w.tomorrow()
	if _, err := job.Payments(t.Context(), e, job.Options{Workers: 1}); !errors.Is(err, charging.ErrOtherInstallation) {
		t.Errorf("after the first run: %v", err)
	}
	if a, err := e.Verify(t.Context()); err != nil || len(a.Problems) != 1 {
		t.Errorf("verify: %+v, %v", a, err)
	}
	if s := w.sub(n); s.Status != billing.Active {
		t.Errorf("%s", w.describe(n))
	}
}

// TestInstallation_AcceptedAtOnce: of two installations that are accepted at once, neither is lost.
func TestInstallation_AcceptedAtOnce(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	e, other := w.start(), w.start()
	for _, first := range []string{"ONE", "THREE"} {
		e.Store = &overtaken{Store: e.Store, by: func() { mustNot(t, other.Charging().Accept(t.Context(), first+"S")) }}
		mustNot(t, e.Charging().Accept(t.Context(), first))
		if m, err := e.Meta(t.Context()); err != nil || !m.Accepts(first) || !m.Accepts(first+"S") {
			t.Errorf("accepted: %q, %v", m.Accepted, err)
		}
	}
}

// An overtaken store lets another writer in before its first commit.
type overtaken struct {
	store.Store
	by func()
}

func (o *overtaken) Commit(ctx context.Context, writes ...store.Write) error {
	if by := o.by; by != nil {
		o.by = nil
		by()
	}
	return o.Store.Commit(ctx, writes...)
}

// TestSalt: a store has one random salt, whoever opens it first. One of an older Duesday gets it from the first
// process that may write, also if that dies meanwhile.
func TestSalt(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	salt := w.start().Opened.Salt
	if again := w.start().Opened; again.Salt != salt || len(salt) < 20 || salt == again.Installation {
		t.Errorf("%q, then %q", salt, again.Salt)
	}
	remove := store.Update(w.tables.RecurringPayments.Name, billing.MetaKey, nil, []string{schema.Salt})
	mustNot(t, w.spy.mem.Commit(t.Context(), remove))
	open := func(s store.Store, readOnly bool) (string, error) {
		e, err := engine.Open(t.Context(), engine.Options{Store: s, Tables: w.tables, Processor: w.box, Now: w.now,
			Config: engine.DefaultConfig(), ReadOnly: readOnly})
		if err != nil {
			return "", err
		}
		return e.Opened.Salt, nil
	}
	for _, s := range []store.Store{w.spy.mem, &dyingStore{Store: w.spy.mem}} {
		if got, err := open(s, true); got != "" || err != nil {
			t.Errorf("read only: %q, %v", got, err)
		}
	}
	if got, err := open(&dyingStore{Store: w.spy.mem}, false); err == nil {
		t.Errorf("without a commit: %q", got)
	}
	got := make(chan string, 4)
	for range cap(got) {
		go func() {
			salt, err := open(w.spy.mem, false)
			if err != nil {
				t.Error(err)
			}
			got <- salt
		}()
	}
	first := <-got
	for range cap(got) - 1 {
		if salt := <-got; salt != first || first == "" {
			t.Errorf("%q and %q", first, salt)
		}
	}
}
