package billing

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// retryDays are the days of the retries after an invoice's first failure: Stripe's recommended
// eight times in two weeks. Stripe learns its times; the fake's are fixed.
var retryDays = [...]int64{1, 3, 5, 7, 9, 11, 13, 14}

// hard are the declines after which Stripe does not charge the same payment method again.
var hard = []string{"incorrect_number", "lost_card", "pickup_card", "stolen_card", "revocation_of_authorization",
	"revocation_of_all_authorizations", "authentication_required", "highest_risk_level", "transaction_not_allowed"}

func (c call) payInvoice(invoice object) (object, error) {
	method, err := c.payer(c.Form, "payment_method", c.customerOf(invoice))
	if err != nil {
		return nil, err
	}
	switch invoice.Str("status") {
	case "paid":
		return nil, shape.Invalid("invoice_already_paid", "", "Invoice is already paid")
	case "void":
		return nil, shape.Invalid("invoice_not_open", "", "This invoice is void and can no longer be paid.")
	case "draft":
		if err := c.finalize(invoice); err != nil {
			return nil, err
		}
	}
	switch {
	case invoice.Str("status") == "paid": // nothing was due
		return invoice, nil
	case c.Flag("paid_out_of_band"):
		invoice["_paid_out_of_band"] = true
		invoice["amount_paid_off_stripe"] = invoice["amount_remaining"]
		c.cancelPayment(invoice, "abandoned")
		c.settle(invoice, invoice.Num("amount_remaining"), "")
		return invoice, nil
	case method == "":
		method = c.methodFor(invoice)
	}
	if method == "" {
		return nil, noMethod()
	}
	offSession := !c.Form.Has("off_session") || c.Flag("off_session") // by default
	return invoice, c.collect(invoice, method, offSession, false)
}

// attachPayment credits a payment intent that the invoice has not made, also one of a part.
func (c call) attachPayment(invoice object) (object, error) {
	pi, err := c.Find("payment_intent", c.Form.Str("payment_intent"), "payment_intent")
	switch {
	case err != nil:
		return nil, err
	case invoice.Str("status") != "open":
		return nil, shape.Invalid("invoice_not_open", "", "You can only attach payments to open invoices.")
	case pi.Str("_part") != "" || pi.Str("customer") != invoice.Str("customer") ||
		pi.Str("currency") != invoice.Str("currency") || pi.Num("amount") > invoice.Num("amount_remaining"):
		return nil, c.Form.Invalid("", "payment_intent", "The payment intent must have the invoice's customer and "+
			"currency, pay no other invoice, and be at most its amount_remaining.")
	}
	c.addPayment(invoice, pi, false)
	pi["_attached"] = invoice.ID()
	c.followIntent(pi)
	return invoice, nil
}

func noMethod() error {
	return shape.Invalid("resource_missing", "", "This customer has no attached payment source or default payment "+
		"method. Please consider adding a default payment method.")
}

// attempt tries to collect an invoice without a request.
func (c call) attempt(invoice object) {
	method := c.methodFor(invoice)
	if method == "" {
		c.failed(invoice, nil, true)
		return
	}
	n := invoice.Num("attempt_count")
	err := c.collect(invoice, method, true, true) // the invoice has the outcome
	if err != nil && invoice.Str("status") == "open" && invoice.Num("attempt_count") == n {
		c.failed(invoice, nil, true) // it could not even be tried
	}
}

// retry is a later attempt. It does not charge a payment method again after a hard decline.
func (c call) retry(invoice object) {
	method := c.methodFor(invoice)
	if method == "" || method == invoice.Str("_hard") {
		if last := c.count(invoice, true); last {
			c.gaveUp(c.subscriptionOf(invoice))
		}
		return
	}
	c.attempt(invoice)
}

// collect confirms the invoice's payment intent, whose move changes the invoice before collect
// returns. automatic marks an attempt without a request. If the bank wants the customer, it waits.
func (c call) collect(invoice object, method string, offSession, automatic bool) error {
	pi := c.intentOf(invoice)
	if pi == nil {
		return shape.Invalid("invoice_not_open", "", "This invoice has no payment to collect.")
	}
	if m := c.Space.Get("payment_method", method); m != nil {
		acts := payment.BehaviourOf(m)
		offSession = offSession && (!acts.Off || acts.SetupFrees && m.Yes("_setup"))
	}
	invoice["_automatic"] = automatic
	err := c.Confirm(pi, method, offSession)
	switch pi.Str("status") {
	case payment.Processing: // the outcome belongs to this attempt
		c.alter(invoice, object{"attempted": true, "next_payment_attempt": nil})
		if sub := c.subscriptionOf(invoice); sub.Str("status") == "incomplete" {
			c.become(sub, "active") // past_due if the bank refuses
		}
		return err
	case payment.NeedsAction:
		err = &shape.Error{Status: http.StatusPaymentRequired, Kind: "card_error",
			Code: "invoice_payment_intent_requires_action", Intent: pi,
			Message: "This payment requires additional user action before it can be completed successfully. Payment can be " +
				"completed using the PaymentIntent associated with the invoice."}
	}
	delete(invoice, "_automatic")
	return err
}

