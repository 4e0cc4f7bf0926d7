package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// failed returns a world with a subscription whose period 0, due on 31 January, has failed. Today is
// 1 February; the next due date is the 29th. The card is good again, and its subscription past_due.
func failed(t *testing.T, change ...func(*world)) (*world, billing.Name) {
	t.Helper()
	w := newWorld("2024-01-31T09:00", planted{})
	t.Cleanup(w.end)
	for _, c := range change {
		c(w)
	}
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_card_visa_chargeDeclinedLostCard" }))
	w.start().run(civil.Date{})
	w.tomorrow()
	if s := w.sub(n); s.Status != billing.PastDue || s.Period != 1 {
		t.Fatal(w.describe(n))
	}
	return w, n
}

// chargePeriod charges the period, and returns its only outcome.
func (w *world) chargePeriod(t *testing.T, n billing.Name, r engine.PeriodCharge) engine.Outcome {
	t.Helper()
	a, err := w.start().ChargePeriod(context.Background(), n, r)
	mustNot(t, err)
	if len(a.Results) != 1 || a.Results[0].Period != r.Period {
		t.Fatalf("results %+v", a.Results)
	}
	return a.Results[0].Outcome
}

// ending returns how the period ended unpaid; "" if there is no record.
func (w *world) ending(n billing.Name, period int) billing.EndedPeriod {
	for p, err := range w.start().GetEndedPeriods(context.Background(), w.sub(n).Name) {
		if err != nil {
			panic(err)
		}
		if p.Period == period {
			return *p
		}
	}
	return billing.EndedPeriod{}
}

