package engine_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/planchange"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A change of the plan while a period is open waits for its end. The item keeps its key, and with it
// its identity at the processor; everything that people see has the new SKU.
func TestPlan_AfterTheOpenPeriod(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_card_visa_chargeDeclined" }))
	w.start().run(civil.Date{})
	s, err := w.start().UpdateSubscription(ctx, n, billing.Change{SKU: new("platinum"), Amount: new(usd(2999))})
	mustNot(t, err)
	if s.SKU != "gold" || s.Amount != usd(1299) || s.Pending == nil || s.Open == nil {
		t.Fatalf("with a period open: %s for %s, pending %+v", s.SKU, s.Amount, s.Pending)
	}
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	w.start().run(civil.Date{})
	s = w.sub(n)
	if s.SKU != "platinum" || s.Amount != usd(2999) || s.Pending != nil || s.Period != 1 || s.Name != n ||
		s.Key().SK != "SUB#s1#SKU#gold" {
		t.Fatalf("after the period: %s for %s under %v, pending %+v", s.SKU, s.Amount, s.Key(), s.Pending)
	}
	for _, day := range []string{"2024-02-22T09:00", "2024-02-29T09:00"} {
		w.set(day)
		w.start().remind()
		w.start().run(civil.Date{})
	}
	receipts, err := processor.Gather(w.start().GetReceiptsByAccount(ctx, "a1"))
	mustNot(t, err)
	if len(receipts) != 2 || receipts[0].SKU != "gold" || receipts[1].SKU != "platinum" || receipts[1].Name != n ||
		receipts[0].Amount != usd(1299) || receipts[1].Amount != usd(2999) {
		t.Errorf("receipts %+v", receipts)
	}
	for it, err := range w.spy.Query(ctx, store.Query{Table: w.tables.RecurringPayments.Name, Partition: "ACC#a1",
		Prefix: billing.RecPrefix}) {
		if mustNot(t, err); !strings.Contains(it.Str(schema.SK), "#SKU#gold#SUB#s1#") {
			t.Errorf("receipt under %s", it.Str(schema.SK))
		}
	}
	for row, err := range w.start().GetDuePaymentsByDate(ctx, date("2024-03-31")) {
		if mustNot(t, err); row.SKU != "platinum" || row.Name != n || row.Amount != usd(2999) {
			t.Errorf("due: %+v", row)
		}
	}
	for e := range w.box.Entries() {
		if e.Tag.SKU != "gold" {
			t.Errorf("the processor was given the SKU %s", e.Tag.SKU)
		}
	}
	for _, kind := range []string{"reminder", "receipt"} {
		told := w.wantTold(t, kind, map[string]int{"reminder": 1, "receipt": 2}[kind])
		i := slices.IndexFunc(told, func(f outbox.Effect) bool { return f.Data["period"] == "1" })
		if of := told[i].Data; of["sku"] != "platinum" || of["key_sku"] != "gold" || of["amount"] != "29.99" {
			t.Errorf("%s: %v", kind, of)
		}
		if ok, err := w.start().Recipients().StillWanted(ctx, told[i]); err != nil || ok != (kind == "receipt") {
			t.Errorf("%s: wanted %v, %v", kind, ok, err)
		}
	}
	w.report(t)
}

