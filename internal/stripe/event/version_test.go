package event

import (
	"reflect"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/internal/tracking"
)

// An eventFact is an event that has to have come, and what it says of its object in the newest
// version and in the oldest. Times are not compared here.
type eventFact struct {
	typ            string
	newest, oldest tracking.Object
}

// plain is a fact that every version tells whole.
func plain(typ string, o tracking.Object) eventFact { return eventFact{typ, o, o} }

func tagFor(kind tracking.Kind) tracking.Tag {
	return tracking.Tag{Installation: "inst", Purchase: eventPurchase, Kind: kind}
}

// legacyFacts: a payment that is declined, then made, refunded, and disputed.
func (w *eventWorld) legacyFacts() []eventFact {
	buyer := w.buyer("pm_card_visa")
	made := w.post("payment_intents",
		append(purchased("legacy"), "amount=1000", "currency=eur", "customer="+buyer, "payment_method_types[]=card")...)
	pi := textIn(made["id"])
	w.call(eventShop, "POST", "payment_intents/"+pi+"/confirm",
		"payment_method=pm_card_visa_chargeDeclinedInsufficientFunds")
	paid := w.post("payment_intents/"+pi+"/confirm", "payment_method=pm_card_visa")
	refund := w.post("refunds", append(purchased("legacy"), "payment_intent="+pi, "amount=300")...)
	w.post("refunds/"+textIn(refund["id"]), "metadata[more]=1")
	dispute, err := w.fake.Dispute(pi, "fraudulent")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.fake.CloseDispute(dispute, "lost"); err != nil {
		w.t.Fatal(err)
	}
	tag := tagFor(tracking.Legacy)
	intent := tracking.Object{Kind: "payment_intent", ID: pi, Tag: tag, Amount: 1000, Currency: "EUR", Customer: buyer}
	declined, succeeded := intent, intent
	declined.Status, declined.Failed, declined.Code = "requires_payment_method", true, "insufficient_funds"
	succeeded.Status = "succeeded"
	intent.Status = "requires_payment_method"
	back := tracking.Object{Kind: "refund", ID: textIn(refund["id"]), Status: "succeeded", Tag: tag, Amount: 300,
		Currency: "EUR", Payment: pi,
		Refunds: []tracking.Refund{{ID: textIn(refund["id"]), Amount: 300, Status: "succeeded"}}}
	disputed := tracking.Object{Kind: "dispute", ID: dispute, Status: "needs_response", Amount: 700, Currency: "EUR",
		Payment: pi, Code: "fraudulent"}
	closed := disputed
	closed.Status = "lost"
	charge := tracking.Object{Kind: "charge", ID: textIn(paid["latest_charge"]), Status: "succeeded", Tag: tag,
		Amount: 1000, Currency: "EUR",
		Customer: buyer, Payment: pi, Refunded: 300}
	itemized := charge
	itemized.Refunds = back.Refunds
	return []eventFact{
		{"payment_intent.created", intent, free(intent)}, {"payment_intent.payment_failed", declined, free(declined)},
		{"payment_intent.succeeded", succeeded, free(succeeded)},
		plain("refund.created", back), plain("refund.updated", back), plain("charge.dispute.created", disputed),
		plain("charge.dispute.closed", closed),
		{"charge.refunded", charge, itemized},
	}
}

// free is a payment intent in old versions, which tell that no invoice made it.
func free(intent tracking.Object) tracking.Object {
	intent.InvoiceTold = true
	return intent
}

