package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

func byWire(n *billing.NewSubscription) { n.Collection, n.Method = billing.ByWire, "" }

// wired is a subscription by wire, due on 31 January, and a world on that day.
func wired(change ...func(*billing.NewSubscription)) (*world, billing.Name) {
	w := newWorld("2024-01-31T09:00", planted{})
	return w, w.create(one("2024-01-31", append([]func(*billing.NewSubscription){byWire}, change...)...))
}

// mails returns the kinds of mail that were written, but for reminders, as "kind period", in order.
func (w *world) mails() (list []string) {
	for id, n := range w.spy.notices {
		if n.kind != outbox.KindReminder {
			list = append(list, n.kind+" "+id[strings.LastIndex(id, "/")+1:])
		}
	}
	slices.Sort(list)
	return list
}

// change updates the collection.
func (w *world) collectBy(t *testing.T, n billing.Name, c billing.Collection) *billing.Subscription {
	t.Helper()
	s, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Collection: &c})
	mustNot(t, err)
	return s
}

// TestWire_Calendar: on the due date the customer is asked, and the row moves on by pay-days. A payment
// within them settles the period; without one it ends failed, and the next one is asked for. After three in
// a row the subscription is past_due. Nothing is ever opened at the processor.
func TestWire_Calendar(t *testing.T) {
	w, n := wired()
	r := w.start().run(civil.Date{})
	if s := w.sub(n); r.Counts[engine.OutcomeAsked] != 1 || r.NeedsPerson() || !s.Open.ByWire() || s.Open.PayBy != date("2024-02-14") ||
		s.NextPayment != s.Open.PayBy || s.Status != billing.Active || s.Period != 0 {
		t.Fatalf("%v: %s", r.Counts, w.describe(n))
	}
	equal(t, w.mails(), []string{"payment_request 0"})
	w.goTo(date("2024-02-10"))
	w.start().run(civil.Date{})
	got, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Note: "wire 1"})
	mustNot(t, err)
	if s := w.sub(n); got.Period != 0 || got.Receipt == nil || s.Period != 1 || s.Open != nil || s.NextPayment != date("2024-02-29") {
		t.Fatalf("%+v: %s", got, w.describe(n))
	}
	w.daily("2024-05-13") // 1 and 2 are not paid
	if s := w.sub(n); s.Status != billing.Active || s.Period != 3 || s.Open == nil {
		t.Fatal(w.describe(n))
	}
	equal(t, w.endings(n), []string{"1 failed", "2 failed"})
	w.daily("2024-05-14")
	if s := w.sub(n); s.Status != billing.PastDue || s.Period != 4 || s.Open != nil {
		t.Fatal(w.describe(n))
	}
	for _, period := range []int{1, 3} {
		_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Period: &period, Note: fmt.Sprint("wire ", period)})
		mustNot(t, err)
	}
	if s := w.sub(n); s.Status != billing.Active || s.Paid != 3 {
		t.Error(w.describe(n))
	}
	w.daily("2024-06-14")
	equal(t, w.endings(n), []string{"2 failed", "4 failed"}) // no three in a row
	if s := w.sub(n); s.Status != billing.Active {
		t.Error(w.describe(n))
	}
	if len(w.ledger()) != 0 {
		t.Errorf("the processor has %d lines", len(w.ledger()))
	}
	if got := w.reminders(); len(got) != 4 { // before each due date, not asked again after an end
		t.Errorf("reminders %v", got)
	}
	w.report(t)
}

