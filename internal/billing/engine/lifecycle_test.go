package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
)

// attempts returns the days on which the processor was asked for money.
func (w *world) attempts() []string {
	var days []string
	for _, e := range w.ledger() {
		if e.State != processor.Opened && e.State != processor.Canceled {
			days = append(days, civil.Of(e.Changed).String())
		}
	}
	return days
}

// endings returns how the periods that did not end paid ended, as "period ending".
func (w *world) endings(n billing.Name) []string {
	var list []string
	for p, err := range w.start().GetEndedPeriods(context.Background(), n) {
		if err != nil {
			panic(err)
		}
		list = append(list, fmt.Sprintf("%d %s", p.Period, p.Ending))
	}
	return list
}

// daily runs both jobs daily up to and with the day.
func (w *world) daily(until string) {
	for !w.today().After(date(until)) {
		w.start().remind()
		w.start().run(civil.Date{})
		w.tomorrow()
	}
}

func method(m string) func(*billing.NewSubscription) {
	return func(n *billing.NewSubscription) { n.Method = m }
}

// TestRetries: 1, 3, 5 and 7 days after the first decline, then past_due; a hard decline
// is not tried again. Resuming, or a new method, charges nothing of the past.
func TestRetries(t *testing.T) {
	tests := []struct {
		method   string
		attempts []string
		resume   func(p *process, n billing.Name) error
	}{
		{"pm_card_visa_chargeDeclined", []string{"2024-01-31", "2024-02-01", "2024-02-03", "2024-02-05", "2024-02-07"},
			func(p *process, n billing.Name) error {
				_, err := p.UpdateSubscription(context.Background(), n, billing.Change{Method: new("pm_card_visa")})
				return err
			}},
		{"pm_card_visa_chargeDeclinedLostCard", []string{"2024-01-31"}, func(p *process, n billing.Name) error {
			if _, err := p.Resume(context.Background(), n); err != nil {
				return err
			}
			_, err := p.UpdateSubscription(context.Background(), n, billing.Change{Method: new("pm_card_visa")})
			return err
		}},
	}
	for _, test := range tests {
		t.Run(test.method, func(t *testing.T) {
			w := newWorld("2024-01-31T09:00", planted{})
			n := w.create(one("2024-01-31", method(test.method)))
			w.daily("2024-04-10")
			equal(t, w.attempts(), test.attempts)
			equal(t, w.endings(n), []string{"0 failed"})
			if s := w.sub(n); s.Status != billing.PastDue || !s.NextPayment.IsZero() || !s.NextReminder.IsZero() {
				t.Errorf("%s", w.describe(n))
			}
			mustNot(t, test.resume(w.start(), n))
			w.daily("2024-04-30")
			equal(t, w.dues(n), []string{"2024-04-30"})
			equal(t, w.endings(n), []string{"0 failed", "1 void", "2 void"})
			w.report(t)
		})
	}
}

func TestNewMethodRetriesAtOnce(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
	w.daily("2024-01-31")
	_, err := w.start().UpdateSubscription(context.Background(), n,
		billing.Change{Method: new("pm_card_visa"), Amount: new(usd(2000))})
	mustNot(t, err)
	w.daily("2024-02-29")
	equal(t, w.paidOn(n), []string{"2024-02-01", "2024-02-29"})
	w.amounts["ACC#a1/s1/0"], w.amounts["ACC#a1/s1/1"] = usd(1299), usd(2000) // the open one was frozen
	w.report(t)
}

func TestPause(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	ctx := context.Background()
	_, err := w.start().Pause(ctx, n)
	mustNot(t, err)
	w.daily("2024-04-10")
	equal(t, w.attempts(), nil)
	s, err := w.start().Resume(ctx, n)
	mustNot(t, err)
	if s.Status != billing.Active || s.NextPayment != date("2024-04-30") {
		t.Errorf("%s", w.describe(n))
	}
	equal(t, w.endings(n), []string{"0 void", "1 void", "2 void"})
	w.daily("2024-04-30")
	equal(t, w.dues(n), []string{"2024-04-30"})
	w.report(t)
}

func TestLongPauseOfAWeekly(t *testing.T) {
	w := newWorld("2020-01-03T09:00", planted{})
	n := w.create(one("2020-01-10", func(n *billing.NewSubscription) {
		n.Interval, n.PaymentDay = civil.Interval{N: 1, Unit: civil.Week}, 5
	}))
	_, err := w.start().Pause(context.Background(), n)
	mustNot(t, err)
	w.goTo(date("2025-01-04")) // more than one commit takes
	s, err := w.start().Resume(context.Background(), n)
	mustNot(t, err)
	if s.Status != billing.Active || s.NextPayment != date("2025-01-10") || len(w.endings(n)) != 261 {
		t.Errorf("%s, %d void", w.describe(n), len(w.endings(n)))
	}
	w.report(t)
}

