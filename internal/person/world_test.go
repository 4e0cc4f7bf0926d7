package person_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/tracking"
)

// mark is in every personal value of the world's person, and nowhere else.
const mark = "zqmarkx7"

// A world is a store with two persons, of whom the first has a mark in each personal value.
type world struct {
	testing.TB
	store  store.Store
	tables schema.Tables
	box    *sandbox.Sandbox
	at     time.Time
	paid   billing.Name // the first person's subscription
	marks  []string     // the planted values
}

const (
	personID = "1001"
	otherID  = "10010" // its keys begin like the person's
	own      = "acct_own"
	customer = "cus_person"
	email    = mark + ".one@example.com"
)

var engines = map[string]func(*world) store.Store{
	"memory": func(w *world) store.Store {
		s, err := memstore.Open(w.tables.All(), w.now)
		w.must(err)
		return s
	},
	"pebble": func(w *world) store.Store {
		s, err := pebblestore.Open(w.TempDir(), pebblestore.Options{Tables: w.tables.All(), Names: schema.Names(), Now: w.now,
			Create: true, CacheBytes: 32 << 20})
		w.must(err)
		return s
	},
	"dynamodb": func(w *world) store.Store {
		w.tables = schema.New(dynamotest.Prefix(w))
		client := dynamotest.Client(w)
		_, err := dynamotable.Create(w.Context(), client, w.tables.All(), dynamotable.Settings{}, nil)
		w.must(err)
		s, err := dynamostore.Open(w.Context(), dynamostore.Options{Tables: w.tables.All(), Now: w.now, Client: client})
		w.must(err)
		return s
	},
}

func newWorld(t testing.TB, kind string) *world {
	w := &world{TB: t, tables: schema.New("x-"), at: time.Date(2026, 3, 31, 9, 0, 0, 0, time.UTC)}
	w.store = engines[kind](w)
	t.Cleanup(func() { w.must(w.store.Close()) })
	var err error
	w.box, err = sandbox.Open("", sandbox.Options{Now: w.now})
	w.must(err)
	w.live()
	return w
}

func (w *world) now() time.Time { return w.at }

func (w *world) amount() money.Amount {
	usd, _ := money.ParseCurrency("USD")
	return money.New(1299, usd)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) engine(s store.Store) *engine.Engine {
	w.Helper()
	e, err := engine.Open(w.Context(), engine.Options{Store: s, Tables: w.tables, Processor: w.box, Now: w.now, Config: engine.DefaultConfig()})
	w.must(err)
	return e
}

// asked returns a context for a request by an operator, with an idempotency key unless it is "".
func (w *world) asked(key string) context.Context {
	return call.With(w.Context(), &call.Call{Actor: "user ann", Key: key, Table: w.tables.RecurringPayments.Name, Now: w.now})
}

// marked returns a new personal value.
func (w *world) marked(text string) string {
	text = fmt.Sprintf("%s-%02d %s", mark, len(w.marks), text)
	w.marks = append(w.marks, text)
	return text
}

// live gives the first person a past with all kinds of items, and the second a subscription.
func (w *world) live() {
	w.Helper()
	e := w.engine(w.store)
	usd, _ := money.ParseCurrency("USD")
	n := billing.NewSubscription{Account: personID, Email: email, Name: w.marked("Ångström"), ID: "1", SKU: "news", Amount: money.New(1299, usd),
		PaymentDay: 31, Method: "pm_card_visa", Address: w.marked("Long Road 5"), Customer: customer,
		Details: party.Details{Company: w.marked("Works"), TaxID: "1" + mark}}
	for i, text := range n.Details.Fields() {
		if party.Names[i] == "country" {
			*text = "CH"
		} else if *text == "" {
			*text = w.marked("Road")
		}
	}
	w.marks = append(w.marks, email, n.Details.TaxID)
	_, err := e.CreateSubscription(w.asked("create"), n)
	w.must(err)
	other := billing.NewSubscription{Account: otherID, Email: "two@example.com", ID: "1", SKU: "news", Amount: n.Amount, PaymentDay: 31,
		Method: "pm_card_visa"}
	_, err = e.CreateSubscription(w.asked(""), other)
	w.must(err)
	w.paid = billing.Name{Account: personID, ID: "1", SKU: "news"}
	w.run(e)
	w.at = w.at.AddDate(0, 0, 30)
	_, err = e.CreateReceipt(w.asked("wire"), w.paid, engine.ManualPayment{Note: w.marked("from her sister")})
	w.must(err)
	_, _, err = e.Refunds().Refund(w.asked("refund"), refund.Order{Name: w.paid})
	w.must(err)
	_, err = e.Cancel(w.asked("cancel"), w.paid, false)
	w.must(err)
	w.meddle()
	w.send()
	w.sell(e)
}