// TestWire_PeriodsDoNotPileUp: a period that is asked for late has its time, and one of a week ends when
// the next one is due.
func TestWire_PeriodsDoNotPileUp(t *testing.T) {
	w, n := wired(func(n *billing.NewSubscription) {
		n.Interval, n.PaymentDay = civil.Interval{N: 1, Unit: civil.Week}, 3
	})
	w.daily("2024-02-07")
	if s := w.sub(n); s.Period != 1 || s.Open.PayBy != date("2024-02-14") {
		t.Error(w.describe(n))
	}
	w, n = wired()
	w.goTo(date("2024-04-05")) // three were due
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Period != 0 || s.Status != billing.Active || s.Open.PayBy != date("2024-04-19") {
		t.Error(w.describe(n))
	}
	for period := range 3 {
		_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Period: &period})
		mustNot(t, err)
		w.start().run(civil.Date{})
	}
	if s := w.sub(n); s.Period != 3 || s.Open != nil || s.NextPayment != date("2024-04-30") {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestWire_NothingIsCharged: charge refuses and names what to do, whatever the period's state. So does a
// new payment method change nothing.
func TestWire_NothingIsCharged(t *testing.T) {
	w, n := wired()
	ctx := t.Context()
	refuses := func(period int) {
		t.Helper()
		_, err := w.start().ChargePeriod(ctx, n, engine.PeriodCharge{Period: period})
		wantErr(t, err, billing.ErrState)
		wantText(t, err, fmt.Sprintf("duesday receipt create a1/s1 --period %d", period))
	}
	refuses(0) // due
	w.start().run(civil.Date{})
	refuses(0) // waits
	w.attach(t, billing.Attachment{Method: "pm_card_visa"})
	_, err := w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	if s := w.sub(n); s.NextPayment != date("2024-02-14") || s.Open.Attempt != 1 {
		t.Error(w.describe(n))
	}
	w.daily("2024-02-15")
	refuses(0) // failed
	w.daily("2024-04-15")
	if s := w.sub(n); s.Status != billing.PastDue {
		t.Fatal(w.describe(n))
	}
	refuses(2)
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa_debit")})
	mustNot(t, err)
	if s := w.sub(n); s.Status != billing.PastDue || len(w.ledger()) != 0 {
		t.Errorf("%s, %d lines", w.describe(n), len(w.ledger()))
	}
	w.byTool(n, schema.NextPaymentDate, store.S("2024-04-16"))
	_, _, err = w.start().ChargeParked(ctx, n)
	wantErr(t, err, billing.ErrState)
}

// TestWire_ChangeOfCollection counts from the next period that is not open, whatever the open one is.
func TestWire_ChangeOfCollection(t *testing.T) {
	w, n := wired()
	w.start().run(civil.Date{})
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Collection: new(billing.Automatic), Method: new("pm_card_visa")})
	mustNot(t, err)
	w.start().run(civil.Date{})
	if s := w.sub(n); !s.Open.ByWire() || s.NextPayment != date("2024-02-14") || len(w.ledger()) != 0 {
		t.Fatal(w.describe(n))
	}
	w.daily("2024-02-29") // 0 ends unpaid, 1 is charged
	equal(t, w.endings(n), []string{"0 failed"})
	equal(t, w.dues(n), []string{"2024-02-29"})

	w = newWorld("2024-01-31T09:00", planted{})
	n = w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
	w.start().run(civil.Date{})
	if s := w.collectBy(t, n, billing.ByWire); s.Open.ByWire() || s.NextPayment != date("2024-02-01") {
		t.Error(w.describe(n))
	}
	_, err = w.start().ChargePeriod(t.Context(), n, engine.PeriodCharge{}) // it was opened to be charged
	mustNot(t, err)
	w.daily("2024-02-10")
	if s := w.sub(n); s.Status != billing.PastDue {
		t.Error(w.describe(n))
	}
	_, err = w.start().Resume(t.Context(), n)
	mustNot(t, err)
	w.daily("2024-02-29")
	if s := w.sub(n); !s.Open.ByWire() || s.Period != 1 {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestWire_ChangeDropsWhatWouldBeCharged: a mark to charge a past period goes, and a period that was parked
// for want of a payment method is asked for.
func TestWire_ChangeDropsWhatWouldBeCharged(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclinedLostCard")))
	w.cfg.AfterFailure = settings.Collect
	w.daily("2024-02-01")
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	if s := w.sub(n); s.Collect != 1 {
		t.Fatal(w.describe(n))
	}
	before := len(w.ledger())
	if s := w.collectBy(t, n, billing.ByWire); s.Collect != 0 || s.NextPayment != date("2024-02-29") {
		t.Error(w.describe(n))
	}
	s := w.sub(n) // marked all the same, as by a method that came too late for the period
	s.MarkCollect(0, date("2024-02-02"))
	mustNot(t, w.start().Put(t.Context(), s))
	w.daily("2024-03-01")
	if s := w.sub(n); !s.Open.ByWire() || len(w.ledger()) != before {
		t.Error(w.describe(n))
	}

	n = w.create(one("2024-03-02", method(""), func(n *billing.NewSubscription) { n.ID = "s2" }))
	w.daily("2024-03-02")
	if s := w.sub(n); s.Status != billing.ParkedState {
		t.Fatal(w.describe(n))
	}
	_, err = w.start().UpdateSubscription(t.Context(), n, billing.Change{Collection: new(billing.ByWire), Method: new("pm_card_visa"),
		Amount: new(usd(2000)), Notify: true})
	mustNot(t, err)
	w.daily("2024-03-03")
	if s := w.sub(n); s.Status != billing.Active || !s.Open.ByWire() || s.Method != "pm_card_visa" ||
		len(w.effects(t, outbox.KindPriceChange)) != 1 {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestWire_Requests end the wait at once, without the processor.
func TestWire_Requests(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		name   string
		do     func(p *process, n billing.Name) error
		status billing.Status
		ending string
	}{
		{"cancel", func(p *process, n billing.Name) error { _, err := p.Cancel(ctx, n, false); return err }, billing.CanceledSub, "0 void"},
		{"pause", func(p *process, n billing.Name) error { _, err := p.Pause(ctx, n); return err }, billing.Paused, "0 void"},
		{"cancel at end", func(p *process, n billing.Name) error { _, err := p.Cancel(ctx, n, true); return err }, billing.Active, ""},
		{"amount", func(p *process, n billing.Name) error {
			_, err := p.UpdateSubscription(ctx, n, billing.Change{Amount: new(usd(5000)), SKU: new("tin"), PaymentDay: new(15)})
			return err
		}, billing.Active, ""},
	} {
		w, n := wired()
		w.start().run(civil.Date{})
		if err := test.do(w.start(), n); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		s := w.sub(n)
		if got := strings.Join(w.endings(n), ", "); s.Status != test.status || got != test.ending {
			t.Errorf("%s: %s, %q", test.name, w.describe(n), got)
		}
		if o := s.Open; test.ending == "" && (!o.ByWire() || o.Amount != usd(1299) || s.NextPayment != date("2024-02-14")) {
			t.Errorf("%s: %s", test.name, w.describe(n))
		}
		w.daily("2024-03-01")
		w.report(t)
	}
}

// TestWire_OtherTool: a row that another tool has moved on is parked: it may have taken the payment. A
// person skips the period, or records the payment.
func TestWire_OtherTool(t *testing.T) {
	for _, pay := range []bool{false, true} {
		w, n := wired()
		w.start().run(civil.Date{})
		w.byTool(n, schema.NextPaymentDate, store.S("2024-02-20"))
		w.daily("2024-02-20")
		if s := w.sub(n); s.Status != billing.ParkedState || !s.Open.ByWire() {
			t.Fatal(w.describe(n))
		}
		_, _, err := w.start().ChargeParked(t.Context(), n)
		wantErr(t, err, billing.ErrState)
		if pay {
			_, err = w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{})
		} else {
			_, err = w.start().SkipParked(t.Context(), n)
		}
		mustNot(t, err)
		if s := w.sub(n); s.Status != billing.Active || s.Period != 1 || s.Open != nil {
			t.Error(w.describe(n))
		}
		w.report(t)
	}
}

// TestWire_Foreseen: what is to come is expected, and a dry run says what a run does.
func TestWire_Foreseen(t *testing.T) {
	w, n := wired()
	dry := func(want engine.Outcome, reason string) {
		t.Helper()
		_, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1, DryRun: true, Each: func(r engine.Result) {
			if r.Outcome != want || !strings.Contains(r.Reason, reason) {
				t.Errorf("%s: %s", r.Outcome, r.Reason)
			}
		}})
		mustNot(t, err)
	}
	dry(engine.OutcomeAsked, "would be asked")
	rep, err := w.start().Report(t.Context(), report.Query{Days: 60, Progress: func(int64) {}})
	mustNot(t, err)
	if x := rep.Expected; len(x) != 2 || x[0].Date != date("2024-01-31") || x[1].Date != date("2024-02-29") || x[0].Amount != usd(1299) {
		t.Errorf("expected %+v", x)
	}
	w.start().run(civil.Date{})
	w.goTo(date("2024-02-14"))
	dry(engine.OutcomeFailed, "unpaid")
	if s := w.sub(n); !s.Open.ByWire() {
		t.Error(w.describe(n))
	}
}

