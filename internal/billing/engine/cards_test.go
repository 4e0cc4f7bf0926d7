package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// bare has no payment method of its own.
func bare(n *billing.NewSubscription) { n.Method = "" }

func second(n *billing.NewSubscription) { n.ID = "s2" }

// account reads it around all faults.
func (w *world) account(id string) *billing.Account {
	w.look.Do(func() { w.looker = w.start() })
	a, err := w.looker.Account(context.Background(), id)
	if err != nil {
		panic(err)
	}
	return a
}

// attach is without any fault.
func (w *world) attach(t *testing.T, a billing.Attachment) *billing.Account {
	t.Helper()
	got, err := w.start().Attach(t.Context(), "a1", a)
	mustNot(t, err)
	return got
}

// link makes a link for the account, or for its subscription.
func (w *world) link(t *testing.T, subscription string) processor.CardLink {
	t.Helper()
	l, err := w.start().Cards().CardLink(t.Context(), "a1", subscription)
	mustNot(t, err)
	return l
}

// contents is the whole table, but for what the runs record of themselves.
func (w *world) contents(t *testing.T) string {
	t.Helper()
	var all []string
	for it, err := range w.spy.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		mustNot(t, err)
		if pk := it.Str("PK"); !strings.HasPrefix(pk, "RUN#") && !strings.HasPrefix(pk, "UNPAID#") {
			all = append(all, fmt.Sprint(it))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestAttach(t *testing.T) {
	w, p := newPurse("2024-01-01T09:00")
	w.create(one("2024-01-31", bare))
	p.give("", "cus_a", "pm_1", "pm_card_visa")
	p.give("", "", "pm_free", "pm_card_visa")
	p.give("", "cus_b", "pm_b", "pm_card_visa")
	p.give("acct_1", "cus_c", "pm_c", "pm_card_visa")

	a := w.attach(t, billing.Attachment{Customer: "cus_a"})
	if a.Method != "pm_1" || a.Payer != (processor.Payer{Customer: "cus_a"}) || !a.Given.Equal(w.now()) {
		t.Errorf("the customer's default: %+v", a)
	}
	if a = w.attach(t, billing.Attachment{Method: "pm_free"}); a.Method != "pm_free" ||
		p.cards["pm_free"].customer != "cus_a" {
		t.Errorf("another method of the same customer: %+v", a)
	}
	before := w.contents(t)
	for _, bad := range []billing.Attachment{{}, {Customer: "cus_a", Method: "pm_b"}, {Customer: "cus_nobody"},
		{Method: "pm_nothing"}, {Fee: new(250)},
		{Connected: new("acct_1"), Fee: new(10001)}, {Connected: new("acct_1"), Fee: new(-1)}, {Customer: "cus a"},
		{Method: "4242424242424242"}} {
		if _, err := w.start().Attach(t.Context(), "a1", bad); err == nil ||
			strings.Contains(err.Error(), "4242424242424242") {
			t.Errorf("%+v: error %v", bad, err)
		}
	}
	if w.contents(t) != before {
		t.Error("what was refused has changed something")
	}
	_, err := w.start().Attach(t.Context(), "nobody", billing.Attachment{Method: "pm_1"})
	wantErr(t, err, store.ErrNotFound)

	if a = w.attach(t, billing.Attachment{Connected: new("acct_1"), Fee: new(250)}); a.Method != "" ||
		a.Payer != (processor.Payer{At: "acct_1", Fee: 250}) {
		t.Errorf("a connected account forgets what was given elsewhere: %+v", a)
	}
	a = w.attach(t, billing.Attachment{Customer: "cus_c"})
	if a.Method != "pm_c" || a.Payer != (processor.Payer{At: "acct_1", Customer: "cus_c", Fee: 250}) {
		t.Errorf("its customer: %+v", a)
	}
	contains := strings.Contains(w.contents(t), "PROCESSOR") && strings.Contains(w.contents(t), "acct_1")
	if !contains {
		t.Error("the connected account is not registered")
	}
	w.goTo(date("2024-01-31"))
	if r := w.start().run(civil.Date{}); r.Counts[engine.OutcomePaid] != 1 {
		t.Errorf("counts %v", r.Counts)
	}
	w.report(t)
}

// TestAttach_WithoutWallet: the sandbox keeps no customers, and takes plain tokens.
func TestAttach_WithoutWallet(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", bare))
	e := w.start()
	for _, bad := range []billing.Attachment{{Customer: "cus_1"}, {Connected: new("acct_1")}} {
		_, err := e.Attach(t.Context(), "a1", bad)
		wantErr(t, err, processor.ErrNoWallet)
	}
	_, err := e.Cards().CardLink(t.Context(), "a1", "")
	wantErr(t, err, processor.ErrNoWallet)
	if taken, err := e.CollectCards(t.Context(), time.Time{}); len(taken) != 0 || err != nil {
		t.Errorf("%v, %v", taken, err)
	}
	if r := e.run(civil.Date{}); r.Counts[engine.OutcomePending] != 1 || w.sub(n).Parked != "no payment method" {
		t.Errorf("counts %v, %s", r.Counts, w.describe(n))
	}
	w.attach(t, billing.Attachment{Method: "pm_card_visa"})
	if r := w.start().run(civil.Date{}); r.Counts[engine.OutcomePaid] != 1 || w.sub(n).Status != billing.Active {
		t.Errorf("counts %v, %s", r.Counts, w.describe(n))
	}
	w.report(t)
}

// TestAccountMethodTakesEffectAtOnce: for a period that is open, for a subscription that is
// past_due, and not for one with a method of its own.
func TestAccountMethodTakesEffectAtOnce(t *testing.T) {
	w, p := newPurse("2024-01-31T09:00")
	n := w.create(one("2024-01-31", bare))
	own := w.create(one("2024-01-31", second, method("pm_card_visa_chargeDeclined")))
	p.give("", "cus_1", "pm_bad", "pm_card_visa_chargeDeclined")
	p.give("", "cus_1", "pm_good", "pm_card_visa")
	w.attach(t, billing.Attachment{Customer: "cus_1", Method: "pm_bad"})
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Open == nil || s.NextPayment != date("2024-02-01") {
		t.Fatalf("%s", w.describe(n))
	}
	w.attach(t, billing.Attachment{Method: "pm_good"})
	if s := w.sub(n); s.Open == nil || s.Open.Method != "pm_good" || s.NextPayment != w.today() || s.Open.Attempt != 3 {
		t.Errorf("%s", w.describe(n))
	}
	if s := w.sub(own); s.Open == nil || s.Open.Method != "pm_card_visa_chargeDeclined" {
		t.Errorf("its own method: %s", w.describe(own))
	}
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Period != 1 || s.Status != billing.Active {
		t.Errorf("%s", w.describe(n))
	}

	w.attach(t, billing.Attachment{Method: "pm_bad"})
	w.goTo(date("2024-02-29"))
	for w.sub(n).Status == billing.Active {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	if s := w.sub(n); s.Status != billing.PastDue {
		t.Fatalf("%s", w.describe(n))
	}
	w.goTo(date("2024-05-10"))
	paid := len(w.attempts())
	w.attach(t, billing.Attachment{Method: "pm_good"})
	if s := w.sub(n); s.Status != billing.Active || s.NextPayment != date("2024-05-31") {
		t.Errorf("%s", w.describe(n))
	}
	w.start().run(civil.Date{})
	if got := len(w.attempts()); got != paid {
		t.Errorf("%d attempts, %d before: nobody is charged for what passed", got, paid)
	}
	w.report(t)
}

// TestAnotherCustomer: an intent of the customer before cannot take the new one's card. It
// is cancelled, and the period is paid by another intent.
func TestAnotherCustomer(t *testing.T) {
	for _, acts := range []string{"pm_card_visa_chargeDeclined", "pm_card_authenticationRequired",
		"pm_sandbox_processing"} {
		w, p := newPurse("2024-01-31T09:00")
		n := w.create(one("2024-01-31", bare))
		p.give("", "cus_1", "pm_1", acts)
		p.give("acct_1", "cus_2", "pm_2", "pm_card_visa")
		w.attach(t, billing.Attachment{Customer: "cus_1"})
		w.start().run(civil.Date{})
		old := w.sub(n).Open.Ref
		w.attach(t, billing.Attachment{Customer: "cus_2", Connected: new("acct_1")})
		if acts == "pm_sandbox_processing" { // nobody knows yet what it will come to
			mustNot(t, w.box.Finish(old, true))
		} else if state := w.state(old); state != processor.Canceled {
			t.Errorf("%s: the old intent is %s", acts, state)
		}
		w.start().run(civil.Date{})
		if s := w.sub(n); s.Period != 1 || s.Open != nil {
			t.Errorf("%s: %s", acts, w.describe(n))
		}
		w.report(t)
	}
}

func TestCardLink(t *testing.T) {
	w, p := newPurse("2024-01-01T09:00")
	w.create(one("2024-01-31", bare))
	w.create(one("2024-01-31", second, bare))
	l := w.link(t, "")
	if !strings.HasPrefix(l.URL, "https://") || !l.Expires.Equal(w.now().Add(24*time.Hour)) {
		t.Errorf("%+v", l)
	}
	w.link(t, "s2")
	if got := p.links[1]; got.Subscription != "s2" || got.Payer.Customer != w.account("a1").Payer.Customer ||
		got.Currency != "USD" || got.Key == p.links[0].Key {
		t.Errorf("%+v", got)
	}
	if len(p.customers) != 1 || p.customers["cus_0"].Email != "ada@example.com" ||
		strings.Contains(w.contents(t), "secret_") {
		t.Errorf("customers %v, store\n%s", p.customers, w.contents(t))
	}
	_, err := w.start().Cards().CardLink(t.Context(), "nobody", "")
	wantErr(t, err, store.ErrNotFound)
	_, err = w.start().Cards().CardLink(t.Context(), "a1", "s9")
	wantErr(t, err, store.ErrNotFound)
	_, err = w.start().Cancel(t.Context(), billing.Name{Account: "a1", ID: "s2"}, false)
	mustNot(t, err)
	_, err = w.start().Cards().CardLink(t.Context(), "a1", "s2")
	wantErr(t, err, billing.ErrState)
}

// TestCardLink_Concurrent: many ask at once, in processes that forget each other's keys, and
// all links are of one customer.
func TestCardLink_Concurrent(t *testing.T) {
	w, p := newPurse("2024-01-01T09:00")
	w.create(one("2024-01-31", bare))
	var all sync.WaitGroup
	p.meet = new(sync.WaitGroup)
	p.meet.Add(8)
	for range 8 {
		e := w.start()
		all.Go(func() {
			if _, err := e.Cards().CardLink(t.Context(), "a1", ""); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(p.customers) != 8 || len(p.links) != 8 {
		t.Errorf("%d customers, %d links", len(p.customers), len(p.links))
	}
	for _, l := range p.links {
		if l.Payer != w.account("a1").Payer {
			t.Errorf("a link of %+v, the account has %+v", l.Payer, w.account("a1").Payer)
		}
	}
}

func TestCollectCards(t *testing.T) {
	w, p := newPurse("2024-01-31T09:00")
	n := w.create(one("2024-01-31", bare))
	own := w.create(one("2024-01-31", second, bare))
	w.link(t, "")
	p.use("pm_1", "pm_card_visa_chargeDeclined")
	w.pass(time.Minute)
	p.use("pm_2", "pm_card_visa") // given later: the one that counts
	w.link(t, "s2")
	p.use("pm_own", "pm_card_visa_chargeDeclined")
	w.pass(time.Minute)
	p.setups = append(p.setups, processor.Setup{ID: "x", Customer: "cus_0", Installation: "another's", Account: "a1",
		Card: p.give("", "cus_0", "pm_x", "pm_card_visa")},
		processor.Setup{ID: "y", Customer: "cus_9", Installation: p.links[0].Installation, Account: "a1",
			Card: p.give("", "cus_9", "pm_y", "pm_card_visa")},
		processor.Setup{ID: "z", Customer: "cus_0", Installation: p.links[0].Installation, Account: "gone",
			Card: p.give("", "cus_0", "pm_z", "pm_card_visa")})
	slices.Reverse(p.setups)
	r := w.start().run(civil.Date{})
	if r.Cards != 2 || r.Counts[engine.OutcomePaid] != 1 || r.Counts[engine.OutcomeRetry] != 1 || len(r.Missed) != 0 {
		t.Errorf("%+v", r)
	}
	if a, s := w.account("a1"), w.sub(own); a.Method != "pm_2" || s.Method != "pm_own" || w.sub(n).Method != "" {
		t.Errorf("%+v, %+v", a, s)
	}

	before := w.contents(t) // the same list again
	if taken, err := w.start().CollectCards(t.Context(), time.Time{}); len(taken) != 0 || err != nil ||
		w.contents(t) != before {
		t.Errorf("seen again: %v, %v\n%s\nbefore\n%s", taken, err, w.contents(t), before)
	}

	w.pass(time.Minute) // a person's word is later than all of them
	p.give("", "cus_0", "pm_3", "pm_card_visa")
	w.attach(t, billing.Attachment{Method: "pm_3"})
	_, err := w.start().UpdateSubscription(t.Context(), own, billing.Change{Method: new("pm_3")})
	mustNot(t, err)
	before = w.contents(t)
	if taken, err := w.start().CollectCards(t.Context(), time.Time{}); len(taken) != 0 || err != nil ||
		w.contents(t) != before {
		t.Errorf("older than a person's: %v, %v", taken, err)
	}
	w.pass(time.Minute)
	w.link(t, "s2")
	p.use("pm_4", "pm_card_visa")
	if taken, err := w.start().CollectCards(t.Context(), time.Time{}); len(taken) != 1 || err != nil ||
		w.sub(own).Method != "pm_4" {
		t.Errorf("%v, %v, %s", taken, err, w.describe(own))
	}
	w.start().run(civil.Date{})
	if s := w.sub(own); s.Period != 1 {
		t.Errorf("%s", w.describe(own))
	}
	w.report(t)
}

// TestCollectCards_AFailureStays: a subscription that went past_due with the card that was
// given last stays so, however often that card is seen.
func TestCollectCards_AFailureStays(t *testing.T) {
	for _, target := range []string{"", "s1"} {
		w, p := newPurse("2024-01-31T09:00")
		n := w.create(one("2024-01-31", bare))
		w.link(t, target)
		p.use("pm_1", "pm_card_visa_chargeDeclinedLostCard")
		w.start().run(civil.Date{})
		for range 3 {
			if s := w.sub(n); s.Status != billing.PastDue {
				t.Fatalf("%s", w.describe(n))
			}
			w.start().run(civil.Date{})
		}
		w.pass(time.Minute)
		p.use("pm_2", "pm_card_visa")
		w.start().run(civil.Date{})
		if s := w.sub(n); s.Status != billing.Active || s.Period != 1 {
			t.Errorf("%s", w.describe(n))
		}
		w.report(t)
	}
}

// TestCollectCards_OneBadPlace: neither a connected account that refuses us nor one
// subscription that cannot be told keeps the others from their cards.
func TestCollectCards_OneBadPlace(t *testing.T) {
	w, p := newPurse("2024-01-31T09:00")
	w.create(one("2024-02-28", bare))
	w.create(one("2024-02-28", bare, func(n *billing.NewSubscription) { n.Account = "a2" }))
	_, err := w.start().Attach(t.Context(), "a2", billing.Attachment{Connected: new("acct_bad")})
	mustNot(t, err)
	p.refused["acct_bad"] = true
	w.link(t, "")
	p.use("pm_1", "pm_card_visa")
	if taken, err := w.start().CollectCards(t.Context(), time.Time{}); len(taken) != 1 || err != nil {
		t.Errorf("%v, %v", taken, err)
	}
	p.fails = []error{processor.ErrRefused}
	_, err = w.start().CollectCards(t.Context(), time.Time{})
	wantErr(t, err, processor.ErrRefused)
	p.fails = []error{processor.ErrUnknown, processor.ErrUnknown}
	if _, err := w.start().CollectCards(t.Context(), time.Time{}); err != nil {
		t.Errorf("a listing that breaks off is begun anew: %v", err)
	}
}

// TestCards_EveryCrashPoint cuts attaching, linking and the run that takes a card over, in a
// crash or by a lost answer, and does each again: the end is the same.
func TestCards_EveryCrashPoint(t *testing.T) {
	cases := 0
	for _, crash := range []bool{true, false} {
		for which := range 3 {
			for point := 1; ; point++ {
				w, p := newPurse("2024-01-31T09:00")
				open, late, waiting := w.create(one("2024-01-31", bare)), w.create(one("2024-01-30", second, bare)),
					w.create(one("2024-02-28", bare, func(n *billing.NewSubscription) { n.ID = "s3" }))
				p.give("", "cus_1", "pm_bad", "pm_card_visa_chargeDeclined")
				p.give("", "cus_2", "pm_other", "pm_card_visa_chargeDeclined")
				w.attach(t, billing.Attachment{Customer: "cus_1"})
				w.start().run(civil.Date{})
				w.pass(time.Minute)
				steps := [](func(*process) error){
					func(e *process) error {
						_, err := e.Attach(t.Context(), "a1", billing.Attachment{Customer: "cus_2"})
						return err
					},
					func(e *process) error {
						_, err := e.Cards().CardLink(t.Context(), "a1", "")
						if err == nil {
							p.use("pm_linked", "pm_card_visa")
						}
						return err
					},
					func(e *process) error { return ignore(e.run(civil.Date{})) },
				}
				passed := 0
				for i, step := range steps {
					var f []fault
					if i == which {
						f = []fault{{point, crash}}
					}
					e := w.start(f...)
					err := step(e)
					if i == which {
						passed = e.faults.passed()
					}
					for try := 0; (err != nil || e.faults.struck()) && try < 3; try++ {
						e = w.start()
						err = step(e)
					}
					if err != nil {
						t.Fatalf("step %d, cut at %d of step %d: %v", i, point, which, err)
					}
					w.pass(time.Minute)
				}
				if point > passed {
					break
				}
				cases++
				for _, n := range []billing.Name{open, late} {
					if s := w.sub(n); s.Period != 1 || s.Open != nil || s.Status != billing.Active {
						t.Errorf("step %d cut at %d (crash %v): %s", which, point, crash, w.describe(n))
					}
				}
				if a := w.account("a1"); a.Method != "pm_linked" || a.Payer.Customer != "cus_2" || w.sub(waiting).Period != 0 {
					t.Errorf("step %d cut at %d (crash %v): %+v", which, point, crash, a)
				}
				w.report(t)
			}
		}
	}
	if cases < 60 {
		t.Errorf("only %d cases", cases)
	}
}

func ignore(*job.Report) error { return nil }

// TestCards_LastWordWins is a property: whatever is given, attached, run and seen again, the
// account and the subscription are charged with what was given last, each period once. A subscription's own
// card that declines may give way to one that its account was given later.
func TestCards_LastWordWins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w, p := newPurse("2024-01-31T09:00")
		n := w.create(one("2024-01-31", bare))
		if _, err := w.start().Cards().CardLink(context.Background(), "a1", ""); err != nil {
			rt.Fatal(err)
		}
		want := map[string]string{}
		made, last := 0, ""
		declines := map[string]bool{}
		give := func(target string) string {
			made++
			token := fmt.Sprint("pm_", made)
			if _, err := w.start().Cards().CardLink(context.Background(), "a1", target); err != nil {
				rt.Fatal(err)
			}
			acts := rapid.SampledFrom([]string{"pm_card_visa", "pm_card_visa_chargeDeclined",
				"pm_card_visa_chargeDeclinedLostCard"}).Draw(rt, "acts")
			p.use(token, acts)
			declines[token], last = acts != "pm_card_visa", target
			return token
		}
		rt.Repeat(map[string]func(*rapid.T){
			"card":         func(*rapid.T) { w.pass(time.Second); want[""] = give("") },
			"own card":     func(*rapid.T) { w.pass(time.Second); want["s1"] = give("s1") },
			"a month":      func(*rapid.T) { w.pass(30 * 24 * time.Hour) },
			"see it again": func(*rapid.T) { _, _ = w.start().CollectCards(context.Background(), time.Time{}) },
			"attach": func(*rapid.T) {
				w.pass(time.Second)
				made++
				token := fmt.Sprint("pm_", made)
				p.give("", "cus_0", token, "pm_card_visa")
				if _, err := w.start().Attach(context.Background(), "a1", billing.Attachment{Method: token}); err != nil {
					rt.Fatal(err)
				}
				want[""], last = token, ""
			},
			"": func(rt *rapid.T) {
				w.start().run(civil.Date{})
				s, a := w.sub(n), w.account("a1")
				if s.Method == "" && declines[want["s1"]] && last == "" {
					delete(want, "s1")
				}
				if a.Method != want[""] || s.Method != want["s1"] {
					rt.Fatalf("account %q, subscription %q; want %q", a.Method, s.Method, want)
				}
				in := s.Method
				if in == "" {
					in = a.Method
				}
				if s.Open != nil && s.Open.Method != in {
					rt.Fatalf("the open period has %s, not %s", s.Open.Method, in)
				}
				for _, v := range w.audit() {
					rt.Fatal(v)
				}
			},
		})
	})
}

// effects returns what the outbox has of one kind.
func (w *world) effects(t *testing.T, kind string) []outbox.Effect {
	t.Helper()
	var found []outbox.Effect
	for it, err := range w.spy.Scan(t.Context(), store.Scan{Table: w.tables.Outbox.Name}) {
		mustNot(t, err)
		if it.Str("Kind") != kind {
			continue
		}
		f := outbox.Effect{ID: it.Str("SK"), Kind: kind, Data: map[string]string{}}
		for _, a := range it.Get("Data").Map() {
			f.Data[a.Name] = a.Value.Str()
		}
		found = append(found, f)
	}
	return found
}

func TestReminderTellsOfTheCard(t *testing.T) {
	for due, expired := range map[string]string{"2024-12-31": "", "2025-01-01": "true", "2025-02-28": "true"} {
		w, p := newPurse("2024-01-01T09:00")
		w.create(one(due, bare))
		p.give("", "cus_1", "pm_1", "pm_card_visa")
		w.attach(t, billing.Attachment{Customer: "cus_1"})
		w.goTo(date(due).AddDays(-7))
		w.start().remind()
		got := w.effects(t, outbox.KindReminder)
		if len(got) != 1 || got[0].Data[outbox.DataCard] != "Visa ending in 4242" ||
			got[0].Data[outbox.DataCardExpires] != "2024-12" ||
			got[0].Data[outbox.DataCardExpired] != expired || p.asked != 1 {
			t.Fatalf("due %s: %+v, asked %d", due, got, p.asked)
		}
		link, err := w.start().Recipients().Link(t.Context(), got[0])
		if err != nil || (link.URL != "") != (expired != "") {
			t.Errorf("due %s: link %+v, %v", due, link, err)
		}
	}
	w, p := newPurse("2024-01-24T09:00")
	w.create(one("2024-01-31", bare))
	p.give("", "cus_1", "pm_1", "pm_card_visa")
	w.attach(t, billing.Attachment{Customer: "cus_1"})
	p.fails = []error{processor.ErrUnknown}
	w.start().remind()
	if got := w.effects(t, outbox.KindReminder); len(got) != 1 || got[0].Data[outbox.DataCard] != "" {
		t.Errorf("the reminder goes without what nobody told: %+v", got)
	}
}

func TestLinks(t *testing.T) {
	w, p := newPurse("2024-01-31T09:00")
	n := w.create(one("2024-01-31", bare))
	own := w.create(one("2024-01-31", second, method("pm_card_visa_chargeDeclinedLostCard")))
	p.give("", "cus_1", "pm_1", "pm_card_visa_chargeDeclined")
	w.attach(t, billing.Attachment{Customer: "cus_1"})
	w.start().run(civil.Date{})
	declined, failed := w.effects(t, outbox.KindDeclined), w.effects(t, outbox.KindFailed)
	if len(declined) != 1 || len(failed) != 1 {
		t.Fatalf("%+v, %+v", declined, failed)
	}
	for _, tt := range []struct {
		f    outbox.Effect
		want string
	}{{declined[0], ""}, {failed[0], own.ID}} {
		l, err := w.start().Recipients().Link(t.Context(), tt.f)
		if err != nil || l.URL == "" || p.links[len(p.links)-1].Subscription != tt.want {
			t.Errorf("%s: %+v, %v", tt.f.Kind, l, err)
		}
	}
	for _, passing := range []error{processor.ErrUnknown, processor.ErrNotExecuted, errors.New("no route")} {
		p.fails = []error{passing}
		if l, err := w.start().Recipients().Link(t.Context(), declined[0]); !errors.Is(err, passing) || l.URL != "" {
			t.Errorf("%v: %+v, %v", passing, l, err)
		}
	}
	for _, definite := range []error{processor.ErrInvalid, processor.ErrAccountRefused} {
		p.fails = []error{definite}
		if l, err := w.start().Recipients().Link(t.Context(), declined[0]); err != nil || l.URL != "" {
			t.Errorf("%v: %+v, %v", definite, l, err)
		}
	}
	_, err := w.start().Cancel(t.Context(), n, false)
	mustNot(t, err)
	if l, err := w.start().Recipients().Link(t.Context(), declined[0]); err != nil || l.URL != "" {
		t.Errorf("cancelled: %+v, %v", l, err)
	}

	w.cardURL = "https://shop.example/card?a={account}&s={subscription}"
	if l, err := w.start().Recipients().Link(t.Context(), failed[0]); err != nil || l.URL != "https://shop.example/card?a=a1&s=s2" ||
		!l.Expires.IsZero() {
		t.Errorf("the merchant's own page: %+v, %v", l, err)
	}
	if l, err := w.start().Recipients().Link(t.Context(), outbox.Effect{Kind: outbox.KindReceipt}); err != nil || l.URL != "" {
		t.Errorf("a receipt: %+v, %v", l, err)
	}
}

// TestActionIsAskedForWhileItIsWanted: the mail names the intent, leads to its page, and is
// dropped when the payment waits no more.
func TestActionIsAskedForWhileItIsWanted(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_authenticationRequired")))
	w.start().run(civil.Date{})
	got := w.effects(t, outbox.KindActionRequired)
	if len(got) != 1 || got[0].Data[outbox.DataRef] != w.sub(n).Open.Ref {
		t.Fatalf("%+v", got)
	}
	e := w.start()
	if wanted, err := e.Recipients().StillWanted(t.Context(), got[0]); !wanted || err != nil {
		t.Errorf("%v, %v", wanted, err)
	}
	if l, err := e.Recipients().Link(t.Context(), got[0]); err != nil || l.URL != "" { // the sandbox has no page
		t.Errorf("%+v, %v", l, err)
	}
	mustNot(t, w.box.Authenticate(w.sub(n).Open.Ref))
	e.run(civil.Date{})
	if wanted, err := e.Recipients().StillWanted(t.Context(), got[0]); wanted || err != nil {
		t.Errorf("paid: %v, %v", wanted, err)
	}
}

// ownCard makes a subscription with a card of its own, which the first run tries on 2024-01-31, and
// then gives its account another one.
func ownCard(t *testing.T, behaviour string) (*world, *purse, billing.Name) {
	t.Helper()
	w, p := newPurse("2024-01-31T09:00")
	n := w.create(one("2024-01-31", bare))
	w.link(t, "s1")
	p.use("pm_own", behaviour)
	w.start().run(civil.Date{})
	w.pass(time.Hour)
	w.link(t, "")
	w.pass(time.Minute)
	p.use("pm_given", "pm_card_visa")
	w.pass(time.Minute)
	return w, p, n
}

// TestCollectCards_OwnMethodFails: a card given to the account takes the place of a subscription's
// own method that fails, in the run that takes it over, and of none that works.
func TestCollectCards_OwnMethodFails(t *testing.T) {
	for _, test := range []struct {
		behaviour, method string
		paid, keep        int
		months            int // paid by the end of the next month
	}{
		{"pm_card_visa_chargeDeclined", "", 1, 0, 2},         // waits for its retry day
		{"pm_card_visa_chargeDeclinedLostCard", "", 0, 0, 1}, // past_due: its failed period is forgiven
		{"pm_card_visa", "pm_own", 0, 1, 2},
	} {
		t.Run(test.behaviour, func(t *testing.T) {
			w, _, n := ownCard(t, test.behaviour)
			keep, err := w.start().KeepOwn(t.Context(), "a1")
			mustNot(t, err)
			tried := len(w.attempts())
			r := w.start().run(civil.Date{})
			if s := w.sub(n); s.Method != test.method || r.Cards != 1 || r.Counts[engine.OutcomePaid] != test.paid ||
				len(r.KeepOwn) != test.keep || len(keep) != test.keep || len(w.attempts()) != tried+test.paid || s.Status != billing.Active {
				t.Errorf("%+v, %v, method %q, %d attempts; %s", r, keep, s.Method, len(w.attempts())-tried, w.describe(n))
			}
			before := w.contents(t)
			if taken, err := w.start().CollectCards(t.Context(), time.Time{}); len(taken) != 0 || err != nil || w.contents(t) != before {
				t.Errorf("seen again: %v, %v", taken, err)
			}
			w.goTo(date("2024-02-29"))
			w.start().run(civil.Date{})
			if s := w.sub(n); s.Paid != test.months {
				t.Errorf("paid %d; %s", s.Paid, w.describe(n))
			}
			w.report(t)
		})
	}
}

// TestCollectCards_OwnMethodFailsCrash: cut off anywhere, the next run finishes, and charges once.
func TestCollectCards_OwnMethodFailsCrash(t *testing.T) {
	for _, behaviour := range []string{"pm_card_visa_chargeDeclined", "pm_card_visa_chargeDeclinedLostCard"} {
		for point := 1; ; point++ {
			w, _, n := ownCard(t, behaviour)
			p := w.start(fault{point, point%2 == 0})
			p.run(civil.Date{})
			w.start().run(civil.Date{})
			w.goTo(date("2024-02-29"))
			w.start().run(civil.Date{})
			want := 2
			if behaviour == "pm_card_visa_chargeDeclinedLostCard" {
				want = 1
			}
			if s := w.sub(n); s.Method != "" || s.Paid != want {
				t.Errorf("%s, point %d: paid %d with %q; %s", behaviour, point, s.Paid, s.Method, w.describe(n))
			}
			w.report(t)
			if !p.faults.struck() {
				break
			}
		}
	}
}

// TestCollectCards_LaterOwnMethod: a method of the subscription's own that was given later, or that failed
// after the account was given its card, stays.
func TestCollectCards_LaterOwnMethod(t *testing.T) {
	w, p, n := ownCard(t, "pm_card_visa")
	w.start().run(civil.Date{})
	w.pass(time.Minute)
	w.link(t, "s1")
	p.use("pm_late", "pm_card_visa_chargeDeclined")
	w.goTo(date("2024-02-29"))
	w.start().run(civil.Date{})
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Method != "pm_late" || s.Open == nil || s.Open.Method != "pm_late" {
		t.Errorf("method %q; %s", s.Method, w.describe(n))
	}
	w.report(t)
}
