package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/adoption"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

const card = "4111 1111 1111 1111"

// attributes makes an item of names and strings in turn; a value may be a store.Value.
func attributes(pairs ...any) store.Item {
	var it store.Item
	for i := 0; i < len(pairs); i += 2 {
		v, ok := pairs[i+1].(store.Value)
		if !ok {
			v = store.S(pairs[i+1].(string))
		}
		it.Set(pairs[i].(string), v)
	}
	return it
}

// foreign is a subscription as other tools write it from the published model, due on the
// 28th of June 2023; changes come as names and values, and the zero Value takes one away.
func foreign(account, id string, changes ...any) store.Item {
	it := attributes("PK", "ACC#"+account, "SK", "SUB#"+id+"#SKU#999", "Email", "s@s.com", "PaymentDay", "28",
		"PaymentAmount", "12.99", "LastPaymentDate", "2023-05-18T14:15:39.247Z", "NextPaymentDate", "2023-06-28",
		"LastReminderDate", "2023-05-21T14:15:39.247Z", "NextReminderDate", "2023-06-21", "SKU", "999",
		"PaymentDetails", store.M(attributes("default-card", "1234123412341234", "default-address",
			"12 Bridge Street, Birmingham, B12 7ST")),
		"CreatedDate", "2023-05-18T09:41:25.856Z")
	for i := 0; i < len(changes); i += 2 {
		if v, ok := changes[i+1].(store.Value); ok && v.IsZero() {
			it.Remove(changes[i].(string))
		} else {
			for _, a := range attributes(changes[i], changes[i+1]) {
				it.Set(a.Name, a.Value)
			}
		}
	}
	return it
}

// write puts items into the table around the engine, as other tools do.
func (w *world) write(items ...store.Item) {
	w.foreign = true
	for _, it := range items {
		if _, ok := billing.NameOf(billing.KeyOf(it)); ok {
			w.spy.subs[subName(billing.KeyOf(it))] = it
		}
		if err := w.spy.mem.Commit(context.Background(), store.Put(w.tables.RecurringPayments.Name, it)); err != nil {
			panic(err)
		}
	}
}

func (w *world) raw(pk, sk string) store.Item {
	it, err := w.spy.mem.Get(context.Background(), w.tables.RecurringPayments.Name, store.Key{PK: pk, SK: sk})
	if err != nil {
		panic(fmt.Sprint(pk, " ", sk, ": ", err))
	}
	return it
}

// shown is all that an item holds, in words.
func shown(it store.Item) string {
	var value func(v store.Value) string
	value = func(v store.Value) string {
		var text strings.Builder
		text.WriteString(v.Str() + v.Num() + v.Raw())
		for _, e := range v.List() {
			text.WriteString("[" + value(e) + "]")
		}
		for _, a := range v.Map() {
			text.WriteString("{" + a.Name + ": " + value(a.Value) + "}")
		}
		return fmt.Sprint(text.String(), v.Bool())
	}
	return value(store.M(it))
}

func (w *world) adopt(t *testing.T, methods map[string]string) *adoption.Report {
	t.Helper()
	r, err := adoption.Adopt(t.Context(), w.start().Records, adoption.Options{Methods: methods, Workers: 2})
	mustNot(t, err)
	return r
}

// published returns the items of the published model's own sample data.
func published(t *testing.T) (items []store.Item) {
	t.Helper()
	b, err := os.ReadFile("../../book/testdata/RecurringPaymentsSchema.json")
	mustNot(t, err)
	type attribute struct {
		S *string
		N *string
		M map[string]struct{ S string }
	}
	var model struct {
		DataModel []struct {
			TableFacets []struct{ TableData []map[string]attribute }
		}
	}
	mustNot(t, json.Unmarshal(b, &model))
	for _, facet := range model.DataModel[0].TableFacets {
		for _, row := range facet.TableData {
			var it store.Item
			for name, a := range row {
				switch {
				case a.S != nil:
					it.Set(name, store.S(*a.S))
				case a.N != nil:
					n, err := store.Number(*a.N)
					mustNot(t, err)
					it.Set(name, n)
				default:
					var m store.Item
					for member, v := range a.M {
						m.Set(member, store.S(v.S))
					}
					it.Set(name, store.M(m))
				}
			}
			items = append(items, it)
		}
	}
	return items
}

