package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

func fulfils(o *poller.ImportOptions) { o.Fulfil = true }

// recent imports few months of payments, which takes few requests.
func recent(o *poller.ImportOptions) { o.Payments = o.Now.Add(-40 * 24 * time.Hour) }

// small is a market with a subscription of each kind that an import treats in its own way.
func small(t *testing.T) *market {
	m := newMarket(t)
	m.owns("running", "pm_card_visa")
	m.owns("canceled", "pm_card_visa")
	m.owns("incomplete", "pm_card_visa", "payment_behavior=default_incomplete")
	m.cancel("canceled")
	m.fake.Advance(time.Hour) // only the events from now on are part of an import
	m.post("refunds", "payment_intent="+m.intent("running"), "amount=500")
	return m
}

// all returns what is tracked, what was done, and the account's mark.
func (t *tenant) all() string {
	t.Helper()
	a, err := t.service.ConnectedAccount(t.Context(), shopAt)
	if err != nil {
		t.Fatal(err)
	}
	rows := t.tracked()
	var text strings.Builder
	text.WriteString(fmt.Sprint(slices.Sorted(slices.Values(t.robot.jobs())), a.Polled.Through))
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		text.WriteString("\n" + id + " " + rows[id])
	}
	return text.String()
}

// TestFollow_Crashes: an import that dies at any commit or request, before or after, or that loses the reply of
// a commit, is completed by the next one, and fulfils no purchase twice.
func TestFollow_Crashes(t *testing.T) {
	m := small(t)
	for _, change := range [][]func(*poller.ImportOptions){{recent}, {recent, fulfils}} {
		whole := m.tenant(salted(t))
		faulty := storetest.NewFaulty(whole.store)
		whole.stage.Store = faulty
		m.line.arm(nil)
		if _, err := whole.imports(t.Context(), change...); err != nil {
			t.Fatal(err)
		}
		commits, requests := faulty.Commits(), m.line.n
		whole.follows(change...)
		want := whole.all()
		if commits < 8 || requests < 10 || len(whole.robot.jobs()) != len(change)-1 {
			t.Fatalf("%d commits, %d requests, %v", commits, requests, whole.robot.jobs())
		}
		tries := func(what string, at int, how func(b *tenant) error) {
			b := m.tenant(salted(t))
			err := how(b)
			m.line.arm(nil)
			next := m.tenant(b.store, with(b.robot))
			next.follows(change...)
			if got := next.all(); got != want {
				t.Errorf("%s %d (%v):\n%s\nwant\n%s", what, at, err, got, want)
			}
			if r := next.follows(change...); r.Imported+r.Changed+r.Fulfils+r.Payments != 0 || next.all() != want {
				t.Errorf("%s %d, and again: %+v", what, at, r)
			}
		}
		for n := range commits {
			for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
				tries("dies at commit", n+1, func(b *tenant) error {
					f := storetest.NewFaulty(b.store)
					f.Hook, b.stage.Store = storetest.CrashAt(n+1, phase), f
					_, err := b.imports(t.Context(), change...)
					if !errors.Is(err, storetest.ErrCrash) {
						t.Errorf("commit %d: got %v", n+1, err)
					}
					return err
				})
			}
			tries("loses the reply of commit", n+1, func(b *tenant) error {
				f := storetest.NewFaulty(b.store)
				f.Hook, _ = failing(n+1, storetest.After, store.ErrUnknown, storetest.Commit)
				b.stage.Store = f
				_, err := b.imports(t.Context(), change...)
				if err != nil {
					t.Errorf("commit %d: got %v", n+1, err)
				}
				return err
			})
		}
		for n := range requests {
			for _, late := range []bool{false, true} {
				tries("dies at request", n+1, func(b *tenant) error {
					ctx, die := context.WithCancel(t.Context())
					defer die()
					m.line.arm(func(at int, after bool) error {
						if at != n+1 || after != late {
							return nil
						}
						die()
						return context.Canceled
					})
					_, err := b.imports(ctx, change...)
					if err == nil {
						t.Errorf("request %d: nothing died", n+1)
					}
					return err
				})
			}
		}
	}
}