func (w *world) run(e *engine.Engine) {
	w.Helper()
	_, err := job.Payments(w.Context(), e, job.Options{Workers: 1})
	w.must(err)
}

// set sets attributes of a stored item as another tool would.
func (w *world) set(key store.Key, attributes ...store.Attribute) {
	w.Helper()
	it, err := w.store.Get(w.Context(), w.tables.RecurringPayments.Name, key)
	w.must(err)
	it = it.Clone()
	for _, a := range attributes {
		it.Set(a.Name, a.Value)
	}
	w.must(w.store.Commit(w.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
}

func (w *world) attribute(name, text string) store.Attribute {
	return store.Attribute{Name: name, Value: store.S(w.marked(text))}
}

// meddle plants what no command of the test writes: by other tools, by older versions, or after failures.
func (w *world) meddle() {
	w.Helper()
	w.set(billing.AccountKey(personID), w.attribute("Phone", "0664 1"), w.attribute("Notes", "likes to talk"),
		store.Attribute{Name: schema.EmailBounced, Value: store.M(store.NewItem(store.Attribute{Name: "at", Value: store.S("2026-03-01T00:00:00.000Z")},
			store.Attribute{Name: "code", Value: store.S("550")}, w.attribute("email", "old@example.com")))})
	sub, err := w.store.Get(w.Context(), w.tables.RecurringPayments.Name, w.paid.Key())
	w.must(err)
	details := sub.Get(schema.PaymentDetails).Map().Clone()
	details.Set("holder", store.S(w.marked("Ann Other")))
	w.set(w.paid.Key(), store.Attribute{Name: schema.PaymentDetails, Value: store.M(details)}, w.attribute("Comment", "a friend"))
	for it, err := range w.store.Query(w.Context(), store.Query{Table: w.tables.RecurringPayments.Name, Partition: billing.AccountPK(personID)}) {
		w.must(err)
		switch key := billing.KeyOf(it); {
		case strings.HasPrefix(key.SK, billing.RecPrefix):
			w.set(key, w.attribute("Remark", "a receipt"))
		case billing.IsReversal(it):
			w.set(key, w.attribute(schema.LastError, "refused for Ann"))
		}
	}
	unpaid := billing.ItemAt(store.Key{PK: job.UnpaidPrefix + "2026-03-01#x", SK: w.paid.String() + "#000007"},
		store.Attribute{Name: schema.Account, Value: store.S(personID)}, w.attribute(schema.Reason, "refused for Ann"))
	w.must(w.store.Commit(w.Context(), store.Put(w.tables.RecurringPayments.Name, unpaid)))
	usd, _ := money.ParseCurrency("USD")
	period := &billing.EndedPeriod{Name: w.paid, SKU: "news", Period: 7, Ending: billing.EndFailed, Due: civil.Of(w.at), Ended: w.at,
		Amount: money.New(1299, usd), Reason: "void (the subscription was cancelled); reopened: " + w.marked("she asked for it")}
	key := billing.KeyedRequest{Name: w.paid, Kind: billing.KeyedReceipt, Note: w.marked("an older note"), Created: w.at}
	ctx := w.asked("x")
	key.Fix(ctx)
	older := call.Of(ctx).Extra.Clone()
	older.Set(schema.PK, store.S(billing.AccountPK(personID)))
	older.Set(schema.SK, store.S("KEY#1#SKU#news#0123"))
	w.must(w.store.Commit(w.Context(), period.Write(w.tables.RecurringPayments.Name), store.Put(w.tables.RecurringPayments.Name, older)))
	for i, x := range []struct {
		queue outbox.Queue
		dead  bool
	}{{outbox.Mail, false}, {outbox.Held, false}, {outbox.Mail, true}} {
		mail := outbox.Write(w.tables.Outbox.Name, outbox.Effect{Queue: x.queue, Kind: outbox.KindCancelled, ID: fmt.Sprint("mail/", i), Due: w.at, Created: w.at,
			Data: map[string]string{outbox.DataAccount: personID, outbox.DataEmail: email, "text": w.marked("Dear Ann")}, Tries: 1, Error: w.marked("550 Ann")})
		if x.dead {
			mail.Item.Set(schema.PK, store.S("OUT#DEAD"))
		}
		w.must(w.store.Commit(w.Context(), mail))
	}
}

// send plants records of mail that was sent to both persons, and of the person's mail that bounced.
func (w *world) send() {
	w.Helper()
	for i, x := range []struct{ account, email, text, answer string }{{personID, email, w.marked("Dear Ann"), w.marked("250 queued for Ann")},
		{personID, email, w.marked("Ann, again"), ""}, {otherID, "two@example.com", "Dear Two", "250 queued"}} {
		e := outbox.Effect{Kind: outbox.KindCancelled, ID: fmt.Sprint("sent/", x.account, "/", i), Created: w.at,
			Data: map[string]string{outbox.DataAccount: x.account, outbox.DataEmail: x.email, "text": x.text, outbox.DataAmount: "12.99"}}
		out := outbox.Outcome{End: outbox.Delivered, Tries: 1, Answer: x.answer}
		if x.answer == "" {
			out = outbox.Outcome{End: outbox.GivenUp, Tries: 1, Err: errors.New(w.marked("no such user Ann"))}
		}
		row := outbox.Write(w.tables.Outbox.Name, e).Item
		w.must(w.store.Commit(w.Context(), maillog.Record(w.tables.RecurringPayments.Name, w.at, row, e, out)...))
	}
}

// sell plants tracking's purchases and events: linked by the customer, by the address and by the account.
func (w *world) sell(e *engine.Engine) {
	w.Helper()
	s, err := tracking.Open(w.Context(), w.tracking(e))
	w.must(err)
	for i, x := range []struct{ customer, email, name string }{{"cus_by_address", strings.ToUpper(email), w.marked("Buyer")},
		{customer, "", w.marked("Giver")}, {"cus_two", "two@example.com", "Two"}} {
		order, err := json.Marshal(tracking.Order{Kind: tracking.Product, Key: "k", Customer: x.customer, Email: x.email, Name: x.name})
		w.must(err)
		text := func(name, text string) store.Attribute { return store.Attribute{Name: name, Value: store.S(text)} }
		w.must(w.store.Commit(w.Context(), store.Put(w.tables.Tracking.Purchases.Name, store.NewItem(
			text(schema.TrackedID, fmt.Sprintf("0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e%02d", i)), text(schema.TrackedStripeAccount, own),
			text(schema.TrackedAccount, "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"), text(schema.TrackedKind, "product"),
			text(schema.TrackedCreated, "2026-03-01 00:00:00.000"), text(schema.TrackedUpdated, "2026-03-01 00:00:00.000"),
			text(schema.TrackedCustomer, x.customer), text(schema.TrackedOrder, string(order)), text(schema.TrackedKeyHash, "h"),
			store.Attribute{Name: schema.TrackedVersion, Value: store.Int(1)}))))
	}
	for i, object := range []string{
		`"object":"customer","id":"` + customer + `","name":"` + w.marked("customer") + `"`,
		`"object":"customer","id":"cus_by_address","name":"` + w.marked("buyer") + `"`,
		`"object":"payment_method","id":"pm_1","billing_details":{"email":"` + email + `","name":"` + w.marked("card") + `"}`,
		`"object":"setup_intent","id":"seti_1","description":"` + w.marked("setup") + `","metadata":{"duesday_account":"` + personID + `","duesday_installation":"` + e.Opened.Installation + `"}`,
		`"object":"setup_intent","id":"seti_2","metadata":{"duesday_account":"` + personID + `","duesday_installation":"another"}`,
		`"object":"customer","id":"cus_two","name":"Two"`,
	} {
		body := fmt.Sprintf(`{"id":"evt_%d","object":"event","type":"customer.updated","created":%d,"livemode":false,"data":{"object":{%s}}}`, i, w.at.Unix(), object)
		v, err := s.Ingest(w.Context(), []byte(body), tracking.Origin{Source: tracking.FromWebhook})
		if err != nil || !v.Status.Final() {
			w.Fatalf("%s: %+v, %v", body, v, err)
		}
	}
}

func (w *world) tracking(e *engine.Engine) tracking.Options {
	return tracking.Options{Store: w.store, Tables: w.tables, Installation: e.Opened.Installation, Own: own, Now: w.now, Decode: event.Decode}
}

// all returns a text for each item of each table with everything in it, by its key. Bodies are unpacked.
func (w *world) all() map[string]string {
	w.Helper()
	found := map[string]string{}
	for _, t := range w.tables.All() {
		for it, err := range w.store.Scan(w.Context(), store.Scan{Table: t.Name}) {
			w.must(err)
			text := spell(store.M(it))
			if e, err := tracking.DecodeEvent(it); t.Name == w.tables.Tracking.Events.Name && err == nil {
				text += string(e.Body)
			}
			found[fmt.Sprint(t.Name, " ", t.KeyOf(it))] = text
		}
	}
	return found
}

// spell returns a text with every name and value in v.
func spell(v store.Value) string {
	parts := []string{v.Str(), v.Num(), v.Raw(), fmt.Sprint(v.Bool())}
	for _, a := range v.Map() {
		parts = append(parts, a.Name, spell(a.Value))
	}
	for _, e := range slices.Concat(v.List(), v.Elements()) {
		parts = append(parts, spell(e))
	}
	return strings.Join(parts, "\n")
}

// holders returns the keys of the items that contain the mark, in any case.
func (w *world) holders() (keys []string) {
	w.Helper()
	for key, text := range w.all() {
		if strings.Contains(strings.ToLower(key+text), mark) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