// TestAdoptTheSample takes the published model's own data through adoption, a reminder and a
// payment.
func TestAdoptTheSample(t *testing.T) {
	w := newWorld("2023-06-21T09:00", planted{})
	w.write(published(t)...)
	w.write(attributes("PK", "ORDER#1", "SK", "X", "Note", "theirs"))
	r := w.adopt(t, map[string]string{"123": "pm_card_visa"})
	if r.Subscriptions != 1 || r.Receipts != 1 || r.Accounts != 1 || r.Others != 1 || r.Cards != 1 ||
		r.AccountsMade != 1 || r.NeedsPerson() {
		t.Fatalf("report %+v", r)
	}
	if a := w.raw("ACC#123", "ACC"); a.Str(schema.Email) != "s@s.com" || a.Str(schema.PaymentMethod) != "pm_card_visa" {
		t.Errorf("account %v", a)
	}
	if before := w.raw("ACC#123", "SUB#123#SKU#999"); !before.Equal(published(t)[0]) {
		t.Error("adoption has changed a subscription")
	}
	w.verify()
	p := w.start()
	for rec, err := range p.GetReceiptsByAccount(t.Context(), "123") {
		mustNot(t, err)
		if rec.Kind != billing.Imported || rec.Amount != usd(1299) || rec.SKU != "999" || rec.Expires.Unix() != 1700318200 {
			t.Errorf("receipt %+v", rec)
		}
	}
	if sent := p.remind().Counts[engine.OutcomeSent]; sent != 1 {
		t.Errorf("%d reminders", sent)
	}
	it := w.raw("ACC#123", "SUB#123#SKU#999")
	details := it.Get(schema.PaymentDetails).Map()
	if details.Has(schema.DefaultCard) || details.Str(schema.DefaultAddress) == "" || it.Int(schema.Version) != 1 ||
		it.Has(schema.NextReminderDate) {
		t.Errorf("after the reminder: %v", it)
	}
	w.verify()
	w.goTo(date("2023-06-28"))
	if rep := w.start().run(civil.Date{}); rep.Counts[engine.OutcomePaid] != 1 || rep.Due() != 1 {
		t.Errorf("payments %+v", rep)
	}
	it = w.raw("ACC#123", "SUB#123#SKU#999")
	if it.Str(schema.NextPaymentDate) != "2023-07-28" || it.Str(schema.NextReminderDate) != "2023-07-21" ||
		it.Get(schema.PaymentDetails).Map().Has(schema.PaymentMethod) {
		t.Errorf("after the payment: %v", it)
	}
	w.report(t)
}