// TestFollow_Fulfils: --fulfil-active fulfils the active purchases once, also of an earlier import, and leaves
// those alone whose subscription has ended or begun since.
func TestFollow_Fulfils(t *testing.T) {
	m := small(t)
	b := m.tenant(salted(t))
	if r := b.follows(func(o *poller.ImportOptions) { o.Plan, o.Fulfil = true, true }); r.Imported != 3 || r.Fulfils != 1 || r.Payments != 3 ||
		len(b.tracked()) > 0 {
		t.Errorf("planned %+v, and stored %v", r, b.tracked())
	}
	if r := b.follows(); r.Fulfils != 0 || len(b.robot.jobs()) > 0 {
		t.Errorf("not asked for, but %+v %v", r, b.robot.jobs())
	}
	for i, want := range []int{1, 0, 0} {
		if r := b.follows(fulfils); r.Fulfils != want || len(b.robot.jobs()) != 1 {
			t.Errorf("%d: %+v %v", i, r, b.robot.jobs())
		}
	}
	b.skips()
	m.cancel("running")
	m.post("payment_intents/"+m.intent("incomplete")+"/confirm", "payment_method=pm_card_visa", "return_url=https://shop.example")
	b.hears()
	if got := b.robot.jobs(); len(got) != 3 { // the end of one, and the beginning of the other
		t.Errorf("got %v", got)
	}
	b.follows(fulfils)
	if got := b.robot.jobs(); len(got) != 3 {
		t.Errorf("again: %v", got)
	}
}

// TestFollow_Skips: what cannot be followed is named with its reason, and stores nothing.
func TestFollow_Skips(t *testing.T) {
	m := newMarket(t)
	m.owns("several", "pm_card_visa", "items[0][price]="+m.weekly, "items[1][price]="+m.weekly)
	m.owns("foreign", "pm_card_visa", "metadata[duesday_installation]=another", "metadata[duesday_purchase]="+aPurchase)
	gone := m.owns("gone", "pm_card_visa")
	m.do(http.MethodDelete, "customers/"+m.do(http.MethodGet, "subscriptions/"+gone).str("customer"))
	m.post("subscription_schedules", "customer="+m.post("customers").id(), "start_date="+fmt.Sprint(m.fake.Now().Unix()+9000),
		"phases[0][items][0][price]="+m.monthly, "phases[0][duration][interval]=month", "phases[0][duration][interval_count]=2")
	b := m.tenant(salted(t))
	var reasons []string
	r := b.follows(func(o *poller.ImportOptions) {
		o.Each = func(row poller.ImportRow) {
			if row.Action != "skip" {
				t.Errorf("got %+v", row)
			}
			reasons = append(reasons, row.Reason)
		}
	})
	slices.Sort(reasons)
	want := []string{"it has not begun", "it has several items", "its customer is deleted", "made by another installation"}
	if r.Skipped != 4 || r.OtherPayments != 3 || !slices.Equal(reasons, want) || len(b.tracked()) > 0 {
		t.Errorf("got %+v, %q, %v", r, reasons, b.tracked())
	}
}

// A meanwhile is a Lister that lets things happen between Stripe's answer and the import of what it contains.
type meanwhile struct {
	poller.Lister
	happens func(o tracking.Object)
}

// ListFollowed implements poller.Lister.
func (l meanwhile) ListFollowed(ctx context.Context, at string, since, payments, until time.Time,
	each func(tracking.Object, string) error) error {
	return l.Lister.ListFollowed(ctx, at, since, payments, until, func(o tracking.Object, problem string) error {
		l.happens(o)
		return each(o, problem)
	})
}