func TestChargePeriod_Failed(t *testing.T) {
	w, n := failed(t)
	w.newMethod(n, "pm_card_visa")
	before := w.sub(n)
	equal(t, []string{string(w.chargePeriod(t, n, engine.PeriodCharge{}))}, []string{"paid"})
	s := w.sub(n)
	if s.Period != 1 || s.Paid != 1 || s.Open != nil || s.Collect != 0 || s.NextPayment != date("2024-02-29") ||
		s.NextReminder != before.NextReminder || w.ending(n, 0).Ending != "" {
		t.Errorf("%+v %s", s, w.describe(n))
	}
	a, err := w.start().ChargePeriod(context.Background(), n, engine.PeriodCharge{}) // once more
	mustNot(t, err)
	if !a.Paid || a.Receipt == nil || a.Receipt.Charge != s.LastCharge || len(a.Results) > 0 {
		t.Errorf("%+v", a)
	}
	w.goTo(date("2024-02-29"))
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Period != 2 || s.Paid != 2 {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestChargePeriod_PastDue: a payment of the failed period makes the subscription active, unless a due
// date has passed meanwhile.
func TestChargePeriod_PastDue(t *testing.T) {
	for day, want := range map[string]billing.Status{"2024-02-29": billing.Active, "2024-03-01": billing.PastDue} {
		w, n := failed(t)
		w.byTool(n, "PaymentDetails", w.rawOf(w.create(one("2024-05-31", func(x *billing.NewSubscription) {
			x.ID, x.Email = "s2", ""
		}))).Get("PaymentDetails"))
		w.goTo(date(day))
		w.chargePeriod(t, n, engine.PeriodCharge{})
		if s := w.sub(n); s.Status != want || s.Period != 1 || s.Paid != 1 {
			t.Errorf("%s: %s", day, w.describe(n))
		}
		w.report(t)
	}
}

func TestChargePeriod_DeclinedAgain(t *testing.T) {
	w, n := failed(t)
	w.newMethod(n, "pm_card_visa_chargeDeclined")
	first := w.ending(n, 0)
	equal(t, []string{string(w.chargePeriod(t, n, engine.PeriodCharge{}))}, []string{"failed"})
	again := w.ending(n, 0)
	if again.Ending != billing.EndFailed || again.Generation != 1 || again.Ref == first.Ref || len(again.Attempts) != 2 ||
		again.Attempts[1].Number != 2 || !again.Ended.Equal(first.Ended) {
		t.Errorf("%+v, first %+v", again, first)
	}
	if s := w.sub(n); s.Status != billing.Active || s.Period != 1 || s.NextPayment != date("2024-02-29") {
		t.Error(w.describe(n))
	}
	w.newMethod(n, "pm_card_visa")
	equal(t, []string{string(w.chargePeriod(t, n, engine.PeriodCharge{}))}, []string{"paid"})
	w.report(t)
}

// TestChargePeriod_MovedMeanwhile: another tool moves the row after a period was marked. The marked period
// is collected all the same, and then the next one is parked.
func TestChargePeriod_MovedMeanwhile(t *testing.T) {
	w, n := failed(t)
	w.newMethod(n, "pm_card_visa")
	_, err := w.start(fault{2, true}).ChargePeriod(context.Background(), n, engine.PeriodCharge{})
	if err == nil || w.sub(n).Collect != 1 {
		t.Fatalf("%v; %s", err, w.describe(n))
	}
	w.alter(t, "SUB#s1#SKU#gold", "NextPaymentDate", "2024-03-05")
	w.goTo(date("2024-03-05"))
	rep := w.start().run(civil.Date{})
	if s := w.sub(n); s.Paid != 1 || s.Status != billing.ParkedState || s.Period != 1 || s.Collect != 0 ||
		rep.Counts[engine.OutcomePaid] != 1 || rep.Counts[engine.OutcomeParked] != 1 {
		t.Errorf("%v; %s", rep.Counts, w.describe(n))
	}
	w.report(t)
}

// TestChargePeriod_Void: a void period is charged for a reason alone.
func TestChargePeriod_Void(t *testing.T) {
	w, n := failed(t)
	w.goTo(date("2024-04-01")) // the periods of 29 February and 31 March pass
	w.newMethod(n, "pm_card_visa")
	p, ctx := w.start(), context.Background()
	_, err := p.ChargePeriod(ctx, n, engine.PeriodCharge{Period: 1})
	wantErr(t, err, billing.ErrState)
	if !strings.Contains(err.Error(), "--reopen") {
		t.Error(err)
	}
	equal(t, []string{string(w.chargePeriod(t, n, engine.PeriodCharge{Period: 1, Reopen: "she used it"}))}, []string{"paid"})
	w.newMethod(n, "pm_card_visa_chargeDeclined")
	w.chargePeriod(t, n, engine.PeriodCharge{Period: 2, Reopen: "she used it"})
	if p := w.ending(n, 2); p.Ending != billing.EndFailed || len(p.Attempts) != 1 {
		t.Errorf("%+v", p)
	}
	wantSums(t, w, map[string]string{"2024-01-31 declined": "12.99 USD", "2024-01-31 failed": "12.99 USD", "2024-04-01 collected": "12.99 USD",
		"2024-04-01 declined": "12.99 USD", "2024-04-01 failed": "12.99 USD"})
	w.report(t)
}

// TestChargePeriod_Refused names why a period cannot be charged, and changes nothing.
func TestChargePeriod_Refused(t *testing.T) {
	w, n := failed(t)
	ctx := context.Background()
	refuse := func(period int, want string) {
		t.Helper()
		before := w.rawOf(n)
		_, err := w.start().ChargePeriod(ctx, n, engine.PeriodCharge{Period: period})
		if wantErr(t, err, billing.ErrState); !strings.Contains(err.Error(), want) || !w.rawOf(n).Equal(before) {
			t.Errorf("period %d: %v; want %q", period, err, want)
		}
	}
	refuse(1, "past_due")
	w.newMethod(n, "pm_sandbox_processing")
	refuse(1, "due on 2024-02-29")
	refuse(2, "due on 2024-03-31")
	mustNot(t, w.start().SetCharging(ctx, false, "maintenance"))
	_, err := w.start().ChargePeriod(ctx, n, engine.PeriodCharge{})
	wantErr(t, err, charging.ErrOff)
	mustNot(t, w.start().SetCharging(ctx, true, ""))
	w.goTo(date("2024-02-29"))
	w.start().run(civil.Date{})
	refuse(0, "period 1 is open")
	mustNot(t, w.box.Finish(w.sub(n).Open.Ref, true))
	w.start().run(civil.Date{})
	_, err = w.start().Cancel(ctx, n, false)
	mustNot(t, err)
	refuse(0, "canceled")
	w.report(t)
}

// TestCollecting_Ends holds the ends of a collected period that no card decides.
func TestCollecting_Ends(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name, method string
		then         func(w *world, n billing.Name, ref string)
		days         int
		period0      string // reason of its record; "": paid
		status       billing.Status
		period       int
	}{
		{"nobody authenticates", "pm_card_authenticationRequired", nil, 15, "the customer did not authenticate the payment",
			billing.Active, 1},
		{"the next due date comes", "pm_card_authenticationRequired", func(w *world, n billing.Name, _ string) {
			w.goTo(date("2024-02-28"))
			w.cfg.ActionDays = 0
		}, 1, "the customer did not authenticate the payment", billing.Active, 1},
		{"the customer authenticates", "pm_card_authenticationRequired", func(w *world, _ billing.Name, ref string) {
			_ = w.box.Authenticate(ref)
		}, 1, "", billing.Active, 1},
		{"cancelled at the processor", "pm_card_authenticationRequired", func(w *world, _ billing.Name, ref string) {
			_, _ = w.box.Cancel(ctx, ref)
		}, 1, "not collected: its payment intent was cancelled", billing.Active, 1},
		{"a cancellation", "pm_card_authenticationRequired", func(w *world, n billing.Name, _ string) {
			s, err := w.start().Cancel(ctx, n, false)
			w.noteCanceled(s, err)
		}, 0, "declined: lost_card", billing.CanceledSub, 1},
		{"a pause", "pm_card_authenticationRequired", func(w *world, n billing.Name, _ string) {
			_, _ = w.start().Pause(ctx, n)
		}, 0, "declined: lost_card", billing.Paused, 1},
		{"a cancellation that comes too late", "pm_sandbox_processing", func(w *world, n billing.Name, ref string) {
			_ = w.box.Finish(ref, true)
			_, _ = w.start().Cancel(ctx, n, false)
		}, 0, "", billing.CanceledSub, 1},
		{"the bank takes longer than a month", "pm_sandbox_processing", func(w *world, n billing.Name, ref string) {
			w.goTo(date("2024-03-01"))
			w.start().run(civil.Date{})
			_ = w.box.Finish(ref, true)
		}, 0, "", billing.Active, 1},
	}
	play := func(test int, removed bool) func(t *testing.T) {
		return func(t *testing.T) {
			test := tests[test]
			w, n := failed(t)
			w.newMethod(n, test.method)
			w.chargePeriod(t, n, engine.PeriodCharge{})
			ref := w.sub(n).Open.Ref
			if removed { // by another tool
				mustNot(t, w.spy.mem.Commit(t.Context(), store.Delete(w.tables.RecurringPayments.Name, billing.PeriodKey(n, 0))))
			}
			if test.then != nil {
				test.then(w, n, ref)
			}
			for range test.days {
				w.tomorrow()
				w.start().run(civil.Date{})
			}
			if test.period == 1 && test.days == 0 {
				w.start().run(civil.Date{})
			}
			s, p := w.sub(n), w.ending(n, 0)
			if removed && p.Ending == billing.EndFailed {
				p.Reason = test.period0 // on a request it ends as it had ended, which is not known
			}
			if p.Reason != test.period0 || s.Status != test.status || s.Collecting() || s.Collect != 0 {
				t.Errorf("period 0 %q; %s", p.Reason, w.describe(n))
			}
			if s.Open != nil { // the next period was due and opened
				_, _ = w.box.Cancel(ctx, s.Open.Ref)
				_, _ = w.start().Cancel(ctx, n, false)
			}
			if !removed { // its loss is reported
				w.report(t)
			}
		}
	}
	for i, test := range tests {
		t.Run(test.name, play(i, false))
		t.Run(test.name+", its record removed", play(i, true))
	}
}

// TestCollecting_Refused: what the processor calls invalid ends the collecting, and says why.
func TestCollecting_Refused(t *testing.T) {
	for _, call := range []string{"open", "confirm", ""} {
		w, n := failed(t)
		if w.newMethod(n, "pm_card_visa"); call == "" { // there is no method any more
			w.byTool(n, "PaymentDetails", store.M(store.NewItem(store.Attribute{Name: "Currency", Value: store.S("USD")})))
		}
		w.plant.proc = func(_ *world, p processor.Charger) processor.Charger { return &picky{p, call} }
		equal(t, []string{string(w.chargePeriod(t, n, engine.PeriodCharge{}))}, []string{"failed"})
		p := w.ending(n, 0)
		if why, ok := strings.CutPrefix(p.Reason, "not collected: "); !ok || why == "" || strings.Contains(why, "was cancelled") {
			t.Errorf("%q: %q", call, p.Reason)
		}
		if s := w.sub(n); s.Collecting() || s.Collect > 0 || s.NextPayment != date("2024-02-29") {
			t.Error(w.describe(n))
		}
		w.report(t)
	}
}

// picky is a processor that calls one kind of request invalid.
type picky struct {
	processor.Charger
	call string
}

func (p *picky) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	if p.call == "open" {
		return processor.Intent{}, fmt.Errorf("%w: no such amount", processor.ErrInvalid)
	}
	return p.Charger.Open(ctx, r)
}

