package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// upgradeNow upgrades without a key, and returns the state.
func (w *world) upgradeNow(t *testing.T, n billing.Name) (upgrade.State, *billing.Subscription) {
	t.Helper()
	a, err := w.start().UpgradeNow(context.Background(), n, titaniumNow())
	mustNot(t, err)
	return upgrade.StateOf(a.Subscription), a.Subscription
}

func TestUpgrade_Charged(t *testing.T) {
	t.Parallel()
	w, n := upgradable(planted{})
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Amount: new(usd(1499)), From: date("2024-03-01")})
	mustNot(t, err)
	f, _, err := w.start().OfferUpgrade(t.Context(), n, titaniumNow())
	mustNot(t, err)
	if f.Period != 1 || f.Amount != usd(3999) || f.Days != 19 || f.DueBefore != date("2024-02-29") || f.Next != date("2024-03-10") ||
		f.Replaces == nil || f.Replaces.Amount != usd(1499) {
		t.Errorf("%+v", f)
	}
	if s := w.sub(n); s.Upgrade != nil {
		t.Errorf("an offer has marked it: %+v", s.Upgrade)
	}
	state, s := w.upgradeNow(t, n)
	if state != upgrade.Charged || s.SKU != "titanium" || s.Amount != usd(3999) || s.Pending != nil || s.Period != 2 || s.Paid != 2 ||
		s.NextPayment != f.Next || s.PaymentDay != 10 {
		t.Errorf("%s %+v", state, s)
	}
	for _, day := range []string{"2024-02-29", "2024-03-09", "2024-03-10", "2024-04-10"} {
		w.goTo(date(day))
		w.start().run(civil.Date{})
	}
	if s := w.sub(n); s.Period != 4 || s.Paid != 4 || s.Upgrade != nil {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestUpgrade_Told: the reminder of the old date has been sent. The receipt and its mail have the new plan and the
// day of the upgrade, and the next reminder has the new date.
func TestUpgrade_Told(t *testing.T) {
	t.Parallel()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.ReminderDays = 7 }))
	w.daily("2024-02-22")
	w.goTo(date("2024-02-23"))
	w.upgradeNow(t, n)
	told := func(kind, period string) map[string]string {
		for _, f := range w.effects(t, kind) {
			if f.Data[outbox.DataPeriod] == period {
				return f.Data
			}
		}
		return nil
	}
	d := told(outbox.KindReceipt, "1")
	equal(t, []string{d[outbox.DataSKU], d[outbox.DataAmount], d[outbox.DataPeriod], d[outbox.DataDueDate]}, []string{"titanium", "39.99", "1", "2024-02-23"})
	equal(t, []string{told(outbox.KindReminder, "1")[outbox.DataDueDate]}, []string{"2024-02-29"})
	w.daily("2024-03-16")
	d = told(outbox.KindReminder, "2")
	equal(t, []string{d[outbox.DataSKU], d[outbox.DataAmount], d[outbox.DataPeriod], d[outbox.DataDueDate]}, []string{"titanium", "39.99", "2", "2024-03-23"})
	w.report(t)
}

// TestUpgrade_MonthEnds: the schedule begins on the day, and keeps the 31st through shorter months.
func TestUpgrade_MonthEnds(t *testing.T) {
	t.Parallel()
	w := newWorld("2024-01-15T09:00", planted{})
	n := w.create(one("2024-01-15"))
	w.start().run(civil.Date{})
	w.goTo(date("2024-01-31"))
	_, s := w.upgradeNow(t, n)
	var dues []string
	for period := range 4 {
		due, err := s.Schedule().Due(s.Period + period)
		mustNot(t, err)
		dues = append(dues, due.String())
	}
	equal(t, dues, []string{"2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31"})
	for !w.today().After(date("2024-05-31")) {
		w.tomorrow()
		w.start().run(civil.Date{})
	}
	w.report(t)
}

// TestUpgrade_Intervals: a weekly and a daily schedule begin on the day, too.
func TestUpgrade_Intervals(t *testing.T) {
	t.Parallel()
	for _, i := range []civil.Interval{{N: 2, Unit: civil.Week}, {N: 10, Unit: civil.Day}, {N: 1, Unit: civil.Year}} {
		w := newWorld("2024-01-31T09:00", planted{})
		n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
			if n.Interval = i; i.Unit == civil.Week {
				n.PaymentDay = 3
			}
		}))
		w.start().run(civil.Date{})
		w.goTo(date("2024-02-05"))
		_, s := w.upgradeNow(t, n)
		want, err := civil.Schedule{Anchor: date("2024-02-05"), Interval: i, Day: map[civil.Unit]int{civil.Week: 1, civil.Day: 5, civil.Year: 5}[i.Unit]}.Due(1)
		mustNot(t, err)
		if got, err := s.Due(); err != nil || got != want {
			t.Errorf("%s: due on %s, want %s (%v)", i, got, want, err)
		}
		w.report(t)
	}
}