// TestFollow_Meanwhile: what happens while the import reads the lists is found, whether its webhook comes at
// once or never. An event about a row that does not exist yet is ignored at first.
func TestFollow_Meanwhile(t *testing.T) {
	for _, comes := range []bool{true, false} {
		if wrong := importsMeanwhile(t, comes, func(l poller.Importer) poller.Importer { return l }); len(wrong) > 0 {
			t.Errorf("webhooks %v: %s", comes, strings.Join(wrong, "\n"))
		}
	}
	for name, planted := range map[string]func(poller.Importer) poller.Importer{
		"ignored events stay ignored": func(l poller.Importer) poller.Importer { return noReplay{l} },
		"missing events stay missing": func(l poller.Importer) poller.Importer { return noIngest{l} },
	} {
		if len(importsMeanwhile(t, true, planted))+len(importsMeanwhile(t, false, planted)) == 0 {
			t.Errorf("not noticed: %s", name)
		}
	}
}

// A noReplay is the planted bug that events about rows that did not exist yet are not decided again.
type noReplay struct{ poller.Importer }

// Replay implements poller.Importer.
func (noReplay) Replay(context.Context, string) (v tracking.Verdict, err error) { return v, nil }

// A noIngest is the planted bug that events since the import began are not read.
type noIngest struct{ poller.Importer }

// Ingest implements poller.Importer.
func (noIngest) Ingest(context.Context, []byte, tracking.Origin) (v tracking.Verdict, err error) {
	return v, nil
}

// importsMeanwhile returns what is wrong after an import during which something happens.
func importsMeanwhile(t *testing.T, comes bool, change func(poller.Importer) poller.Importer) (wrong []string) {
	m := small(t)
	b := m.tenant(salted(t))
	b.skips()
	happened := map[string]bool{}
	once := func(name string, do func()) {
		if !happened[name] {
			happened[name] = true
			do()
			if comes {
				b.hears()
			}
		}
	}
	b.follows(recent, func(o *poller.ImportOptions) {
		o.Ledger = change(o.Ledger)
		o.Lister = meanwhile{o.Lister, func(o tracking.Object) {
			switch {
			case o.ID == m.subs["running"]:
				once("ends", func() { m.cancel("running") })
			case o.ID == m.subs["incomplete"]:
				once("begins", func() {
					m.post("payment_intents/"+m.intent("incomplete")+"/confirm", "payment_method=pm_card_visa",
						"return_url=https://shop.example")
					m.owns("new", "pm_card_visa")
				})
			case o.Kind == tracking.KindPayment:
				once("refund", func() { m.post("refunds", "payment_intent="+m.intent("canceled")) })
			}
		}}
	})
	states := map[string]string{}
	for name, id := range m.subs {
		sub, err := b.service.Subscription(t.Context(), shopAt, id)
		if err != nil {
			return append(wrong, fmt.Sprintf("%s: %v", name, err))
		}
		states[name] = string(sub.Status)
	}
	want := map[string]string{"running": "terminated", "canceled": "terminated", "incomplete": "active", "new": "active"}
	if !maps.Equal(states, want) {
		wrong = append(wrong, fmt.Sprint("states ", states))
	}
	jobs := b.robot.jobs()
	for i, j := range jobs {
		jobs[i], _, _ = strings.Cut(j, "/")
	}
	slices.Sort(jobs)
	if !slices.Equal(jobs, []string{"fulfil", "unsubscribe"}) {
		wrong = append(wrong, fmt.Sprint("did ", b.robot.jobs()))
	}
	a := m.tenant(salted(t))
	a.follows()
	for _, name := range []string{"running", "canceled", "incomplete", "new"} {
		p, err := b.service.Payment(t.Context(), shopAt, m.intent(name))
		want, failed := a.service.Payment(t.Context(), shopAt, m.intent(name))
		if err != nil || failed != nil || p.Status != tracking.PaymentPaid || p.Refunded != want.Refunded {
			wrong = append(wrong, fmt.Sprintf("%s's payment is %+v, %v", name, p, err))
		}
	}
	if again := b.follows(); again.Imported+again.Changed+again.Payments != 0 {
		wrong = append(wrong, fmt.Sprintf("again %+v", again))
	}
	return wrong
}

