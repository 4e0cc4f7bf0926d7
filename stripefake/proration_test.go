package stripefake

import (
	"fmt"
	"testing"
)

// halfway returns a monthly subscription of 15.00 in the middle of its first period, which has 28
// days, with its customer and its item.
func (s *shop) halfway() (sub, customer, item string) {
	s.t.Helper()
	customer, _ = s.buyerWith("pm_card_visa")
	o := s.subscribe(customer)
	s.until("2026-02-14T12:00:00Z")
	return o.id(), customer, o.at("items.data.0.id").(string)
}

func (s *shop) priced(amount int, interval string) string {
	s.t.Helper()
	return s.post("prices", "currency=usd", fmt.Sprint("unit_amount=", amount), "recurring[interval]="+interval,
		"product="+s.product).id()
}

// TestProration: a change is credited and billed to the second, on the next invoice or at once.
func TestProration(t *testing.T) {
	s := newShop(t)
	sub, customer, item := s.halfway()
	s.story()
	change := []string{"items[0][id]=" + item, "items[0][price]=" + s.priced(9900, "month")}
	s.post("subscriptions/"+sub, change...)
	s.heard("an upgrade", "invoiceitem.created", "invoiceitem.created", "customer.subscription.updated")
	items := s.get("invoiceitems", "customer="+customer, "pending=true")
	s.is(items, "data.0.amount=4950", "data.0.description=Remaining time on Tea", "data.0.proration=true",
		"data.0.discountable=false", "data.1.amount=-750", "data.1.description=Unused time on Tea", "data.2=<nil>",
		"data.0.parent.subscription_details.subscription="+sub)
	s.until("2026-02-28T14:00:00Z")
	s.is(s.get("subscriptions/"+sub, "expand[]=latest_invoice"), "latest_invoice.amount_paid=14100",
		"latest_invoice.lines.data.1.parent.subscription_item_details.proration=true")

	s = newShop(t)
	sub, _, item = s.halfway()
	s.story()
	s.post("subscriptions/"+sub, "items[0][id]="+item, "items[0][quantity]=3", "proration_behavior=always_invoice")
	s.heard("always_invoice", "invoiceitem.created", "invoiceitem.created", "invoiceitem.updated", "invoiceitem.updated",
		"invoice.created", "customer.subscription.updated", "payment_intent.created", "invoice.updated", "invoice.finalized",
		"charge.succeeded", "payment_intent.succeeded", "invoice_payment.paid", "invoice.updated", "invoice.paid",
		"invoice.payment_succeeded")
	s.is(s.get("subscriptions/"+sub, "expand[]=latest_invoice"), "status=active", "latest_invoice.amount_paid=1500",
		"latest_invoice.billing_reason=subscription_update", "items.data.0.quantity=3")
	s.until("2026-02-21T12:00:00Z")
	s.post("subscriptions/"+sub, "items[0][id]="+item, "items[0][quantity]=1", "proration_behavior=none")
	s.until("2026-02-28T14:00:00Z")
	s.is(s.get("subscriptions/"+sub, "expand[]=latest_invoice"), "latest_invoice.amount_paid=1500")
}

// TestProration_Credit: a downgrade that is invoiced at once becomes a credit, which the next invoice uses.
func TestProration_Credit(t *testing.T) {
	s := newShop(t)
	sub, customer, item := s.halfway()
	s.post("subscriptions/"+sub, "items[0][id]="+item, "items[0][price]="+s.priced(500, "month"),
		"proration_behavior=always_invoice")
	s.is(s.get("subscriptions/"+sub, "expand[]=latest_invoice"), "latest_invoice.total=-500", "latest_invoice.amount_due=0",
		"latest_invoice.status=paid", "latest_invoice.ending_balance=-500")
	s.is(s.get("customers/"+customer), "balance=-500")
	s.post("subscriptions/"+sub, "items[0][id]="+item, "items[0][quantity]=2", "proration_behavior=none")
	s.until("2026-02-28T14:00:00Z")
	s.is(s.get("subscriptions/"+sub, "expand[]=latest_invoice"), "latest_invoice.total=1000", "latest_invoice.amount_paid=500",
		"latest_invoice.starting_balance=-500", "latest_invoice.ending_balance=0")
	s.is(s.get("customers/"+customer), "balance=0")
	s.post("customers/"+customer, "balance=-300")
	s.post("invoiceitems", "customer="+customer, "amount=1000", "currency=usd")
	invoice := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include").id()
	s.is(s.post("invoices/"+invoice+"/finalize"), "amount_due=700")
	s.post("invoices/" + invoice + "/void")
	s.is(s.get("customers/"+customer), "balance=-300")
}

