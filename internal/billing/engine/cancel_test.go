package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// unpaid returns the records of the subscription: period, end and reason.
func (w *world) unpaid(n billing.Name) (list []string) {
	for p, err := range w.start().GetEndedPeriods(context.Background(), w.sub(n).Name) {
		if err != nil {
			panic(err)
		}
		list = append(list, fmt.Sprintf("%d %s: %s", p.Period, p.Ending, p.Reason))
	}
	return list
}

// TestCancel_Overdue: each overdue period of a cancelled subscription has a record, whatever its state.
func TestCancel_Overdue(t *testing.T) {
	const cancelled = "void: the subscription was cancelled"
	tests := []struct {
		name string
		then func(w *world, n billing.Name)
		want []string
	}{
		{"nothing overdue", func(*world, billing.Name) {}, nil},
		{"active, the jobs stood still", func(w *world, _ billing.Name) { w.goTo(date("2024-03-31")) },
			[]string{"0 " + cancelled, "1 " + cancelled, "2 " + cancelled}},
		{"past due", func(w *world, n billing.Name) {
			w.newMethod(n, "pm_card_visa_chargeDeclinedLostCard")
			w.goTo(date("2024-01-31"))
			w.start().run(civil.Date{})
			w.goTo(date("2024-03-01"))
		}, []string{"0 failed: declined: lost_card", "1 " + cancelled}},
		{"paused with a period overdue", func(w *world, n billing.Name) {
			w.goTo(date("2024-02-15"))
			if _, err := w.start().Pause(context.Background(), n); err != nil {
				panic(err)
			}
			w.goTo(date("2024-04-01"))
		}, []string{"0 " + cancelled, "1 void: due while paused", "2 void: due while paused"}},
		{"open, and the next one overdue", func(w *world, n billing.Name) {
			w.newMethod(n, "pm_sandbox_processing")
			w.goTo(date("2024-01-31"))
			w.start().run(civil.Date{})
			w.goTo(date("2024-03-01"))
		}, []string{"0 " + cancelled, "1 " + cancelled}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-31"))
			test.then(w, n)
			s, err := w.start().Cancel(context.Background(), n, false)
			w.noteCanceled(s, err)
			mustNot(t, err)
			if got := w.unpaid(n); !slices.Equal(got, test.want) || s.Status != billing.CanceledSub {
				t.Errorf("%s: %q, want %q", s.Status, got, test.want)
			}
			w.report(t)
		})
	}
}

// newMethod gives the subscription another method.
func (w *world) newMethod(n billing.Name, method string) {
	if _, err := w.start().UpdateSubscription(context.Background(), n, billing.Change{Method: &method}); err != nil {
		panic(err)
	}
}

// TestCancel_ManyOverdue: more periods than a commit takes; a crash in between is made good by the same
// request.
func TestCancel_ManyOverdue(t *testing.T) {
	for point := 1; ; point++ {
		w := newWorld("2022-01-03T09:00", planted{})
		n := w.create(one("2022-01-03", func(n *billing.NewSubscription) {
			n.Interval, n.PaymentDay = civil.Interval{N: 1, Unit: civil.Week}, 1
		}))
		w.goTo(date("2026-01-05"))
		_, err := w.start(fault{point, true}).Cancel(context.Background(), n, false)
		if err != nil {
			_, err := w.start().Cancel(context.Background(), n, false)
			if err != nil && w.sub(n).Status != billing.CanceledSub {
				t.Errorf("point %d: %v", point, err)
			}
		}
		if s := w.sub(n); s.Status != billing.CanceledSub || len(w.unpaid(n)) != 210 {
			t.Errorf("point %d: %d records; %s", point, len(w.unpaid(n)), w.describe(n))
		}
		w.report(t)
		if err == nil {
			break
		}
	}
}

