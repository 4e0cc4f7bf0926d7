package engine_test

import (
	"fmt"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// wantCause fails the test unless the subscription has the status, and the audit is clean.
func wantCause(t *testing.T, w *world, n billing.Name, want billing.Status) {
	t.Helper()
	if got := w.sub(n).Status; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	if r, err := w.start().Verify(t.Context()); err != nil || !r.OK {
		t.Errorf("verify: %+v, %v", r.Problems, err)
	}
}

// TestVerify_LegalCauses: every way by which Duesday makes a subscription past due, paused or canceled,
// or changes its time zone, is no problem.
func TestVerify_LegalCauses(t *testing.T) {
	hard := method("pm_card_visa_chargeDeclinedLostCard")
	cancel := func(t *testing.T, p *process, n billing.Name) {
		_, err := p.Cancel(t.Context(), n, false)
		mustNot(t, err)
	}
	charge := func(t *testing.T, p *process, n billing.Name, period int) {
		good := "pm_card_visa"
		mustNot(t, p.SetCharging(t.Context(), true, ""))
		_, err := account.Edit(t.Context(), p.Records, n.Account, func(*billing.Account) error { return billing.ErrUnchanged })
		mustNot(t, err)
		h := &hand{t, p.w}
		details := store.NewItem(store.Attribute{Name: schema.PaymentMethod, Value: store.S(good)})
		h.set(n.Account, schema.PaymentDetails, store.M(details))
		_, err = p.w.start().ChargePeriod(t.Context(), n, engine.PeriodCharge{Period: period})
		mustNot(t, err)
	}
	for what, x := range map[string]struct {
		change func(*billing.NewSubscription)
		days   int
		do     func(t *testing.T, p *process, n billing.Name)
		want   billing.Status
	}{
		"failed": {hard, 1, nil, billing.PastDue},
		"failed, and paid after the next one was due": {hard, 40, func(t *testing.T, p *process, n billing.Name) {
			charge(t, p, n, 0)
		}, billing.PastDue},
		"failed, and paid outside after the next one was due": {hard, 40, func(t *testing.T, p *process, n billing.Name) {
			period := 0
			_, err := p.CreateReceipt(t.Context(), n, engine.ManualPayment{Period: &period, Date: date("2024-01-31")})
			mustNot(t, err)
		}, billing.PastDue},
		"failed, and canceled": {hard, 40, cancel, billing.CanceledSub},
		"canceled before its first payment": {func(n *billing.NewSubscription) { n.NextPayment = date("2024-03-31") }, 1, cancel,
			billing.CanceledSub},
		"canceled": {func(*billing.NewSubscription) {}, 1, cancel, billing.CanceledSub},
		"canceled at its end": {func(*billing.NewSubscription) {}, 1, func(t *testing.T, p *process, n billing.Name) {
			_, err := p.Cancel(t.Context(), n, true)
			mustNot(t, err)
			p.w.goTo(date("2024-02-29"))
			p.w.start().run(civil.Date{})
		}, billing.CanceledSub},
		"canceled, and paid outside later": {hard, 1, func(t *testing.T, p *process, n billing.Name) {
			cancel(t, p, n)
			period := 0
			p.w.tomorrow()
			_, err := p.w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Period: &period})
			mustNot(t, err)
		}, billing.CanceledSub},
		"paused": {func(*billing.NewSubscription) {}, 1, func(t *testing.T, p *process, n billing.Name) {
			_, err := p.Pause(t.Context(), n)
			mustNot(t, err)
		}, billing.Paused},
		"another time zone": {func(*billing.NewSubscription) {}, 1, func(t *testing.T, p *process, n billing.Name) {
			zone := "Pacific/Kiritimati"
			_, err := account.Update(t.Context(), p.Records, n.Account, account.Change{TimeZone: &zone})
			mustNot(t, err)
		}, billing.Active},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld("2024-01-31T09:00", planted{})
			n := w.create(one("2024-01-31", x.change))
			w.start().run(civil.Date{})
			w.goTo(w.today().AddDays(x.days))
			if x.do != nil {
				x.do(t, w.start(), n)
			}
			wantCause(t, w, n, x.want)
			email := "other@example.com" // writes the item once more
			_, err := account.Update(t.Context(), w.start().Records, n.Account, account.Change{Email: &email})
			mustNot(t, err)
			wantCause(t, w, n, x.want)
		})
	}
}

// TestVerify_ManyDuePeriods: a subscription is past due between the commits of its cancellation, and of
// its resumption, also if the process dies there.
func TestVerify_ManyDuePeriods(t *testing.T) {
	for what, do := range map[string]func(*process, billing.Name) error{
		"cancel": func(p *process, n billing.Name) error { _, err := p.Cancel(t.Context(), n, false); return err },
		"resume": func(p *process, n billing.Name) error { _, err := p.Resume(t.Context(), n); return err },
	} {
		cut := 0
		for point := 1; ; point++ {
			w := newWorld("2024-01-01T09:00", planted{})
			n := w.create(one("2024-01-01", method("pm_card_visa_chargeDeclinedLostCard"), func(n *billing.NewSubscription) {
				n.Interval, n.PaymentDay = civil.Interval{N: 1, Unit: civil.Week}, 1
			}))
			w.start().run(civil.Date{})
			w.goTo(date("2026-06-01"))
			p := w.start(fault{point, true})
			err := do(p, n)
			if !p.faults.struck() {
				mustNot(t, err)
				break
			}
			if s := w.sub(n); s.Period > 1 && s.Status == billing.PastDue {
				cut++
			}
			if r, err := w.start().Verify(t.Context()); err != nil || !r.OK {
				t.Errorf("%s, cut off at %d: %+v, %v", what, point, r.Problems, err)
			}
		}
		if cut == 0 {
			t.Errorf("%s was never cut off in the middle", what)
		}
	}
}