// TestProration_Interval: a price of another interval begins a period, and is invoiced at once.
func TestProration_Interval(t *testing.T) {
	s := newShop(t)
	sub, _, item := s.halfway()
	o := s.post("subscriptions/"+sub, "items[0][id]="+item, "items[0][price]="+s.yearly, "expand[]=latest_invoice")
	s.is(o, "latest_invoice.amount_paid=11250", "latest_invoice.lines.data.0.amount=12000",
		"latest_invoice.lines.data.1.amount=-750", fmt.Sprint("billing_cycle_anchor=", at(t, "2026-02-14T12:00:00Z")),
		fmt.Sprint("items.data.0.current_period_end=", at(t, "2027-02-14T12:00:00Z")))

	sub, _, item = s.trialing()
	o = s.post("subscriptions/"+sub, "items[0][id]="+item, "items[0][price]="+s.yearly, "expand[]=latest_invoice")
	s.is(o, "latest_invoice.amount_paid=0", "latest_invoice.billing_reason=subscription_create", "status=trialing")
}

func (s *shop) trialing() (sub, customer, item string) {
	s.t.Helper()
	customer, _ = s.buyerWith("pm_card_visa")
	o := s.subscribe(customer, "trial_period_days=10")
	return o.id(), customer, o.at("items.data.0.id").(string)
}

// TestProration_Items: an added item joins the period, and a deleted one is credited.
func TestProration_Items(t *testing.T) {
	s := newShop(t)
	sub, customer, item := s.halfway()
	o := s.post("subscriptions/"+sub, "items[0][price]="+s.priced(800, "month"), "proration_behavior=always_invoice",
		"expand[]=latest_invoice")
	s.is(o, "latest_invoice.amount_paid=400", "items.data.1.price.unit_amount=800",
		fmt.Sprint("items.data.1.current_period_end=", at(t, "2026-02-28T12:00:00Z")))
	s.post("subscriptions/"+sub, "items[0][id]="+item, "items[0][deleted]=true")
	s.is(s.get("invoiceitems", "customer="+customer, "pending=true"), "data.0.amount=-750", "data.1=<nil>")
	last := s.get("subscriptions/" + sub).at("items.data.0.id").(string)
	for what, pairs := range map[string][]string{
		"the last item":     {"items[0][id]=" + last, "items[0][deleted]=true"},
		"an item of nobody": {"items[0][id]=si_none", "items[0][quantity]=2"},
		"another interval":  {"items[0][price]=" + s.yearly},
	} {
		s.try("subscriptions/"+sub, pairs...).refused(t, what, 400, s.try("subscriptions/"+sub, pairs...).at("error.code"), "items")
	}
	s.try("subscriptions/"+sub, "items[0][id]="+last, "items[0][quantity]=2", "proration_behavior=always_invoice",
		"payment_behavior=error_if_incomplete").refused(t, "taking back", 400, nil, "payment_behavior")
}

// TestProration_Declined: an update that is invoiced at once, and not paid, leaves the subscription
// past_due.
func TestProration_Declined(t *testing.T) {
	s := newShop(t)
	sub, customer, item := s.halfway()
	broken := s.post("payment_methods/pm_card_chargeCustomerFail/attach", "customer="+customer).id()
	s.post("customers/"+customer, "invoice_settings[default_payment_method]="+broken)
	o := s.post("subscriptions/"+sub, "items[0][id]="+item, "items[0][quantity]=2", "proration_behavior=always_invoice",
		"expand[]=latest_invoice")
	s.is(o, "status=past_due", "latest_invoice.status=open", "latest_invoice.amount_due=750")
}
