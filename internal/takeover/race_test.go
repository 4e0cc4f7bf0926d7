package takeover_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/replaced"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/takeover"
)

// TestRenewed_Twice: theirs charged two periods while no run looked. Both are void, and each month is paid once.
func TestRenewed_Twice(t *testing.T) {
	w, customer, id := one(t)
	w.must(takes(t.Context(), w, billing.Name{}))
	w.post("subscriptions/"+id, "cancel_at_period_end=false")
	w.idle(70)
	w.post("subscriptions/"+id, "cancel_at_period_end=true")
	w.idle(11)
	w.days(8)
	if s := w.ours(billing.Name{Account: customer, ID: id}); s.Period != 3 || w.charges(customer) != 4 {
		t.Errorf("period %d, %d charges", s.Period, w.charges(customer))
	}
}

// TestRenewed_Skipped: the operator skips a parked period, because Stripe has charged it. That invoice does not void the
// next period.
func TestRenewed_Skipped(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.post("subscriptions/"+id, "cancel_at_period_end=false")
	w.idle(20)
	w.fake.FailNext("GET /v1/subscriptions/"+id, http.StatusNotFound, "resource_missing", 5)
	w.days(5)
	skipped, err := w.engine.SkipParked(t.Context(), n)
	w.must(err)
	if !skipped.Takeover.Waits.IsZero() {
		t.Errorf("the next period waits since %s already", skipped.Takeover.Waits)
	}
	w.post("subscriptions/"+id, "cancel_at_period_end=true")
	w.days(40)
	s := w.ours(n)
	p, err := w.engine.RecordOf(t.Context(), s.Name, 0)
	if err != nil || p.Ending != billing.EndSkipped || s.Period != 2 || s.Takeover.Stage != billing.TakeoverDone || w.charges(customer) != 3 {
		t.Errorf("%+v, %v; period %d, %d charges", p, err, s.Period, w.charges(customer))
	}
}

// TestRenewed_Unpaid: theirs renewed after all, and its invoice is not paid. Ours waits, also after theirs is canceled,
// because the customer may still pay the invoice. After it is void, a person has ours charged.
func TestRenewed_Unpaid(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	bad := w.post("payment_methods/pm_card_chargeCustomerFail/attach", "customer="+customer).id()
	w.post("subscriptions/"+id, "cancel_at_period_end=false", "default_payment_method="+bad)
	w.idle(21)
	w.days(2)
	if s := w.ours(n); s.Status != billing.Active || s.Period != 0 || s.Takeover.Waits.IsZero() {
		t.Errorf("%s, period %d, %+v", s.Status, s.Period, s.Takeover)
	}
	w.stripe(http.MethodDelete, "subscriptions/"+id)
	w.days(4)
	if s := w.ours(n); s.Status != billing.ParkedState || !strings.Contains(s.Parked, "unpaid invoice") || w.charges(customer) != 1 {
		t.Errorf("%s: %s, %d charges", s.Status, s.Parked, w.charges(customer))
	}
	for _, i := range w.list("invoices", "subscription="+id, "status=open") {
		w.post("invoices/" + i.id() + "/void")
	}
	_, _, err := w.engine.ChargeParked(t.Context(), n)
	w.must(err)
	if s := w.ours(n); s.Period != 1 || s.Takeover.Stage != billing.TakeoverDone || w.charges(customer) != 2 {
		t.Errorf("period %d, %+v, %d charges", s.Period, s.Takeover, w.charges(customer))
	}
}

// TestParked_Renewed: theirs charges a period after ours was parked. A run notices.
func TestParked_Renewed(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.post("subscriptions/"+id, "cancel_at_period_end=false")
	w.idle(20)
	w.fake.FailNext("GET /v1/subscriptions/"+id, http.StatusNotFound, "resource_missing", 5)
	w.days(7)
	if s := w.ours(n); s.Status != billing.Active || s.Period != 1 || !s.Held() {
		t.Errorf("%s, period %d", s.Status, s.Period)
	}
}