// followIntent brings the invoice up to date with its payment intent.
func (c call) followIntent(pi object) {
	attached := pi.Str("_attached")
	invoice := c.Space.Get("invoice", cmp.Or(attached, pi.Str("_invoice")))
	if invoice == nil || invoice.Str("status") != "open" && invoice.Str("status") != "uncollectible" {
		return
	}
	defer c.InTimeOf(c.customerOf(invoice))()
	switch status := pi.Str("status"); {
	case status == payment.Succeeded:
		c.credit(invoice, pi)
	case attached != "": // its failures are none of the invoice's
	case status == payment.NeedsAction, status == payment.NeedsMethod && pi["last_payment_error"] != nil:
		c.failed(invoice, pi, invoice.Yes("_automatic"))
	}
	delete(invoice, "_automatic")
}

// credit takes a payment towards the invoice. The default payment asks for what is left.
func (c call) credit(invoice, pi object) {
	amount, part := pi.Num("amount_received"), c.Space.Get("invoice_payment", pi.Str("_part"))
	part["status"], part["amount_paid"] = "paid", amount
	part.Sub("status_transitions")["paid_at"] = c.Now
	c.Emit("invoice_payment.paid", part, nil)
	left := invoice.Num("amount_remaining") - amount
	if left <= 0 {
		if !part.Yes("is_default") {
			c.cancelPayment(invoice, "abandoned")
		}
		c.settle(invoice, amount, pi.Str("latest_charge"))
		return
	}
	c.intentOf(invoice)["amount"] = left
	c.Space.Get("invoice_payment", invoice.Str("_payment"))["amount_requested"] = left
	c.alter(invoice, object{"amount_paid": invoice.Num("amount_paid") + amount, "amount_remaining": left})
}

// settle makes an open invoice paid by the amount. charge is "" if none was needed.
func (c call) settle(invoice object, amount int64, charge string) {
	before := invoice.Clone()
	paid := invoice.Num("amount_paid") + amount
	invoice["status"], invoice["amount_paid"], invoice["amount_remaining"] = "paid", paid, invoice.Num("amount_due")-paid
	invoice["auto_advance"], invoice["next_payment_attempt"], invoice["attempted"] = false, nil, true
	if charge != "" {
		invoice["_charge"] = charge
		if invoice.Num("attempt_count") == 0 || invoice.Yes("_automatic") {
			invoice["attempt_count"] = invoice.Num("attempt_count") + 1
		}
	}
	invoice.Sub("status_transitions")["paid_at"] = c.Now
	if sub := c.subscriptionOf(invoice); sub != nil {
		c.invoicePaid(sub, invoice)
	}
	c.sayChanged(before, invoice)
	c.say("invoice.paid", invoice, nil)
	c.say("invoice.payment_succeeded", invoice, nil)
}

// failed counts a failed attempt and sets the time of the next; pi nil: there was none to charge.
func (c call) failed(invoice, pi object, automatic bool) {
	problem := pi.Sub("last_payment_error")
	delete(invoice, "_hard")
	if pi.Str("status") == payment.NeedsAction || slices.Contains(hard, problem.Str("decline_code")) ||
		slices.Contains(hard, problem.Str("code")) {
		invoice["_hard"] = cmp.Or(pi.Str("payment_method"), problem.Sub("payment_method").Str("id"))
	}
	if charge := pi.Str("latest_charge"); charge != "" {
		invoice["_charge"] = charge
	}
	last := c.count(invoice, automatic)
	if pi.Str("status") == payment.NeedsAction || problem.Str("code") == "authentication_required" {
		c.say("invoice.payment_action_required", invoice, nil)
	}
	c.say("invoice.payment_failed", invoice, nil)
	if sub := c.subscriptionOf(invoice); sub != nil {
		status := sub.Str("status")
		if status == "active" || status == "trialing" {
			status = "past_due"
		}
		c.become(sub, status)
		if last {
			c.gaveUp(sub)
		}
	}
}

// count counts the first attempt, and the later ones without a request. Requests after the first
// attempt do not change the time of the next. last reports whether it was the last.
func (c call) count(invoice object, automatic bool) (last bool) {
	before := invoice.Clone()
	n := invoice.Num("attempt_count")
	if n == 0 {
		invoice["_first"] = c.Now
	}
	if n == 0 || automatic {
		n++
		invoice["attempt_count"] = n
		invoice["next_payment_attempt"] = nil
		if int(n) <= len(retryDays) && invoice.Yes("auto_advance") &&
			c.subscriptionOf(invoice).Str("status") != "incomplete" {
			invoice["next_payment_attempt"] = invoice.Num("_first") + retryDays[n-1]*api.Day
		}
		last = int(n) > len(retryDays)
	}
	invoice["attempted"] = true
	c.sayChanged(before, invoice)
	return last
}

// listInvoicePayments also finds the way from a payment intent to its invoice.
func (c call) listInvoicePayments() (object, error) {
	of := c.Form.Sub("payment")
	intent := of.Str("payment_intent")
	if of.Given() && of.Str("type") != "payment_intent" {
		return nil, of.Invalid("", "type", "stripefake supports only the type payment_intent.")
	}
	return c.List("invoice_payment", func(o object) bool {
		return (intent == "" || o.Sub("payment").Str("payment_intent") == intent) && c.Keeps(o, "invoice status")
	})
}