func TestAdoptReports(t *testing.T) {
	w := newWorld("2023-06-30T09:00", planted{})
	number, err := store.Number("9.9")
	mustNot(t, err)
	w.write(
		foreign("1", "numbers", "PaymentDay", store.Int(28), "PaymentAmount", number, "LastPaymentDate",
			"2023-05-18T14:15:39.2Z", "CreatedDate", "2023-05-18 09:41:25"),
		foreign("1", "newer", "Email", "new@s.com", "CreatedDate", "2023-06-01T00:00:00Z"),
		foreign("2", "arrears", "PaymentDetails", store.Value{}, "NextPaymentDate", "2023-02-28", "NextReminderDate",
			store.Value{}),
		foreign("2", "paused", "NextPaymentDate", store.Value{}, "NextReminderDate", store.Value{}),
		foreign("3", "lost", "LastPaymentDate", store.Value{}, "NextPaymentDate", "2019-01-28", "NextReminderDate",
			"2019-01-21"),
		foreign("4", "twice"), foreign("4", "twice", "SK", "SUB#twice#SKU#1000"),
		foreign("5", "text", "SK", "SUB#text-999"),
		foreign("5", "dollar", "PaymentAmount", "$12.99"),
		foreign("5", "shift", "NextPaymentDate", "2023-06-29"),
		foreign("5", "status", "Status", "ENABLED"),
		foreign("5", "old", "NextPaymentDate", "0023-06-28"),
		foreign("4111111111111111", "id"),
		attributes("PK", "ACC#6", "SK", "REC#2023-05-28T14:15:39.24#SKU#7", "ProcessedAmount", number, "Email", "r@s.com",
			"Memo", card),
		attributes("PK", "ACC#6", "SK", "REC#2023-05-29#SKU#7", "ProcessedAmount", "twelve"),
		attributes("PK", "ACC#7", "SK", "ACC", "PaymentMethod", "pm_old", "Tier", "gold"),
	)
	r := w.adopt(t, map[string]string{"1": "pm_card_visa", "7": "pm_new", "nobody": "pm_card_visa"})
	got := fmt.Sprint(r.Accounts, r.Subscriptions, r.Receipts, r.Upgraded, r.OffAgenda, r.Due, r.Arrears, r.Cards,
		r.CardsLeft, r.AccountsMade, r.AccountsSet)
	if want := "8 7 1 0 1 6 2 11 2 6 1"; got != want {
		t.Errorf("counts %s, want %s", got, want)
	}
	if r.OldestPayment != date("2019-01-28") || r.OldestReminder != date("2019-01-21") || !r.NeedsPerson() {
		t.Errorf("floors %v %v", r.OldestPayment, r.OldestReminder)
	}
	for name, f := range map[string]struct {
		adoption.Findings
		want string
	}{
		"unreadable": {r.Unreadable, "ACC#************1111 SUB#id#SKU#999: account: looks like a card number|ACC#5 " +
			"SUB#dollar#SKU#999: PaymentAmount is not an amount|" +
			"ACC#5 SUB#old#SKU#999: NextPaymentDate is before 1970-01-01|ACC#5 SUB#shift#SKU#999: NextPaymentDate is not on " +
			"the PaymentDay|" +
			"ACC#5 SUB#status#SKU#999: Status must be absent|ACC#5 SUB#text-999: SK is not|ACC#6 " +
			"REC#2023-05-29#SKU#7: ProcessedAmount is not an amount"},
		"without": {r.WithoutMethod,
			"ACC#2 SUB#arrears#SKU#999: |ACC#3 SUB#lost#SKU#999: |ACC#4 SUB#twice#SKU#1000: |ACC#4 SUB#twice#SKU#999: "},
		"in none":    {r.NotIndexed, "ACC#3 SUB#lost#SKU#999: never charged"},
		"duplicates": {r.Duplicates, "ACC#4 SUB#twice#SKU#"},
		"addresses":  {r.Addresses, "1: its"},
		"unknown":    {r.Unknown, "nobody: "},
	} {
		want := strings.Split(f.want, "|")
		if len(f.Findings) != len(want) {
			t.Errorf("%s: %+v, want %q", name, f.Findings, want)
			continue
		}
		for i, x := range f.Findings {
			if line := x.Item + ": " + x.Reason; !strings.HasPrefix(line, want[i]) || secret.HasCardNumber(line) ||
				strings.Contains(line, "$12") {
				t.Errorf("%s: %q, want %q", name, line, want[i])
			}
		}
	}
	if a := w.raw("ACC#1", "ACC"); a.Str(schema.Email) != "new@s.com" ||
		a.Str(schema.CreatedDate) != "2023-05-18T09:41:25.000Z" {
		t.Errorf("account 1: %v", a)
	}
	if a := w.raw("ACC#7", "ACC"); a.Str(schema.PaymentMethod) != "pm_new" || a.Str("Tier") != "gold" {
		t.Errorf("account 7: %v", a)
	}
	if again := w.adopt(t, map[string]string{"1": "pm_card_visa", "7": "pm_new"}); again.AccountsMade+
		again.AccountsSet != 0 {
		t.Errorf("the second time: %+v", again)
	}
}

// TestSurveyWritesNothing: not even the store's own item.
func TestSurveyWritesNothing(t *testing.T) {
	w := newWorld("2023-06-30T09:00", planted{})
	w.write(foreign("1", "1"))
	f := storetest.NewFaulty(w.spy.mem)
	r, err := adoption.Scan(t.Context(), billing.NewRecords(f, w.tables, w.now, nil),
		adoption.Options{Methods: map[string]string{"1": "pm_card_visa"}})
	mustNot(t, err)
	if r.AccountsMade != 1 || r.Due != 1 || !r.DryRun || f.Commits() != 0 {
		t.Errorf("%d commits, report %+v", f.Commits(), r)
	}
	_, err = adoption.Scan(t.Context(), billing.NewRecords(f, w.tables, w.now, nil),
		adoption.Options{Methods: map[string]string{"1": card}})
	wantAny(t, err)
	if secret.HasCardNumber(err.Error()) {
		t.Error("the error shows the card number")
	}
}