// TestStart_TwoAccounts: a start that was interrupted continues, although another account has the customer now.
func TestStart_TwoAccounts(t *testing.T) {
	w, customer, id := one(t)
	w.fake.FailNext("POST /v1/subscriptions/"+id, http.StatusNotFound, "resource_missing", 1)
	if all, err := w.take(t.Context(), takeover.Filter{}); err == nil || all[id].Theirs.ID != id {
		t.Errorf("%v for %v", err, all)
	}
	s := w.ours(billing.Name{Account: customer, ID: id})
	_, err := w.engine.CreateSubscription(t.Context(), billing.NewSubscription{Account: "alice", Email: "a@example.com", ID: "other", SKU: "x",
		Customer: customer, Amount: s.Amount, Interval: s.Interval, Method: s.Method, TrialDays: 300, ReminderDays: 3})
	w.must(err)
	w.must(takes(t.Context(), w, billing.Name{}))
	w.days(30)
	if n := w.charges(customer); n != 2 {
		t.Errorf("%d charges", n)
	}
}

// TestStart_MeetsUndo: an undo ends while a start is about to set the flag. Theirs continues, and the start fails.
func TestStart_MeetsUndo(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.before = func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, id) {
			w.before = nil
			w.must(undoes(t.Context(), w, n))
		}
	}
	if err := takes(t.Context(), w, n); err == nil {
		t.Error("no error")
	}
	theirs := w.stripe(http.MethodGet, "subscriptions/"+id)
	if s := w.ours(n); s.Takeover.Stage != billing.TakeoverUndone || theirs["cancel_at_period_end"] == true {
		t.Errorf("%+v, %v", s.Takeover, theirs["cancel_at_period_end"])
	}
}

// TestStart_ReadsBack: somebody makes theirs continue, or removes its mark, before the start has read it back. The start
// fails. The same start completes it, unless its customer may have canceled it.
func TestStart_ReadsBack(t *testing.T) {
	for _, change := range []string{"cancel_at_period_end=false", "metadata[duesday_takeover]="} {
		w, customer, id := one(t)
		n, asked := billing.Name{Account: customer, ID: id}, false
		w.before = func(r *http.Request) {
			switch own := strings.HasSuffix(r.URL.Path, id); {
			case own && r.Method == http.MethodPost:
				asked = true
			case own && asked:
				w.before = nil
				w.post("subscriptions/"+id, change)
			}
		}
		err := takes(t.Context(), w, n)
		if s := w.ours(n); err == nil || w.before != nil || s.Takeover.Stage != billing.TakeoverHeld {
			t.Errorf("%v; stage %s", err, s.Takeover.Stage)
		}
		w.must(takes(t.Context(), w, n))
		want := billing.TakeoverEnding
		if strings.HasPrefix(change, "metadata") { // its customer may have canceled it
			want = billing.TakeoverHeld
		}
		if s := w.ours(n); s.Takeover.Stage != want {
			t.Errorf("again: stage %s", s.Takeover.Stage)
		}
	}
}

// TestStart_PeriodMoves: somebody moves the end of a trial before the start has read it back. The start fails, the
// next one leaves the subscription, and after an undo it is taken over at its new boundary.
func TestStart_PeriodMoves(t *testing.T) {
	w := newWorld(t)
	customer, _ := w.customer(1)
	id := w.post("subscriptions", "customer="+customer, "items[0][price]="+w.price(), "trial_period_days=20").id()
	n, asked := billing.Name{Account: customer, ID: id}, false
	moved := w.now().AddDate(0, 0, 40)
	w.before = func(r *http.Request) {
		switch own := strings.HasSuffix(r.URL.Path, id); {
		case own && r.Method == http.MethodPost:
			asked = true
		case own && asked:
			w.before = nil
			w.post("subscriptions/"+id, fmt.Sprint("trial_end=", moved.Unix()))
		}
	}
	err := takes(t.Context(), w, n)
	if s := w.ours(n); err == nil || w.before != nil || s.Takeover.Stage != billing.TakeoverHeld {
		t.Errorf("%v; stage %s", err, s.Takeover.Stage)
	}
	all, err := w.take(t.Context(), takeover.Filter{})
	if w.must(err); !strings.Contains(all[id].Stays, "undo the takeover first") {
		t.Errorf("stays %q", all[id].Stays)
	}
	w.must(undoes(t.Context(), w, n))
	w.must(takes(t.Context(), w, billing.Name{}))
	if s := w.ours(billing.Name{Account: customer, ID: id + "-2"}); s.Takeover.Stage != billing.TakeoverEnding || !s.Takeover.Boundary.Equal(moved.Truncate(time.Second)) {
		t.Errorf("again: %+v", s.Takeover)
	}
}

