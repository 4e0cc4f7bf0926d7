package billingapi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/outlook"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// TestOverview: without data, it says why there is no outlook; with sums in two currencies, it has one row a day
// and currency of the last 90 days.
func TestOverview(t *testing.T) {
	w := newWorld(t)
	a := w.must("GET", "/v1/overview", "")
	if a.body["outlook_missing"] != "no_pass" || a.body["date"] != today || len(a.body["days"].([]any)) != 0 {
		t.Errorf("without data: %s", a.text)
	}
	sum := func(month, at, currency, amount string) {
		it := billing.ItemAt(store.Key{PK: "SUM#" + month, SK: at + "#" + currency},
			store.Attribute{Name: "Amounts", Value: store.M(store.NewItem(store.Attribute{Name: "collected", Value: store.S(amount)}))})
		if err := w.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)); err != nil {
			t.Fatal(err)
		}
	}
	sum("2027-01", today+"T09:15", "USD", "1.00")
	sum("2027-01", today+"T09:30", "USD", "2.50")
	sum("2027-01", today+"T09:30", "JPY", "700")
	sum("2026-11", "2026-11-02T23:45", "USD", "9.00") // too old
	sum("2026-11", "2026-11-03T00:00", "USD", "4.00")
	w.restart()
	days := w.must("GET", "/v1/overview", "").body["days"].([]any)
	want := []struct {
		date, currency string
		collected      float64
	}{{"2026-11-03", "USD", 400}, {today, "JPY", 700}, {today, "USD", 350}}
	if len(days) != len(want) {
		t.Fatalf("got %v, want %v", days, want)
	}
	for i, x := range want {
		if d := days[i].(map[string]any); d["date"] != x.date || d["currency"] != x.currency || d["collected"] != x.collected || d["refunded"] != 0.0 {
			t.Errorf("got %v, want %v", d, x)
		}
	}
}