// TestWire_ClockAhead: what was asked by a clock ahead ends by the clock that is accepted.
func TestWire_ClockAhead(t *testing.T) {
	w := newWorld("2024-01-10T09:00", planted{})
	w.records = true
	n := w.create(one("2024-01-31", byWire))
	w.start().run(civil.Date{})
	w.set("2025-01-31T09:00")
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Open.PayBy != date("2025-02-14") {
		t.Fatal(w.describe(n))
	}
	w.set("2024-01-11T09:00")
	mustNot(t, w.start().SetCharging(t.Context(), true, ""))
	if s := w.sub(n); s.NextPayment != date("2024-02-14") || s.Open.PayBy != date("2024-02-14") {
		t.Error(w.describe(n))
	}
}

// TestWire_Format: on a shared store on which older builds may be at work nothing is made manual.
func TestWire_Format(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	e := w.start()
	meta, err := w.spy.Get(t.Context(), w.tables.RecurringPayments.Name, billing.MetaKey)
	mustNot(t, err)
	meta = meta.Clone()
	meta.Set(schema.Format, store.Int(3))
	mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, meta)))
	e.Opened.Format, e.Shared = 3, true
	_, err = e.UpdateSubscription(t.Context(), n, billing.Change{Collection: new(billing.ByWire)})
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "store migrate")
	second := one("2024-01-31", byWire, func(n *billing.NewSubscription) { n.Account = "a2" })
	_, err = e.CreateSubscription(t.Context(), second)
	wantErr(t, err, billing.ErrState)
	_, err = bulk.Create(t.Context(), e.Records, []billing.NewSubscription{second})
	wantErr(t, err, billing.ErrState)
	second.Collection = ""
	_, err = e.CreateSubscription(t.Context(), second)
	mustNot(t, err)
}