// When a change of the plan begins.
func TestPlan_Begins(t *testing.T) {
	ctx := t.Context()
	to := billing.Change{SKU: new("platinum")}
	from := func(day string) billing.Change { return billing.Change{SKU: new("platinum"), From: date(day)} }
	for name, x := range map[string]struct {
		at      string
		before  func(*process, billing.Name) error
		change  billing.Change
		pending bool
	}{
		"before the due date, at once":    {at: "2024-01-30T09:00", change: to},
		"on the due date, with the next":  {at: "2024-01-31T09:00", change: to, pending: true},
		"from the due date":               {at: "2024-01-30T09:00", change: from("2024-01-31")},
		"from a day after the due date":   {at: "2024-01-30T09:00", change: from("2024-02-01"), pending: true},
		"from a past day":                 {at: "2024-01-30T09:00", change: from("2023-01-01")},
		"from a past day, due but closed": {at: "2024-01-31T09:00", change: from("2023-01-01")},
		"taken back": {at: "2024-01-31T09:00", change: billing.Change{SKU: new("gold")},
			before: func(p *process, n billing.Name) error {
				_, err := p.UpdateSubscription(ctx, n, to)
				return err
			}},
		"a new payment day after it": {at: "2024-01-30T09:00", change: billing.Change{PaymentDay: new(5)},
			before: func(p *process, n billing.Name) error {
				_, err := p.UpdateSubscription(ctx, n, from("2024-02-01"))
				return err
			}},
		"paused, with the voids of its resumption": {at: "2024-03-15T09:00", change: billing.Change{ReminderDays: new(3)},
			before: func(p *process, n billing.Name) error {
				_, err := p.Pause(ctx, n)
				if err == nil {
					_, err = p.UpdateSubscription(ctx, n, from("2024-03-01"))
				}
				if err == nil {
					_, err = p.Resume(ctx, n)
				}
				return err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-31"))
			w.set(x.at)
			if x.before != nil {
				mustNot(t, x.before(w.start(), n))
			}
			s, err := w.start().UpdateSubscription(ctx, n, x.change)
			mustNot(t, err)
			if s.Pending != nil != x.pending {
				t.Errorf("pending: %+v", s.Pending)
			}
			if want := map[bool]string{true: "gold", false: "platinum"}[x.pending || name == "taken back"]; s.SKU != want {
				t.Errorf("the SKU is %s, want %s", s.SKU, want)
			}
			w.report(t)
		})
	}
}

// TestPlan_EachPeriodByItsDay: whatever is asked for and when, a period is charged by the plan that its due
// date has, and Upcoming has told so the day before.
func TestPlan_EachPeriodByItsDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld("2024-01-20T09:00", planted{})
		defer w.end()
		n := w.create(one("2024-01-31"))
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			day := w.today().AddDays(rapid.IntRange(0, 40).Draw(t, "days"))
			if due, _ := w.sub(n).Due(); !day.Before(due) {
				w.goTo(due.AddDays(-1))
			} else {
				w.goTo(day)
			}
			change := billing.Change{SKU: new(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "sku")),
				Amount: new(usd(rapid.Int64Range(100, 900).Draw(t, "amount")))}
			if rapid.Bool().Draw(t, "from") {
				change.From = w.today().AddDays(rapid.IntRange(-40, 70).Draw(t, "day"))
			}
			s, err := w.start().UpdateSubscription(t.Context(), n, change)
			if err != nil {
				t.Fatal(err)
			}
			next := s.Upcoming(1)[0]
			w.goTo(next.Due)
			w.start().run(civil.Date{})
			receipts, err := processor.Gather(w.start().GetReceiptsByAccount(t.Context(), "a1"))
			if err != nil || len(receipts) == 0 {
				t.Fatal(receipts, err)
			}
			last := receipts[len(receipts)-1]
			if last.Due != next.Due || last.SKU != next.SKU || last.Amount != next.Amount || last.Period != next.Period {
				t.Fatalf("told %+v, charged %+v", next, last)
			}
			begun := change.From.IsZero() || !next.Due.Before(change.From)
			if begun && (last.SKU != *change.SKU || last.Amount != *change.Amount) {
				t.Fatalf("asked for %s %s from %s, charged %+v", *change.SKU, *change.Amount, change.From, last)
			}
			w.tomorrow()
		}
		if v := w.audit(); len(v) > 0 {
			t.Fatal(v)
		}
	})
}