// TestUpgrade_Declined: nothing has changed, the fallback was tried, and the period is charged on its date.
func TestUpgrade_Declined(t *testing.T) {
	t.Parallel()
	w, n := upgradable(planted{})
	w.newMethod(n, "pm_card_visa_chargeDeclinedLostCard")
	state, s := w.upgradeNow(t, n)
	if state != upgrade.Declined || s.SKU != "gold" || s.Amount != usd(1299) || s.Open != nil || s.NextPayment != date("2024-02-29") ||
		s.Status != billing.Active || w.ending(n, 1).Ending != "" {
		t.Errorf("%s %+v", state, s)
	}
	_, err := w.start().UpgradeNow(t.Context(), n, titaniumNow())
	if !errors.Is(err, billing.ErrState) || !strings.Contains(err.Error(), "needs a new key") {
		t.Errorf("a second time on one day: %v", err)
	}
	w.newMethod(n, "pm_card_visa")
	a, err := w.start().UpgradeNow(w.keyed(t.Context(), "k2"), n, titaniumNow()) // with a key
	mustNot(t, err)
	if upgrade.StateOf(a.Subscription) != upgrade.Charged || a.Repeated || a.Subscription.Upgrade.Generation != 1 {
		t.Errorf("%+v", a.Subscription.Upgrade)
	}
	before := w.dealings()
	a, err = w.start().UpgradeNow(w.keyed(t.Context(), "k2"), n, titaniumNow())
	if err != nil || !a.Repeated || len(a.Results) > 0 || w.dealings() != before || a.Subscription.Paid != 2 {
		t.Errorf("repeated: %+v, %v", a, err)
	}
	_, err = w.start().UpgradeNow(w.keyed(t.Context(), "k2"), n, upgrade.Order{SKU: new("diamond")})
	wantErr(t, err, billing.ErrState)
	w.report(t)
}

// TestUpgrade_Authentication: the customer has action-days, and at most until the period is due. An event that
// comes after the end decides nothing.
func TestUpgrade_Authentication(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, until string
		days        int
		answers     bool
		want        upgrade.State
	}{{"in time", "2024-02-12", 7, true, upgrade.Charged}, {"too late", "2024-02-18", 7, false, upgrade.Ended},
		{"no limit, and n is due", "2024-02-29", 0, false, upgrade.Ended}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld("2024-01-31T09:00", planted{})
			w.cfg.ActionDays = c.days
			n := w.create(one("2024-01-31"))
			w.start().run(civil.Date{})
			w.goTo(date("2024-02-10"))
			w.newMethod(n, "pm_card_authenticationRequired")
			state, s := w.upgradeNow(t, n)
			if state != upgrade.ActionRequired || s.SKU != "gold" || s.Open == nil || s.Open.Amount != usd(3999) {
				t.Fatalf("%s %s", state, w.describe(n))
			}
			ref := s.Open.Ref
			_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Amount: new(usd(1999))})
			wantErr(t, err, billing.ErrState)
			_, err = w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Period: new(1)})
			wantErr(t, err, billing.ErrState)
			_, err = w.start().ChargePeriod(t.Context(), n, engine.PeriodCharge{Period: 1})
			wantErr(t, err, billing.ErrState)
			_, err = w.start().UpgradeNow(w.keyed(t.Context(), "another"), n, titaniumNow())
			wantErr(t, err, billing.ErrState)
			for !w.today().After(date(c.until)) {
				w.tomorrow()
				if c.answers && w.today() == date(c.until) {
					mustNot(t, w.box.Authenticate(ref))
				}
				w.start().run(civil.Date{})
			}
			s = w.sub(n)
			if got := upgrade.StateOf(s); got != c.want {
				t.Errorf("%s: %+v", got, s.Upgrade)
			}
			before := w.rawOf(n)
			mustNot(t, w.start().Heard(t.Context(), n.Account, n.ID, ref))
			if c.want == upgrade.Ended && (s.SKU != "gold" || w.state(ref) != processor.Canceled || !w.rawOf(n).Equal(before)) {
				t.Error(w.describe(n))
			}
			for range 30 {
				w.tomorrow()
				w.newMethod(n, "pm_card_visa")
				w.start().run(civil.Date{})
			}
			w.report(t)
		})
	}
}