// TestAdoptedTable runs both jobs over a table with old rows, several methods and card
// numbers everywhere, and wants every row dealt with and every card number gone.
func TestAdoptedTable(t *testing.T) {
	w := newWorld("2023-06-30T09:00", planted{})
	hidden := store.M(attributes("default-address", "1 Road, "+card, "Default-Card", "none", "iban", "DE1",
		"PaymentMethod", card,
		"deep", store.L(store.S(card), store.M(attributes("n", store.Int(4111111111111111), "kept", "yes")),
			store.B([]byte("4111111111111111")))))
	methods := map[string]string{}
	for i := range 30 {
		account := fmt.Sprint("a", i)
		due := date("2021-01-28")
		if i%3 > 0 {
			due = date("2023-06-28")
		}
		w.write(foreign(account, "1", "NextPaymentDate", due.String(), "PaymentDetails", hidden, "Email", account+"@s.com",
			"card_on_file", card, "tags", store.L(store.S("vip"), store.S(card)), "crm", "C-"+account))
		methods[account] = []string{"pm_card_visa", "pm_card_visa_chargeDeclined"}[i%2]
	}
	w.write(foreign("bare", "1", "Email", "b@s.com"),
		foreign("own", "1", "PaymentDetails", store.M(attributes("PaymentMethod", "pm_card_visa"))))
	if r := w.adopt(t, methods); len(r.WithoutMethod) != 1 || r.Arrears != 10 || r.Cards != 30*8+1 {
		t.Fatalf("report %+v", r)
	}
	w.verify()
	w.start().remind()
	w.verify()
	planned, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1, DryRun: true})
	mustNot(t, err)
	rep := w.start().run(civil.Date{})
	if rep.Counts[engine.OutcomeParked] != planned.Counts[engine.OutcomeParked]-5 ||
		rep.Counts[engine.OutcomeParked] != 5 || rep.Counts[engine.OutcomePending] != 1 {
		t.Errorf("planned %+v, done %+v", planned.Counts, rep.Counts) // five in arrears are declined at once instead
	}
	if rep.Counts[engine.OutcomePaid] != 5*3+10+1 || rep.Counts[engine.OutcomeRetry] != 15 {
		t.Errorf("payments %+v", rep.Counts)
	}
	for it, err := range w.spy.mem.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		mustNot(t, err)
		if secret.HasCardNumber(shown(it)) || strings.Contains(strings.ToLower(shown(it)), "default-card") {
			t.Errorf("a card number is left in %s", it.Str("SK"))
		}
		if !strings.HasPrefix(it.Str("SK"), "SUB#") || !strings.HasPrefix(it.Str("PK"), "ACC#a") {
			continue
		}
		details := it.Get(schema.PaymentDetails).Map()
		tags, deep := it.Get("tags").List(), details.Get("deep").List()
		if it.Has("card_on_file") || it.Str("crm") == "" || len(tags) != 1 || details.Str("iban") != "DE1" ||
			len(deep) != 1 ||
			!deep[0].Map().Equal(attributes("kept", "yes")) || details.Str("default-address") != "1 Road, **** **** **** 1111" ||
			details.Has("PaymentMethod") {
			t.Errorf("upgraded item %v", it)
		}
	}
	for range 40 {
		w.tomorrow()
		w.start().remind()
		w.start().run(civil.Date{})
	}
	w.report(t)
}

// TestAdoptCrashes cuts adoption off at every commit, before and after it has landed, and
// wants the same end when it is done again.
func TestAdoptCrashes(t *testing.T) {
	methods := map[string]string{"1": "pm_card_visa", "2": "pm_card_visa", "4": "pm_card_visa"}
	make := func() *world {
		w := newWorld("2023-06-30T09:00", planted{})
		w.write(foreign("1", "1"), foreign("2", "1"), foreign("2", "2", "Email", "other@s.com"), foreign("3", "1"),
			foreign("4", "1"), attributes("PK", "ACC#4", "SK", "ACC", "Tier", "gold"),
			foreign("5", "1", "NextReminderDate", "2022-01-01"))
		w.start() // META, whose installation is random
		return w
	}
	end := func(w *world) (all []string) {
		for it, err := range w.spy.mem.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
			mustNot(t, err)
			if it.Str("PK") != "META" {
				all = append(all, shown(it))
			}
		}
		slices.Sort(all)
		return all
	}
	calm := make()
	calm.adopt(t, methods)
	want := end(calm)
	faults := []func(int, storetest.Phase) storetest.Hook{storetest.CrashAt, storetest.LoseReply}
	commits := 1 + 5 + 1 + 11 + 2 // watermark, accounts; the rows of accounts and subscriptions
	for n := 1; n <= commits; n++ {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			for i, fault := range faults {
				w := make()
				f := storetest.NewFaulty(w.spy.mem)
				f.Hook = fault(n, phase)
				e, err := engine.Open(t.Context(), engine.Options{Store: f, Tables: w.tables, Now: w.now, Config: w.cfg,
					Making: billing.MakeAdopted})
				mustNot(t, err)
				_, err = adoption.Adopt(t.Context(), e.Records, adoption.Options{Methods: methods, Workers: 1})
				if i == 0 {
					wantErr(t, err, storetest.ErrCrash)
					w.adopt(t, methods)
				} else {
					mustNot(t, err)
				}
				if f.Commits() < n {
					t.Fatalf("only %d commits", f.Commits())
				}
				if got := end(w); !slices.Equal(got, want) {
					t.Errorf("commit %d, phase %d, fault %d: %v, want %v", n, phase, i, got, want)
				}
				w.verify()
				w.report(t)
			}
		}
	}
}

