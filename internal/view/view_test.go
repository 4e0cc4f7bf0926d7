package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/planchange"
	"github.com/duesday/duesday/internal/billing/proof"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	usd, _ = money.ParseCurrency("USD")
	jpy, _ = money.ParseCurrency("JPY")
	price  = money.New(1299, usd)
	at     = time.Date(2027, 1, 31, 13, 5, 0, 0, time.FixedZone("CET", 3600)) // a whole second of another zone
	day    = civil.Of(at)
	name   = billing.Name{Account: "1001", ID: "1", SKU: "news"}
)

// full returns a T whose exported fields all have a value, and those of its members.
func full[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), "")
	return v
}

func fill(v reflect.Value, called string) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(at))
		return
	case civil.Date:
		v.Set(reflect.ValueOf(day))
		return
	case money.Amount:
		v.Set(reflect.ValueOf(price))
		return
	case billing.Name:
		v.Set(reflect.ValueOf(name))
		return
	case civil.Interval:
		v.Set(reflect.ValueOf(civil.Interval{N: 2, Unit: civil.Month}))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"period":3}`))
		return
	case money.Totals:
		for _, a := range []money.Amount{price, money.New(500, jpy)} {
			if err := v.Addr().Interface().(*money.Totals).Add(a); err != nil {
				panic(err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.ToLower(called))
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(len(called)))
	case reflect.Float64:
		v.SetFloat(float64(len(called)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), called)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), called)
	case reflect.Map:
		k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k, called)
		fill(x, called)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, x)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), f.Name)
			}
		}
	}
}

// nouns returns a full and a minimal object of each noun.
func nouns() map[string][2]view.Object {
	sub := &billing.Subscription{Name: name, SKU: "news", Amount: price, PaymentDay: 31,
		Interval: civil.Interval{N: 1, Unit: civil.Month}, Status: billing.CanceledSub, Created: at, Version: 1}
	receipt := &billing.Receipt{Name: name, SKU: "news", Amount: money.New(500, jpy), Due: day, Processed: at, Kind: billing.Imported}
	charged := full[*billing.Receipt]()
	charged.Kind = billing.Charged
	refunds := full[[]*billing.ReversalRecord]()
	refunds[0].Kind, refunds[0].State = processor.Refunded, processor.ReversalSucceeded
	payments, reminders := full[*job.Report](), &job.Report{Run: billing.Run{Kind: billing.Reminders, ID: "2027-01-31#1", Date: day, From: day}}
	payments.Kind = billing.Payments
	exported := full[*person.Data]()
	exported.Events[0].Body = []byte("{}")
	exported.Items[0].Item = store.NewItem(store.Attribute{Name: "a", Value: store.L(store.Int(1), store.Bool(true), store.B([]byte("b")))})
	old := *sub
	old.Amount, old.Version = money.New(999, usd), 2
	return map[string][2]view.Object{
		"account":             {view.Account(full[*billing.Account]()), view.Account(&billing.Account{ID: "1001", Email: "a@example.com", Created: at, Version: 1})},
		"subscription":        {view.Subscription(full[*billing.Subscription]()), view.Subscription(sub)},
		"changed":             {view.Changed(&old, sub), view.Changed(nil, sub)},
		"open":                {view.Open(full[*billing.OpenPeriod]()), view.Open(&billing.OpenPeriod{Amount: price, Due: day, Opened: at})},
		"period":              {view.Period(full[*billing.EndedPeriod]()), view.Period(&billing.EndedPeriod{Name: name, SKU: "news", Amount: price, Due: day, Ended: at})},
		"receipt":             {view.Receipt(charged, "here", refunds...), view.Receipt(receipt, "here")},
		"reversal":            {view.Reversal(refunds[0]), view.Reversal(&billing.ReversalRecord{Name: name, ReversalID: "re_1", Amount: price, Created: at})},
		"upcoming":            {view.Upcoming(full[billing.Upcoming]())},
		"upgraded":            {view.Upgraded(&old, full[engine.Upgraded]()), view.Upgraded(&old, engine.Upgraded{Subscription: sub, Repeated: true})},
		"pending":             {view.Pending(full[*billing.Plan]())},
		"written_off":         {view.WrittenOff(full[[]*billing.EndedPeriod](), price)},
		"moved":               {view.Moved(day, day.AddDays(-3))},
		"plan_change":         {view.PlanChange(full[*planchange.Sum]())},
		"result":              {view.Result(full[engine.Result]()), view.Result(engine.Result{Name: name, Due: day})},
		"charged":             {view.Charged(full[engine.PeriodCharged](), "here"), view.Charged(engine.PeriodCharged{Subscription: sub}, "here")},
		"proof":               {view.Proof(full[*proof.Proof](), "here"), view.Proof(&proof.Proof{Name: name, Since: at, Intents: []proof.Intent{{Missing: true}}}, "here")},
		"due_payment":         {view.DuePayment(full[billing.DueRow]()), view.DuePayment(billing.DueRow{Name: name, NextPayment: "2027-01-31"})},
		"due_reminder":        {view.DueReminder(full[billing.DueRow]()), view.DueReminder(billing.DueRow{Name: name, NextPayment: "2027-01-31", NextReminder: "2027-01-28"})},
		"run":                 {view.Run(payments), view.Run(reminders)},
		"audit":               {view.Audit(full[*audit.Report]()), view.Audit(&audit.Report{})},
		"report":              {view.Report(full[*report.Report]()), view.Report(&report.Report{AsOf: at, Taxes: []report.Tax{{}}})},
		"settings":            {view.Settings(full[*settings.Settings]()), view.Settings(new(settings.Default()))},
		"history_entry":       {view.History(new(full[history.Entry]())), view.History(new(history.Entry))},
		"setting_change":      {view.SettingChange(full[settings.Changed]())},
		"charging":            {view.Charging(false, "holiday", "other", "user ann"), view.Charging(true, "", "", "")},
		"endpoint":            {view.Endpoint(full[*delivery.Endpoint]()), view.Endpoint(&delivery.Endpoint{ID: "ep_1", URL: "https://shop.example/hook", Created: at, Version: 1})},
		"message":             {view.Message(full[*delivery.Message]()), view.Message(&delivery.Message{ID: "msg_1", Data: json.RawMessage("{}"), Created: at})},
		"mail":                {view.Mail(full[*maillog.Mail]()), view.Mail(&maillog.Mail{MailID: "mail_1", State: maillog.Sent})},
		"key":                 {view.Key(full[*key.Key]()), view.Key(&key.Key{ID: "k1", Name: "shop", Scope: key.Read, Created: at})},
		"check":               {view.Check(full[status.Check]()), view.Check(status.Check{Name: "clock", State: status.OK})},
		"merchant":            {view.Merchant(full[*tracking.ConnectedAccount]()), view.Merchant(&tracking.ConnectedAccount{Merchant: "m", StripeAccount: "acct_1", Created: at})},
		"ordered":             {view.Ordered(full[*tracking.Created]()), view.Ordered(&tracking.Created{Purchase: &tracking.Purchase{ID: "p", Created: at, Updated: at}})},
		"payment":             {view.Payment(full[*tracking.Payment]()), view.Payment(&tracking.Payment{ID: "pi_1", Created: at, Updated: at})},
		"stripe_subscription": {view.StripeSubscription(full[*tracking.Subscription]()), view.StripeSubscription(&tracking.Subscription{ID: "sub_1", Created: at, Updated: at})},
		"timeline":            {view.Timeline(full[*tracking.Timeline]()), view.Timeline(&tracking.Timeline{Purchase: &tracking.Purchase{Created: at, Updated: at}})},
		"event":               {view.Event(full[*tracking.Event]()), view.Event(&tracking.Event{ID: "evt_1", Created: at})},
		"event_row":           {view.EventRow(full[tracking.EventRow]()), view.EventRow(tracking.EventRow{ID: "evt_1", At: at})},
		"job":                 {view.Job(full[tracking.WaitingJob]()), view.Job(tracking.WaitingJob{ID: "fulfil/p", Action: tracking.ActionFulfil})},
		"export":              {view.Export(exported), view.Export(&person.Data{Account: &billing.Account{ID: "1001", Created: at}})},
		"erasure":             {view.Erasure(full[*person.Erasure](), true), view.Erasure(&person.Erasure{Account: &billing.Account{ID: "1001"}}, false)},
		"card":                {view.Card(full[*processor.Card]()), view.Card(&processor.Card{})},
		"portal_link":         {view.PortalLink("1001", full[processor.CardLink]())},
		"card_link":           {view.CardLink("1001", "1", full[processor.CardLink](), []billing.Name{name}), view.CardLink("1001", "", processor.CardLink{URL: "https://pay.example/1"}, nil)},
	}
}

// TestNouns compares a full and a minimal object of each noun with the golden file, and checks the
// conventions of their members.
func TestNouns(t *testing.T) {
	all := nouns()
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/nouns.json"
	if *update {
		if err := os.WriteFile(golden, append(b, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != string(b)+"\n" {
		t.Errorf("the nouns differ from %s, %v; see the difference with -update", golden, err)
	}
	for noun, pair := range all {
		for i, o := range pair {
			if o == nil && i == 1 {
				continue // the noun has no optional member
			}
			for _, problem := range wrongs(noun, o) {
				t.Errorf("%s: %s", noun, problem)
			}
		}
	}
	// The rules hold if they find what breaks them.
	for noun, o := range map[string]view.Object{"null": {"a", nil}, "text": {"amount", "12.99", "currency", "USD"}, "no currency": {"amount", 5},
		"fraction": {"month", 1.5, "currency", "USD"}, "nanoseconds": {"at", "2027-01-31T12:05:00Z"}, "key": {"name", "shop"},
		"in a list": {"list", []view.Object{{"amount?", "5"}}}, "receipt": {"number", "1"}} {
		if len(wrongs(noun, o)) == 0 {
			t.Errorf("%s: nothing is wrong with %v", noun, o)
		}
	}
}

var (
	stamp   = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T`)
	right   = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$`)
	whole   = regexp.MustCompile(`^-?\d+$`)
	ofMoney = regexp.MustCompile(`^(amount|amount_before|month|month_before|refunded|collected|outside|failed|recovered|outstanding|written_off_sum)$`)
)

// wrongs returns how the object breaks the conventions.
func wrongs(noun string, o view.Object) (all []string) {
	b, err := o.MarshalJSON()
	if err != nil {
		return []string{err.Error()}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return []string{err.Error()}
	}
	if identity, ok := map[string]string{"account": "id", "subscription": "id", "reversal": "id", "run": "id", "key": "id", "merchant": "id", "payment": "id", "event": "id",
		"endpoint": "id", "message": "id",
		"receipt": "id"}[noun]; ok && m[identity] == nil {
		all = append(all, "there is no "+identity)
	}
	return append(all, walk("", m, noun)...)
}

func walk(at string, v any, noun string) (all []string) {
	switch v := v.(type) {
	case nil:
		return []string{at + " is null"}
	case string:
		if stamp.MatchString(v) && !right.MatchString(v) {
			return []string{at + " is " + v}
		}
	case []any:
		for _, x := range v {
			all = append(all, walk(at+"[]", x, noun)...)
		}
	case map[string]any:
		for name, x := range v {
			_, text := x.(string) // a month of the report is 2027-01
			n, number := x.(json.Number)
			counts := noun == "run" || at == ".changed" // failed is a number of periods; changed has each value before and after
			if ofMoney.MatchString(name) && !counts && !(name == "month" && text) {
				if !number || !whole.MatchString(n.String()) || v["currency"] == nil && name != "written_off_sum" {
					all = append(all, at+"."+name+" is not an integer beside a currency")
				}
			}
			all = append(all, walk(at+"."+name, x, noun)...)
		}
	}
	return all
}