// TestUpgrade_EventSettles: the event of the success settles the upgrade before the run.
func TestUpgrade_EventSettles(t *testing.T) {
	t.Parallel()
	w, n := upgradable(planted{})
	w.newMethod(n, "pm_card_authenticationRequired")
	_, s := w.upgradeNow(t, n)
	mustNot(t, w.box.Authenticate(s.Open.Ref))
	mustNot(t, w.start().Heard(t.Context(), n.Account, n.ID, s.Open.Ref))
	if s := w.sub(n); s.SKU != "titanium" || s.NextPayment != date("2024-03-10") {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestUpgrade_Requests: a request while the upgrade waits ends it first, and is then carried out. If it was paid,
// the receipt stays.
func TestUpgrade_Requests(t *testing.T) {
	t.Parallel()
	for _, paid := range []bool{false, true} {
		for name, do := range map[string]func(*process, billing.Name) (*billing.Subscription, error){
			"cancel": func(p *process, n billing.Name) (*billing.Subscription, error) {
				return p.Cancel(context.Background(), n, false)
			},
			"pause": func(p *process, n billing.Name) (*billing.Subscription, error) {
				return p.Pause(context.Background(), n)
			},
			"skip": func(p *process, n billing.Name) (*billing.Subscription, error) {
				return p.SkipUntil(context.Background(), n, p.w.today().AddDays(1))
			},
		} {
			w, n := upgradable(planted{})
			w.newMethod(n, "pm_card_authenticationRequired")
			_, s := w.upgradeNow(t, n)
			ref := s.Open.Ref
			if paid {
				mustNot(t, w.box.Authenticate(ref))
			}
			s, err := do(w.start(), n)
			if name == "skip" && errors.Is(err, billing.ErrState) {
				t.Logf("skip: %v", err)
				continue
			}
			mustNot(t, err)
			want := map[string]billing.Status{"cancel": billing.CanceledSub, "pause": billing.Paused, "skip": billing.Active}[name]
			if s.Status != want || s.Open != nil || s.Upgrading() || paid != (s.Paid == 2) || paid != (s.SKU == "titanium") ||
				w.ending(n, 1).Ending != "" || !paid && w.state(ref) != processor.Canceled {
				t.Errorf("%s, paid %t: %s %+v", name, paid, w.describe(n), s.Upgrade)
			}
			w.report(t)
		}
	}
}

// TestUpgrade_Refused names the reason, and stores and opens nothing.
func TestUpgrade_Refused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, c := range []struct {
		why  string
		make func(*billing.NewSubscription)
		do   func(*world, billing.Name) error
	}{
		{"is paused", nil, func(w *world, n billing.Name) error { _, err := w.start().Pause(ctx, n); return err }},
		{"is canceled", nil, func(w *world, n billing.Name) error { _, err := w.start().Cancel(ctx, n, false); return err }},
		{"ends with its period", nil, func(w *world, n billing.Name) error { _, err := w.start().Cancel(ctx, n, true); return err }},
		{"is paid by wire", nil, func(w *world, n billing.Name) error {
			wire := billing.ByWire
			_, err := w.start().UpdateSubscription(ctx, n, billing.Change{Collection: &wire})
			return err
		}},
		{"period 1 due on 2024-02-29", nil, func(w *world, _ billing.Name) error { w.goTo(date("2024-02-29")); return nil }},
		{"is in its trial until 2024-03-05", func(n *billing.NewSubscription) { n.NextPayment, n.TrialDays, n.PaymentDay = civil.Date{}, 34, 0 }, nil},
		{"has not paid its first period", func(n *billing.NewSubscription) { n.NextPayment = date("2024-03-31") }, nil},
		{"was changed by another tool", nil, func(w *world, n billing.Name) error {
			w.byTool(n, "NextPaymentDate", w.rawOf(w.create(one("2024-03-31", func(x *billing.NewSubscription) { x.ID, x.Email = "s2", "" }))).
				Get("NextPaymentDate"))
			return nil
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			w, n := upgradable(planted{}, func(n *billing.NewSubscription) {
				if c.make != nil {
					c.make(n)
				}
			})
			if c.do != nil {
				mustNot(t, c.do(w, n))
			}
			before, raw := w.dealings(), w.rawOf(n)
			_, err := w.start().UpgradeNow(w.keyed(ctx, "k"), n, titaniumNow())
			if !errors.Is(err, billing.ErrState) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v", err)
			}
			if w.dealings() != before || !w.rawOf(n).Equal(raw) {
				t.Error("something was changed")
			}
		})
	}
}

