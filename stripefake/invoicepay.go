package stripefake

import (
	"net/http"
	"slices"
)

// retryDays are how many days after its first failure an invoice is tried again: Stripe's
// recommended eight times in two weeks. Stripe chooses the times by what it has learnt; the
// fake's are fixed.
var retryDays = [...]int64{1, 3, 5, 7, 9, 11, 13, 14}

// hard are the declines after which Stripe does not charge the same payment method again.
// It goes on counting attempts: they are made as soon as there is another one.
var hard = []string{"incorrect_number", "lost_card", "pickup_card", "stolen_card", "revocation_of_authorization",
	"revocation_of_all_authorizations", "authentication_required", "highest_risk_level", "transaction_not_allowed"}

func (c *call) payInvoice() (object, error) {
	invoice, err := c.getInvoice()
	if err != nil {
		return nil, err
	}
	customer := c.space.get("customer", invoice.str("customer"))
	defer c.inTimeOf(customer)()
	method, err := c.payer(c.form, "payment_method", "payment_method", customer)
	if err != nil {
		return nil, err
	}
	offSession, err := c.flag("off_session")
	if err != nil {
		return nil, err
	}
	outside, err := c.flag("paid_out_of_band")
	if err != nil {
		return nil, err
	}
	switch invoice.str("status") {
	case "paid":
		return nil, invalid("invoice_already_paid", "", "Invoice is already paid")
	case "void":
		return nil, invalid("invoice_not_open", "", "This invoice is void and can no longer be paid.")
	case "draft":
		if err := c.finalize(invoice); err != nil {
			return nil, err
		}
	}
	switch {
	case invoice.str("status") == "paid": // nothing was due
		return invoice, nil
	case outside:
		invoice["_paid_out_of_band"] = true
		invoice["amount_paid_off_stripe"] = invoice["amount_due"]
		c.cancelPayment(invoice, "abandoned")
		c.settle(invoice, invoice.num("amount_due"), "")
		return invoice, nil
	case method == "":
		method = c.methodFor(invoice)
	}
	if method == "" {
		return nil, noMethod()
	}
	if err := c.collect(invoice, method, offSession || !c.form.has("off_session"), false); err != nil {
		return nil, err
	}
	return invoice, nil
}

func noMethod() error {
	return invalid("resource_missing", "", "This customer has no attached payment source or default payment method. Please consider adding a default payment method.")
}

// attempt tries to collect an invoice by itself.
func (c *call) attempt(invoice object) {
	method := c.methodFor(invoice)
	if method == "" {
		c.failed(invoice, nil, true)
		return
	}
	n := invoice.num("attempt_count")
	err := c.collect(invoice, method, true, true) // what became of it is in the invoice
	if err != nil && invoice.str("status") == "open" && invoice.num("attempt_count") == n {
		c.failed(invoice, nil, true) // it could not even be tried
	}
}

// retry is a later attempt. A payment method that was refused for good is not charged again.
func (c *call) retry(invoice object) {
	method := c.methodFor(invoice)
	if method == "" || method == invoice.str("_hard") {
		if last := c.count(invoice, true); last {
			c.gaveUp(c.subscriptionOf(invoice))
		}
		return
	}
	c.attempt(invoice)
}

// collect confirms the invoice's payment intent. automatic says that it is the fake that
// tries, and not a request. The payment intent's move has changed the invoice when it returns.
// A payment for which the bank wants the customer waits for the customer, as Stripe's billing
// has it, although nobody is there.
func (c *call) collect(invoice object, method string, offSession, automatic bool) error {
	pi := c.intentOf(invoice)
	if pi == nil {
		return invalid("invoice_not_open", "", "This invoice has nothing to be paid.")
	}
	if m := c.space.get("payment_method", method); m != nil {
		acts := behaviourOf(m)
		offSession = offSession && (!acts.off || acts.setupFrees && m.yes("_setup"))
	}
	invoice["_automatic"] = automatic
	err := c.confirm(pi, method, offSession, "")
	switch pi.str("status") {
	case processing: // what becomes of it still is this attempt's
		before := invoice.clone()
		invoice["attempted"], invoice["next_payment_attempt"] = true, nil
		c.sayChanged(before, invoice)
		return err
	case needsAction:
		err = &apiError{status: http.StatusPaymentRequired, kind: "card_error", code: "invoice_payment_intent_requires_action", intent: pi,
			message: "This payment requires additional user action before it can be completed successfully. Payment can be completed using the PaymentIntent associated with the invoice."}
	}
	delete(invoice, "_automatic")
	return err
}

