package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
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

// TestCancel_ManyOverdueBesideOpen: a cancellation is requested beside an open period, with more periods
// overdue than a commit takes. Each is void with the time of the request, whoever goes on with it, after a crash too.
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