// subscriptionFacts: a subscription that is paid, then not, and deleted.
func (w *eventWorld) subscriptionFacts() []eventFact {
	buyer := w.buyer("pm_card_visa")
	made := w.post("subscriptions",
		append(purchased("subscription"), "customer="+buyer, "items[0][price]="+w.monthly,
			"expand[]=latest_invoice.payments")...)
	id, invoice := textIn(made["id"]), made["latest_invoice"].(map[string]any)
	payment := invoice["payments"].(map[string]any)["data"].([]any)[0].(map[string]any)
	pi := textIn(payment["payment"].(map[string]any)["payment_intent"])
	card := textIn(w.post("payment_methods/pm_card_chargeCustomerFail/attach", "customer="+buyer)["id"])
	w.post("subscriptions/"+id, "default_payment_method="+card)
	w.fake.Advance(32 * 24 * time.Hour)
	if gone := w.call(eventShop, "DELETE", "subscriptions/"+id); gone["status"] != "canceled" {
		w.t.Fatalf("not canceled: %v", gone)
	}
	tag := tagFor(tracking.Subscribe)
	active := tracking.Object{Kind: "subscription", ID: id, Status: "active", Tag: tag, Customer: buyer, Subscription: id,
		Terms: tracking.Terms{Price: w.monthly, Quantity: 1}}
	late, deleted := active, active
	late.Status, deleted.Status, deleted.Code = "past_due", "canceled", "cancellation_requested"
	bill := tracking.Object{Kind: "invoice", ID: textIn(invoice["id"]), Status: "paid", Tag: tag,
		Invoice: textIn(invoice["id"]), Subscription: id, Customer: buyer}
	intent := tracking.Object{Kind: "payment_intent", ID: pi, Status: "succeeded", Amount: 1500, Currency: "USD",
		Customer: buyer}
	oldBill, oldIntent := bill, intent
	oldBill.Payment, oldIntent.Invoice, oldIntent.InvoiceTold = pi, bill.ID, true
	return []eventFact{
		plain("customer.subscription.created", active), plain("customer.subscription.updated", late),
		plain("customer.subscription.deleted", deleted),
		plain("invoice_payment.paid", tracking.Object{Kind: "invoice_payment", ID: textIn(payment["id"]), Status: "paid",
			Invoice: bill.ID, Payment: pi}),
		{"invoice.paid", bill, oldBill}, {"payment_intent.succeeded", intent, oldIntent},
	}
}

// splitFacts: two schedules, of which one is canceled and one completes.
func (w *eventWorld) splitFacts() []eventFact {
	buyer := w.buyer("pm_card_visa")
	split := func() tracking.Object {
		made := w.post("subscription_schedules",
			append(purchased("split"), "customer="+buyer, "start_date=now", "end_behavior=cancel",
				"phases[0][items][0][price]="+w.monthly,
				"phases[0][duration][interval]=month", "phases[0][duration][interval_count]=2")...)
		return tracking.Object{Kind: "subscription_schedule", ID: textIn(made["id"]), Status: "active",
			Tag: tagFor(tracking.SplitPayment), Customer: buyer,
			Schedule: textIn(made["id"]), Subscription: textIn(made["subscription"])}
	}
	canceled, completed := split(), split()
	w.post("subscription_schedules/" + canceled.ID + "/cancel")
	w.fake.Advance(70 * 24 * time.Hour)
	canceled.Status, completed.Status = "canceled", "completed"
	return []eventFact{plain("subscription_schedule.canceled", canceled),
		plain("subscription_schedule.completed", completed)}
}

// shared is what every version tells of an object. Of the rest, old versions tell more: the
// invoice of a payment and of a charge, and the payment of an invoice, until 2025-03-31; the
// refunds of a charge, until 2022-11-15.
func shared(o tracking.Object) tracking.Object {
	switch o.Kind {
	case tracking.KindPayment:
		o.Invoice, o.InvoiceTold = "", false
	case tracking.KindCharge:
		o.Invoice, o.Refunds = "", nil
	case tracking.KindInvoice:
		o.Payment = ""
	}
	return o
}

