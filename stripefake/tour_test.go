package stripefake

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// tours go to every route there is.
var tours = []func(*shop){
	(*shop).tourAccounts, (*shop).tourThin, (*shop).tourEndpoints, (*shop).tourCustomers, (*shop).tourIntents,
	(*shop).tourSetups, (*shop).tourCheckout, (*shop).tourCharges, (*shop).tourPayouts, (*shop).tourCatalogue, (*shop).tourInvoices,
	(*shop).tourSubscriptions, (*shop).tourSchedules, (*shop).tourClocks,
}

// TestRoutes_allAnswer goes to every route there is and wants a 200, which the specification
// is held against: a route that no test reaches could answer anything.
func TestRoutes_allAnswer(t *testing.T) {
	s := newShop(t)
	for _, tour := range tours {
		tour(s)
	}
	answered := map[string]bool{}
	for _, c := range s.Counts() {
		answered[c.Endpoint] = answered[c.Endpoint] || c.Status == 200
	}
	for _, route := range allRoutes() {
		if !answered[route.Endpoint()] {
			t.Errorf("%s is on no tour", route.Endpoint())
		}
	}
}

// finds wants the object in the list, and by itself below one.
func (s *shop) finds(id, one, list string, pairs ...string) {
	s.t.Helper()
	if found := s.get(list, pairs...).ids(); !slices.Contains(found, id) {
		s.t.Errorf("%s has %v, not %s", list, found, id)
	}
	s.is(s.get(one+"/"+id), "id="+id)
}

func (s *shop) removes(path string) {
	s.t.Helper()
	s.is(s.ok("DELETE", "/v1/"+path, ""), "deleted=true")
}

func (s *shop) tourAccounts() {
	s.is(s.get("account"), "id="+DefaultAccount)
	id := s.post("accounts", "type=express", "country=DE").id()
	s.finds(id, "accounts", "accounts")
	s.is(s.post("accounts/"+id, "email=a@b.example"), "email=a@b.example")
	s.removes("accounts/" + id)
}

