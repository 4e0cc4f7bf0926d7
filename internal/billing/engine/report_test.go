package engine_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

func made(t *testing.T, p *process, q report.Query) *report.Report {
	t.Helper()
	q.Progress = func(int64) {}
	r, err := p.Report(t.Context(), q)
	mustNot(t, err)
	return r
}

func forecast(t *testing.T, w *world, days int) *report.Report {
	t.Helper()
	return made(t, w.start(), report.Query{Days: days})
}

func lines(list []report.Expected) (text []string) {
	for _, x := range list {
		text = append(text, fmt.Sprintf("%s %s %d", x.Date, x.Amount, x.Count))
	}
	return text
}

// TestReport_IsWhatRunsCharge: of subscriptions that are as they may be, the expected charges of two
// months are those of the runs of these days, if every attempt succeeds.
func TestReport_IsWhatRunsCharge(t *testing.T) {
	for seed := range uint64(25) {
		rng := seeded(seed)
		w := newWorld("2024-01-31T09:00", planted{})
		for i := range 1 + rng.IntN(8) {
			n := w.create(one(w.today().AddDays(rng.IntN(60)-20).String(), of(fmt.Sprintf("a%d", i)),
				func(n *billing.NewSubscription) {
					n.Interval = civil.Interval{N: 1 + rng.IntN(3), Unit: civil.Unit(1 + rng.IntN(4))}
					if n.Interval.Unit == civil.Day {
						n.Interval.N += 6
					}
					if n.Interval.Unit == civil.Week {
						n.PaymentDay = (int(n.NextPayment.Weekday())+6)%7 + 1
					}
					n.Installments = rng.IntN(4)
					if rng.IntN(8) == 0 {
						n.Method = ""
					}
					if rng.IntN(4) == 0 { // the decline is on the 31st, its retry is to come
						n.Method = "pm_sandbox_flaky"
						n.Interval, n.NextPayment, n.PaymentDay = civil.Interval{N: 1, Unit: civil.Year}, w.today(), w.today().Day()
					}
				}))
			var err error
			switch rng.IntN(8) {
			case 2:
				amount := usd(777)
				_, err = w.start().UpdateSubscription(t.Context(), n, billing.Change{Amount: &amount, From: date("2024-03-01")})
			case 0:
				_, err = w.start().Cancel(t.Context(), n, true)
			case 1:
				_, err = w.start().Pause(t.Context(), n)
			}
			mustNot(t, err)
		}
		w.start().run(w.today())
		const days = 60
		w.tomorrow()
		want := lines(forecast(t, w, days).Expected)
		var got []report.Expected
		for range days {
			r := w.start().run(w.today())
			for amount := range r.Amounts.All() {
				got = append(got, report.Expected{Date: w.today(), Amount: amount, Count: r.Counts[engine.OutcomePaid]})
			}
			w.tomorrow()
		}
		if !slices.Equal(lines(got), want) {
			t.Errorf("seed %d: expected %v\ncharged %v", seed, want, lines(got))
		}
		w.report(t)
	}
}

// TestReport_RecurringRevenue: a week is 12/52 of a month, exactly, and 14 days are two weeks; the sum is rounded once. Only what
// goes on is in it.
func TestReport_RecurringRevenue(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	every := func(n int, u civil.Unit) func(*billing.NewSubscription) {
		return func(s *billing.NewSubscription) {
			if s.Interval = (civil.Interval{N: n, Unit: u}); u == civil.Week {
				s.PaymentDay = 7
			}
		}
	}
	w.create(one("2024-03-31", of("a1"), every(3, civil.Month))) // 4.33
	w.create(one("2024-03-31", of("a2"), every(2, civil.Week)))  // 28.145
	w.create(one("2024-03-31", of("a3"), every(1, civil.Year)))  // 1.0825
	w.create(one("2024-03-31", of("a6"), every(14, civil.Day)))  // 28.145
	w.create(one("2024-03-31", of("a7"), every(10, civil.Day)))  // 39.403
	ending := w.create(one("2024-03-31", of("a4"), every(1, civil.Month)))
	paused := w.create(one("2024-03-31", of("a5"), every(1, civil.Month)))
	_, err := w.start().Cancel(t.Context(), ending, true)
	mustNot(t, err)
	_, err = w.start().Pause(t.Context(), paused)
	mustNot(t, err)
	if got := fmt.Sprint(forecast(t, w, 1).MRR); got != "[101.11 USD]" { // 101.1055
		t.Errorf("%s", got)
	}
}

// TestReport_Outstanding: what is open, parked or failed of a subscription that waits is owed, by the
// month in which it was due; a paid and a cancelled one owe nothing.
func TestReport_Outstanding(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31", of("a1")))
	w.create(one("2024-01-31", of("a2"), method("pm_card_visa_chargeDeclined")))
	w.create(one("2024-01-31", of("a3"), method("")))
	w.create(one("2024-01-31", of("a4"), method("pm_card_visa_chargeDeclinedLostCard")))
	gone := w.create(one("2024-01-31", of("a5"), method("pm_card_visa_chargeDeclinedLostCard")))
	w.create(one("2024-02-02", of("a6"), method("pm_card_authenticationRequired")))
	w.daily("2024-02-02")
	_, err := w.start().Cancel(t.Context(), gone, false)
	mustNot(t, err)
	var got []string
	for _, m := range forecast(t, w, 1).Months {
		got = append(got, m.First.String()+" "+m.Outstanding.String())
	}
	if !slices.Equal(got, []string{"2024-01-01 38.97 USD", "2024-02-01 12.99 USD"}) {
		t.Errorf("%v", got)
	}
}

