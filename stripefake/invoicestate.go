package stripefake

import "fmt"

// draftLife is for how long an invoice that advances by itself stays a draft, in seconds.
// Stripe waits for about as long after its webhook has been answered.
const draftLife = hour

// say emits an event of an invoice: at once, or, while it is not clear whether its
// subscription is going to be there at all, later or never.
func (c *call) say(typ string, invoice, previous object) {
	if sub := c.subscriptionOf(invoice); sub.yes("_strict") {
		sub["_held"] = append(sub.list("_held"), object{"type": typ, "of": invoice.clone(), "previous": previous})
		return
	}
	c.emit(typ, invoice, previous)
}

// sayChanged is changed for an invoice.
func (c *call) sayChanged(before, invoice object) {
	c.plan(invoice)
	if previous := differences(before, invoice); isPublic(previous) {
		c.say("invoice.updated", invoice, previous)
	}
}

func (c *call) finalizeInvoice() (object, error) {
	invoice, err := c.draft(c.path["invoice"], "invoice")
	if err != nil {
		return nil, err
	}
	defer c.inTimeOf(c.space.get("customer", invoice.str("customer")))()
	if c.form.has("auto_advance") {
		if invoice["auto_advance"], err = c.flag("auto_advance"); err != nil {
			return nil, err
		}
	}
	if err := c.finalize(invoice); err != nil {
		return nil, err
	}
	if invoice.str("status") == "open" && invoice.yes("auto_advance") { // Stripe tries within the hour
		before := invoice.clone()
		invoice["next_payment_attempt"] = c.now + draftLife
		c.sayChanged(before, invoice)
	}
	return invoice, nil
}

// finalize opens a draft: it gets its number, and a payment intent for what is due. Where
// nothing is due it is paid.
func (c *call) finalize(invoice object) error {
	before := invoice.clone()
	pi, err := c.intentFor(invoice)
	if err != nil {
		return err
	}
	customer := c.space.get("customer", invoice.str("customer"))
	n := customer.num("next_invoice_sequence")
	customer["next_invoice_sequence"] = n + 1
	invoice["number"] = fmt.Sprintf("%s-%04d", customer.str("invoice_prefix"), n)
	invoice["status"], invoice["effective_at"], invoice["ending_balance"] = "open", c.now, int64(0)
	invoice["automatically_finalizes_at"], invoice["next_payment_attempt"] = nil, nil
	invoice["hosted_invoice_url"] = "https://invoice.stripe.com/i/" + c.space.account + "/" + invoice.id()
	invoice["invoice_pdf"] = "https://pay.stripe.com/invoice/" + c.space.account + "/" + invoice.id() + "/pdf"
	invoice.sub("status_transitions")["finalized_at"] = c.now
	if pi != nil {
		payment := c.create("invoice_payment", "inpay", object{
			"amount_paid": nil, "amount_requested": invoice["amount_due"], "currency": invoice["currency"], "invoice": invoice.id(),
			"is_default": true, "payment": object{"type": "payment_intent", "payment_intent": pi.id()}, "status": "open",
			"status_transitions": object{"canceled_at": nil, "paid_at": nil}, "_customer": invoice["customer"],
		})
		invoice["_payment"], invoice["_payment_intent"] = payment.id(), pi.id()
		invoice["_confirmation_secret"] = object{"type": "payment_intent", "client_secret": pi["client_secret"]}
	}
	c.sayChanged(before, invoice)
	c.say("invoice.finalized", invoice, nil)
	if pi == nil && invoice.str("_pause") == "" {
		c.settle(invoice, 0, "")
	}
	return nil
}

// intentFor makes the payment intent of an invoice; nil if it needs none. Less than Stripe's
// smallest amount is not charged: Stripe puts it on the customer's balance, which the fake
// does not keep.
func (c *call) intentFor(invoice object) (object, error) {
	if invoice.num("amount_due") == 0 || invoice.str("_pause") != "" {
		return nil, nil
	}
	members := object{"amount": invoice["amount_due"], "currency": invoice["currency"], "customer": invoice["customer"],
		"_invoice": invoice.id()}
	if method := c.methodFor(invoice); method != "" {
		members["payment_method"] = method
	}
	if sub := c.subscriptionOf(invoice); sub != nil {
		members["description"] = map[bool]string{true: "Subscription creation", false: "Subscription update"}[invoice.str("billing_reason") == "subscription_create"]
		if sub.sub("payment_settings").str("save_default_payment_method") == "on_subscription" {
			members["setup_future_usage"] = "off_session"
		}
	}
	pi, err := c.newIntent(members)
	if e, ok := err.(*apiError); ok && e.code == "amount_too_small" {
		return nil, nil
	}
	return pi, err
}