func (s *shop) tourThin() {
	id, err := s.EmitThin(DefaultAccount, false, "v2.core.account.updated",
		Related{ID: "acct_1", Type: "v2.core.account", URL: "/v2/core/accounts/acct_1"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.is(s.ok("GET", "/v2/core/events/"+id, ""), "id="+id)
	equal(s.t, "list", s.ok("GET", "/v2/core/events", "types[]=v2.core.account.updated").ids(), []string{id})
}

func (s *shop) tourEndpoints() {
	id := s.post("webhook_endpoints", "url=https://shop.example/hook", "enabled_events[]=charge.refunded").id()
	s.finds(id, "webhook_endpoints", "webhook_endpoints")
	s.is(s.post("webhook_endpoints/"+id, "disabled=true"), "status=disabled")
	s.removes("webhook_endpoints/" + id)
	event := s.get("events").ids()[0]
	s.finds(event, "events", "events", "limit=1")
}

func (s *shop) tourCustomers() {
	customer, card := s.buyerWith("pm_card_visa")
	s.finds(customer, "customers", "customers", "email=ann@example.com")
	s.finds(card, "customers/"+customer+"/payment_methods", "customers/"+customer+"/payment_methods", "type=card")
	s.finds(card, "payment_methods", "payment_methods", "customer="+customer)
	s.is(s.post("payment_methods/"+card, "metadata[a]=b"), "metadata.a=b")
	s.is(s.post("payment_methods/"+card+"/detach"), "customer=<nil>")
	s.is(s.post("payment_methods", "type=card", "card[token]=tok_visa"), "card.last4=4242")
	s.removes("customers/" + customer)
}

func (s *shop) tourIntents() {
	intent := func(pairs ...string) string {
		return s.post("payment_intents", append([]string{"amount=1000", "currency=usd", "payment_method_types[]=card"},
			pairs...)...).id()
	}
	id := intent("capture_method=manual")
	s.finds(id, "payment_intents", "payment_intents")
	s.is(s.post("payment_intents/"+id, "description=Tea"), "description=Tea")
	s.is(s.post("payment_intents/"+id+"/confirm", "payment_method=pm_card_visa"), "status=requires_capture")
	s.is(s.post("payment_intents/"+id+"/capture"), "status=succeeded")
	s.is(s.post("payment_intents/"+intent()+"/cancel"), "status=canceled")
}

func (s *shop) tourSetups() {
	setup := func() string { return s.post("setup_intents", "payment_method_types[]=card").id() }
	id := setup()
	s.finds(id, "setup_intents", "setup_intents")
	s.is(s.post("setup_intents/"+id, "description=Tea", "payment_method=pm_card_visa"), "description=Tea",
		"status=requires_confirmation")
	s.is(s.post("setup_intents/"+id+"/confirm"), "status=succeeded")
	s.is(s.post("setup_intents/"+setup()+"/cancel"), "status=canceled")
}

func (s *shop) tourCheckout() {
	id := s.post("checkout/sessions", "mode=setup", "currency=usd", "success_url=https://shop.example/done").id()
	s.finds(id, "checkout/sessions", "checkout/sessions", "status=open")
	s.is(s.post("checkout/sessions/"+id, "metadata[a]=b"), "metadata.a=b")
	s.is(s.post("checkout/sessions/"+id+"/expire"), "status=expired", "url=<nil>")
}

// tourCharges has charges, refunds and disputes.
func (s *shop) tourCharges() {
	pay := func(method string) string {
		return fmt.Sprint(s.post("payment_intents", "amount=1000", "currency=usd", "payment_method_types[]=card",
			"payment_method="+method, "confirm=true").at("latest_charge"))
	}
	charge := pay("pm_card_visa")
	s.finds(charge, "charges", "charges")
	s.is(s.post("charges/"+charge, "description=Tea", "receipt_email=ann@example.com", "metadata[a]=b"),
		"description=Tea", "receipt_email=ann@example.com", "metadata.a=b")
	refund := s.post("refunds", "charge="+charge, "amount=300").id()
	s.finds(refund, "refunds", "refunds", "charge="+charge)
	s.is(s.post("refunds/"+refund, "metadata[a]=b"), "metadata.a=b")
	waits := func(_ *api.Call, o shape.Object) error { // for the customer, as no refund of this fake does by itself
		o["status"] = payment.NeedsAction
		return nil
	}
	if err := s.api.Act("refund", refund, waits); err != nil {
		s.t.Fatal(err)
	}
	s.is(s.post("refunds/"+refund+"/cancel"), "status=canceled")
	s.is(s.get("charges/"+charge), "amount_refunded=0", "refunded=false")
	dispute := s.get("disputes", "charge="+pay("pm_card_createDispute")).ids()[0]
	s.finds(dispute, "disputes", "disputes")
	s.is(s.post("disputes/"+dispute, "metadata[a]=b"), "metadata.a=b")
	s.is(s.post("disputes/"+dispute+"/close"), "status=lost")
}

// tourPayouts has what tourCharges has taken, and a payout of it.
func (s *shop) tourPayouts() {
	s.post("payment_intents", "amount=9000", "currency=usd", "payment_method_types[]=card",
		"payment_method=pm_card_visa", "confirm=true")
	for _, payout := range s.PayOut(Payout{}) {
		s.finds(payout, "payouts", "payouts", "status=in_transit")
		own := s.get("balance_transactions", "payout="+payout).ids()[0]
		s.finds(own, "balance_transactions", "balance_transactions", "type=payout", "expand[]=data.source")
	}
}

// tourCatalogue has what the shop sells, which newShop has made.
func (s *shop) tourCatalogue() {
	sale := s.post("coupons", "percent_off=12.5", "duration=repeating", "duration_in_months=3").id()
	s.finds(sale, "coupons", "coupons")
	s.is(s.post("coupons/"+sale, "name=Sale"), "name=Sale")
	s.removes("coupons/" + sale)
	s.finds(s.product, "products", "products", "active=true")
	s.is(s.post("products/"+s.product, "name=Green tea", "description=leaves", "images[]=https://shop.example/tea.png",
		"metadata[a]=b", "default_price="+s.monthly),
		"name=Green tea", "description=leaves", "metadata.a=b", "default_price="+s.monthly)
	s.is(s.get("products/"+s.product, "expand[]=default_price"), "default_price.id="+s.monthly)
	s.finds(s.monthly, "prices", "prices", "product="+s.product, "type=recurring")
	s.is(s.post("prices/"+s.yearly, "nickname=a year", "lookup_key=year", "metadata[a]=b"), "nickname=a year",
		"lookup_key=year", "metadata.a=b")
	s.finds(s.yearly, "prices", "prices", "lookup_keys[]=year", "expand[]=data.product")
}

// tourInvoices has invoices, their items, lines and payments.
func (s *shop) tourInvoices() {
	customer, _ := s.buyerWith("pm_card_visa")
	item := func() string {
		return s.post("invoiceitems", "customer="+customer, "amount=2500", "currency=usd").id()
	}
	draft := func() string {
		item()
		return s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include", "auto_advance=false").id()
	}
	pending := item()
	s.finds(pending, "invoiceitems", "invoiceitems", "customer="+customer, "pending=true")
	s.is(s.post("invoiceitems/"+pending, "amount=700", "description=A cup", "metadata[a]=b"), "amount=700",
		"description=A cup", "metadata.a=b")
	s.removes("invoiceitems/" + pending)
	id := draft()
	s.finds(id, "invoices", "invoices", "status=draft")
	s.is(s.post("invoices/"+id, "description=Thanks", "footer=Bye", "metadata[a]=b"), "description=Thanks", "footer=Bye",
		"metadata.a=b", "total=2500")
	equal(s.t, "lines", len(s.get("invoices/"+id+"/lines").ids()), 1)
	s.is(s.post("invoices/"+id+"/finalize"), "status=open")
	s.is(s.post("invoices/"+id+"/pay"), "status=paid")
	payment := s.get("invoice_payments", "invoice="+id).ids()[0]
	s.finds(payment, "invoice_payments", "invoice_payments")
	s.is(s.get("invoice_payments/"+payment, "expand[]=payment.payment_intent"), "payment.payment_intent.status=succeeded")
	s.removes("invoices/" + draft())
	open := s.post("invoices/" + draft() + "/finalize").id()
	part := s.post("payment_intents", "amount=500", "currency=usd", "customer="+customer).id()
	s.is(s.post("invoices/"+open+"/attach_payment", "payment_intent="+part, "expand[]=payments"), "status=open",
		"payments.data.0.is_default=false", "payments.data.0.status=open")
	for verb, status := range map[string]string{"void": "void", "mark_uncollectible": "uncollectible"} {
		id := s.post("invoices/" + draft() + "/finalize").id()
		s.is(s.post("invoices/"+id+"/"+verb), "status="+status)
	}
}

func (s *shop) tourSubscriptions() {
	customer, _ := s.buyerWith("pm_card_visa")
	sub := s.subscribe(customer).id()
	s.finds(sub, "subscriptions", "subscriptions", "customer="+customer)
	item := s.get("subscription_items", "subscription="+sub).ids()[0]
	s.finds(item, "subscription_items", "subscription_items", "subscription="+sub)
	s.is(s.post("subscriptions/"+sub, "description=Tea"), "description=Tea")
	s.is(s.ok("DELETE", "/v1/subscriptions/"+sub, "expand[]=latest_invoice"), "status=canceled",
		"latest_invoice.status=paid")

	nobody, _ := s.buyerWith("")
	paused := s.subscribe(nobody, "trial_period_days=1", "trial_settings[end_behavior][missing_payment_method]=pause").id()
	s.Advance(24 * time.Hour)
	card := s.post("payment_methods/pm_card_visa/attach", "customer="+nobody).id()
	s.post("subscriptions/"+paused, "default_payment_method="+card)
	s.is(s.post("subscriptions/"+paused+"/resume"), "status=active")
}

func (s *shop) tourSchedules() {
	customer, _ := s.buyerWith("pm_card_visa")
	id := s.split(customer).id()
	s.finds(id, "subscription_schedules", "subscription_schedules", "customer="+customer)
	s.is(s.post("subscription_schedules/"+id, "metadata[a]=b"), "metadata.a=b")
	s.is(s.post("subscription_schedules/"+id+"/cancel"), "status=canceled")
	s.is(s.post("subscription_schedules/"+s.split(customer).id()+"/release"), "status=released")
}

func (s *shop) tourClocks() {
	id := s.frozen(testStart)
	s.finds(id, "test_helpers/test_clocks", "test_helpers/test_clocks")
	s.is(s.advance(id, testStart.Add(time.Hour)), "status=advancing")
	s.removes("test_helpers/test_clocks/" + id)
}