func (p *picky) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	if p.call == "confirm" {
		return processor.Intent{}, fmt.Errorf("%w: no such method", processor.ErrInvalid)
	}
	return p.Charger.Confirm(ctx, r)
}

// TestCollecting_BeforeTheNext: with a mark and the next period due, a run charges both, the past one
// first, and each once.
func TestCollecting_BeforeTheNext(t *testing.T) {
	w, n := failed(t)
	w.cfg.CatchUp = 1 // a past period is none of those
	w.newMethod(n, "pm_card_visa")
	w.goTo(date("2024-02-29"))
	p := w.start(fault{3, true}) // it dies after the mark
	_, err := p.ChargePeriod(context.Background(), n, engine.PeriodCharge{})
	wantAny(t, err)
	if s := w.sub(n); s.Collect != 1 || s.NextPayment != w.today() {
		t.Fatal(w.describe(n))
	}
	var got []int
	_, err = job.Payments(context.Background(), w.start().Engine, job.Options{Workers: 1, Each: func(r engine.Result) {
		if r.Outcome == engine.OutcomePaid {
			got = append(got, r.Period)
		}
	}})
	mustNot(t, err)
	if !slices.Equal(got, []int{0, 1}) || w.sub(n).Period != 2 {
		t.Errorf("charged %v; %s", got, w.describe(n))
	}
	w.report(t)
}