// TestStart_ChecksAgain: theirs is paused after the plan. It stays, and nothing is stored here.
func TestStart_ChecksAgain(t *testing.T) {
	w, _, id := one(t)
	w.before = func(r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, id) {
			w.before = nil
			w.post("subscriptions/"+id, "pause_collection[behavior]=void")
		}
	}
	all, err := w.take(t.Context(), takeover.Filter{})
	e := all[id]
	if w.must(err); e.Stays == "" || e.Stored || w.stripe(http.MethodGet, "subscriptions/"+id)["cancel_at_period_end"] == true {
		t.Errorf("got %+v", e)
	}
}

// TestStart_Restored: a store of a backup from before the start takes the subscription over again, as the comparison with
// the lost store says, and the customer pays once a month. A store of another installation leaves it.
func TestStart_Restored(t *testing.T) {
	w, customer, id := one(t)
	before := w.copied()
	w.must(takes(t.Context(), w, billing.Name{}))
	lost := w.inner
	other, err := memstore.Open(w.tables.All(), w.now)
	w.must(err)
	w.inner = other
	w.start(nil)
	if all, err := w.take(t.Context(), takeover.Filter{}); err != nil || !strings.Contains(all[id].Stays, "by installation") {
		t.Errorf("%v, %+v", err, all[id])
	}
	w.inner = before
	w.start(nil)
	if got, want := w.redone(lost), []string{"takeover start --where subscription=" + id}; !slices.Equal(got, want) {
		t.Errorf("reconcile tells to run %q, want %q", got, want)
	}
	w.inner = lost
	w.start(nil)
	n := billing.Name{Account: customer, ID: id}
	_, err = w.engine.Cancel(t.Context(), n, false)
	w.must(err)
	w.inner = before
	w.start(nil)
	if got, want := w.redone(lost), []string{"subscription cancel " + customer + "/" + id}; !slices.Equal(got, want) {
		t.Errorf("of a canceled one, reconcile tells to run %q, want %q", got, want)
	}
	w.must(takes(t.Context(), w, billing.Name{}))
	w.days(35)
	if s := w.ours(n); s.Takeover.Stage != billing.TakeoverDone || w.charges(customer) != 2 {
		t.Errorf("%s, %d charges", s.Takeover.Stage, w.charges(customer))
	}
}

// TestUndo_Restored: a store of a backup from before an undo is told to undo again. Theirs continues.
func TestUndo_Restored(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	before := w.copied()
	w.must(undoes(t.Context(), w, n))
	lost := w.inner
	w.inner = before
	w.start(nil)
	if got, want := w.redone(lost), []string{"takeover undo " + customer + "/" + id}; !slices.Equal(got, want) {
		t.Errorf("reconcile tells to run %q, want %q", got, want)
	}
	w.must(undoes(t.Context(), w, n))
	if s := w.ours(n); s.Takeover.Stage != billing.TakeoverUndone || w.stripe(http.MethodGet, "subscriptions/"+id)["cancel_at_period_end"] == true {
		t.Errorf("stage %s", s.Takeover.Stage)
	}
}

// copied returns a store with the rows of this one.
func (w *world) copied() store.Store {
	to, err := memstore.Open(w.tables.All(), w.now)
	w.must(err)
	for _, table := range w.tables.All() {
		for it, err := range w.inner.Scan(w.Context(), store.Scan{Table: table.Name}) {
			w.must(err)
			w.must(to.Commit(w.Context(), store.Put(table.Name, it)))
		}
	}
	return to
}

// redone returns the commands that a comparison with the lost store prints, but for those about accounts.
func (w *world) redone(lost store.Store) (commands []string) {
	c, err := replaced.Open(w.Context(), w.engine.Records, billing.NewRecords(lost, w.tables, w.now, nil), w.engine.Mailed)
	w.must(err)
	w.must(c.Changes(w.Context(), func(x replaced.Change) {
		if x.Redo != "" && !strings.HasPrefix(x.Redo, "account ") {
			commands = append(commands, x.Redo)
		}
	}))
	return commands
}

