package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// shows is a witness that has shown the first of these differences to our clock so long ago. Each
// further answer shows the next one, and then the last one.
func (w *world) shows(ago time.Duration, ahead ...time.Duration) []billing.Witness {
	last := w.now().Add(-ago)
	return []billing.Witness{{Name: "the bank",
		Ahead: func() (time.Duration, time.Time) {
			if len(ahead) == 0 {
				return 0, time.Time{}
			}
			return ahead[0], last
		},
		Ask: func(context.Context) error {
			if last = w.now(); len(ahead) > 1 {
				ahead = ahead[1:]
			}
			return nil
		}}}
}

// TestClock_Apart: nobody is charged while another clock stands more than five minutes apart, in
// two answers.
func TestClock_Apart(t *testing.T) {
	const odd, old = 6 * time.Minute, time.Hour
	for _, c := range []struct {
		what   string
		ago    time.Duration
		shows  []time.Duration
		refuse bool
	}{
		{"a witness without a Date", 0, nil, false},
		{"agrees", 0, []time.Duration{0}, false}, {"five minutes", 0, []time.Duration{5 * time.Minute}, false},
		{"ours is ahead", 0, []time.Duration{-odd}, true}, {"ours is behind", 0, []time.Duration{odd}, true},
		{"one odd answer", 0, []time.Duration{-odd, 0}, false},
		{"two odd answers", 0, []time.Duration{-odd, -odd, 0}, true},
		{"agreed an hour ago", old, []time.Duration{0, -odd}, true},
		{"agreed an hour ago, by our clock that leaps", -old, []time.Duration{0, -odd}, true},
		{"was odd an hour ago", old, []time.Duration{-odd, 0}, false},
		{"agreed an hour ago, and one odd answer", old, []time.Duration{0, -odd, 0}, false},
	} {
		w := newWorld("2024-01-31T09:00", planted{})
		n := w.create(one("2024-01-31"))
		p := w.start()
		p.Witnesses = append(w.shows(0, 0), w.shows(c.ago, c.shows...)...)
		_, err := job.Payments(context.Background(), p.Engine, job.Options{Workers: 1})
		if c.refuse != errors.Is(err, billing.ErrClock) || !c.refuse && err != nil || len(w.dues(n)) == 1 == c.refuse {
			t.Errorf("%s: charged for %v, %v", c.what, w.dues(n), err)
		}
		if c.refuse && !strings.Contains(err.Error(), "the bank") {
			t.Errorf("%s: %v; want the name of the witness", c.what, err)
		}
		w.report(t)
	}
}

// TestClock_CommandsRefuse: what makes accounts and subscriptions looks at the clock, too.
func TestClock_CommandsRefuse(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31"))
	w.start().run(civil.Date{})
	w.set("2024-01-30T09:00")
	e := w.start()
	other := one("2024-01-31")
	other.Account = "a2"
	for what, do := range map[string]func() error{
		"account create": func() error {
			_, err := account.Create(ctx, e.Records, "a3", billing.Account{Email: "a@example.com"})
			return err
		},
		"account update": func() error {
			_, err := account.Update(ctx, e.Records, "a1", account.Change{Email: new("b@example.com")})
			return err
		},
		"account attach": func() error {
			_, err := e.Attach(ctx, "a1", billing.Attachment{Fee: new(1)})
			return err
		},
		"subscription create": func() error { _, err := e.CreateSubscription(ctx, other); return err },
		"import": func() error {
			_, err := bulk.Create(ctx, e.Records, []billing.NewSubscription{other})
			return err
		},
		"import of a receipt": func() error { _, err := e.ImportReceipt(ctx, billing.Receipt{}); return err },
	} {
		if err := do(); !errors.Is(err, billing.ErrClock) {
			t.Errorf("%s: %v, want ErrClock", what, err)
		}
	}
	w.report(t)
}

// TestClock_Accepted: a run of a clock that was ahead decides nothing once the clock was accepted,
// even when its day comes.
func TestClock_Accepted(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2026-11-20T09:00", planted{})
	w.records = true
	both := func() {
		w.start().run(civil.Date{})
		w.start().remind()
	}
	both()
	w.set("2027-12-31T09:00")
	both()
	w.set("2026-11-21T09:00")
	_, err := job.Payments(ctx, w.start().Engine, job.Options{Workers: 1})
	wantErr(t, err, billing.ErrClock)
	mustNot(t, w.start().SetCharging(ctx, true, ""))
	ended, err := w.start().LastRunEnded(ctx)
	if err != nil || ended.Format(time.DateOnly) != "2026-11-20" {
		t.Errorf("the last run ended at %s, %v", ended, err)
	}
	n := w.create(one("2027-03-15"))
	w.set("2027-12-31T12:00")
	for _, kind := range []billing.Kind{billing.Payments, billing.Reminders} {
		last, err := w.start().LastDailyRun(ctx, kind)
		mustNot(t, err)
		from, err := w.start().WalkStart(ctx, kind)
		mustNot(t, err)
		if got := last.Started.Format(time.DateOnly); got != "2026-11-20" || from != date("2026-10-16") {
			t.Errorf("%s: the last daily run began on %s, walks begin on %s", kind, got, from)
		}
	}
	w.set("2028-01-05T09:00")
	w.start().run(civil.Date{})
	equal(t, w.dues(n), []string{"2027-03-15", "2027-04-15", "2027-05-15"}) // then it is parked
}