// TestDecodeEvent_versions: an event means the same in every version, but for what a version
// does not tell.
func TestDecodeEvent_versions(t *testing.T) {
	spec := stripetest.Load(t)
	w := newEventWorld(t)
	facts := append(append(w.legacyFacts(), w.subscriptionFacts()...), w.splitFacts()...)
	if err := w.fake.Disconnect(eventShop); err != nil {
		t.Fatal(err)
	}
	facts = append(facts, plain("account.application.deauthorized",
		tracking.Object{Kind: "application", ID: "ca_duesday"}))
	newest := eventVersions[len(eventVersions)-1]
	events := w.heard()
	var latest, old []tracking.Event
	for id, bodies := range events {
		if len(bodies) != len(eventVersions) {
			t.Errorf("%s came in %d versions", id, len(bodies))
		}
		want := w.decode(bodies[newest])
		latest = append(latest, want)
		for _, problem := range spec.CheckEvent(bodies[newest].body) {
			t.Errorf("%s: %s", want.Type, problem)
		}
		oldest := w.decode(bodies[eventVersions[0]])
		old = append(old, oldest)
		for _, version := range eventVersions {
			got := w.decode(bodies[version])
			w.checkTold(version, got, linksOf(oldest.Object))
			got.APIVersion, got.Object, want.APIVersion = "", shared(got.Object), ""
			if want.Object = shared(want.Object); !reflect.DeepEqual(got, want) {
				t.Errorf("%s in %s:\n got %+v\nwant %+v", want.Type, version, got, want)
			}
		}
	}
	if len(events) < 40 {
		t.Errorf("only %d events came", len(events))
	}
	for _, f := range facts {
		w.find(f.typ, f.newest, latest)
		w.find(f.typ, f.oldest, old)
	}
}

// decode verifies the webhook and decodes it.
func (w *eventWorld) decode(g webhook) tracking.Event {
	w.t.Helper()
	header, err := parseSignature(g.signature) // by the machine's clock, not by the fake's
	if err != nil {
		w.t.Fatal(err)
	}
	if which, err := verify(g.signature, g.body, []secret.Text{secret.New("whsec_other"), w.secrets[g.version]},
		header.at); err != nil || which != 1 {
		w.t.Errorf("signature: %d, %v", which, err)
	}
	e, err := Decode(g.body)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, g.body)
	}
	if e.APIVersion != g.version || e.StripeAccount != eventShop || e.Created.IsZero() || e.Object.Fetched {
		w.t.Errorf("%s in %s: got %+v", e.Type, g.version, e)
	}
	return e
}

// oldLinks are what old versions alone tell.
type oldLinks struct {
	payment, invoice string
	refunds          []tracking.Refund
}

func linksOf(o tracking.Object) oldLinks { return oldLinks{o.Payment, o.Invoice, o.Refunds} }

// checkTold wants what the version can tell, and that it is as the oldest tells it.
func (w *eventWorld) checkTold(version string, e tracking.Event, oldest oldLinks) {
	w.t.Helper()
	o, got := e.Object, linksOf(e.Object)
	want := oldest
	since := func(v string) bool { return version >= v }
	switch {
	case o.Kind == tracking.KindPayment && o.InvoiceTold != !since("2025-03-31"):
		w.t.Errorf("%s in %s: InvoiceTold is %t", e.Type, version, o.InvoiceTold)
	case o.Kind == tracking.KindPayment && since("2025-03-31"):
		want.invoice = ""
	case o.Kind == tracking.KindInvoice && since("2025-03-31"):
		want.payment = ""
	case o.Kind == tracking.KindCharge:
		if since("2025-03-31") {
			want.invoice = ""
		}
		if since("2022-11-15") {
			want.refunds = nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		w.t.Errorf("%s in %s: tells of %+v, want %+v", e.Type, version, got, want)
	}
}

// find wants what an event of the type says among the events.
func (w *eventWorld) find(typ string, want tracking.Object, events []tracking.Event) {
	w.t.Helper()
	var near []tracking.Object
	for _, e := range events {
		if o := e.Object; e.Type == typ && o.ID == want.ID {
			o.Created = time.Time{}
			if o.Kind == tracking.KindDispute && o.Due.After(time.Unix(0, 0)) {
				o.Due = time.Time{}
			}
			if near = append(near, o); reflect.DeepEqual(o, want) && e.Subscription == want.Subscription {
				return
			}
		}
	}
	w.t.Errorf("%s:\nwant %+v\n got %+v", typ, want, near)
}