// A troubled is the importer and lister of an account whose events cause the error once, and that lists thin events.
type troubled struct {
	poller.Importer
	poller.Lister
	err  error
	thin []time.Time // from when thin events were listed
}

// Ingest implements poller.Importer.
func (l *troubled) Ingest(ctx context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error) {
	if err := l.err; err != nil {
		l.err = nil
		return tracking.Verdict{}, fmt.Errorf("this event: %w", err)
	}
	return l.Importer.Ingest(ctx, body, from)
}

// ListThin implements poller.Lister.
func (l *troubled) ListThin(_ context.Context, _ string, since time.Time, _ func(poller.RawEvent) error) error {
	l.thin = append(l.thin, since)
	return poller.ErrNoThin
}

// TestFollow_Events: an import leaves out an event that cannot be decoded or decided, ends with any other error,
// and reads the thin events of an account that has them. The events begin five minutes before it, and the poller
// goes on from there, unless it has already polled.
func TestFollow_Events(t *testing.T) {
	m := small(t)
	b := m.tenant(salted(t))
	begin := m.fake.Now().Add(-5 * time.Minute)
	through := func(when string, thin bool) {
		t.Helper()
		a, err := b.service.ConnectedAccount(t.Context(), shopAt)
		if err != nil || !a.Polled.Through.Equal(begin) {
			t.Fatalf("%s: polled through %v, %v, want %v", when, a.Polled.Through, err, begin)
		}
		a.Polled.Thin = thin
		m.must(b.service.SavePoll(t.Context(), shopAt, a.Polled))
	}
	for _, leftOut := range []error{tracking.ErrBody, tracking.ErrNotApplied, nil} {
		m.post("refunds", "payment_intent="+m.intent("running"), "amount=100")
		l := &troubled{Importer: b.service, Lister: m.tracker, err: leftOut}
		r := b.follows(recent, func(o *poller.ImportOptions) { o.Ledger, o.Lister = l, l })
		if !r.Since.Equal(m.fake.Now().Add(-5*time.Minute)) || l.err != nil {
			t.Errorf("%v: the events since %v were read, want five minutes", leftOut, r.Since)
		}
		through(fmt.Sprint("after ", leftOut), leftOut != nil)
		if polled := leftOut != tracking.ErrBody; polled != (len(l.thin) == 1) || polled && !l.thin[0].Equal(r.Since) {
			t.Errorf("%v: thin events were listed since %v", leftOut, l.thin)
		}
		m.fake.Advance(time.Hour)
	}
	m.post("refunds", "payment_intent="+m.intent("running"), "amount=100")
	full := errors.New("the disk is full")
	l := &troubled{Importer: b.service, Lister: m.tracker, err: full}
	if _, err := b.imports(t.Context(), func(o *poller.ImportOptions) { o.Ledger, o.Lister = l, l }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

// TestFollow_NoLonger: what is followed and could no longer begin to be followed is brought up to date by a later import.
func TestFollow_NoLonger(t *testing.T) {
	m := newMarket(t)
	b := m.tenant(salted(t))
	id := m.owns("gone", "pm_card_visa")
	if r := b.follows(); r.Imported != 1 {
		t.Fatalf("got %+v", r)
	}
	b.skips()
	m.do(http.MethodDelete, "customers/"+m.do(http.MethodGet, "subscriptions/"+id).str("customer")) // ends it, too
	m.fake.Advance(time.Hour)                                                                       // its events are too old to be read
	r := b.follows()
	sub, err := b.service.Subscription(t.Context(), shopAt, id)
	if err != nil || sub.Status != tracking.SubscriptionTerminated || r.Known != 1 || r.Skipped != 0 || r.Events != 0 {
		t.Errorf("got %+v, %+v, %v", r, sub, err)
	}
}
