package stripefake

import "testing"

func TestInvoice_paid(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	s.story()
	item := s.post("invoiceitems", "customer="+customer, "amount=2500", "currency=usd", "description=A pot")
	draft := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include", "metadata[purchase]=p1")
	s.is(draft, "status=draft", "amount_due=2500", "auto_advance=false", "parent=<nil>", "number=<nil>")
	s.is(s.get("invoiceitems/"+item.id()), "invoice="+draft.id())
	open := s.post("invoices/"+draft.id()+"/finalize", "expand[]=payments.data.payment.payment_intent")
	s.is(open, "status=open", "payments.object=list", "confirmation_secret=<nil>")
	s.is(s.get("invoices/"+draft.id(), "expand[]=confirmation_secret"), "confirmation_secret.type=payment_intent")
	paid := s.post("invoices/" + draft.id() + "/pay")
	s.is(paid, "status=paid", "amount_paid=2500", "amount_remaining=0", "attempt_count=1", "attempted=true")
	s.heard("the flow", "invoiceitem.created", "invoiceitem.updated", "invoice.created",
		"payment_intent.created", "invoice.updated", "invoice.finalized",
		"charge.succeeded", "payment_intent.succeeded", "invoice_payment.paid", "invoice.updated", "invoice.paid",
		"invoice.payment_succeeded")
	payment := s.get("invoice_payments", "invoice="+draft.id())
	intent, _ := payment.body["data"].([]any)[0].(map[string]any)["payment"].(map[string]any)["payment_intent"].(string)
	back := s.get("invoice_payments", "payment[type]=payment_intent", "payment[payment_intent]="+intent)
	equal(t, "the way back", back.ids(), payment.ids())
	s.is(s.try("invoices/"+draft.id()+"/pay"), "error.code=invoice_already_paid")
	old := s.ok("GET", "/v1/invoices/"+draft.id(), "", "Stripe-Version", "2024-06-20")
	s.is(old, "payment_intent="+intent, "paid=true")
}

func TestInvoice_declined(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_chargeCustomerFail")
	s.post("invoiceitems", "customer="+customer, "amount=2500", "currency=usd")
	draft := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include")
	s.story()
	failed := s.try("invoices/" + draft.id() + "/pay")
	s.is(failed, "error.type=card_error", "error.code=card_declined", "error.decline_code=generic_decline")
	s.heard("the flow", "payment_intent.created", "invoice.updated", "invoice.finalized", "charge.failed",
		"payment_intent.payment_failed",
		"invoice.updated", "invoice.payment_failed")
	s.is(s.get("invoices/"+draft.id()), "status=open", "attempt_count=1", "next_payment_attempt=<nil>")
	good := s.post("payment_methods/pm_card_visa/attach", "customer="+customer).id()
	s.is(s.post("invoices/"+draft.id()+"/pay", "payment_method="+good), "status=paid", "attempt_count=1")
}

func TestInvoice_needsTheCustomer(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_authenticationRequired")
	s.post("invoiceitems", "customer="+customer, "amount=2500", "currency=usd")
	draft := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include", "auto_advance=true")
	s.story()
	s.until("2026-01-31T13:00:00Z")
	s.heard("an hour later", "payment_intent.created", "invoice.updated", "invoice.finalized",
		"payment_intent.requires_action",
		"invoice.updated", "invoice.payment_action_required", "invoice.payment_failed")
	open := s.get("invoices/"+draft.id(), "expand[]=payments.data.payment.payment_intent")
	s.is(open, "status=open", "attempt_count=1")
	first := open.body["payments"].(map[string]any)["data"].([]any)[0].(map[string]any)
	id := first["payment"].(map[string]any)["payment_intent"].(map[string]any)["id"].(string)
	s.is(s.get("payment_intents/"+id), "status=requires_action")
	s.until("2026-02-01T14:00:00Z") // a retry without the customer would be refused: it is only counted
	s.heard("a day later", "invoice.updated")
	if err := s.Authenticate(id, true); err != nil {
		t.Fatal(err)
	}
	s.heard("authenticated", "charge.succeeded", "payment_intent.succeeded", "invoice_payment.paid", "invoice.updated",
		"invoice.paid", "invoice.payment_succeeded")
	s.is(s.get("invoices/"+draft.id()), "status=paid", "next_payment_attempt=<nil>")
}