// TestCancel_ManyOverdueBesideOpen: a cancellation is requested beside an open period, with more
// periods overdue than a commit takes. Each is void with the time of the request, whoever goes on
// with it, after a crash too.
func TestCancel_ManyOverdueBesideOpen(t *testing.T) {
	for point := 0; ; point++ {
		w := newWorld("2022-01-03T09:00", planted{})
		n := w.create(one("2022-01-03", func(n *billing.NewSubscription) {
			n.Interval, n.PaymentDay, n.Method = civil.Interval{N: 1, Unit: civil.Week}, 1, "pm_sandbox_processing"
		}))
		w.start().run(civil.Date{})
		w.goTo(date("2026-01-05"))
		asked := w.now()
		_, err := w.start(fault{2, true}).Cancel(context.Background(), n, false)
		if err == nil || w.sub(n).Requested != billing.RequestCancel {
			t.Fatalf("%v; %s", err, w.describe(n))
		}
		w.goTo(date("2026-01-07"))
		p := w.start(fault{point, true})
		p.run(civil.Date{})
		if s := w.sub(n); s.Open == nil && s.Status != billing.PastDue && s.Status != billing.CanceledSub {
			t.Errorf("point %d: an older build would charge it: %s", point, w.describe(n))
		} else if s.Open == nil && s.Status == billing.PastDue {
			_, err := w.start().UpdateSubscription(context.Background(), n, billing.Change{Method: new("pm_card_visa")})
			if s := w.sub(n); err != nil || s.Status != billing.PastDue || s.Method != "pm_card_visa" {
				t.Errorf("point %d: a new method: %v; %s", point, err, w.describe(n))
			}
		}
		for _, refused := range []func(context.Context, billing.Name) (*billing.Subscription, error){w.start().Resume, w.start().Pause} {
			if _, err := refused(context.Background(), n); err == nil {
				t.Errorf("point %d: not refused: %s", point, w.describe(n))
			}
		}
		w.tomorrow()
		s, err := w.start().Cancel(context.Background(), n, false)
		if w.sub(n).Status != billing.CanceledSub {
			t.Errorf("point %d: %v, %v", point, s, err)
		}
		for i, period := range w.unpaid(n) {
			if x := w.ending(n, i); !x.Ended.Equal(asked) || x.Ending != billing.EndVoid {
				t.Fatalf("point %d: %s at %s, want %s", point, period, x.Ended, asked)
			}
		}
		if got := len(w.unpaid(n)); got != 210 || w.sub(n).Period != 210 {
			t.Errorf("point %d: %d records; %s", point, got, w.describe(n))
		}
		w.report(t)
		if point > 0 && !p.faults.struck() {
			break
		}
	}
}

// TestResume_Overdue: a period that was overdue before the pause is not called due in it.
func TestResume_Overdue(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.goTo(date("2024-02-15"))
	_, err := w.start().Pause(context.Background(), n)
	mustNot(t, err)
	w.goTo(date("2024-03-10"))
	_, err = w.start().Resume(context.Background(), n)
	mustNot(t, err)
	if got := w.unpaid(n); !slices.Equal(got, []string{"0 void: overdue when paused", "1 void: due while paused"}) {
		t.Errorf("%q", got)
	}
	w.report(t)
}

// cancelCollecting cancels the subscription after one attempt at each overdue period, and holds the answer.
func (w *world) cancelCollecting(p *process, n billing.Name, refused func(error)) {
	results, s, err := p.CancelCollecting(context.Background(), n)
	w.noteCanceled(s, err)
	seen := map[int]bool{}
	for _, r := range results {
		if seen[r.Period] {
			w.violate("period %d of %s was tried twice", r.Period, n)
		}
		seen[r.Period] = true
	}
	refused(err)
}

// lateWith makes a subscription with that method, first due on 2024-01-31, whose jobs have stood still
// until 2024-03-10: periods 0 and 1 are overdue.
func lateWith(method string) (*world, billing.Name) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = method }))
	w.goTo(date("2024-03-10"))
	return w, n
}

// days runs the job once a day until the day.
func (w *world) until(day string) {
	for ; !w.today().After(date(day)); w.tomorrow() {
		w.start().run(civil.Date{})
	}
}

