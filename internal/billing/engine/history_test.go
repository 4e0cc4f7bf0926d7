package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// past is the history of all accounts, oldest first.
func (w *world) past(t *testing.T) (all []string) {
	t.Helper()
	for it, err := range w.spy.mem.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		mustNot(t, err)
		if !strings.HasPrefix(it.Str(schema.SK), history.Prefix) {
			continue
		}
		e, err := history.Decode(it)
		mustNot(t, err)
		var text strings.Builder
		text.WriteString(fmt.Sprintf("%s %s %s/%s %s", e.At.Format("2006-01-02"), e.Actor, e.Account, e.Subscription, e.What))
		for _, c := range e.Changes {
			text.WriteString(" " + c.Name)
			if !c.Personal {
				text.WriteString(" " + c.Before + ">" + c.After)
			}
		}
		all = append(all, text.String())
	}
	slices.Sort(all)
	return all
}

// TestHistory_OneRowARequest: each request leaves one row with its actor for each object that it changes, in the
// commit that changes it, and none for what the charge protocol does then.
func TestHistory_OneRowARequest(t *testing.T) {
	want := map[string]string{
		"create a subscription and its account": "a2/s1 subscription.created amount >12.99 currency >USD email next_payment_date >2024-02-29 " +
			"next_reminder_date >2024-02-22 payment_day >29 payment_method sku >gold status >active",
		"create an account": "a2/ account.created email",
		"update an account": "a1/ account.updated email, a1/s1 subscription.updated email",
		"pause": "a1/s1 subscription.updated next_payment_date 2024-01-31> next_reminder_date 2024-01-24> " +
			"paused_on >2024-01-20 status active>paused",
		"pause an open period": "a1/s1 subscription.updated next_payment_date 2024-02-01>2024-01-31 requested >pause",
		"amount":               "a1/s1 subscription.updated amount 12.99>19.99",
		"plan":                 "a1/s1 subscription.updated pending.amount >12.99 pending.from >2024-03-01 pending.sku >silver",
		"refund":               "a1/s1 refund.created amount >5.00 period >0",
		"receipt": "a1/s1 receipt.created next_payment_date 2024-01-31>2024-02-29 next_reminder_date 2024-01-24>2024-02-22 " +
			"paid_periods >1 period >1",
		"charge the next period":                    "",
		"charge the next period, declined":          "",
		"charge the next period, declined for good": "",
		"charge the parked period":                  "",
		"attach":                                    "a1/ account.updated payment_method",
		"card link":                                 "a1/ account.updated customer",
		"skip nothing":                              "",
		"create an API key":                         "",
		"charging off":                              "",
		"settings":                                  "",
	}
	for _, o := range operations() {
		w, n := o.setUp(t)
		before := w.past(t)
		mustNot(t, o.ask(w.start(), n, "h"))
		rows := slices.DeleteFunc(w.past(t), func(row string) bool { return slices.Contains(before, row) })
		var got []string
		for _, row := range rows {
			_, what, _ := strings.Cut(row, "key shop ")
			got = append(got, what)
		}
		text, listed := want[o.name]
		switch {
		case listed && strings.Join(got, ", ") != text:
			t.Errorf("%s: %q, want %q", o.name, rows, text)
		case !listed && len(rows) > 1 && o.name != "resume in several commits":
			t.Errorf("%s: %q", o.name, rows)
		}
		if text := strings.Join(rows, " "); strings.Contains(text, "@") || strings.Contains(text, "pm_") {
			t.Errorf("%s: a personal text: %q", o.name, rows)
		}
	}
}

// TestHistory_JobsLeaveNone: what a job commits is no change of the person who starts it. A card that a customer
// has entered is that customer's.
func TestHistory_JobsLeaveNone(t *testing.T) {
	w, p := newPurse("2024-01-20T09:00")
	n := w.create(one("2024-01-31", method("")))
	ctx := call.With(t.Context(), &call.Call{Actor: "user ann"})
	_, err := w.start().Cards().CardLink(ctx, n.Account, "")
	mustNot(t, err)
	w.goTo(date("2024-01-30"))
	p.use("pm_1", "pm_card_visa")
	pay := func() {
		_, err := job.Payments(ctx, w.start().Engine, job.Options{Workers: 1})
		mustNot(t, err)
	}
	pay()
	want := []string{"2024-01-20 user ann a1/ account.updated customer", "2024-01-30 stripe seti_0 a1/ account.updated payment_method"}
	equal(t, w.past(t), want)
	w.goTo(date("2024-03-01"))
	pay()
	_, _, err = w.start().CollectNow(ctx, n)
	mustNot(t, err)
	_, err = w.start().Reconcile(ctx)
	mustNot(t, err)
	equal(t, w.past(t), want)
	if s := w.sub(n); s.Paid != 2 {
		t.Error(w.describe(n))
	}
}