func TestInvoice_otherEnds(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("")
	draft := func() string {
		s.post("invoiceitems", "customer="+customer, "amount=900", "currency=usd")
		id := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include").id()
		s.story()
		return id
	}
	id := draft()
	s.is(s.ok("DELETE", "/v1/invoices/"+id, ""), "deleted=true")
	s.heard("deleted", "invoiceitem.updated", "invoice.deleted")
	equal(t, "items that wait", len(s.get("invoiceitems", "pending=true").ids()), 1)

	id = draft()
	s.is(s.try("invoices/"+id+"/void"), "error.code=invoice_not_open")
	s.is(s.try("invoices/"+id+"/pay"), "error.code=resource_missing")
	s.is(s.post("invoices/"+id+"/void"), "status=void", "amount_due=1800")
	s.is(s.try("invoices/"+id+"/pay"), "error.code=invoice_not_open")
	s.heard("voided", "payment_intent.created", "invoice.updated", "invoice.finalized", "payment_intent.canceled",
		"invoice.updated", "invoice.voided")

	id = draft()
	s.post("invoices/" + id + "/finalize")
	s.is(s.post("invoices/"+id+"/mark_uncollectible"), "status=uncollectible")
	s.is(s.post("invoices/"+id+"/pay", "paid_out_of_band=true"), "status=paid", "amount_paid_off_stripe=900")
	s.is(s.try("invoices/"+id, "description=x"), "error.code=invoice_not_editable")
	old := s.ok("GET", "/v1/invoices/"+id, "", "Stripe-Version", "2020-08-27")
	s.is(old, "paid=true", "paid_out_of_band=true")

	s.is(s.get("invoices", "status=void"), "has_more=false")
	equal(t, "void ones", len(s.get("invoices", "status=void", "customer="+customer).ids()), 1)
	equal(t, "of a subscription", len(s.get("invoices", "subscription=sub_none").ids()), 0)
	empty := s.post("invoices", "customer="+customer)
	s.is(s.post("invoices/"+empty.id()+"/pay"), "status=paid", "amount_due=0", "attempt_count=0")
}

// TestInvoice_attached: payments of parts are credited, and the default payment asks for the rest.
func TestInvoice_attached(t *testing.T) {
	s := newShop(t)
	customer, card := s.buyerWith("pm_card_visa")
	invoice := func() string {
		s.post("invoiceitems", "customer="+customer, "amount=900", "currency=usd")
		id := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include").id()
		s.is(s.post("invoices/"+id+"/finalize", "auto_advance=false"), "status=open")
		return id
	}
	pays := func(amount string) string {
		return s.post("payment_intents", "amount="+amount, "currency=usd", "customer="+customer, "payment_method="+card,
			"payment_method_types[0]=card").id()
	}
	id, first := invoice(), pays("400")
	s.story()
	s.is(s.post("invoices/"+id+"/attach_payment", "payment_intent="+first), "status=open", "amount_paid=0")
	s.is(s.post("payment_intents/"+first+"/confirm"), "status=succeeded")
	s.heard("a part", "charge.succeeded", "payment_intent.succeeded", "invoice_payment.paid", "invoice.updated")
	s.is(s.get("invoices/"+id, "expand[]=payments"), "status=open", "amount_paid=400", "amount_remaining=500",
		"payments.data.1.amount_requested=500")
	for _, wrong := range []string{first, pays("501"), s.post("payment_intents", "amount=100", "currency=usd").id()} {
		s.is(s.try("invoices/"+id+"/attach_payment", "payment_intent="+wrong), "error.param=payment_intent")
	}
	s.is(s.post("invoices/"+id+"/pay"), "status=paid", "amount_paid=900", "amount_remaining=0")
	s.is(s.try("invoices/"+id+"/attach_payment", "payment_intent="+pays("100")), "error.code=invoice_not_open")

	id, first = invoice(), pays("900")
	s.is(s.post("payment_intents/"+first+"/confirm"), "status=succeeded")
	s.story()
	s.is(s.post("invoices/"+id+"/attach_payment", "payment_intent="+first, "expand[]=payments"), "status=paid",
		"payments.data.0.status=paid", "payments.data.1.status=canceled")
	s.heard("the whole", "invoice_payment.paid", "payment_intent.canceled", "invoice.updated", "invoice.paid",
		"invoice.payment_succeeded")
}