func TestCancel(t *testing.T) {
	tests := []struct {
		name  string
		atEnd bool
		paid  []string
		last  string // when it is still active
	}{
		{"now", false, []string{"2024-01-31"}, ""},
		{"at period end", true, []string{"2024-01-31"}, "2024-02-28"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld("2024-01-31T09:00", planted{})
			n := w.create(one("2024-01-31"))
			w.daily("2024-01-31")
			s, err := w.start().Cancel(context.Background(), n, test.atEnd)
			mustNot(t, err)
			w.noteCanceled(s, err)
			if (s.Status == billing.Active) != test.atEnd {
				t.Errorf("answered %s", s.Status)
			}
			if test.last != "" {
				w.daily(test.last)
				if s := w.sub(n); s.Status != billing.Active {
					t.Errorf("%s on %s", s.Status, test.last)
				}
			}
			w.daily("2024-04-30")
			equal(t, w.dues(n), test.paid)
			if s := w.sub(n); s.Status != billing.CanceledSub || !s.NextPayment.IsZero() || !s.NextReminder.IsZero() {
				t.Errorf("%s", w.describe(n))
			}
			w.report(t)
		})
	}
}

func TestInstallments(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Installments, n.Method = 3, "pm_sandbox_flaky" }))
	w.daily("2024-08-01")
	equal(t, w.dues(n), []string{"2024-01-31", "2024-02-29", "2024-03-31"})
	if s := w.sub(n); s.Status != billing.Completed || s.Paid != 3 || !s.NextPayment.IsZero() {
		t.Errorf("%s, paid %d", w.describe(n), s.Paid)
	}
	w.report(t)
}

func TestTrial(t *testing.T) {
	w := newWorld("2024-01-10T09:00", planted{})
	n := w.create(one("2024-01-10", func(n *billing.NewSubscription) {
		n.NextPayment, n.Start, n.PaymentDay = civil.Date{}, date("2024-02-10"), 5
	}))
	w.daily("2024-04-04")
	equal(t, w.paidOn(n), []string{"2024-03-05"})
	w.report(t)
}

// TestNewDay: from the first such day on or after the old next date; an open period keeps
// its due date.
func TestNewDay(t *testing.T) {
	for _, open := range []bool{false, true} {
		w := newWorld("2024-01-31T09:00", planted{})
		n := w.create(one("2024-01-31", method("pm_sandbox_flaky")))
		want := []string{"2024-01-31", "2024-03-15", "2024-04-15"}
		if !open {
			w.daily("2024-02-02")
		} else {
			w.daily("2024-01-31") // declined
		}
		s, err := w.start().UpdateSubscription(context.Background(), n, billing.Change{PaymentDay: new(15)})
		mustNot(t, err)
		if !open && s.NextPayment != date("2024-03-15") {
			t.Errorf("next on %s", s.NextPayment)
		}
		w.daily("2024-04-20")
		equal(t, w.dues(n), want)
		w.report(t)
	}
}

// reminders returns the reminders that were written, as "period due".
func (w *world) reminders() []string {
	var list []string
	for _, n := range w.spy.notices {
		if n.kind == "reminder" {
			list = append(list, fmt.Sprintf("%s x%d", n.period, n.rows))
		}
	}
	slices.Sort(list)
	return list
}

func TestReminders(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name string
		do   func(w *world, n billing.Name)
		want []string
	}{
		{"each day", func(w *world, _ billing.Name) { w.daily("2024-02-25") }, []string{"ACC#a1/s1/0 x1", "ACC#a1/s1/1 x1"}},
		{"not before its day", func(w *world, _ billing.Name) { w.daily("2024-01-23") }, nil},
		{"on its day", func(w *world, _ billing.Name) { w.daily("2024-01-24") }, []string{"ACC#a1/s1/0 x1"}},
		{"late", func(w *world, _ billing.Name) { w.set("2024-01-29T09:00"); w.daily("2024-01-29") },
			[]string{"ACC#a1/s1/0 x1"}},
		{"too late", func(w *world, _ billing.Name) { w.set("2024-01-31T09:00"); w.daily("2024-01-31") }, nil},
		{"paused", func(w *world, n billing.Name) { _, _ = w.start().Pause(ctx, n); w.daily("2024-01-31") }, nil},
		{"canceled", func(w *world, n billing.Name) { _, _ = w.start().Cancel(ctx, n, false); w.daily("2024-01-31") }, nil},
		{"canceled at the end", func(w *world, n billing.Name) {
			_,
				_ = w.start().Cancel(ctx, n, true)
			w.daily("2024-01-31")
		}, nil},
		{"none wanted", func(w *world, n billing.Name) {
			_, _ = w.start().UpdateSubscription(ctx, n, billing.Change{ReminderDays: new(0)})
			w.daily("2024-01-31")
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld("2024-01-10T09:00", planted{})
			n := w.create(one("2024-01-31"))
			test.do(w, n)
			equal(t, w.reminders(), test.want)
			w.report(t)
		})
	}
}