// TestCollecting_LastIntentLives: the last intent of the record turns out to be paid. The money settles
// the period, and nothing is opened.
func TestCollecting_LastIntentLives(t *testing.T) {
	for _, state := range []processor.State{processor.Succeeded, processor.Canceled} {
		w, n := failed(t)
		w.newMethod(n, "pm_card_visa")
		ctx := context.Background()
		w.revive(n)
		live := w.ending(n, 0)
		before := len(w.ledger())
		if state == processor.Succeeded {
			_, err := w.box.Confirm(ctx, processor.ConfirmRequest{Key: "c", Ref: live.Ref, Method: "pm_card_visa", Attempt: 1})
			mustNot(t, err)
			_, err = w.start().ChargePeriod(ctx, n, engine.PeriodCharge{})
			wantErr(t, err, charging.ErrWentBack)
			_, err = w.start().Reconcile(ctx)
			mustNot(t, err)
			mustNot(t, w.start().SetCharging(ctx, true, ""))
			if len(w.ledger()) != before+1 {
				t.Error("something was opened beside a success")
			}
		} else if w.chargePeriod(t, n, engine.PeriodCharge{}); !strings.Contains(w.describe(n), "period 1") {
			t.Error(w.describe(n))
		}
		if s := w.sub(n); s.Paid != 1 || s.Period != 1 {
			t.Error(w.describe(n))
		}
		w.report(t)
	}
}