// TestWaitingRows_OfAFutureDay: rows that wait are dated no later than the clock's day, and the
// next run of the clock's day reports them.
func TestWaitingRows_OfAFutureDay(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	var names []billing.Name
	// parked for want of a method, pending, and parked for its arrears
	for i, m := range []string{"", "pm_card_authenticationRequired", "pm_card_visa"} {
		names = append(names, w.create(one("2024-02-29", method(m), func(n *billing.NewSubscription) {
			n.ID, n.PaymentDay = "s"+string(rune('1'+i)), 31
		})))
	}
	r := w.start().run(date("2024-12-31"))
	if r.Counts[engine.OutcomeParked] != 1 || r.Counts[engine.OutcomePending] != 2 {
		t.Errorf("%+v", r.Counts)
	}
	for _, n := range names {
		if s := w.sub(n); s.NextPayment != w.today() {
			t.Errorf("%s", w.describe(n))
		}
	}
	w.tomorrow()
	r = w.start().run(civil.Date{})
	if r.Counts[engine.OutcomeParked] != 1 || r.Counts[engine.OutcomePending] != 2 {
		t.Errorf("the day after: %+v", r.Counts)
	}
}

// TestClock_AcceptedRedates: what runs by a clock ahead have parked, declined or left waiting is on the
// agenda again once the clock is accepted, and a period that is not due is parked no more.
func TestClock_AcceptedRedates(t *testing.T) {
	w := newWorld("2027-01-10T09:00", planted{})
	w.records = true
	name := func(id, method, due string) billing.Name {
		return w.create(one(due, func(n *billing.NewSubscription) { n.ID, n.Method = id, method }))
	}
	declined := name("s1", "pm_card_visa_chargeDeclined", "2027-12-31")
	parked := name("s2", "pm_card_visa", "2027-01-15") // after three charges
	waits := name("s3", "pm_sandbox_processing", "2027-12-30")
	w.start().run(civil.Date{})
	w.set("2027-12-31T09:00")
	w.start().run(civil.Date{})
	for _, n := range []billing.Name{declined, parked, waits} {
		if s := w.sub(n); s.NextPayment.Before(date("2027-12-31")) {
			t.Fatalf("%s", w.describe(n))
		}
	}
	w.set("2027-01-11T09:00")
	mustNot(t, w.start().SetCharging(t.Context(), true, ""))
	mustNot(t, w.start().SetCharging(t.Context(), true, "")) // again, as after a crash
	for n, want := range map[billing.Name]string{declined: "2027-01-12", parked: "2027-04-15", waits: "2027-01-11"} {
		if s := w.sub(n); s.NextPayment != date(want) || s.Status != billing.Active {
			t.Errorf("want %s: %s", want, w.describe(n))
		}
	}
	w.start().run(civil.Date{})
	w.report(t)
}

// An expiring store keeps the guard of its deletion.
type expiring struct {
	store.Store
	may func(context.Context, store.Store) bool
}

func (x *expiring) ExpireWhile(may func(context.Context, store.Store) bool) { x.may = may }

// TestExpiry_WaitsForTheClock: nothing is deleted while the clock is more than 36 hours past the
// last run, and nothing else shows that it is right. A run by such a clock shows nothing either.
func TestExpiry_WaitsForTheClock(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", planted{})
	w.records = true
	x := &expiring{Store: w.spy}
	open := func(readOnly bool) *engine.Engine {
		e, err := engine.Open(ctx, engine.Options{Store: x, Tables: w.tables, Processor: w.box, Now: w.now,
			Config: w.cfg, ReadOnly: readOnly})
		mustNot(t, err)
		e.StandStill()
		return e
	}
	e := open(false)
	want := func(what string, want bool) {
		t.Helper()
		if got := x.may(ctx, w.spy); got != want {
			t.Errorf("%s: deletes %v, want %v", what, got, want)
		}
	}
	run := func() {
		t.Helper()
		_, err := job.Payments(ctx, e, job.Options{Workers: 1})
		mustNot(t, err)
	}
	want("a new store", true)
	w.pass(37 * time.Hour)
	want("a store without a run", false)
	mustNot(t, e.SetCharging(ctx, true, ""))
	for range 5 {
		w.pass(30 * time.Hour)
		want("daily runs", true)
		run()
	}
	w.pass(240 * 24 * time.Hour)
	want("a leap of eight months", false)
	run()
	want("after a run by that clock", false)
	e.Witnesses = w.shows(0, 0)
	want("another clock agrees", true)
	e.Witnesses = w.shows(0, -time.Hour)
	want("another clock does not agree", false)
	e.Witnesses = nil
	mustNot(t, e.SetCharging(ctx, true, ""))
	want("a person has looked", true)
	w.pass(240 * 24 * time.Hour)
	e.Witnesses = w.shows(0, 0)
	run()
	e.Witnesses = nil
	want("after a run that another clock agreed with", true)
	// an older Duesday noted neither instant in META
	mustNot(t, e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, nil, []string{schema.EndedDate, schema.ClockDate})))
	want("an older store", true)
	w.pass(240 * 24 * time.Hour)
	want("an older store, after a leap", false)
	run()
	want("an older store, after a run by that clock", false)
	x.may = nil
	if open(true); x.may != nil {
		t.Error("a reader deletes")
	}
}
