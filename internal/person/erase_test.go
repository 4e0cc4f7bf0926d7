package person_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
)

// records returns the records of another process.
func (w *world) records(s store.Store) *billing.Records {
	w.Helper()
	return w.engine(s).Records
}

// calm lets a day pass, so that no purchase is new.
func (w *world) calm() { w.at = w.at.AddDate(0, 0, 2) }

// wantGone fails the test unless no item has a mark.
func (w *world) wantGone(what string) {
	w.Helper()
	for _, key := range w.holders() {
		w.Errorf("%s: the mark is in %s", what, key)
	}
}

// TestErase: after an erasure, no item of any table has a personal value, in keys, names, values and bodies. The
// other person's items are as they were, amounts and dates of the person too, and the audit is clean.
func TestErase(t *testing.T) {
	for kind := range engines {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			w.calm()
			before, others, paid, problems := w.all(), w.others(), w.amounts(), w.problems()
			r := w.records(w.store)
			dry, err := person.Erase(w.asked(""), r, personID, true)
			w.must(err)
			if !maps.Equal(before, w.all()) {
				t.Error("a dry run has written")
			}
			x, err := person.Erase(w.asked("erase"), r, personID, false)
			w.must(err)
			w.wantGone("erased")
			if x.Changed != dry.Changed || x.Changed == 0 {
				t.Errorf("%d items were changed, %d announced", x.Changed, dry.Changed)
			}
			if want := []string{own + "/cus_by_address", own + "/" + customer}; !slices.Equal(x.Customers, want) {
				t.Errorf("customers %q, want %q", x.Customers, want)
			}
			if !maps.Equal(others, w.others()) {
				t.Error("another person's items were changed")
			}
			if now := w.amounts(); !maps.Equal(paid, now) {
				t.Errorf("amounts and dates were %v, and are %v", paid, now)
			}
			after := w.all()
			for key := range before {
				if after[key] == "" && !strings.Contains(key, " {OUT") && !strings.Contains(key, " {HLD") && !strings.Contains(key, "IDX#EMAIL") {
					t.Errorf("%s was deleted", key)
				}
			}
			if now := w.problems(); now != problems {
				t.Errorf("the audit found %s, and finds %s", problems, now)
			}
			x, err = person.Erase(w.asked("again"), r, personID, false)
			if err != nil || x.Changed != 0 {
				t.Errorf("again: %d, %v", x.Changed, err)
			}
		})
	}
}

// problems returns what the audit finds.
func (w *world) problems() string {
	w.Helper()
	report, err := w.engine(w.store).Verify(w.Context())
	w.must(err)
	return fmt.Sprint(report.Problems)
}

// others returns what is not about the person.
func (w *world) others() map[string]string {
	all := w.all()
	maps.DeleteFunc(all, func(key, text string) bool {
		return !strings.Contains(key+text, otherID) && !strings.Contains(text, "two@example.com")
	})
	return all
}

// amounts returns the amounts and dates of the person's items.
func (w *world) amounts() map[string]string {
	w.Helper()
	found := map[string]string{}
	for it, err := range w.store.Query(w.Context(), store.Query{Table: w.tables.RecurringPayments.Name, Partition: billing.AccountPK(personID)}) {
		w.must(err)
		if sk := it.Str(schema.SK); !strings.HasPrefix(sk, history.Prefix) {
			for _, name := range []string{schema.ProcessedAmount, schema.Amount, schema.PaymentAmount, schema.Period, schema.DueDate, schema.ProcessedDate,
				schema.CreatedDate, schema.TTL, schema.Status, schema.State, schema.Paid, schema.Number, schema.LastCharge, schema.Customer} {
				found[sk] += " " + it.Str(name) + it.Get(name).Num()
			}
		}
	}
	return found
}