// TestRequest_OnABusinessDay: requests have the business day that a run has, and leave nothing where
// later runs do not find it.
func TestRequest_OnABusinessDay(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-20T09:00", planted{})
	w.early = true
	n := w.create(one("2024-01-31"))
	on := func(day string) *process {
		p := w.start()
		p.Engine = p.On(date(day))
		return p
	}
	s, err := on("2024-04-10").Pause(ctx, n)
	mustNot(t, err)
	if s.PausedOn != date("2024-04-10") {
		t.Errorf("paused on %s", s.PausedOn)
	}
	s, err = on("2024-05-10").Resume(ctx, n)
	mustNot(t, err)
	if s.Period != 4 || s.NextPayment != date("2024-05-31") {
		t.Errorf("resumed: %s", w.describe(n))
	}
	s, err = on("2024-05-31").UpdateSubscription(ctx, n, billing.Change{SKU: new("platinum"), ReminderDays: new(3)})
	mustNot(t, err)
	if s.SKU != "gold" || s.Pending == nil || s.Pending.From != date("2024-06-01") || s.NextPayment != date("2024-05-31") {
		t.Errorf("changed: %+v, %s", s.Pending, w.describe(n))
	}
	s, err = on("2024-06-02").UpdateSubscription(ctx, n, billing.Change{ReminderDays: new(5)})
	mustNot(t, err)
	if s.NextPayment != date("2024-05-31") {
		t.Errorf("an overdue row is on %s", s.NextPayment)
	}
	if s, err = on("2024-06-02").Cancel(ctx, n, false); err != nil || s.Status != billing.CanceledSub || s.Pending != nil {
		t.Errorf("canceled: %+v, %v", s, err)
	}
	w.report(t)
}

// TestPlanChange_Resumable: whatever is cut off of a change of many subscriptions, the same again does the
// rest. Nobody is changed or told twice.
func TestPlanChange_Resumable(t *testing.T) {
	ctx := t.Context()
	change := &planchange.Change{Of: "gold", From: date("2024-03-01"), Notify: true,
		Amount: func(money.Currency) (money.Amount, error) { return usd(1500), nil }}
	all := func(w *world, p *process) {
		plan, err := p.Plans().Plan(ctx, change)
		if err != nil {
			return
		}
		for _, n := range plan.Names {
			if _, err := p.Plans().Apply(ctx, n, change); err != nil && !p.faults.struck() {
				t.Error(err)
			}
		}
	}
	for _, crash := range []bool{true, false} {
		cuts := 0
		for point := 1; ; point++ {
			w := newWorld("2024-01-30T09:00", planted{})
			var names []billing.Name
			for _, account := range []string{"a1", "a2", "a3"} {
				names = append(names, w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Account = account })))
			}
			cut := w.start(fault{point, crash})
			all(w, cut)
			for day := 31; day < 33; day++ {
				w.tomorrow()
				w.start().run(civil.Date{})
				all(w, w.start())
			}
			for _, n := range names {
				if s := w.sub(n); s.Amount != usd(1299) || s.Pending == nil || s.Pending.Amount != usd(1500) {
					t.Errorf("point %d, crash %v: %+v", point, crash, s.Pending)
				}
			}
			told := w.wantTold(t, outbox.KindPriceChange, 3)
			for _, f := range told {
				if f.Data["amount"] != "15.00" || f.Data["before"] != "12.99" || f.Data["due_date"] != "2024-03-31" {
					t.Errorf("told %v", f.Data)
				}
				if ok, err := w.start().Recipients().StillWanted(ctx, f); err != nil || !ok {
					t.Errorf("not wanted any more: %v", err)
				}
			}
			if !cut.faults.struck() {
				break
			}
			cuts++
		}
		if cuts < 6 { // before and after each of three commits
			t.Errorf("%d cuts", cuts)
		}
	}
}

// TestPlanChange_SameDiscount: a command that is run again later neither lengthens the discount nor mails again.
func TestPlanChange_SameDiscount(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-30T09:00", planted{})
	n := w.create(one("2024-01-31"))
	change := &planchange.Change{Of: "gold", Notify: true, Discount: func(money.Currency) (*price.Discount, error) { return off(10, 2), nil }}
	for _, day := range []string{"2024-01-30", "2024-02-01", "2024-03-01"} {
		w.daily(day)
		changed, err := w.start().Plans().Apply(ctx, n, change)
		if mustNot(t, err); changed != (day == "2024-01-30" || day == "2024-03-01") { // then it is over
			t.Errorf("on %s: changed %t", day, changed)
		}
	}
	w.daily("2024-05-31")
	if got, want := w.charged(t, "a1"), []int64{1169, 1169, 1169, 1169, 1299}; !slices.Equal(got, want) {
		t.Errorf("charged %v, want %v", got, want)
	}
	w.wantTold(t, outbox.KindPriceChange, 2)
}