// TestCancelAtEnd_Arrears: what was due by the day of the request is charged, and nothing later; the end is
// that of the period that was running.
func TestCancelAtEnd_Arrears(t *testing.T) {
	const cancelled = "void: the subscription was cancelled"
	tests := []struct {
		name, method string
		then         func(w *world, n billing.Name)
		status       billing.Status
		charges      int
		unpaid       []string
	}{
		{"collected by the next run", "pm_card_visa", func(w *world, _ billing.Name) { w.until("2024-04-02") },
			billing.CanceledSub, 2, nil},
		{"the jobs stand still beyond the end", "pm_card_visa", func(w *world, _ billing.Name) {
			w.goTo(date("2024-05-05"))
			w.until("2024-05-05")
		}, billing.CanceledSub, 2, nil},
		{"asked for again after the end", "pm_card_visa", func(w *world, n billing.Name) {
			w.goTo(date("2024-05-05"))
			_, err := w.start().Cancel(context.Background(), n, true)
			mustNot(t, err)
			w.until("2024-05-05")
		}, billing.CanceledSub, 2, nil},
		{"cancelled now after the end", "pm_card_visa", func(w *world, n billing.Name) {
			w.goTo(date("2024-05-05"))
			_, err := w.start().Cancel(context.Background(), n, false)
			mustNot(t, err)
		}, billing.CanceledSub, 0, []string{"0 " + cancelled, "1 " + cancelled}},
		{"collected at once after the end", "pm_card_visa", func(w *world, n billing.Name) {
			w.goTo(date("2024-05-05"))
			w.cancelCollecting(w.start(), n, func(err error) { mustNot(t, err) })
		}, billing.CanceledSub, 2, nil},
		{"declined", "pm_card_visa_chargeDeclinedLostCard", func(w *world, _ billing.Name) { w.until("2024-04-02") },
			billing.CanceledSub, 0, []string{"0 failed: declined: lost_card", "1 " + cancelled}},
		{"parked, and skipped after the end", "", func(w *world, n billing.Name) {
			w.until("2024-04-02")
			for range 2 {
				_, err := w.start().SkipParked(context.Background(), n)
				mustNot(t, err)
			}
			w.until("2024-04-03")
		}, billing.CanceledSub, 0, []string{"0 skipped: skipped by a person", "1 skipped: skipped by a person"}},
		{"taken back", "pm_card_visa", func(w *world, n billing.Name) {
			_, err := w.start().Resume(context.Background(), n)
			mustNot(t, err)
			w.until("2024-04-02")
		}, billing.Active, 3, nil},
		{"another payment day", "pm_card_visa", func(w *world, n billing.Name) {
			_, err := w.start().UpdateSubscription(context.Background(), n, billing.Change{PaymentDay: new(20)})
			if field, is := errors.AsType[*billing.FieldError](err); !is || field.Field != "payment_day" {
				t.Errorf("an owed period was moved: %v", err)
			}
			w.until("2024-03-11")
			_, err = w.start().UpdateSubscription(context.Background(), n, billing.Change{PaymentDay: new(20)})
			mustNot(t, err)
			w.until("2024-04-22")
		}, billing.CanceledSub, 2, nil},
		{"by an older Duesday", "pm_card_visa", func(w *world, n billing.Name) {
			it := w.rawOf(n).Clone()
			it.Remove(schema.CancelDate)
			w.write(it)
			w.until("2024-03-11")
		}, billing.CanceledSub, 0, []string{"0 void: the subscription ended with its period, as an older Duesday was asked",
			"1 void: the subscription ended with its period, as an older Duesday was asked"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, n := lateWith(test.method)
			s, err := w.start().Cancel(context.Background(), n, true)
			mustNot(t, err)
			owed := s.Upcoming(5)
			if len(owed) != 2 || owed[0].Due != date("2024-01-31") || owed[1].Due != date("2024-02-29") {
				t.Errorf("upcoming: %+v", owed)
			}
			test.then(w, n)
			charges := 0
			for _, e := range w.ledger() {
				if e.State == processor.Succeeded {
					charges++
				}
			}
			if s := w.sub(n); s.Status != test.status || charges != test.charges || !slices.Equal(w.unpaid(n), test.unpaid) {
				t.Errorf("%s, %d charges, %q; want %s, %d, %q", w.describe(n), charges, w.unpaid(n), test.status, test.charges,
					test.unpaid)
			}
			w.report(t)
		})
	}
}

// TestCancel_EarlierBusinessDay: a request on an earlier business day goes on with a cancellation,
// and drops nothing that was due by the first one.
func TestCancel_EarlierBusinessDay(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_sandbox_processing" }))
	w.goTo(date("2024-01-31"))
	w.start().run(civil.Date{})
	w.goTo(date("2024-03-10"))
	_, err := w.start(fault{2, true}).Cancel(context.Background(), n, false)
	wantAny(t, err)
	mustNot(t, w.box.Finish(w.sub(n).Open.Ref, true))
	w.spy.business(date("2024-02-15"))
	_, err = w.start().On(date("2024-02-15")).Cancel(context.Background(), n, false)
	mustNot(t, err)
	w.spy.business(civil.Date{})
	const cancelled = "void: the subscription was cancelled"
	if got := w.unpaid(n); w.sub(n).Status != billing.CanceledSub || !slices.Equal(got, []string{"1 " + cancelled}) {
		t.Errorf("%s: %q", w.describe(n), got)
	}
	w.report(t)
}

