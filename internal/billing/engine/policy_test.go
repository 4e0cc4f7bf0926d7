package engine_test

import (
	"context"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
)

func collects(w *world) { w.cfg.AfterFailure = settings.Collect }

// promise returns the day named by the latest mail about the period's failure; "": none.
func (w *world) promise(t *testing.T, period string) (day string) {
	last := ""
	for _, f := range w.effects(t, outbox.KindFailed) {
		if f.Data[outbox.DataPeriod] == period && f.ID > last {
			last, day = f.ID, f.Data[outbox.DataCollect]
		}
	}
	return day
}

// TestPolicy: a new method collects the latest failed period if the mail about it has said so, and
// else not.
func TestPolicy(t *testing.T) {
	update := func(w *world, n billing.Name) { w.newMethod(n, "pm_card_visa") }
	tests := []struct {
		name   string
		policy func(*world) // at the failure
		given  func(*world, billing.Name)
		on     string
		mail   string
		paid   int
	}{
		{"forgiven", func(*world) {}, update, "2024-02-01", "", 0},
		{"forgiven, and the policy changed since", func(*world) {}, func(w *world, n billing.Name) {
			collects(w)
			update(w, n)
		}, "2024-02-01", "", 0},
		{"collected", collects, update, "2024-02-01", "2024-03-01", 1},
		{"collected, and the policy changed since", collects, func(w *world, n billing.Name) {
			w.cfg.AfterFailure = settings.Forgive
			update(w, n)
		}, "2024-02-01", "2024-03-01", 1},
		{"on the last day, with a void period since", collects, update, "2024-03-01", "2024-03-01", 1},
		{"too late", collects, update, "2024-03-02", "2024-03-01", 0},
		{"resumed", collects, func(w *world, n billing.Name) {
			if _, err := w.start().Resume(context.Background(), n); err != nil {
				panic(err)
			}
		}, "2024-02-01", "2024-03-01", 0},
		{"cancelled", collects, func(w *world, n billing.Name) {
			s, err := w.start().Cancel(context.Background(), n, false)
			w.noteCanceled(s, err)
		}, "2024-02-01", "2024-03-01", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, n := failed(t, test.policy)
			w.goTo(date(test.on))
			if got := w.promise(t, "0"); got != test.mail {
				t.Errorf("the mail says %q, want %q", got, test.mail)
			}
			before := w.sub(n).Period
			test.given(w, n)
			n1 := w.sub(n).Period
			w.start().run(civil.Date{})
			if s := w.sub(n); s.Paid != test.paid || s.Period != n1 || n1 < before || s.Collecting() {
				t.Errorf("paid %d, want %d; %s", s.Paid, test.paid, w.describe(n))
			}
			w.report(t)
		})
	}
}

// TestPolicy_FailsAgain: the mail of a second failure promises only what a third method would do.
func TestPolicy_FailsAgain(t *testing.T) {
	w, n := failed(t, collects)
	w.newMethod(n, "pm_card_visa_chargeDeclined")
	w.start().run(civil.Date{})
	if got := w.promise(t, "0"); got != "" || w.sub(n).Status != billing.Active {
		t.Errorf("the mail says %q; %s", got, w.describe(n))
	}
	w.newMethod(n, "pm_card_visa")
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Paid != 0 || s.Period != 1 {
		t.Error(w.describe(n))
	}
	w.report(t)

	w, n = failed(t, collects) // a person charges it while it waits for a method
	w.chargePeriod(t, n, engine.PeriodCharge{})
	if got := w.promise(t, "0"); got != "2024-03-01" || w.sub(n).Status != billing.PastDue {
		t.Errorf("the mail says %q; %s", got, w.describe(n))
	}
	w.newMethod(n, "pm_card_visa")
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Paid != 1 || s.Status != billing.Active {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestPolicy_AccountsMethod: the method of an account, given by attaching it, collects too.
func TestPolicy_AccountsMethod(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	collects(w)
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "" }))
	attach := func(method string) {
		_, err := w.start().Attach(context.Background(), n.Account, billing.Attachment{Method: method})
		mustNot(t, err)
	}
	attach("pm_card_visa_chargeDeclinedLostCard")
	w.start().run(civil.Date{})
	w.tomorrow()
	attach("pm_card_visa")
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Paid != 1 || s.Period != 1 || s.Status != billing.Active {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestPolicy_CardGivenOnTheLastDay: the mail promises the day on which the customer gives the card by its
// link; the run that meets the card comes after it.
func TestPolicy_CardGivenOnTheLastDay(t *testing.T) {
	for _, test := range []struct {
		given string
		paid  int
	}{{"2024-03-01T20:00", 1}, {"2024-03-02T08:00", 0}} {
		w, p := newPurse("2024-01-31T09:00")
		collects(w)
		n := w.create(one("2024-01-31", bare))
		w.link(t, "")
		p.use("pm_1", "pm_card_visa_chargeDeclinedLostCard")
		w.start().run(civil.Date{})
		if got := w.promise(t, "0"); got != "2024-03-01" {
			t.Fatalf("the mail says %q; %s", got, w.describe(n))
		}
		w.set(test.given)
		w.link(t, "")
		p.use("pm_2", "pm_card_visa")
		w.set("2024-03-02T09:00")
		w.start().run(civil.Date{})
		if s := w.sub(n); s.Paid != test.paid || s.Status != billing.Active || s.Collect != 0 {
			t.Errorf("given at %s: paid %d, want %d; %s", test.given, s.Paid, test.paid, w.describe(n))
		}
		w.report(t)
	}
}
