package outlook_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/outlook"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A world is one store and processor, for several processes.
type world struct {
	rapid.TB
	ctx    context.Context
	mem    *memstore.Store
	tables schema.Tables
	box    *sandbox.Sandbox
	at     time.Time
	lease  time.Duration
}

func newWorld(ctx context.Context, t rapid.TB, at string) *world {
	w := &world{TB: t, ctx: ctx, tables: schema.New(schema.DefaultPrefix)}
	var err error
	if w.at, err = time.Parse(time.RFC3339, at); err != nil {
		t.Fatal(err)
	}
	if w.mem, err = memstore.Open(w.tables.All(), w.now); err != nil {
		t.Fatal(err)
	}
	if w.box, err = sandbox.Open("", sandbox.Options{Now: w.now}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) now() time.Time { return w.at }

// start starts a process on the store.
func (w *world) start(s store.Store) *engine.Engine {
	e, err := engine.Open(w.ctx, engine.Options{Store: s, Lease: w.lease, Tables: w.tables, Processor: w.box, Now: w.now,
		Config: engine.DefaultConfig(), Making: billing.MakeNew, KeepSettings: true})
	w.must(err)
	return e
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// create creates a subscription that is due on the day.
func (w *world) create(e *engine.Engine, id, currency string, minor int64, due civil.Date, change func(*billing.NewSubscription)) {
	w.Helper()
	c, err := money.ParseCurrency(currency)
	w.must(err)
	n := billing.NewSubscription{Account: id, Email: "a@example.com", ID: "s", SKU: "k", Amount: money.New(minor, c), PaymentDay: due.Day(),
		Method: "pm_card_visa", ReminderDays: 7, NextPayment: due}
	if change != nil {
		change(&n)
	}
	_, err = e.CreateSubscription(w.ctx, n)
	w.must(err)
}

// pay makes the day's payment run.
func (w *world) pay(e *engine.Engine) {
	w.Helper()
	_, err := job.Payments(w.ctx, e, job.Options{Workers: 1})
	w.must(err)
}

// refresh fails unless Refresh stores an outlook exactly if wanted.
func (w *world) refresh(e *engine.Engine, want bool) {
	w.Helper()
	if stored, err := outlook.Refresh(w.ctx, e, true); err != nil || stored != want {
		w.Fatalf("stored %v, %v; want %v", stored, err, want)
	}
}

func (w *world) latest(e *engine.Engine) []*outlook.Outlook {
	w.Helper()
	list, err := outlook.Latest(w.ctx, e.Records, 24)
	w.must(err)
	return list
}

// differs returns how the latest outlook differs from the report, or "".
func (w *world) differs(e *engine.Engine) string {
	w.Helper()
	r, err := e.Report(w.ctx, report.Query{Days: outlook.Days, Progress: func(int64) {}})
	w.must(err)
	o := w.latest(e)[0]
	if !reflect.DeepEqual(o.Recurring, r.MRR) || !reflect.DeepEqual(o.Expected, r.Expected) || o.Unreadable != r.Unreadable {
		return fmt.Sprintf("the outlook has %+v; the report %v, %v, %d unreadable", o, r.MRR, r.Expected, r.Unreadable)
	}
	return ""
}

// draw makes a random book, some of which is spoiled.
func draw(t *rapid.T, w *world, e *engine.Engine) {
	today := civil.Of(w.at)
	for i := range rapid.IntRange(0, 8).Draw(t, "subscriptions") {
		id := fmt.Sprint("a", i)
		due := today.AddDays(rapid.IntRange(-20, 50).Draw(t, "due"))
		w.create(e, id, rapid.SampledFrom([]string{"USD", "EUR", "JPY"}).Draw(t, "currency"), rapid.Int64Range(100, 99999).Draw(t, "amount"), due,
			func(n *billing.NewSubscription) {
				n.Installments = rapid.IntRange(0, 3).Draw(t, "installments")
				n.Interval = rapid.SampledFrom([]civil.Interval{{N: 1, Unit: civil.Month}, {N: 1, Unit: civil.Year}, {N: 10, Unit: civil.Day}}).Draw(t, "interval")
				n.Method = rapid.SampledFrom([]string{"pm_card_visa", "pm_sandbox_flaky", ""}).Draw(t, "method")
			})
		name := billing.Name{Account: id, ID: "s", SKU: "k"}
		switch rapid.SampledFrom([]string{"", "", "cancel", "pause", "spoil"}).Draw(t, "then") {
		case "cancel":
			_, err := e.Cancel(w.ctx, name, true)
			w.must(err)
		case "pause":
			_, err := e.Pause(w.ctx, name)
			w.must(err)
		case "spoil":
			set := store.NewItem(store.Attribute{Name: schema.PaymentAmount, Value: store.S("much")})
			w.must(e.Store.Commit(w.ctx, store.Update(e.Table, name.Key(), set, nil)))
		}
	}
}

// TestRefresh_IsTheReport: over random books, the pass has the figures that a report has at the same time.
func TestRefresh_IsTheReport(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t.Context(), rt, "2027-01-31T12:00:00Z")
		e := w.start(w.mem)
		draw(rt, w, e)
		w.pay(e)
		w.refresh(e, true)
		if text := w.differs(e); text != "" {
			rt.Fatal(text)
		}
	})
}

// A partial store's scan misses its first page: the planted bug of a pass that takes a part of the table for the
// whole.
type partial struct{ store.Store }