// TestOverview_OutlookAndZone: after a payment run and its pass, the overview has both; the days follow the zone, in
// which the clocks are put forward on 2027-03-28.
func TestOverview_OutlookAndZone(t *testing.T) {
	w := newWorld(t)
	w.days.Store(57) // 2027-03-29
	w.restart()
	if a := w.ask("admin", "PATCH", "/v1/settings", "", `{"time_zone": "Europe/Berlin"}`); a.status != 200 {
		t.Fatal(a.text)
	}
	for _, at := range []string{"2027-03-27T22:45", "2027-03-27T23:00", "2027-03-28T21:45", "2027-03-28T22:00"} {
		it := billing.ItemAt(store.Key{PK: "SUM#2027-03", SK: at + "#USD"},
			store.Attribute{Name: "Amounts", Value: store.M(store.NewItem(store.Attribute{Name: "collected", Value: store.S("1.00")}))})
		if err := w.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.Open(t.Context(), engine.Options{Store: w.mem, Tables: w.tables, Processor: w.box, Now: w.now, Config: engine.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Payments(t.Context(), e, job.Options{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if stored, err := outlook.Refresh(t.Context(), e, false); err != nil || !stored {
		t.Fatal(stored, err)
	}
	a := w.must("GET", "/v1/overview", "")
	var got []string
	for _, d := range a.body["days"].([]any) {
		got = append(got, fmt.Sprint(d.(map[string]any)["date"], " ", d.(map[string]any)["collected"]))
	}
	if want := []string{"2027-03-27 100", "2027-03-28 200", "2027-03-29 100"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	made, run := a.body["outlook"].(map[string]any), a.body["run"].(map[string]any)
	if made["subscriptions"] != 0.0 || a.body["outlook_missing"] != nil || run["state"] != "completed" || run["kind"] != "payments" {
		t.Errorf("got %s", a.text)
	}
}

// TestOverview_Day: a run belongs to the day on which it started in the store's zone, or to the date that it was
// started for. Its own date is the UTC day.
func TestOverview_Day(t *testing.T) {
	for _, x := range []struct {
		what, zone, date, started string
		hours                     int64 // from noon on 2027-01-31 to the look
		today                     bool
	}{
		{"in the morning in Tokyo", "Asia/Tokyo", "2027-01-30", "2027-01-30T21:10:00Z", 0, true},
		{"on the morning before in Tokyo", "Asia/Tokyo", "2027-01-30", "2027-01-29T21:10:00Z", 0, false},
		{"14 hours ahead", "Pacific/Kiritimati", "2027-01-31", "2027-01-31T10:30:00Z", 0, true},
		{"14 hours ahead, on the day before", "Pacific/Kiritimati", "2027-01-31", "2027-01-31T09:30:00Z", 0, false},
		{"in the evening in Los Angeles", "America/Los_Angeles", "2027-02-01", "2027-02-01T04:10:00Z", 17, true},
		{"on the evening before in Los Angeles", "America/Los_Angeles", "2027-01-31", "2027-01-31T04:10:00Z", 0, false},
		{"for today, on the next UTC day", "America/Los_Angeles", "2027-01-31", "2027-02-01T04:10:00Z", 17, true},
		{"for an earlier date", "America/Los_Angeles", "2027-01-30", "2027-02-01T04:10:00Z", 17, false},
		{"in UTC", "UTC", "2027-01-31", "2027-01-31T06:10:00Z", 0, true},
	} {
		t.Run(x.what, func(t *testing.T) {
			w := newWorld(t)
			w.hours.Store(x.hours)
			if a := w.ask("admin", "PATCH", "/v1/settings", "", `{"time_zone": "`+x.zone+`"}`); a.status != 200 {
				t.Fatal(a.text)
			}
			w.ran(x.date, x.started, nil)
			payments, ran := w.must("GET", "/v1/overview", "").body["payments_today"].(map[string]any)
			if ran != x.today || ran && payments["date"] != x.date {
				t.Errorf("today's run: %v", payments)
			}
		})
	}
}

// TestOverview_Sum: the runs of a day are added up. What waits is that of the last completed one, and a run under way
// or of another day changes nothing of it.
func TestOverview_Sum(t *testing.T) {
	w := newWorld(t)
	unpaid := func(o engine.Outcome, minor int64) func(*billing.Run) {
		var sum money.Totals
		usd, err := money.ParseCurrency("USD")
		if err = errors.Join(err, sum.Add(money.New(minor, usd))); err != nil {
			t.Fatal(err)
		}
		return func(r *billing.Run) { r.Unpaid = map[engine.Outcome]money.Totals{o: sum} }
	}
	w.ran("2027-01-30", "2027-01-30T06:10:00Z", map[engine.Outcome]int{"paid": 100, "parked": 100})
	w.ran(today, "2027-01-31T06:10:00Z", map[engine.Outcome]int{"paid": 7, "retry": 2, "asked": 1, "pending": 4, "parked": 5}, unpaid("retry", 500), func(r *billing.Run) { r.Awaited = 3 })
	w.ran(today, "2027-01-31T08:10:00Z", map[engine.Outcome]int{"paid": 1, "retry": 1, "failed": 1, "pending": 2, "parked": 5}, unpaid("retry", 250))
	w.ran(today, "2027-01-31T09:10:00Z", map[engine.Outcome]int{"paid": 1, "pending": 2, "parked": 5}, unpaid("parked", 900), func(r *billing.Run) { r.Awaited = 1 })
	w.ran(today, "2027-01-31T11:59:00Z", map[engine.Outcome]int{"paid": 1, "parked": 1}, unpaid("parked", 100),
		func(r *billing.Run) { r.Ended, r.Completed, r.Seen = time.Time{}, false, w.now() })
	a := w.must("GET", "/v1/overview", "").body
	got := a["payments_today"].(map[string]any)
	for name, want := range map[string]any{"state": "running", "due": 22.0, "paid": 10.0, "retry": 3.0, "failed": 1.0, "asked": 1.0, "pending": 2.0, "pending_customer": 1.0, "parked": 5.0} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if sums := fmt.Sprint(got["amounts_unpaid"]); sums != "map[parked:map[USD:900] retry:map[USD:750]]" || a["runs_today"] != 4.0 {
		t.Errorf("%v runs: %s", a["runs_today"], sums)
	}
}

// ran stores the record of a payment run that took an hour and completed, unless it is changed.
func (w *world) ran(date, started string, counts map[engine.Outcome]int, change ...func(*billing.Run)) {
	w.Helper()
	day, err := civil.Parse(date)
	at, wrong := time.Parse(time.RFC3339, started)
	r := &billing.Run{Kind: billing.Payments, ID: date + "#" + billing.Stamp(at) + "-ABCDEF", Date: day, Started: at, Seen: at, Ended: at.Add(time.Hour), Completed: true, Counts: counts}
	for _, c := range change {
		c(r)
	}
	if err = errors.Join(err, wrong, w.mem.Commit(w.Context(), r.Write(w.tables.RecurringPayments.Name))); err != nil {
		w.Fatal(err)
	}
}