// TestReport_Zone: the months are those of the setting's time zone, of sums that are there already.
func TestReport_Zone(t *testing.T) {
	w := newWorld("2024-01-31T21:10", planted{})
	w.create(one("2024-01-31"))
	w.start().run(w.today())
	for _, x := range []struct{ zone, month string }{{"UTC", "2024-01-01"}, {"Asia/Seoul", "2024-02-01"},
		{"Asia/Kathmandu", "2024-02-01"}, {"America/Lima", "2024-01-01"}} {
		w.settings(t, "time-zone="+x.zone)
		w.pass(time.Minute)
		for _, drained := range []bool{false, true} {
			if drained {
				w.drain(t)
			}
			st := made(t, w.start(), report.Query{From: date("2024-01-01"), To: date("2024-02-01")})
			for _, m := range st.Months {
				if got := m.Sums[report.Collected].Minor(); got != map[bool]int64{true: 1299}[m.First == date(x.month)] {
					t.Errorf("%s, %s: %d", x.zone, m.First, got)
				}
			}
			if len(st.Months) != 2 || !st.AsOf.Equal(w.now()) {
				t.Errorf("%s: %+v", x.zone, st)
			}
		}
	}
}

// TestReport_Complete: a month from before sums were kept, or whose receipts have expired, says so.
func TestReport_Complete(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.settings(t, "receipt-months=3")
	w.create(one("2024-01-31"))
	w.start().run(w.today())
	complete := func(older bool) (list []string) {
		p := w.start()
		if older {
			p.Opened.Summed = date("2024-02-10").In(time.UTC)
		}
		st := made(t, p, report.Query{From: date("2023-12-01")})
		for _, m := range st.Months {
			if m.Missing == "" {
				list = append(list, m.First.String())
			}
		}
		return list
	}
	w.goTo(date("2024-03-05"))
	for _, x := range []struct {
		at    string
		older bool
		want  []string
	}{
		{"2024-03-05", false, []string{"2024-01-01", "2024-02-01", "2024-03-01"}},
		{"2024-03-05", true, []string{"2024-03-01"}},
		{"2024-06-05", false, []string{"2024-04-01", "2024-05-01", "2024-06-01"}},
	} {
		w.goTo(date(x.at))
		if got := complete(x.older); !slices.Equal(got, x.want) {
			t.Errorf("on %s, older %t: complete %v, want %v", x.at, x.older, got, x.want)
		}
	}
}

// A restless store has other sums at each look.
type restless struct {
	store.Store
	w *world
}

func (b *restless) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for it, err := range b.Store.Query(ctx, q) {
			if err == nil && report.IsSum(billing.KeyOf(it)) {
				b.w.pass(time.Millisecond)
				it = it.Clone()
				it.Set(schema.Version, store.Int(b.w.now().UnixMilli()))
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// TestReport_BesideABusyDrain: sums that are being added are as of the oldest row that waits.
func TestReport_BesideABusyDrain(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31"))
	w.start().run(w.today())
	w.drain(t)
	w.goTo(date("2024-02-01"))
	waits := w.now()
	mustNot(t, w.spy.mem.Commit(t.Context(), outbox.Write(w.tables.Outbox.Name, outbox.Effect{ID: "x",
		Kind: outbox.KindSum, Due: waits, Created: waits, Sums: "outside 1.00 USD 2024-01-31T09:00"})))
	w.pass(time.Hour)
	p := w.start()
	p.Store = &restless{p.Store, w}
	st := made(t, p, report.Query{From: date("2024-01-01")})
	if len(st.Months) != 2 || st.Months[0].Missing != "" || st.Months[1].Missing == "" || !st.AsOf.Equal(waits) ||
		st.Months[0].Sums[report.Collected] != usd(1299) {
		t.Errorf("%+v", st)
	}
}

// TestDryRun_IsWhatTheRunCharges: the last installment is among the overdue periods, and a new price is
// that of its first period.
func TestDryRun_IsWhatTheRunCharges(t *testing.T) {
	w := newWorld("2024-01-30T09:00", planted{})
	w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Installments = 2 }))
	other, amount := w.create(one("2024-01-31", of("a2"))), usd(777)
	_, err := w.start().UpdateSubscription(t.Context(), other, billing.Change{Amount: &amount, From: date("2024-02-01")})
	mustNot(t, err)
	w.goTo(date("2024-03-01"))
	results := func(dry bool) (list []string) {
		_, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1, DryRun: dry, Each: func(r engine.Result) {
			list = append(list, fmt.Sprint(r.Account, " ", r.Period, " ", r.Amount))
		}})
		mustNot(t, err)
		slices.Sort(list)
		return list
	}
	want := results(true)
	if got := results(false); !slices.Equal(got, want) || len(got) != 4 {
		t.Errorf("foreseen %v\ncharged %v", want, got)
	}
}