// followIntent carries what has become of a payment intent over to the invoice that it is for.
func (c *call) followIntent(pi object) {
	invoice := c.space.get("invoice", pi.str("_invoice"))
	if invoice == nil || invoice.str("status") != "open" && invoice.str("status") != "uncollectible" {
		return
	}
	defer c.inTimeOf(c.space.get("customer", invoice.str("customer")))()
	switch pi.str("status") {
	case succeeded:
		c.settle(invoice, pi.num("amount_received"), pi.str("latest_charge"))
	case needsAction:
		c.failed(invoice, pi, invoice.yes("_automatic"))
	case needsMethod:
		if pi["last_payment_error"] != nil {
			c.failed(invoice, pi, invoice.yes("_automatic"))
		}
	}
	delete(invoice, "_automatic")
}

// settle makes an open invoice paid. charge is "" if none was needed.
func (c *call) settle(invoice object, amount int64, charge string) {
	if payment := c.space.get("invoice_payment", invoice.str("_payment")); payment.str("status") == "open" {
		payment["status"], payment["amount_paid"] = "paid", amount
		payment.sub("status_transitions")["paid_at"] = c.now
		c.emit("invoice_payment.paid", payment, nil)
	}
	before := invoice.clone()
	invoice["status"], invoice["amount_paid"], invoice["amount_remaining"] = "paid", amount, invoice.num("amount_due")-amount
	invoice["auto_advance"], invoice["next_payment_attempt"], invoice["attempted"] = false, nil, true
	if charge != "" {
		invoice["_charge"] = charge
		if invoice.num("attempt_count") == 0 || invoice.yes("_automatic") {
			invoice["attempt_count"] = invoice.num("attempt_count") + 1
		}
	}
	invoice.sub("status_transitions")["paid_at"] = c.now
	if sub := c.subscriptionOf(invoice); sub != nil {
		c.invoicePaid(sub, invoice)
	}
	c.sayChanged(before, invoice)
	c.say("invoice.paid", invoice, nil)
	c.say("invoice.payment_succeeded", invoice, nil)
}

// failed counts a failed attempt, and says when the next one is. pi is nil if there was
// nothing to charge.
func (c *call) failed(invoice, pi object, automatic bool) {
	problem := pi.sub("last_payment_error")
	delete(invoice, "_hard")
	if pi.str("status") == needsAction || slices.Contains(hard, problem.str("decline_code")) || slices.Contains(hard, problem.str("code")) {
		invoice["_hard"] = pi.str("payment_method")
		if invoice["_hard"] == "" {
			invoice["_hard"] = problem.sub("payment_method").str("id")
		}
	}
	if charge := pi.str("latest_charge"); charge != "" {
		invoice["_charge"] = charge
	}
	last := c.count(invoice, automatic)
	if pi.str("status") == needsAction || problem.str("code") == "authentication_required" {
		c.say("invoice.payment_action_required", invoice, nil)
	}
	c.say("invoice.payment_failed", invoice, nil)
	if sub := c.subscriptionOf(invoice); sub != nil {
		c.invoiceFailed(sub)
		if last {
			c.gaveUp(sub)
		}
	}
}

// count counts an attempt: the first one, and those that the fake has made by itself. What
// requests have tried after the first one does not change when it tries again. last says that
// it will not.
func (c *call) count(invoice object, automatic bool) (last bool) {
	before := invoice.clone()
	n := invoice.num("attempt_count")
	if n == 0 {
		invoice["_first"] = c.now
	}
	if n == 0 || automatic {
		n++
		invoice["attempt_count"] = n
		invoice["next_payment_attempt"] = nil
		if int(n) <= len(retryDays) && invoice.yes("auto_advance") && c.subscriptionOf(invoice).str("status") != "incomplete" {
			invoice["next_payment_attempt"] = invoice.num("_first") + retryDays[n-1]*day
		}
		last = int(n) > len(retryDays)
	}
	invoice["attempted"] = true
	c.sayChanged(before, invoice)
	return last
}