// TestCollecting_KnownToTheRollbackCheck: a kill between CONFIRM and SETTLE of a past period does not
// switch charging off.
func TestCollecting_KnownToTheRollbackCheck(t *testing.T) {
	cut := 0
	for point := 1; ; point++ {
		w, n := failed(t)
		w.newMethod(n, "pm_card_visa")
		_, err := w.start(fault{point, true}).ChargePeriod(context.Background(), n, engine.PeriodCharge{})
		if err == nil {
			break
		}
		if s := w.sub(n); s.Open != nil && w.state(s.Open.Ref) == processor.Succeeded {
			cut++
		}
		if a, err := w.start().Verify(context.Background()); err != nil || !a.OK {
			t.Errorf("point %d: %v %+v", point, err, a)
		}
		w.pass(time.Hour)
		w.start().run(civil.Date{})
		w.start().run(civil.Date{}) // its rollback check has seen the charge
		if s := w.sub(n); s.Period != 1 || s.Open != nil || s.Collect != 0 || s.Paid == 0 && point > 4 {
			t.Errorf("point %d: %s", point, w.describe(n))
		}
		w.report(t)
	}
	if cut < 2 {
		t.Errorf("%d kills between CONFIRM and SETTLE", cut)
	}
}

// TestCollecting_Restored: a store put back to before a past period was collected notices, and adopts
// the charge.
func TestCollecting_Restored(t *testing.T) {
	w, n := failed(t)
	w.newMethod(n, "pm_card_visa")
	backup := w.spy.snapshot()
	w.chargePeriod(t, n, engine.PeriodCharge{})
	w.spy = backup
	ctx := context.Background()
	_, err := w.start().ChargePeriod(ctx, n, engine.PeriodCharge{})
	wantErr(t, err, charging.ErrWentBack)
	adopted, err := w.start().Reconcile(ctx)
	mustNot(t, err)
	mustNot(t, w.start().SetCharging(ctx, true, ""))
	if s := w.sub(n); adopted != 1 || s.Paid != 1 || s.Period != 1 || w.ending(n, 0).Ending != "" {
		t.Errorf("%d adopted; %s", adopted, w.describe(n))
	}
	w.report(t)
}