func (c *call) intentOf(invoice object) object {
	return c.space.get("payment_intent", invoice.str("_payment_intent"))
}

func (c *call) voidInvoice() (object, error) {
	invoice, err := c.getInvoice()
	if err != nil {
		return nil, err
	}
	if s := invoice.str("status"); s != "open" && s != "uncollectible" {
		return nil, invalid("invoice_not_open", "", "You can only void open or uncollectible invoices. This invoice is "+s+".")
	}
	defer c.inTimeOf(c.space.get("customer", invoice.str("customer")))()
	c.void(invoice)
	return invoice, nil
}

func (c *call) void(invoice object) {
	c.close(invoice, "void", "voided_at", "invoice.voided")
}

func (c *call) giveUpInvoice() (object, error) {
	invoice, err := c.getInvoice()
	if err != nil {
		return nil, err
	}
	if s := invoice.str("status"); s != "open" {
		return nil, invalid("invoice_not_open", "", "You can only mark open invoices uncollectible. This invoice is "+s+".")
	}
	defer c.inTimeOf(c.space.get("customer", invoice.str("customer")))()
	c.close(invoice, "uncollectible", "marked_uncollectible_at", "invoice.marked_uncollectible")
	return invoice, nil
}

// close ends an invoice that is not going to be paid. One that is uncollectible still can be.
func (c *call) close(invoice object, status, transition, typ string) {
	before := invoice.clone()
	invoice["status"], invoice["auto_advance"], invoice["next_payment_attempt"] = status, false, nil
	invoice.sub("status_transitions")[transition] = c.now
	if status == "void" {
		c.cancelPayment(invoice, "void_invoice")
	}
	c.sayChanged(before, invoice)
	c.say(typ, invoice, nil)
	if sub := c.subscriptionOf(invoice); sub != nil && sub.str("latest_invoice") == invoice.id() {
		c.invoiceClosed(sub, status)
	}
}

// cancelPayment cancels the invoice's payment intent, if that can still be cancelled.
func (c *call) cancelPayment(invoice object, reason string) {
	if pi := c.intentOf(invoice); pi != nil && isOpen(pi) {
		_ = c.cancelIntent(pi, reason) // an open one can be
	}
	if payment := c.space.get("invoice_payment", invoice.str("_payment")); payment.str("status") == "open" {
		payment["status"] = "canceled"
		payment.sub("status_transitions")["canceled_at"] = c.now
	}
}

// invoiceDue is when an invoice is finalized or tried again by itself.
func invoiceDue(o object) (int64, bool) {
	if !o.yes("auto_advance") {
		return 0, false
	}
	var at any
	switch o.str("status") {
	case "draft":
		at = o["automatically_finalizes_at"]
	case "open":
		at = o["next_payment_attempt"]
	}
	when, ok := at.(int64)
	return when, ok
}

func (c *call) invoiceHappens(invoice object) {
	if invoice.str("status") == "open" {
		c.retry(invoice)
		return
	}
	if err := c.finalize(invoice); err != nil { // as Stripe does: it stays a draft
		before := invoice.clone()
		invoice["auto_advance"], invoice["automatically_finalizes_at"] = false, nil
		invoice["last_finalization_error"] = object{"type": "invalid_request_error", "message": err.Error()}
		c.sayChanged(before, invoice)
		c.say("invoice.finalization_failed", invoice, nil)
		return
	}
	switch pause := invoice.str("_pause"); {
	case invoice.str("status") != "open":
	case pause == "void":
		c.void(invoice)
	case pause == "mark_uncollectible":
		c.close(invoice, "uncollectible", "marked_uncollectible_at", "invoice.marked_uncollectible")
	default:
		c.attempt(invoice)
	}
}
