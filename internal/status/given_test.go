package status_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
)

func parseDate(begun time.Time) (civil.Date, error) { return civil.Parse(begun.Format(time.DateOnly)) }

// tell sets what is said of the tables.
func (w *world) tell(wrong, weak, unknown []string, err error) {
	w.in.Tables = func(context.Context) ([]string, []string, []string, error) { return wrong, weak, unknown, err }
}

// A broken store answers nothing.
type broken struct{ store.Store }

var errGone = errors.New("the disk is gone")

func (broken) Get(context.Context, string, store.Key) (store.Item, error) { return nil, errGone }
func (broken) Query(context.Context, store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) { yield(nil, errGone) }
}

// refusing never delivers.
type refusing struct{}

func (refusing) Deliver(context.Context, outbox.Effect) error { return outbox.ErrPermanent }

// serving returns the installation as a process that serves has it.
func (w *world) serving() *status.Installation {
	in := w.in
	return &status.Installation{Engine: in.Engine, Version: in.Version, Folder: in.Folder, Hint: in.Hint, Disk: in.Disk,
		Serving: true, Endpoints: in.Endpoints, Offset: in.Offset, Stripe: in.Stripe, Runs: in.Runs}
}

func (w *world) claim(by string) func() {
	_, release, err := w.store.Claim(w.t.Context(), status.ClaimName, by)
	if err != nil {
		w.t.Fatal(err)
	}
	return release
}

func (w *world) set(name, text string) {
	if _, err := settings.Change(w.t.Context(), w.engine.Records, func(s *settings.Settings) error { return s.Set(name, text) }); err != nil {
		w.t.Fatal(err)
	}
}

// retime takes the times of the jobs away, and sets them so long before now.
func (w *world) retime(ago time.Duration) {
	w.set("daily", "")
	w.now = w.now.Add(-ago)
	w.set("daily", "06:10")
	w.now = w.now.Add(ago)
}

func (w *world) charging(reason string) {
	if err := w.engine.SetCharging(w.t.Context(), false, reason); err != nil {
		w.t.Fatal(err)
	}
}

// account is one of Stripe's, in the form in which package tracking stores it.
func (w *world) account(id string, through time.Time, failed string) {
	registry := w.tables.Tracking.Registry.Name
	own := store.NewItem(store.Attribute{Name: schema.TrackedStripeAccount, Value: store.S("acct_own")})
	own.Set(schema.PK, store.S("OWN"))
	own.Set(schema.SK, store.S("OWN"))
	polled := store.NewItem(store.Attribute{Name: schema.PollError, Value: store.S(failed)})
	if !through.IsZero() {
		polled.Set(schema.PollThrough, store.S(through.Format("2006-01-02 15:04:05.000")))
	}
	it := store.NewItem(store.Attribute{Name: schema.TrackedPolled, Value: store.M(polled)},
		store.Attribute{Name: schema.TrackedStatus, Value: store.S("connected")})
	it.Set(schema.PK, store.S("ACCOUNT"))
	it.Set(schema.SK, store.S(id))
	w.commit(store.Put(registry, own), store.Put(registry, it))
}

// signed notes a signature so long ago.
func (w *world) signed(good bool, ago time.Duration) {
	if w.in.Endpoints == nil {
		w.in.Endpoints = new(status.Endpoints)
	}
	w.in.Endpoints.Note("/hooks/stripe", good, w.now.Add(-ago))
}

func (w *world) ahead(d time.Duration, known bool) {
	w.in.Offset = func() (time.Duration, bool) { return d, known }
}

func (w *world) disk(free, size uint64) {
	w.in.Disk = func(string) (uint64, uint64, error) { return free, size, nil }
}

// A hanging store answers when its caller gives up.
type hanging struct{ store.Store }

func (hanging) Get(ctx context.Context, _ string, _ store.Key) (store.Item, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// answers has Stripe refuse the key, or not answer since so long ago.
func (w *world) answers(refused bool, silent time.Duration) {
	since := time.Time{}
	if silent > 0 {
		since = w.now.Add(-silent)
	}
	w.in.Stripe = func(context.Context) (bool, time.Time) { return refused, since }
}

// owed makes a row due on the day of March.
func (w *world) owed(day string) {
	it := store.NewItem(store.Attribute{Name: schema.PK, Value: store.S("ACC#" + day)},
		store.Attribute{Name: schema.SK, Value: store.S("SUB#1#SKU#news")},
		store.Attribute{Name: schema.NextPaymentDate, Value: store.S("2026-03-" + day)},
		store.Attribute{Name: schema.LastPaymentDate, Value: store.S("2026-02-01T00:00:00.000Z")})
	w.commit(store.Put(w.engine.Table, it))
}

func (w *world) refuse(err error) {
	if w.in.Runs == nil {
		w.in.Runs = new(status.Runs)
	}
	w.in.Runs.Note(billing.Payments, err, w.now)
}

// declined records a run that was declined so often; each has its own hour.
func (w *world) declined(n, hour int) {
	w.first = n
	defer func() { w.first = 0 }()
	at := clockTime("03 06:10").Add(time.Duration(hour) * time.Hour)
	w.run(billing.Payments, at, at, true, map[billing.Outcome]int{"retry": n - 1, "failed": 1})
}

// left has the account disconnected so long ago.
func (w *world) left(id string, ago time.Duration) {
	w.account(id, time.Time{}, "")
	set := store.NewItem(store.Attribute{Name: schema.TrackedStatus, Value: store.S("disconnected")},
		store.Attribute{Name: schema.TrackedUpdated, Value: store.S(w.now.Add(-ago).Format("2006-01-02 15:04:05.000"))})
	w.commit(store.Update(w.tables.Tracking.Registry.Name, store.Key{PK: "ACCOUNT", SK: id}, set, nil))
}

// polled has the poller find events so long ago.
func (w *world) polled(n int, ago time.Duration) {
	if w.in.Endpoints == nil {
		w.in.Endpoints = new(status.Endpoints)
	}
	for range n {
		w.in.Endpoints.Found("/hooks/stripe", w.now.Add(-2*time.Hour), w.now.Add(-ago))
	}
}

// operating returns the page about metrics.
func operating(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