// TestAccountMethod: a subscription without a method of its own is charged with its
// account's; a retry with the one that the account has by then.
func TestAccountMethod(t *testing.T) {
	w := newWorld("2023-06-30T09:00", planted{})
	w.write(foreign("1", "1", "NextReminderDate", store.Value{}))
	w.adopt(t, map[string]string{"1": "pm_card_visa_chargeDeclined"})
	w.start().run(civil.Date{})
	name := billing.Name{Account: "1", ID: "1"}
	if s := w.sub(name); s.Open == nil || s.Open.Method != "pm_card_visa_chargeDeclined" || s.Method != "" {
		t.Fatalf("open %+v", s.Open)
	}
	w.adopt(t, map[string]string{"1": "pm_card_visa"})
	w.tomorrow()
	w.start().run(civil.Date{})
	if s := w.sub(name); s.Open != nil || s.Paid != 1 || s.Method != "" {
		t.Errorf("the retry was not made with what the account has by now: %s", w.describe(name))
	}
	w.report(t)
}

// TestAccountMethodDeclinedForGood: the subscription waits for another method, as one does that
// has its own.
func TestAccountMethodDeclinedForGood(t *testing.T) {
	w := newWorld("2023-06-30T09:00", planted{})
	w.write(foreign("1", "1", "NextReminderDate", store.Value{}))
	w.adopt(t, map[string]string{"1": "pm_card_visa_chargeDeclinedLostCard"})
	w.start().run(civil.Date{})
	if s := w.sub(billing.Name{Account: "1", ID: "1"}); s.Status != billing.PastDue {
		t.Error(w.describe(s.Name))
	}
	w.report(t)
}

// TestAccountKeepsWhatIsNotOurs: attributes of an account that other tools have written stay
// through every change of it, but for card numbers.
func TestAccountKeepsWhatIsNotOurs(t *testing.T) {
	w := newWorld("2023-06-30T09:00", planted{})
	w.write(attributes("PK", "ACC#1", "SK", "ACC", "Tier", "gold", "card", card, "PaymentMethod", "pm_card_visa",
		"CreatedDate", "last spring"), foreign("1", "1"))
	w.adopt(t, nil)
	p := w.start()
	n := one("2023-07-28", func(n *billing.NewSubscription) { n.Account, n.Email = "1", "" })
	_, err := p.CreateSubscription(t.Context(), n)
	mustNot(t, err)
	_, err = p.SetEmail(t.Context(), "1", "changed@s.com")
	mustNot(t, err)
	a := w.raw("ACC#1", "ACC")
	if a.Str("Tier") != "gold" || a.Has("card") || a.Str(schema.PaymentMethod) != "pm_card_visa" ||
		a.Str(schema.CreatedDate) != "last spring" || a.Str(schema.Email) != "changed@s.com" {
		t.Errorf("account %v", a)
	}
	if s := w.raw("ACC#1", "SUB#1#SKU#999"); s.Str(schema.Email) != "changed@s.com" {
		t.Errorf("subscription %v", s)
	}
	w.report(t)
}

// TestAdoptBesideARun: a run that began before the floor was lowered does not lift it.
func TestAdoptBesideARun(t *testing.T) {
	w := newWorld("2023-06-30T09:00", planted{})
	w.start().run(civil.Date{})
	w.tomorrow()
	w.write(foreign("1", "1", "NextPaymentDate", "2019-06-28"))
	p := w.start()
	calls := 0
	p.edge = func() {
		if calls++; calls == 30 { // in the middle of its walk
			w.adopt(t, map[string]string{"1": "pm_card_visa"})
		}
	}
	if rep := p.run(civil.Date{}); calls < 31 || rep.Due() != 0 {
		t.Fatalf("%d calls, report %+v", calls, rep)
	}
	w.tomorrow()
	if rep := w.start().run(civil.Date{}); rep.Counts[engine.OutcomeParked] != 1 { // found, and too old to be charged unasked
		t.Errorf("the next run %+v", rep)
	}
	w.report(t)
}