// TestPlanChange_Concerns: who is changed, and who is left.
func TestPlanChange_Concerns(t *testing.T) {
	ctx := t.Context()
	change := func(c billing.Change) func(*process, billing.Name) error {
		return func(p *process, n billing.Name) error {
			_, err := p.UpdateSubscription(ctx, n, c)
			return err
		}
	}
	for name, x := range map[string]struct {
		before             func(*process, billing.Name) error
		changed, own, told bool
	}{
		"active": {changed: true, told: true},
		"with an earlier change of the price": {changed: true, told: true,
			before: change(billing.Change{Amount: new(usd(1400)), From: date("2024-04-01")})},
		"changed already": {before: change(billing.Change{Amount: new(usd(1500)), From: date("2024-03-01")})},
		"with a change to another SKU": {own: true,
			before: change(billing.Change{SKU: new("silver"), From: date("2024-04-01")})},
		"of another SKU now": {before: change(billing.Change{SKU: new("silver")})},
		"to be cancelled": {changed: true, before: func(p *process, n billing.Name) error {
			_, err := p.Cancel(ctx, n, true)
			return err
		}},
		"cancelled": {before: func(p *process, n billing.Name) error {
			_, err := p.Cancel(ctx, n, false)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-31"))
			if x.before != nil {
				mustNot(t, x.before(w.start(), n))
			}
			p := &planchange.Change{Of: "gold", From: date("2024-03-01"), Notify: true,
				Amount: func(money.Currency) (money.Amount, error) { return usd(1500), nil }}
			plan, err := w.start().Plans().Plan(ctx, p)
			mustNot(t, err)
			one := map[bool]int{true: 1}
			if len(plan.Names) != one[x.changed] || len(plan.Left) != one[x.own] || len(plan.Sums) != one[x.changed] ||
				x.changed && (plan.Sums[0].Count != 1 || plan.Sums[0].Mail != one[x.told] || plan.Sums[0].After != usd(1500)) {
				t.Errorf("planned: %+v", plan)
			}
			replaces := map[billing.Plan]int{}
			if strings.HasPrefix(name, "with an earlier") {
				replaces[billing.Plan{SKU: "gold", Amount: usd(1400), From: date("2024-04-01")}] = 1
			}
			if !maps.Equal(plan.Replaces, replaces) {
				t.Errorf("replaces %v", plan.Replaces)
			}
			changed, err := w.start().Plans().Apply(ctx, n, p)
			if changed != x.changed || errors.Is(err, billing.ErrState) != x.own || !x.own && err != nil {
				t.Errorf("changed %v, %v", changed, err)
			}
			told := w.wantTold(t, outbox.KindPriceChange, one[x.told])
			if x.told {
				mustNot(t, change(billing.Change{SKU: new("gold"), Amount: new(usd(1299))})(w.start(), n))
				if ok, err := w.start().Recipients().StillWanted(ctx, told[0]); err != nil || ok {
					t.Errorf("wanted after the change was taken back: %v, %v", ok, err)
				}
			}
		})
	}
}