// TestCollecting_Heard: an event about the intent settles the past period, and opens nothing else.
func TestCollecting_Heard(t *testing.T) {
	w, n := failed(t)
	w.newMethod(n, "pm_card_authenticationRequired")
	equal(t, []string{string(w.chargePeriod(t, n, engine.PeriodCharge{}))}, []string{"pending"})
	ref := w.sub(n).Open.Ref
	mustNot(t, w.box.Authenticate(ref))
	mustNot(t, w.start().Heard(context.Background(), n.Account, n.ID, ref))
	if s := w.sub(n); s.Paid != 1 || s.Period != 1 || s.Open != nil {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestCollecting_Reconciled: a success of the period under another intent comes before the one that
// collects it, which is cancelled.
func TestCollecting_Reconciled(t *testing.T) {
	w, n := failed(t)
	w.revive(n)
	lost := w.ending(n, 0).Ref
	w.newMethod(n, "pm_card_authenticationRequired")
	w.chargePeriod(t, n, engine.PeriodCharge{}) // it cancels the lost one
	ctx := context.Background()
	if w.state(lost) != processor.Canceled {
		t.Fatal(w.state(lost))
	}
	other, err := w.box.Open(ctx, processor.OpenRequest{Key: "other", Amount: usd(1299), Method: "pm_card_visa",
		Tag: processor.Tag{Installation: w.start().Opened.Installation, Account: "a1", Subscription: "s1", SKU: "gold", Generation: 9}})
	mustNot(t, err)
	w.spy.bound[other.Ref] = "ACC#a1/s1/0"
	_, err = w.box.Confirm(ctx, processor.ConfirmRequest{Key: "c", Ref: other.Ref, Method: "pm_card_visa", Attempt: 1})
	mustNot(t, err)
	_, err = job.Payments(ctx, w.start().Engine, job.Options{Workers: 1})
	wantErr(t, err, charging.ErrWentBack)
	adopted, err := w.start().Reconcile(ctx)
	mustNot(t, err)
	mustNot(t, w.start().SetCharging(ctx, true, ""))
	if s := w.sub(n); adopted != 1 || s.Paid != 1 || s.Period != 1 || s.Open != nil || s.LastCharge != other.Ref {
		t.Errorf("%d adopted; %s", adopted, w.describe(n))
	}
	w.report(t)
}

// TestCollecting_DryRun shows a marked and an open past period before the next one.
func TestCollecting_DryRun(t *testing.T) {
	w, n := failed(t)
	w.newMethod(n, "pm_card_visa")
	w.goTo(date("2024-02-29"))
	show := func() (list []string) {
		_, err := job.Payments(context.Background(), w.start().Engine, job.Options{Workers: 1, DryRun: true,
			Each: func(r engine.Result) { list = append(list, fmt.Sprint(r.Period, " ", r.Outcome, " ", r.Reason)) }})
		mustNot(t, err)
		return list
	}
	_, _ = w.start(fault{3, true}).ChargePeriod(context.Background(), n, engine.PeriodCharge{})
	equal(t, show(), []string{"0 skipped would be charged", "1 skipped would be charged"})
	_, _ = w.start(fault{7, true}).ChargePeriod(context.Background(), n, engine.PeriodCharge{})
	if s := w.sub(n); !s.Collecting() {
		t.Fatal(w.describe(n))
	}
	equal(t, show(), []string{"0 skipped open: attempt 2", "1 skipped would be charged"})
	w.start().run(civil.Date{})
	w.report(t)
}

// TestChargePeriod_Key: a repeated request charges one period once, whatever was cut off. Another request
// under its key is refused.
func TestChargePeriod_Key(t *testing.T) {
	ctx := context.Background()
	for _, method := range []string{"pm_card_visa", "pm_card_visa_chargeDeclined"} {
		for point := 1; ; point++ {
			w, n := failed(t)
			w.newMethod(n, method)
			r := engine.PeriodCharge{}
			_, err := w.start(fault{point, true}).ChargePeriod(w.keyed(ctx, "one"), n, r)
			for range 2 {
				if _, err := w.start().ChargePeriod(w.keyed(ctx, "one"), n, r); err != nil {
					t.Errorf("point %d: %v", point, err)
				}
			}
			paid, p := w.sub(n).Paid, w.ending(n, 0)
			if method == "pm_card_visa" && paid != 1 || method != "pm_card_visa" && len(p.Attempts) != 2 || w.sub(n).Period != 1 {
				t.Errorf("point %d: %s: %+v; %s", point, method, p, w.describe(n))
			}
			a, again := w.start().ChargePeriod(w.keyed(ctx, "one"), n, r)
			if again != nil || !a.Repeated || a.Paid != (paid == 1) || len(a.Results) > 0 {
				t.Errorf("point %d: %v %+v", point, again, a)
			}
			_, again = w.start().ChargePeriod(w.keyed(ctx, "one"), n, engine.PeriodCharge{Period: 1})
			wantErr(t, again, billing.ErrState)
			w.report(t)
			if err == nil {
				break
			}
		}
	}
}

// TestChargePeriod_NextKey: under one key the next period is charged once, and never the one after it.
func TestChargePeriod_NextKey(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	a, err := w.start().ChargePeriod(w.keyed(t.Context(), "one"), n, engine.PeriodCharge{})
	mustNot(t, err)
	equal(t, w.dues(n), []string{"2024-01-31"})
	w.goTo(date("2024-02-29"))
	a, err = w.start().ChargePeriod(w.keyed(t.Context(), "one"), n, engine.PeriodCharge{})
	mustNot(t, err)
	if s := w.sub(n); !a.Paid || s.Period != 1 {
		t.Errorf("%+v; %s", a, w.describe(n))
	}
	w.report(t)
}