// TestAdoptResumes: what other tools took off the agenda is paused, and may be resumed
// without a back-charge.
func TestAdoptResumes(t *testing.T) {
	w := newWorld("2023-06-30T09:00", planted{})
	w.write(foreign("1", "1", "NextPaymentDate", store.Value{}, "NextReminderDate", store.Value{}, "LastPaymentDate",
		"2023-04-28T09:00:00Z"))
	if r := w.adopt(t, map[string]string{"1": "pm_card_visa"}); r.OffAgenda != 1 || r.NeedsPerson() {
		t.Fatalf("report %+v", r)
	}
	w.verify()
	if rep := w.start().run(civil.Date{}); rep.Due() != 0 {
		t.Errorf("payments %+v", rep)
	}
	s, err := w.start().Resume(t.Context(), billing.Name{Account: "1", ID: "1"})
	mustNot(t, err)
	if s.Status != billing.Active || s.NextPayment != date("2023-07-28") {
		t.Errorf("resumed %s, %s", s.Status, s.NextPayment)
	}
}

// TestAdoptTakesAnything: whatever other tools have written, adoption counts it, every
// subscription that it calls readable is dealt with or stays where it is, and no
// card number survives a write.
func TestAdoptTakesAnything(t *testing.T) {
	values := rapid.SampledFrom([]store.Value{{}, store.S(""), store.S(card), store.S("2023-06-28"), store.S("2023-6-28"),
		store.S("28"), store.S("x"),
		store.Int(28), store.Int(4111111111111111), store.Bool(true), store.L(store.S(card)),
		store.M(attributes("default-card", "1", "a", card)),
		store.S("2020-02-28T00:00:00Z"), store.S("active"), store.S("0001-01-01"), store.S("9999-12-28")})
	names := rapid.SampledFrom([]string{"Email", "PaymentDay", "PaymentAmount", "LastPaymentDate", "NextPaymentDate",
		"LastReminderDate",
		"NextReminderDate", "PaymentDetails", "CreatedDate", "Status", "Version", "Anchor", "Interval", "theirs", "TimeZone",
		"TTL"})
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld("2023-06-30T09:00", planted{})
		subs := 0
		for i := range rapid.IntRange(1, 4).Draw(r, "items") {
			it := foreign(fmt.Sprint(i%2), fmt.Sprint(i))
			for range rapid.IntRange(0, 3).Draw(r, "changes") {
				if v, name := values.Draw(r, "value"), names.Draw(r, "name"); v.IsZero() {
					it.Remove(name)
				} else if name != schema.Version || v.Kind() != store.KindNumber { // a number there makes it ours
					it.Set(name, v)
				}
			}
			if w.spy.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)) == nil && !expired(it) {
				subs++
			}
		}
		rep, err := adoption.Adopt(t.Context(), w.start().Records,
			adoption.Options{Methods: map[string]string{"0": "pm_card_visa"}})
		if err != nil || rep.Subscriptions+len(rep.Unreadable) != subs {
			r.Fatalf("%d subscriptions, %v, report %+v", subs, err, rep)
		}
		p := w.start()
		if _, err = job.Reminders(t.Context(), p.Engine, job.Options{Workers: 1}); err == nil {
			_, err = job.Payments(t.Context(), p.Engine, job.Options{Workers: 1})
		}
		if err != nil && len(rep.Unreadable) == 0 {
			r.Fatalf("everything is readable, and yet: %v", err)
		}
		for it, err := range w.spy.mem.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
			if err != nil {
				r.Fatal(err)
			}
			if it.Get(schema.Version).Kind() == store.KindNumber && it.Has(schema.PaymentDetails) && it.Has(schema.Period) {
				if secret.HasCardNumber(shown(it)) {
					r.Fatalf("a card number is left: %s", shown(it))
				}
			}
		}
		if again, err := adoption.Adopt(t.Context(), w.start().Records,
			adoption.Options{Methods: map[string]string{"0": "pm_card_visa"}}); err != nil ||
			again.AccountsMade+again.AccountsSet > 0 {
			r.Fatalf("the second time: %v, %+v", err, again)
		}
	})
}

func expired(it store.Item) bool { return it.Int(schema.TTL) == 28 }