// TestUndo_TooLate: theirs ends during an undo. Ours is parked, because nobody knows whether the customer wants it.
func TestUndo_TooLate(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	_, err := w.engine.UndoTakeover(t.Context(), n)
	w.must(err)
	w.days(25)
	if err := undoes(t.Context(), w, n); err == nil {
		t.Error("no error")
	}
	w.days(2)
	if s := w.ours(n); s.Status != billing.ParkedState || w.charges(customer) != 1 {
		t.Errorf("%s, %d charges", s.Status, w.charges(customer))
	}
	if r, _, err := w.engine.ChargeParked(t.Context(), n); err != nil || len(r) == 0 || r[0].Outcome != engine.OutcomePaid {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestVerify_TakenOverTwice: the audit names two subscriptions that were made from one.
func TestVerify_TakenOverTwice(t *testing.T) {
	w, customer, id := one(t)
	w.must(takes(t.Context(), w, billing.Name{}))
	s := w.ours(billing.Name{Account: customer, ID: id})
	_, err := w.engine.CreateSubscription(t.Context(), billing.NewSubscription{Account: "alice", Email: "a@example.com", ID: "other", SKU: "x", Customer: customer,
		Amount: s.Amount, Interval: s.Interval, Method: s.Method, NextPayment: s.NextPayment, PaymentDay: s.PaymentDay, Takeover: s.Takeover})
	w.must(err)
	if p := w.verify().Problems; len(p) != 1 || p[0].Kind != "taken over twice" {
		t.Errorf("%+v", p)
	}
	_, err = w.engine.Cancel(t.Context(), billing.Name{Account: "alice", ID: "other"}, false)
	w.must(err)
	if p := w.verify().Problems; len(p) > 0 {
		t.Errorf("after a cancellation: %+v", p)
	}
}

// TestPlan_Stays: what a start could not store is not shown as ready.
func TestPlan_Stays(t *testing.T) {
	w := newWorld(t)
	for _, tt := range [][]string{{"name=Ada"}, {"email=a@example.com", "lookup_key=my gym plan"}, {"email=a@example.com", "unit_amount=0"}} {
		c := w.post("customers", tt[0])
		m := w.post("payment_methods/pm_card_visa/attach", "customer="+c.id())
		w.post("subscriptions", "customer="+c.id(), "items[0][price]="+w.price(tt[1:]...), "default_payment_method="+m.id())
	}
	w.pass(48 * time.Hour)
	var stays []string
	for e, err := range w.service().Plan(t.Context(), takeover.Filter{}) {
		w.must(err)
		stays = append(stays, e.Stays)
	}
	slices.Sort(stays)
	for i, want := range []string{"amount", "its customer has no email address", "sku"} {
		if !strings.Contains(stays[i], want) {
			t.Errorf("%q, want %q", stays[i], want)
		}
	}
}

// TestDates: the days on which theirs renews, by UTC, are those of ours, in a zone.
func TestDates(t *testing.T) {
	for _, tt := range []struct{ zone, anchor, end, first, second string }{
		{"UTC", "2027-01-31T12:00:00Z", "2027-02-28T12:00:00Z", "2027-02-28", "2027-03-31"},
		{"UTC", "2027-01-30T12:00:00Z", "2027-04-30T12:00:00Z", "2027-04-30", "2027-05-30"},
		{"America/New_York", "2027-01-31T00:30:00Z", "2027-02-28T00:30:00Z", "2027-02-28", "2027-03-30"},
		{"America/New_York", "2027-01-15T00:30:00Z", "2027-02-15T00:30:00Z", "2027-02-14", "2027-03-14"},
		{"Europe/Berlin", "2027-01-31T23:30:00Z", "2027-02-28T23:30:00Z", "2027-03-01", "2027-04-01"},
	} {
		at := func(text string) time.Time {
			v, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		first, second := takeover.Dates(processor.Subscription{Anchor: at(tt.anchor), PeriodEnd: at(tt.end), Interval: billing.Monthly}, tt.zone)
		if first.String() != tt.first || second.String() != tt.second {
			t.Errorf("%s %s: %s, %s; want %s, %s", tt.zone, tt.end, first, second, tt.first, tt.second)
		}
	}
}