// TestErase_Adversary: the walk over the store finds a mark wherever it may hide, so an attribute that erasing
// forgets fails TestErase.
func TestErase_Adversary(t *testing.T) {
	w := newWorld(t, "memory")
	w.calm()
	_, err := person.Erase(w.asked(""), w.records(w.store), personID, false)
	w.must(err)
	deep := store.L(store.M(store.NewItem(store.Attribute{Name: "x", Value: store.B([]byte("y" + mark))})))
	for _, a := range []store.Attribute{{Name: "New", Value: store.S("a " + strings.ToUpper(mark))}, {Name: mark, Value: store.Int(1)}, {Name: "New", Value: deep}} {
		key := w.paid.Key()
		it, err := w.store.Get(t.Context(), w.tables.RecurringPayments.Name, key)
		w.must(err)
		w.set(key, a)
		if len(w.holders()) != 1 {
			t.Errorf("the walk does not find %s", a.Name)
		}
		w.must(w.store.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
	}
	w.wantGone("removed again")
}

// TestErase_Crash: an erasure that is killed before or after any of its commits is completed by the next one.
func TestErase_Crash(t *testing.T) {
	for kind := range engines {
		if kind != "memory" && testing.Short() {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			kills := 0
			for n := 1; ; n++ {
				alive := false
				for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
					w := newWorld(t, kind)
					w.calm()
					paid := w.amounts()
					f := storetest.NewFaulty(w.store)
					r := w.records(f)
					f.Hook = storetest.CrashAt(f.Commits()+n, phase)
					_, err := person.Erase(w.asked("erase"), r, personID, false)
					if alive = err == nil; alive {
						break
					}
					kills++
					if !errors.Is(err, storetest.ErrCrash) {
						t.Fatal(err)
					}
					_, err = person.Erase(w.asked("erase"), w.records(w.store), personID, false)
					w.must(err)
					w.wantGone("after a crash")
					if !maps.Equal(paid, w.amounts()) {
						t.Error("amounts or dates were changed")
					}
				}
				if alive {
					break
				}
			}
			if kills < 20 {
				t.Errorf("only %d kills", kills)
			}
		})
	}
}

// TestErase_LostReply: lost replies of commits change nothing.
func TestErase_LostReply(t *testing.T) {
	for n := 1; n <= 12; n++ {
		w := newWorld(t, "memory")
		w.calm()
		f := storetest.NewFaulty(w.store)
		r := w.records(f)
		f.Hook = storetest.LoseReply(f.Commits()+n, storetest.After)
		_, err := person.Erase(w.asked("erase"), r, personID, false)
		w.must(err)
		w.wantGone("after a lost reply")
	}
}

// renew has the person's purchases created now.
func (w *world) renew() {
	w.Helper()
	table := w.tables.Tracking.Purchases.Name
	for it, err := range w.store.Scan(w.Context(), store.Scan{Table: table}) {
		w.must(err)
		it = it.Clone()
		it.Set(schema.TrackedCreated, store.S(w.at.Format("2006-01-02 15:04:05.000")))
		w.must(w.store.Commit(w.Context(), store.Put(table, it)))
	}
}

// TestErase_Refused: an erasure is refused with all reasons at once, and the history has the refusal.
func TestErase_Refused(t *testing.T) {
	w := newWorld(t, "memory")
	e := w.engine(w.store)
	w.renew()
	live := billing.NewSubscription{Account: personID, ID: "2", SKU: "news", Amount: w.amount(), PaymentDay: 31, Method: "pm_card_visa"}
	_, err := e.CreateSubscription(w.asked(""), live)
	w.must(err)
	r := w.records(w.store)
	_, err = person.Erase(w.asked(""), r, personID, true)
	before := w.all()
	_, err2 := person.Erase(w.asked(""), r, personID, false)
	for _, err := range []error{err, err2} {
		if !errors.As(err, new(*person.RefusedError)) || !errors.Is(err, billing.ErrState) {
			t.Fatal(err)
		}
		for _, reason := range []string{"subscription 1001/2 is active", "is less than a day old"} {
			if !strings.Contains(err.Error(), reason) {
				t.Errorf("%v does not name: %s", err, reason)
			}
		}
	}
	rows := 0
	for h, err := range history.Of(t.Context(), r, personID, "", "") {
		w.must(err)
		if h.What == "account.erasure_refused" && h.Actor == "user ann" && strings.Contains(h.Changes[0].After, "1001/2 is active") {
			rows++
		}
	}
	if rows != 1 || len(w.all()) != len(before)+1 {
		t.Errorf("%d rows of the history, %d new items", rows, len(w.all())-len(before))
	}
}

// TestGuard: an erased account takes no personal data again: no change, no subscription, no bounce. Money still
// can go back, and repeating a key does nothing.
func TestGuard(t *testing.T) {
	w := newWorld(t, "memory")
	w.calm()
	_, err := person.Erase(w.asked("erase"), w.records(w.store), personID, false)
	w.must(err)
	e := w.engine(w.store)
	again := email
	_, err = account.Update(w.asked(""), e.Records, personID, account.Change{Email: &again})
	w.wantErased("update", err)
	next := billing.NewSubscription{Account: personID, ID: "3", SKU: "news", Amount: w.amount(), PaymentDay: 31, Method: "pm_card_visa"}
	_, err = e.CreateSubscription(w.asked(""), next)
	w.wantErased("create", err)
	address := mark
	_, err = e.UpdateSubscription(w.asked(""), w.paid, billing.Change{Address: &address})
	if err == nil {
		t.Error("a canceled subscription takes an address")
	}
	_, err = account.Create(w.asked(""), e.Records, personID, billing.Account{Email: email})
	if !errors.Is(err, billing.ErrExists) {
		t.Errorf("create again: %v", err)
	}
	w.wantGone("guarded")
}