// TestUpgrade_FastClock: a clock that is ahead marks a day in the future. The upgrade is what its offer said.
func TestUpgrade_Clock(t *testing.T) {
	t.Parallel()
	for point := range 12 {
		w, n := upgradable(planted{})
		p := w.start(fault{point, true})
		_, _ = p.UpgradeNow(t.Context(), n, titaniumNow())
		w.pass(-3 * 24 * time.Hour) // the clock was ahead
		w.start().run(civil.Date{})
		w.pass(10 * 24 * time.Hour) // and now it has caught up
		w.start().run(civil.Date{})
		s := w.sub(n)
		if s.Upgrading() || s.SKU == "titanium" && (s.Upgrade.Day != date("2024-02-10") || s.NextPayment != date("2024-03-10")) {
			t.Errorf("point %d: %s %+v", point, w.describe(n), s.Upgrade)
		}
		if v := w.audit(); len(v) > 0 {
			t.Errorf("point %d: %s", point, v)
		}
	}
}

// TestUpgrade_TwoProcesses: two processes upgrade at once, under one key and under two, while a run goes on.
func TestUpgrade_TwoProcesses(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		upgradedByTwo(t, seed, planted{})
	}
}

func upgradedByTwo(t *testing.T, seed uint64, p planted) {
	w, n := upgradable(p)
	if seed%3 == 0 {
		w.goTo(date("2024-02-28"))
	}
	var threads []func(func())
	for i := range 2 {
		p, key := w.start(), fmt.Sprint("k", uint64(i)*(seed%2))
		threads = append(threads, func(edge func()) {
			p.edge = edge
			_, err := p.UpgradeNow(w.keyed(context.Background(), key), n, titaniumNow())
			if err != nil && !errors.Is(err, billing.ErrState) {
				w.violate("%v", err)
			}
		})
	}
	r := w.start()
	threads = append(threads, func(edge func()) { r.edge = edge; r.run(civil.Date{}) })
	interleave(seeded(seed), threads)
	w.tomorrow()
	w.start().run(civil.Date{})
	if s := w.sub(n); s.SKU != "titanium" || s.Upgrading() || s.Paid < 2 || seed%2 == 0 && s.Paid > 2 {
		t.Errorf("seed %d: %s %+v", seed, w.describe(n), s.Upgrade)
	}
	if v := w.audit(); len(v) > 0 {
		t.Errorf("seed %d: %s", seed, v)
	}
}

// TestUpgradeOnDynamoDB plays a sample of the programme's upgrades over a faulty DynamoDB, and has two processes
// upgrade at once.
func TestUpgradeOnDynamoDB(t *testing.T) {
	t.Parallel()
	endpoint := dynamotest.Endpoint(t)
	usual := soaktest.Share(6, 40)
	var moves moves
	for seed := range soaktest.Seeds(t, usual, 1000) {
		s := &service{t: t, endpoint: endpoint, rates: harsh()}
		c := randomCrash(seeded(seed))
		if c.outcome.byWire {
			c.outcome = outcomes()[0]
		}
		c.past, c.upgrade, c.plant.engine = false, true, s.engine(seed)
		for _, v := range c.play() {
			t.Errorf("DUESDAY_SEED=%d: %s: %s", seed, c, v)
		}
		moves.add(c.w)
		s.drop()
		s = &service{t: t, endpoint: endpoint}
		upgradedByTwo(t, seed, planted{engine: s.engine(seed)})
		s.drop()
	}
	t.Logf("%d cases, %v", usual, moves.count)
}

// TestUpgrade_Tax: an upgrade costs the new plan with the subscription's tax. One without a rate is refused, and one
// that misses its rate before it is opened ends.
func TestUpgrade_Tax(t *testing.T) {
	t.Parallel()
	w, n := upgradable(planted{})
	for point := 1; !w.sub(n).Upgrading(); point++ {
		_, _ = w.start(fault{point, true}).UpgradeNow(t.Context(), n, titaniumNow())
	}
	if w.sub(n).Open != nil {
		t.Fatal(w.describe(n))
	}
	w.cfg.Tax, w.cfg.ReceiptMonths = settings.On, 0
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Upgrading() || s.Upgrade.Reason != "the subscription has no tax rate" || s.Status != billing.Active || s.Paid != 1 {
		t.Errorf("%s %+v", w.describe(n), s.Upgrade)
	}
	_, err := w.start().UpgradeNow(w.keyed(t.Context(), "k"), n, titaniumNow())
	if !errors.Is(err, billing.ErrState) || !strings.Contains(err.Error(), billing.NoTaxRate) {
		t.Error(err)
	}
	w.exclusive(t, n, 2)
	clear(w.amounts)
	a, err := w.start().UpgradeNow(w.keyed(t.Context(), "k"), n, titaniumNow())
	mustNot(t, err)
	if a.Offer.Amount != usd(4759) || upgrade.StateOf(a.Subscription) != upgrade.Charged {
		t.Errorf("%+v", a)
	}
	equal(t, w.prices(t, n), []string{"0 12.99 USD", "1 39.99+7.60 at 19"})
	w.report(t)
}
