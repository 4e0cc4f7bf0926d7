package stripefake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// oldEvents are the data of the events of the type, newest first, of an account whose default
// version is that of the world.
func (s *shop) oldEvents(typ string) (list []answer) {
	s.t.Helper()
	for _, e := range s.get("events", "type="+typ, "limit=100").body["data"].([]any) {
		list = append(list, answer{body: e.(map[string]any)["data"].(map[string]any)})
	}
	return list
}

// newOldShop is a shop whose account still has an old default version.
func newOldShop(t *testing.T, version string) *shop {
	t.Helper()
	s := newShop(t)
	if err := s.SetVersion(DefaultAccount, version); err != nil {
		t.Fatal(err)
	}
	s.handler = s.Fake // the specification knows the newest shape only
	return s
}

// TestEvents_oldPrevious: previous_attributes name what has changed in the event's version.
func TestEvents_oldPrevious(t *testing.T) {
	s := newOldShop(t, "2024-06-20")
	customer, _ := s.buyerWith("pm_card_visa")
	sub := s.subscribe(customer, "metadata[a]=1")
	s.post("subscriptions/"+sub.id(), "metadata[b]=2")
	s.is(s.oldEvents("customer.subscription.updated")[0], "previous_attributes=map[metadata:map[b:<nil>]]")
	s.until("2026-03-01T12:00:00Z")
	renewal := s.oldEvents("customer.subscription.updated")[0]
	was, is := testStart.Unix(), testStart.AddDate(0, 0, 28).Unix()
	s.is(renewal, fmt.Sprint("object.current_period_start=", is), fmt.Sprint("previous_attributes.current_period_start=",
		was), fmt.Sprint("previous_attributes.current_period_end=", is))
	equal(t, "items", renewal.at("previous_attributes.items"), nil)
	moves := map[string][]string{} // what changes with the invoice's status
	for _, e := range s.oldEvents("invoice.updated") {
		previous := e.at("previous_attributes").(map[string]any)
		moves[fmt.Sprint(previous["status"], " to ", e.at("object.status"))] = slices.Sorted(maps.Keys(previous))
	}
	for move, member := range map[string]string{"draft to open": "payment_intent", "open to paid": "charge"} {
		if !slices.Contains(moves[move], member) {
			t.Errorf("%s: %v, want %s among them", move, moves[move], member)
		}
	}
	if text := s.get("events", "limit=100").text; strings.Contains(text, `"_`) {
		t.Error("an event shows private members")
	}
}

// TestEvents_oldCharges: before 2022-11-15 a payment intent has its charges and a charge its
// refunds; the invoice of a charge is there until 2025-03-31, from the first event on.
func TestEvents_oldCharges(t *testing.T) {
	s := newOldShop(t, "2020-08-27")
	customer, _ := s.buyerWith("pm_card_visa")
	s.subscribe(customer)
	paid := s.oldEvents("charge.succeeded")[0]
	if got := fmt.Sprint(paid.at("object.invoice")); !strings.HasPrefix(got, "in_") {
		t.Errorf("the charge's invoice is %s", got)
	}
	intent := s.post("payment_intents", "amount=1000", "currency=usd").id()
	s.try("payment_intents/"+intent+"/confirm", "payment_method=pm_card_chargeDeclined")
	s.try("payment_intents/"+intent+"/confirm", "payment_method=pm_card_visa")
	for range 2 {
		s.post("refunds", "payment_intent="+intent, "amount=300")
	}
	s.post("payment_intents/"+intent, "description=x") // goes on a copy of the object
	got := s.get("payment_intents/" + intent)
	s.is(got, "charges.total_count=2", "charges.has_more=false", "latest_charge=<nil>")
	charges := got.at("charges.data").([]any)
	first, last := answer{body: charges[1].(map[string]any)}, answer{body: charges[0].(map[string]any)}
	s.is(first, "status=failed", "refunds.total_count=0", "invoice=<nil>")
	s.is(last, "status=succeeded", "refunds.total_count=2", "amount_refunded=600")
	if refunds := last.at("refunds.data").([]any); fmt.Sprint(refunds[0].(map[string]any)["amount"]) != "300" {
		t.Errorf("the refunds are %v", refunds)
	}
	refunded := s.oldEvents("charge.refunded")
	s.is(refunded[0], "object.refunds.total_count=2", "previous_attributes.amount_refunded=300")
	s.is(refunded[1], "object.refunds.total_count=1", "previous_attributes.amount_refunded=0")
	declined := s.try("payment_intents", "amount=1000", "currency=usd", "payment_method=pm_card_chargeDeclined",
		"confirm=true")
	s.is(declined, "error.payment_intent.charges.total_count=1")
}

// TestInvoice_owned: what an invoice has made is cancelled and changed by way of it.
func TestInvoice_owned(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("")
	s.post("invoiceitems", "customer="+customer, "amount=2500", "currency=usd")
	invoice := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include").id()
	open := s.post("invoices/"+invoice+"/finalize", "expand[]=payments")
	intent := fmt.Sprint(answer{body: open.at("payments.data").([]any)[0].(map[string]any)}.at("payment.payment_intent"))
	s.is(s.try("payment_intents/"+intent+"/cancel"), "error.code=payment_intent_unexpected_state",
		"error.payment_intent.id="+intent)
	s.is(s.try("payment_intents/"+intent, "amount=3000"), "error.param=amount")
	s.is(s.get("payment_intents/"+intent), "status=requires_payment_method", "amount=2500")
	s.post("invoices/" + invoice + "/void")
	s.is(s.get("payment_intents/"+intent), "status=canceled", "cancellation_reason=void_invoice")
}

// TestCheckout_lapses: a session expires at its time, whoever looks and whenever.
func TestCheckout_lapses(t *testing.T) {
	s := newShop(t)
	session := s.post("checkout/sessions", "mode=setup", "currency=usd", "success_url=https://shop.example/")
	s.story()
	s.Advance(30 * 24 * time.Hour)
	s.heard("a month later", "setup_intent.canceled", "checkout.session.expired")
	e := s.get("events", "type=checkout.session.expired").body["data"].([]any)
	equal(t, "at", e[0].(map[string]any)["created"], session.at("expires_at"))
}

// TestAnswers_order: id and object come first, as in Stripe's API.
func TestAnswers_order(t *testing.T) {
	w := newWorld(t, Options{})
	if text := w.ok("POST", customers, "name=A<B").text; !strings.HasPrefix(text, "{\n  \"id\": \"cus_") ||
		!strings.Contains(text, "\n  \"object\": \"customer\",\n  \"address\": null,") || !strings.Contains(text, `"A<B"`) {
		t.Errorf("got %s", text)
	}
}

// TestErrors_hideCards: a number that may be a card's is in no error.
func TestErrors_hideCards(t *testing.T) {
	w := newWorld(t, Options{})
	for _, number := range []string{"4242424242424242", "4242 4242 4242 4242", "4242-4242-4242-4242"} {
		a := w.do("POST", "/v1/payment_intents", params([]string{"amount=500", "currency=usd", "payment_method=" + number}))
		if a.status/100 != 4 || strings.Contains(a.text, "4242") {
			t.Errorf("%s: got %d %s", number, a.status, a.text)
		}
	}
	w.do("GET", customers+"/search", "query=x").refused(t, "a search", 404, nil, nil)
}