// TestReminderCrash: a reminder is set exactly once, whatever happens to the job.
func TestReminderCrash(t *testing.T) {
	for point := 1; point <= 6; point++ {
		for _, crash := range []bool{true, false} {
			w := newWorld("2024-01-10T09:00", planted{})
			w.create(one("2024-01-31"))
			w.set("2024-01-24T09:00")
			w.start(fault{point, crash}).remind()
			w.start().remind()
			w.tomorrow()
			w.start().remind()
			equal(t, w.reminders(), []string{"ACC#a1/s1/0 x1"})
			w.report(t)
		}
	}
}

// TestPastBusinessDay: what a run on a past day writes is found by the walks of today, and
// a walk forgets the old days only when they are empty and a day has gone by.
func TestPastBusinessDay(t *testing.T) {
	w := newWorld("2024-12-01T09:00", planted{})
	w.start().run(civil.Date{}) // a completed day, long after what comes now
	n := w.create(one("2024-03-31"))
	declined := w.create(one("2024-03-31",
		func(n *billing.NewSubscription) { n.ID, n.Method = "s2", "pm_card_visa_chargeDeclined" }))
	w.early = true
	w.start().run(date("2024-03-30"))
	equal(t, w.dues(n), nil)
	w.start().run(date("2024-03-31"))
	equal(t, w.dues(n), []string{"2024-03-31"})
	if s := w.sub(declined); s.NextPayment != date("2024-04-01") {
		t.Errorf("the retry is on %s", s.NextPayment)
	}
	from := func() civil.Date { return w.start().run(civil.Date{}).From }
	if d := from(); d.After(date("2024-03-31")) {
		t.Errorf("the walk began on %s", d)
	}
	for _, name := range []billing.Name{n, declined} {
		if s := w.sub(name); s.Open == nil && s.Status == billing.Active {
			t.Errorf("%s was not found: %s", name, w.describe(name))
		}
	}
	if d := from(); d.After(date("2024-03-31")) {
		t.Errorf("the floor was lifted at once: the walk began on %s", d)
	}
	w.tomorrow()
	w.tomorrow()
	from()
	if d := from(); d.Before(date("2024-10-01")) {
		t.Errorf("the floor stays for ever: the walk began on %s", d)
	}
	w.report(t)
}

func TestExternalReceipt(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
	w.daily("2024-01-31") // declined: the intent is live
	r, err := w.start().CreateReceipt(ctx, n, engine.ManualPayment{Amount: usd(1300), Overpaid: true, Note: "cash"})
	mustNot(t, err)
	if x := r.Receipt; x == nil || x.Kind != billing.External || x.Period != 0 || x.Amount != usd(1300) {
		t.Errorf("receipt %+v", r)
	}
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Note: "again"})
	wantErr(t, err, billing.ErrState) // nothing is due
	w.goTo(date("2024-02-29"))
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Note: "cash"})
	mustNot(t, err)
	w.daily("2024-03-30")
	equal(t, w.attempts(), []string{"2024-01-31"})
	equal(t, w.dues(n), []string{"2024-01-31", "2024-02-29"})
	w.report(t)
}

// TestIndexes: a subscription is in both indexes from the start, and leaves them when it
// is paused or cancelled.
func TestIndexes(t *testing.T) {
	ctx := context.Background()
	in := func(w *world) (text string) {
		for row, err := range w.start().GetDuePaymentsByDate(ctx, date("2024-02-10")) {
			mustNot(t, err)
			text += "payment " + row.Name.String() + " " + row.Amount.String() + " "
		}
		for row, err := range w.start().GetDueRemindersByDate(ctx, date("2024-02-03")) {
			mustNot(t, err)
			text += "reminder " + row.Name.String()
		}
		return text
	}
	const both = "payment a1/s1 12.99 USD reminder a1/s1"
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-02-10"))
	it := w.spy.subs["ACC#a1/s1"]
	if it.Str(schema.LastPaymentDate) != it.Str(schema.CreatedDate) ||
		it.Str(schema.LastReminderDate) != it.Str(schema.CreatedDate) {
		t.Errorf("created without the sort keys: %v", it)
	}
	for _, step := range []struct {
		name string
		do   func(p *process) error
		want string
	}{
		{"created", func(*process) error { return nil }, both},
		{"paused", func(p *process) error { _, err := p.Pause(ctx, n); return err }, ""},
		{"resumed", func(p *process) error { _, err := p.Resume(ctx, n); return err }, both},
		{"canceled", func(p *process) error { _, err := p.Cancel(ctx, n, false); return err }, ""},
	} {
		mustNot(t, step.do(w.start()))
		if got := in(w); got != step.want {
			t.Errorf("%s: in the indexes %q, want %q", step.name, got, step.want)
		}
	}
	w.report(t)
}