// TestWire_UnknownCollection: a damaged value is named, and never charged; another tool's attribute of that
// name, in an item that Duesday has not written, is none of ours.
func TestWire_UnknownCollection(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	for _, value := range []store.Value{store.S("wire"), store.S(""), store.Int(1)} {
		w.byTool(n, schema.CollectionMethod, value)
		if r := w.start().run(civil.Date{}); r.Counts[engine.OutcomeUnreadable] != 1 || len(w.ledger()) != 0 {
			t.Errorf("%v: %v", value, r.Counts)
		}
	}
}

// TestAskedAgain: a customer without a payment method, or who has to authenticate, is asked again on the
// retry days, once for those on which no run was made; runs need nobody for that.
func TestAskedAgain(t *testing.T) {
	for _, test := range []struct {
		name, method, kind string
	}{{"no method", "", outbox.KindReminder}, {"authentication", "pm_card_authenticationRequired", outbox.KindActionRequired}} {
		w := newWorld("2024-01-31T09:00", planted{})
		n := w.create(one("2024-01-31", method(test.method), func(n *billing.NewSubscription) { n.ReminderDays = 0 }))
		told := func() (count int) {
			for _, x := range w.spy.notices {
				if x.kind == test.kind {
					count += x.rows
				}
			}
			return count
		}
		var got []int
		for range 10 {
			r := w.start().run(civil.Date{})
			w.start().run(civil.Date{})
			if got = append(got, told()); w.today() != date("2024-01-31") && (r.NeedsPerson() || r.Counts[engine.OutcomePending] != 1) {
				t.Errorf("%s: %s: %v", test.name, w.today(), r.Counts)
			}
			w.tomorrow()
		}
		if want := []int{1, 2, 2, 3, 3, 4, 4, 5, 5, 5}; !slices.Equal(got, want) {
			t.Errorf("%s: mails by day %v, want %v", test.name, got, want)
		}
		w.attach(t, billing.Attachment{Method: "pm_card_visa"})
		w.start().run(civil.Date{})
		if s := w.sub(n); test.method == "" && s.Period != 1 {
			t.Error(w.describe(n))
		}
		w.report(t)
	}
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31", method(""), func(n *billing.NewSubscription) { n.ReminderDays = 0 }))
	for _, day := range []string{"2024-01-31", "2024-02-06", "2024-02-20", "2024-02-21"} {
		w.goTo(date(day))
		w.start().run(civil.Date{})
	}
	if len(w.spy.notices) != 3 {
		t.Errorf("%d mails: %v", len(w.spy.notices), w.spy.notices)
	}
}

// TestWire_Guard: a request is not delivered once the period is paid or the subscription has ended.
func TestWire_Guard(t *testing.T) {
	w, n := wired()
	w.start().run(civil.Date{})
	wanted := func() (yes bool) {
		t.Helper()
		for _, f := range w.wantTold(t, outbox.KindPaymentRequest, 1) {
			var err error
			yes, err = w.start().Recipients().StillWanted(t.Context(), f)
			mustNot(t, err)
			if f.Data[outbox.DataPayBy] != "2024-02-14" || f.Data[outbox.DataAmount] != "12.99" {
				t.Errorf("%v", f.Data)
			}
		}
		return yes
	}
	if !wanted() {
		t.Error("not wanted")
	}
	_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{})
	mustNot(t, err)
	if wanted() {
		t.Error("still wanted")
	}
}