// TestVerify_CausesOfOlderStores: a store of an older Duesday has no causes. What it lacks is no problem,
// until a subscription has been charged by a build that stores them.
func TestVerify_CausesOfOlderStores(t *testing.T) {
	for _, status := range []string{"paused", "canceled", "past_due"} {
		for _, charged := range []bool{false, true} {
			t.Run(fmt.Sprint(status, charged), func(t *testing.T) {
				w := newWorld("2024-01-31T09:00", planted{})
				n := w.create(one("2024-03-31"))
				w.foreign = true // its lookup rows are incomplete, too
				h := &hand{t, w}
				h.commit(store.Update(w.tables.RecurringPayments.Name, billing.MetaKey, nil, []string{schema.CausesDate, schema.LookupDate}))
				w.pass(1e9)
				if charged {
					w.daily("2024-04-02")
				}
				w.start() // notes since when
				h.set("a1", schema.Status, status, schema.NextPaymentDate, nil, schema.NextReminderDate, nil)
				r, err := w.start().Verify(t.Context())
				mustNot(t, err)
				if r.OK == charged {
					t.Errorf("%s: problems %+v", w.describe(n), r.Problems)
				}
			})
		}
	}
}

// TestVerify_LegacyStatus: a status that another tool gave a legacy item stays no problem when Duesday
// writes the item.
func TestVerify_LegacyStatus(t *testing.T) {
	w := newWorld("2023-06-28T09:00", planted{})
	none := store.Value{}
	w.write(foreign("1", "1", "Status", "canceled", "NextPaymentDate", none, "NextReminderDate", none),
		foreign("2", "2", "Status", "paused", "NextPaymentDate", none, "NextReminderDate", none),
		foreign("3", "3", "NextPaymentDate", none, "NextReminderDate", none),
		foreign("4", "4", "Status", "completed", "NextPaymentDate", none, "NextReminderDate", none))
	w.adopt(t, nil)
	for _, id := range []string{"1", "2", "3", "4"} {
		email := "new@example.com"
		_, err := account.Update(t.Context(), w.start().Records, id, account.Change{Email: &email})
		mustNot(t, err)
	}
	r, err := w.start().Verify(t.Context())
	mustNot(t, err)
	for _, p := range r.Problems {
		if p.Kind != "invalid schedule" { // a paused one without any date has none
			t.Errorf("%+v", p)
		}
	}
}

// TestReconcile_PastDue: a past_due subscription that the processor shows charged since is active again:
// somebody had resumed it, and no run would charge it otherwise.
func TestReconcile_PastDue(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclinedLostCard")))
	w.start().run(civil.Date{})
	backup := w.spy.mem.Snapshot()
	good := "pm_card_visa"
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Method: &good})
	mustNot(t, err)
	w.goTo(date("2024-02-29"))
	w.start().run(civil.Date{})
	w.plant.store = func(*world, store.Store) store.Store { return backup }
	w.start()
	adopted, err := w.start().Reconcile(t.Context())
	mustNot(t, err)
	s, err := w.start().Subscription(t.Context(), n)
	mustNot(t, err)
	r, err := w.start().Verify(t.Context())
	mustNot(t, err)
	if adopted != 1 || s.Status != billing.Active || !r.OK {
		t.Errorf("adopted %d, it is %s; problems %+v", adopted, s.Status, r.Problems)
	}
}

// TestReconcile_Killed: killed at any point and asked again, reconcile adopts each charge once. Its mail is
// held once, no drain delivers it, and the sums do not wait for it.
func TestReconcile_Killed(t *testing.T) {
	for point := 1; ; point++ {
		w := newWorld("2024-01-31T09:00", planted{})
		w.create(one("2024-01-31"))
		w.create(one("2024-01-31", of("a2"), method("pm_sandbox_flaky")))
		backup := w.spy.mem.Snapshot()
		w.start().run(civil.Date{})
		w.goTo(date("2024-02-01"))
		w.start().run(civil.Date{})
		w.spy.Store, w.spy.mem = backup, backup
		p := w.start(fault{point, true})
		_, err := p.Reconcile(t.Context())
		died := p.faults.struck()
		if !died {
			mustNot(t, err)
		}
		_, err = w.start().Reconcile(t.Context())
		mustNot(t, err)
		wantSums(t, w, map[string]string{"2024-01-31 collected": "12.99 USD", "2024-02-01 collected": "12.99 USD"})
		o := outbox.New(backup, w.tables.Outbox, w.now, nil, nil)
		mail, err := o.Backlog(t.Context(), 0)
		mustNot(t, err)
		held, err := o.On(outbox.Held).Backlog(t.Context(), 0)
		mustNot(t, err)
		if mail.Due+mail.Later != 0 || held.Due != 2 {
			t.Errorf("point %d: mail %+v, held %+v, want 2 held", point, mail, held)
		}
		if !died {
			break
		}
	}
}