func (w *world) wantErased(what string, err error) {
	w.Helper()
	if !errors.Is(err, billing.ErrErased) {
		w.Errorf("%s: %v, want ErrErased", what, err)
	}
}

// TestLater: an event about an erased person that arrives later is applied without its body. Other bodies are kept.
func TestLater(t *testing.T) {
	w := newWorld(t, "memory")
	w.calm()
	r := w.records(w.store)
	erases := person.Later(r)
	for _, erased := range []bool{false, true} {
		for body, want := range map[string]bool{`{"id":"` + customer + `"}`: true, `{"id":"cus_two"}`: false, `{"note":"` + email + `"}`: false} {
			is, err := erases(t.Context(), own, []byte(body))
			if err != nil || is != (want && erased) {
				t.Errorf("%s, erased %t: %t, %v", body, erased, is, err)
			}
		}
		_, err := person.Erase(w.asked(""), r, personID, false)
		w.must(err)
		w.calm() // the list is read again
	}
	for _, erased := range []bool{true, false} {
		o := w.tracking(w.engine(w.store))
		if erased {
			o.Erases = erases
		}
		s, err := tracking.Open(t.Context(), o)
		w.must(err)
		id := fmt.Sprint("evt_later_", erased)
		body := fmt.Sprintf(`{"id":"%s","object":"event","type":"customer.deleted","created":%d,"livemode":false,"data":{"object":{"object":"customer","id":"%s","name":"%s"}}}`,
			id, w.at.Unix(), customer, mark)
		if v, err := s.Ingest(t.Context(), []byte(body), tracking.Origin{Source: tracking.FromWebhook}); err != nil || !v.Status.Final() {
			t.Errorf("%+v, %v", v, err)
		}
		e, err := s.Event(t.Context(), id)
		if w.must(err); erased != (len(e.Body) == 0 && e.Erased == fmt.Sprintf("%x", sha256.Sum256([]byte(body)))) {
			t.Errorf("erased %t: the event has the body %q and the hash %q", erased, e.Body, e.Erased)
		}
	}
}

// TestAgain: a backup brings the data back. The list of the store that it replaced has it erased again, and an
// account that is alive in the backup stays in the list until it can be erased.
func TestAgain(t *testing.T) {
	old, now := newWorld(t, "memory"), newWorld(t, "pebble")
	old.calm()
	_, err := person.Erase(old.asked(""), old.records(old.store), personID, false)
	old.must(err)
	now.renew()
	r := now.records(now.store) // as the backup has it
	n, left, err := person.Again(now.asked(""), r, old.records(old.store))
	if n != 0 || len(left) != 1 || err != nil {
		t.Fatalf("%d, %v, %v", n, left, err)
	}
	now.calm()
	n, left, err = person.Again(now.asked(""), r, nil) // by the list of its own
	if n != 1 || len(left) != 0 || err != nil {
		t.Fatalf("%d, %v, %v", n, left, err)
	}
	now.wantGone("erased again")
	if n, left, err = person.Again(now.asked(""), r, old.records(old.store)); n != 0 || len(left) != 0 || err != nil {
		t.Errorf("again: %d, %v, %v", n, left, err)
	}
}

// stops erases the person's data, but the process ends after the mark.
func (w *world) stops() {
	w.Helper()
	f := storetest.NewFaulty(w.store)
	r := w.records(f)
	f.Hook = storetest.CrashAt(f.Commits()+1, storetest.After)
	if _, err := person.Erase(w.asked("erase"), r, personID, false); !errors.Is(err, storetest.ErrCrash) {
		w.Fatal(err)
	}
}