// TestTrialDays: a trial ends with an ordinary first period, of which the customer is reminded: at once if
// the reminder is due before the trial has begun.
func TestTrialDays(t *testing.T) {
	ctx := t.Context()
	for name, x := range map[string]struct {
		change        func(*billing.NewSubscription)
		remind, first string
		day           int
	}{
		"on the day after it": {func(*billing.NewSubscription) {}, "2024-01-27", "2024-02-03", 3},
		"reminder days longer than it": {func(n *billing.NewSubscription) { n.ReminderDays = 30 },
			"2024-01-20", "2024-02-03", 3},
		"with a payment day": {func(n *billing.NewSubscription) { n.PaymentDay = 15 }, "2024-02-08", "2024-02-15", 15},
		"from a later day":   {func(n *billing.NewSubscription) { n.Start = date("2024-01-31") }, "2024-02-07", "2024-02-14", 14},
		"weekly": {func(n *billing.NewSubscription) { n.Interval = civil.Interval{N: 1, Unit: civil.Week} },
			"2024-01-27", "2024-02-03", 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
				n.TrialDays, n.PaymentDay, n.NextPayment = 14, 0, civil.Date{}
				x.change(n)
			}))
			s := w.sub(n)
			if due, err := s.Due(); err != nil || due != date(x.first) || s.NextReminder != date(x.remind) ||
				s.PaymentDay != x.day || !s.InTrial() || s.TrialEnds != due {
				t.Fatalf("due %v, %v, reminder %s, day %d, trial until %s", due, err, s.NextReminder, s.PaymentDay, s.TrialEnds)
			}
			for !w.today().After(date(x.first)) {
				w.start().remind()
				w.start().run(civil.Date{})
				told := w.effects(t, outbox.KindReminder)
				if want := map[bool]int{true: 1}[!w.today().Before(date(x.remind))]; len(told) != want {
					t.Fatalf("on %s told %+v", w.today(), told)
				}
				if len(told) == 1 && (told[0].Data["trial"] != "true" || told[0].Data["due_date"] != x.first) {
					t.Errorf("reminded of %v", told[0].Data)
				}
				if paid := w.sub(n).Paid; (paid == 1) != (w.today() == date(x.first)) {
					t.Fatalf("on %s paid %d", w.today(), paid)
				}
				w.tomorrow()
			}
			if s = w.sub(n); s.InTrial() || s.Period != 1 {
				t.Errorf("after the trial: %s", w.describe(n))
			}
			w.report(t)
		})
	}
	w := newWorld("2024-01-20T09:00", planted{})
	for name, change := range map[string]func(*billing.NewSubscription){
		"reminder_days":     func(n *billing.NewSubscription) { n.ReminderDays, n.NextPayment = 0, civil.Date{} },
		"trial_days":        func(*billing.NewSubscription) {},
		"trial_days, below": func(n *billing.NewSubscription) { n.TrialDays, n.NextPayment = -1, civil.Date{} },
	} {
		_, err := w.start().CreateSubscription(ctx, one("2024-01-31", func(n *billing.NewSubscription) {
			n.TrialDays = 14
			change(n)
		}))
		f, ok := errors.AsType[*billing.FieldError](err)
		if field, _, _ := strings.Cut(name, ","); !ok || f.Field != field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlan_OfACollectedPeriod: a past period is collected for what it was for, whatever the plan is now.
func TestPlan_OfACollectedPeriod(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_card_visa_chargeDeclinedLostCard" }))
	w.start().run(civil.Date{})
	_, err := w.start().UpdateSubscription(ctx, n, billing.Change{SKU: new("platinum"), Amount: new(usd(2999))})
	mustNot(t, err)
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	w.tomorrow()
	_, err = w.start().ChargePeriod(ctx, n, engine.PeriodCharge{})
	mustNot(t, err)
	receipts, err := processor.Gather(w.start().GetReceiptsByAccount(ctx, "a1"))
	mustNot(t, err)
	if len(receipts) != 1 || receipts[0].SKU != "gold" || receipts[0].Amount != usd(1299) {
		t.Errorf("receipts %+v", receipts)
	}
	if told := w.wantTold(t, outbox.KindReceipt, 1); told[0].Data["sku"] != "gold" {
		t.Errorf("told %v", told[0].Data)
	}
	if s := w.sub(n); s.SKU != "platinum" || s.Period != 1 || s.Open != nil {
		t.Errorf("now %s, %s", s.SKU, w.describe(n))
	}
	w.report(t)
}