// TestHistory_PaidOnce: the answer about a period that was perhaps paid twice is in the history of its
// subscription, and raises the version. A repeated answer changes nothing, also after a crash between the
// periods. Without the subscription, the answer still counts.
func TestHistory_PaidOnce(t *testing.T) {
	for stop := range 4 {
		w := newWorld("2024-01-20T09:00", planted{})
		n := w.create(one("2024-01-31"))
		n.SKU = w.sub(n).SKU
		r := w.start().Records
		for _, d := range []*billing.Doubt{{Name: n, Period: 3, Created: r.Now()}, {Name: n, Period: 12, Created: r.Now()},
			{Name: billing.Name{Account: "gone", ID: "s1", SKU: "gold"}, Created: r.Now()}} {
			mustNot(t, w.spy.mem.Commit(t.Context(), d.Write(r.Table)))
		}
		ctx := call.With(t.Context(), &call.Call{Actor: "user ann"})
		version := w.sub(n).Version
		cut := &dyingStore{Store: r.Store, left: stop}
		r.Store = cut
		for range 2 {
			for _, n := range []billing.Name{{Account: n.Account, ID: n.ID}, {Account: "gone", ID: "s1"}} {
				if _, err := r.AnswerDoubts(ctx, n); err != nil && cut.left >= 0 {
					t.Fatal(err)
				}
			}
			cut.left = 99
		}
		equal(t, w.past(t), []string{"2024-01-20 user ann a1/s1 subscription.updated perhaps_paid_twice 12>",
			"2024-01-20 user ann a1/s1 subscription.updated perhaps_paid_twice 3>"})
		for d, err := range r.Doubts(t.Context()) {
			t.Error(d, err)
		}
		if now := w.sub(n).Version; now != version+2 {
			t.Errorf("stop %d: version %d, before %d", stop, now, version)
		}
	}
}

// TestHistory_PaidOnceTwice: two answers at the same time are one change, also if the first one's reply is lost.
func TestHistory_PaidOnceTwice(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	n.SKU = w.sub(n).SKU
	r := w.start().Records
	d := billing.Doubt{Name: n, Period: 3, Created: r.Now()}
	mustNot(t, w.spy.mem.Commit(t.Context(), d.Write(r.Table)))
	ctx := call.With(t.Context(), &call.Call{Actor: "user ann"})
	n.SKU = ""
	r.Store = &cutStore{Store: r.Store, at: 1, between: func() {
		_, err := w.start().AnswerDoubts(ctx, n)
		mustNot(t, err)
		_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Amount: new(usd(1999))})
		mustNot(t, err)
	}}
	_, err := r.AnswerDoubts(ctx, n)
	if err != nil && !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	_, err = r.AnswerDoubts(ctx, n)
	mustNot(t, err)
	equal(t, w.past(t), []string{"2024-01-20 user ann a1/s1 subscription.updated amount 12.99>19.99",
		"2024-01-20 user ann a1/s1 subscription.updated perhaps_paid_twice 3>"})
}

// A dyingStore refuses every commit after the first left ones, as that of a process that dies.
type dyingStore struct {
	store.Store
	left int
}

func (s *dyingStore) Commit(ctx context.Context, writes ...store.Write) error {
	if s.left--; s.left < 0 {
		return errors.New("the process has died")
	}
	return s.Store.Commit(ctx, writes...)
}

// TestHistory_Expires after 24 months, and is listed newest first, from a place on.
func TestHistory_Expires(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	ctx := call.With(t.Context(), &call.Call{Actor: "user ann"})
	_, err := w.start().UpdateSubscription(ctx, n, billing.Change{Amount: new(usd(1999))})
	mustNot(t, err)
	w.goTo(date("2024-01-21"))
	_, err = w.start().SetEmail(ctx, n.Account, "new@example.com")
	mustNot(t, err)
	w.goTo(date("2024-01-22"))
	_, err = w.start().Pause(ctx, n)
	mustNot(t, err)
	list := func(subscription, place string) (all []string) {
		for e, err := range history.Of(context.Background(), w.start().Records, n.Account, subscription, place) {
			mustNot(t, err)
			all = append(all, e.At.Format("02 ")+e.What)
			if place == "" && e.At.Day() == 21 {
				place = e.Place
			}
		}
		return append(all, place)
	}
	all := list("", "")
	place := all[4]
	equal(t, all[:3], []string{"22 subscription.updated", "21 subscription.updated", "21 account.updated"})
	equal(t, list("s1", "")[:3], []string{"22 subscription.updated", "21 subscription.updated", "20 subscription.updated"})
	equal(t, list("", place)[:2], []string{"21 account.updated", "20 subscription.updated"})
	w.clock.Store(date("2026-01-19").In(time.UTC).UnixNano())
	equal(t, w.past(t)[:1], []string{"2024-01-20 user ann a1/s1 subscription.updated amount 12.99>19.99"})
	w.clock.Store(date("2026-01-23").In(time.UTC).UnixNano())
	equal(t, w.past(t), nil)
}