// TestErase_Continues: an interrupted erasure continues although the person buys again, and erases all else although
// an event waits. It never takes the event's body before the event is applied, nor a new purchase's order.
func TestErase_Continues(t *testing.T) {
	w := newWorld(t, "memory")
	w.calm()
	w.stops()
	w.renew()
	waits := w.waiting(tracking.Received)
	r := w.records(w.store)
	_, err := person.Erase(w.asked("erase"), r, personID, false)
	if refused, is := errors.AsType[*person.RefusedError](err); !is || !slices.Equal(refused.Reasons, []string{"event " + waits + " waits to be applied"}) {
		t.Fatal(err)
	}
	for _, key := range w.holders() {
		account := fmt.Sprint(billing.AccountKey(personID))
		if !slices.ContainsFunc([]string{waits, w.tables.Tracking.Purchases.Name, account, "IDX#EMAIL"}, func(left string) bool { return strings.Contains(key, left) }) {
			t.Errorf("the mark is in %s", key)
		}
	}
	if notes := w.notes(); len(notes) != 1 || notes[0].Kind != "not erased" || notes[0].Account != personID {
		t.Errorf("the audit notes %v", notes)
	}
	w.waiting(tracking.Applied)
	x, err := person.Erase(w.asked("erase"), r, personID, false)
	w.must(err)
	if len(x.Customers) > 0 {
		t.Errorf("customers %q of new purchases are named", x.Customers)
	}
	orders := 0
	for _, key := range w.holders() {
		if orders++; !strings.Contains(key, w.tables.Tracking.Purchases.Name) {
			t.Errorf("the mark is in %s", key)
		}
	}
	if notes := w.notes(); len(notes) > 0 {
		t.Errorf("the audit notes %v", notes)
	}
	if orders != 2 {
		t.Errorf("%d of 2 new orders are left", orders)
	}
}

// notes returns what the audit notes about erasures.
func (w *world) notes() []audit.Problem {
	w.Helper()
	var report audit.Report
	w.must(person.Audit(w.Context(), w.records(w.store), &report))
	return report.Notes
}

// waiting sets the status of the first stored event, and returns its ID.
func (w *world) waiting(status tracking.EventStatus) string {
	w.Helper()
	it, err := w.store.Get(w.Context(), w.tables.Tracking.Events.Name, w.tables.Tracking.Events.KeyOf(store.NewItem(
		store.Attribute{Name: schema.TrackedID, Value: store.S("evt_0")})))
	w.must(err)
	it = it.Clone()
	it.Set(schema.TrackedStatus, store.S(string(status)))
	w.must(w.store.Commit(w.Context(), store.Put(w.tables.Tracking.Events.Name, it)))
	return "evt_0"
}

// TestErase_Race: a subscription that is created while the account is checked stops the erasure.
func TestErase_Race(t *testing.T) {
	w := newWorld(t, "memory")
	w.calm()
	e, f := w.engine(w.store), storetest.NewFaulty(w.store)
	r := w.records(f)
	var made []store.Write
	f.Hook = func(op storetest.Operation, _ storetest.Phase) error {
		if len(op.Writes) > 0 && made == nil { // the mark
			made = op.Writes
			_, err := e.CreateSubscription(w.asked(""), billing.NewSubscription{Account: personID, ID: "2", SKU: "news", Amount: w.amount(), PaymentDay: 31,
				Method: "pm_card_visa"})
			w.must(err)
		}
		return nil
	}
	_, err := person.Erase(w.asked("erase"), r, personID, false)
	if !errors.As(err, new(*person.RefusedError)) || !strings.Contains(err.Error(), "subscription 1001/2 is active") {
		t.Errorf("%v", err)
	}
	if a, err := r.Account(t.Context(), personID); err != nil || a.Erased() != "" {
		t.Errorf("the account is marked: %v", err)
	}
}

// TestAgain_Unreadable: neither a replaced store that cannot be read nor an account that another tool has changed
// ends the erasures, and both are told. Events are still stored.
func TestAgain_Unreadable(t *testing.T) {
	old, now := newWorld(t, "memory"), newWorld(t, "memory")
	f := storetest.NewFaulty(old.store)
	r, replaced := now.records(now.store), old.records(f)
	f.Hook = func(storetest.Operation, storetest.Phase) error { return store.ErrDamaged }
	n, left, err := person.Again(now.asked(""), r, replaced)
	if n != 0 || len(left) != 1 || !errors.Is(left[0], store.ErrDamaged) || err != nil {
		t.Errorf("%d, %v, %v", n, left, err)
	}
	now.calm()
	now.stops()
	now.set(billing.AccountKey(personID), store.Attribute{Name: schema.Customer, Value: store.Int(1)})
	n, left, err = person.Again(now.asked(""), r, nil)
	if n != 0 || len(left) != 1 || !errors.As(left[0], new(*billing.IllegibleError)) || err != nil {
		t.Errorf("unreadable: %d, %v, %v", n, left, err)
	}
	if notes := now.notes(); len(notes) != 1 {
		t.Errorf("the audit notes %v", notes)
	}
	body := `{"installation":"` + r.Opened.Installation + `","duesday_account":"` + personID + `"}`
	if is, err := person.Later(r)(t.Context(), own, []byte(body)); !is || err != nil {
		t.Errorf("an event: %t, %v", is, err)
	}
}