func (p partial) Scan(ctx context.Context, s store.Scan) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		n := 0
		for it, err := range p.Store.Scan(ctx, s) {
			if n++; n > 10 && !yield(it, err) {
				return
			}
		}
	}
}

func TestRefresh_IsTheReport_FindsAPartialScan(t *testing.T) {
	w := newWorld(t.Context(), t, "2027-01-31T12:00:00Z")
	e := w.start(w.mem)
	for i := range 8 {
		w.create(e, fmt.Sprint("a", i), "USD", 999, civil.Of(w.at).AddDays(3), nil)
	}
	w.pay(e)
	w.refresh(w.start(partial{w.mem}), true)
	if w.differs(e) == "" {
		t.Error("the comparison does not find a pass over half of the table")
	}
}

// TestRefresh_OnceADay: a pass follows the payment run of each day in the zone of the settings, and the last
// pass of each month stays. The clocks in Berlin are put forward on 2027-03-28.
func TestRefresh_OnceADay(t *testing.T) {
	w := newWorld(t.Context(), t, "2027-03-26T22:30:00Z")
	e := w.start(w.mem)
	_, err := settings.Change(t.Context(), e.Records, func(s *settings.Settings) error { return s.Set("time-zone", "Europe/Berlin") })
	w.must(err)
	w.create(e, "a", "USD", 999, civil.Of(w.at), nil)
	w.refresh(e, false) // no run has completed
	w.pay(e)
	w.refresh(e, true)
	w.refresh(e, false)
	w.pay(e)
	w.at = w.at.Add(10 * time.Minute)
	w.refresh(e, false) // a second run of the day
	for _, at := range []string{"2027-03-26T23:30:00Z", "2027-03-27T23:30:00Z", "2027-03-28T22:30:00Z", "2027-03-31T21:30:00Z",
		"2027-03-31T22:30:00Z"} { // each is the next day in Berlin
		w.at, _ = time.Parse(time.RFC3339, at)
		w.refresh(e, false) // before the day's run
		w.pay(e)
		w.at = w.at.Add(time.Minute)
		w.refresh(e, true)
		w.refresh(e, false)
	}
	list := w.latest(e)
	if len(list) != 2 || list[0].Month() != "2027-04" || list[1].Month() != "2027-03" || list[1].AsOf.Day() != 31 {
		t.Errorf("got %+v, want the last pass of each month", list)
	}
	w.must(e.Store.Commit(t.Context(), store.Update(e.Table, store.Key{PK: "OUTLOOK", SK: "2027-04"},
		store.NewItem(store.Attribute{Name: schema.CreatedDate, Value: store.S("yesterday")}), nil)))
	if list := w.latest(e); len(list) != 1 || list[0].Month() != "2027-03" {
		t.Errorf("with a damaged row: %+v", list)
	}
	w.refresh(e, true) // replaces it
}

// A slow store calls scanned with each item of a scan.
type slow struct {
	store.Store
	scanned func(n int)
}

func (s slow) Scan(ctx context.Context, q store.Scan) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		n := 0
		for it, err := range s.Store.Scan(ctx, q) {
			if n++; !yield(it, err) {
				return
			}
			s.scanned(n)
		}
	}
}

// TestRefresh_Interrupted: a pass that is stopped or meets an error stores nothing, and the next one begins again.
func TestRefresh_Interrupted(t *testing.T) {
	w := newWorld(t.Context(), t, "2027-01-31T12:00:00Z")
	e := w.start(w.mem)
	w.create(e, "a", "USD", 999, civil.Of(w.at), nil)
	w.pay(e)
	ctx, stop := context.WithCancel(t.Context())
	if stored, err := outlook.Refresh(ctx, w.start(slow{w.mem, func(int) { stop() }}), true); stored || !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v, %v", stored, err)
	}
	if list := w.latest(e); len(list) != 0 {
		t.Errorf("stored %+v", list)
	}
	w.refresh(e, true)
}

// A claiming store keeps claims, as a folder does.
type claiming struct {
	store.Store
	*store.Claims
}

// TestRefresh_TwoProcesses: one of several processes makes the pass, by a claim or by a lease. A pass rests
// between its pages, unless it is alone.
func TestRefresh_TwoProcesses(t *testing.T) {
	for i := range 4 {
		shared, alone := i&1 > 0, i&2 > 0
		t.Run(fmt.Sprint("shared ", shared, ", alone ", alone), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t.Context(), t, "2027-01-31T12:00:00Z")
				var s store.Store = w.mem
				if shared {
					w.lease = engine.DefaultLease
				} else {
					s = claiming{w.mem, new(store.Claims)}
				}
				e := w.start(s)
				w.create(e, "a", "USD", 999, civil.Of(w.at), nil)
				w.pay(e)
				for i := range 2 * 4096 {
					w.must(w.mem.Commit(t.Context(), store.Put(e.Table, billing.ItemAt(store.Key{PK: "OTHER", SK: fmt.Sprint(i)}))))
				}
				began := time.Now()
				var all sync.WaitGroup
				stored := make([]bool, 3)
				for i := range stored {
					all.Go(func() {
						var err error
						if stored[i], err = outlook.Refresh(t.Context(), w.start(s), alone); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				n := 0
				for _, did := range stored {
					if did {
						n++
					}
				}
				if n != 1 || len(w.latest(e)) != 1 {
					t.Errorf("%d processes have made the pass", n)
				}
				if rested := time.Since(began); rested < 500*time.Millisecond == !alone {
					t.Errorf("the passes rested for %s", rested)
				}
			})
		})
	}
}