// TestCancelCollecting: each overdue period is tried once, and what stays unpaid is void.
func TestCancelCollecting(t *testing.T) {
	const cancelled = "void: the subscription was cancelled"
	both := []string{"0 " + cancelled, "1 " + cancelled}
	tests := []struct {
		method   string
		then     func(w *world, n billing.Name)
		attempts int
		outcomes []engine.Outcome
		unpaid   []string
	}{
		{"pm_card_visa", nil, 2, []engine.Outcome{engine.OutcomePaid, engine.OutcomePaid}, nil},
		{"pm_card_visa_chargeDeclined", nil, 2, []engine.Outcome{engine.OutcomeSkipped, engine.OutcomeSkipped}, both},
		{"pm_card_visa_chargeDeclinedLostCard", nil, 2, []engine.Outcome{engine.OutcomeSkipped, engine.OutcomeSkipped}, both},
		{"pm_card_authenticationRequired", nil, 2, []engine.Outcome{engine.OutcomeSkipped, engine.OutcomeSkipped}, both},
		{"", nil, 0, []engine.Outcome{engine.OutcomePending}, both},
		{"pm_card_visa_chargeDeclined", func(w *world, _ billing.Name) { w.start().run(civil.Date{}) }, 3, // it waits for its retry day
			[]engine.Outcome{engine.OutcomeSkipped, engine.OutcomeSkipped}, both},
		{"pm_card_visa_chargeDeclinedLostCard", func(w *world, _ billing.Name) { w.start().run(civil.Date{}) }, 2, // past_due
			[]engine.Outcome{engine.OutcomeSkipped}, []string{"0 failed: declined: lost_card", "1 " + cancelled}},
	}
	for _, test := range tests {
		t.Run(test.method, func(t *testing.T) {
			w, n := lateWith(test.method)
			if test.then != nil {
				test.then(w, n)
			}
			results, s, err := w.start().CancelCollecting(context.Background(), n)
			w.noteCanceled(s, err)
			mustNot(t, err)
			var outcomes []engine.Outcome
			for _, r := range results {
				outcomes = append(outcomes, r.Outcome)
			}
			attempts := 0
			for _, e := range w.ledger() {
				if e.State != processor.Opened && e.State != processor.Canceled {
					attempts++
				}
			}
			if s.Status != billing.CanceledSub || attempts != test.attempts || !slices.Equal(outcomes, test.outcomes) ||
				!slices.Equal(w.unpaid(n), test.unpaid) {
				t.Errorf("%s, %d attempts, %v, %q; want %d, %v, %q", s.Status, attempts, outcomes, w.unpaid(n), test.attempts,
					test.outcomes, test.unpaid)
			}
			list, sum, err := w.start().WrittenOff(context.Background(), w.sub(n).Name)
			mustNot(t, err)
			want := 0
			for _, u := range test.unpaid {
				if strings.Contains(u, "void") {
					want++
				}
			}
			if len(list) != want || want > 0 && sum != usd(int64(1299*want)) {
				t.Errorf("%d periods written off, %s", len(list), sum)
			}
			w.report(t)
		})
	}
}

// TestCancelCollecting_Refused: nothing is changed where the periods may not be tried.
func TestCancelCollecting_Refused(t *testing.T) {
	for name, then := range map[string]func(w *world, n billing.Name){
		"paused": func(w *world, n billing.Name) { _, err := w.start().Pause(context.Background(), n); mustNot(t, err) },
		"parked": func(w *world, n billing.Name) {
			w.byTool(n, schema.NextPaymentDate, store.S("2024-03-10"))
			w.start().run(civil.Date{})
		},
		"moved by another tool": func(w *world, n billing.Name) {
			w.byTool(n, schema.NextPaymentDate, store.S("2024-06-30"))
		},
		"charging off": func(w *world, _ billing.Name) { mustNot(t, w.start().SetCharging(context.Background(), false, "")) },
		"canceled": func(w *world, n billing.Name) {
			_, err := w.start().Cancel(context.Background(), n, false)
			mustNot(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, n := lateWith("pm_card_visa")
			then(w, n)
			before := w.rawOf(n)
			_, _, err := w.start().CancelCollecting(context.Background(), n)
			if wantAny(t, err); !w.rawOf(n).Equal(before) {
				t.Errorf("%v, and it was changed", err)
			}
		})
	}
}
