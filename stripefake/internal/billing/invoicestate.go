package billing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// draftLife is how long a draft waits to be finalized by itself, in seconds, as in Stripe's API.
const draftLife = api.Hour

// say emits an event of an invoice, which waits while its subscription may still be taken back.
func (c call) say(typ string, invoice, previous object) {
	if sub := c.subscriptionOf(invoice); sub.Yes("_strict") {
		sub["_held"] = append(sub.List("_held"), object{"type": typ, "of": invoice.Clone(), "previous": previous})
		return
	}
	c.Emit(typ, invoice, previous)
}

// alter changes members of an invoice, and is sayChanged then.
func (c call) alter(invoice, members object) {
	before := invoice.Clone()
	maps.Copy(invoice, members)
	c.sayChanged(before, invoice)
}

// sayChanged is changed for an invoice.
func (c call) sayChanged(before, invoice object) {
	c.Plan(invoice)
	if previous := shape.Differences(before, invoice); shape.IsPublic(previous) {
		c.say("invoice.updated", invoice, previous)
	}
}

func (c call) finalizeInvoice(invoice object) (object, error) {
	if c.Form.Has("auto_advance") {
		invoice["auto_advance"] = c.Flag("auto_advance")
	}
	if err := c.finalize(invoice); err != nil {
		return nil, err
	}
	if invoice.Str("status") == "open" && invoice.Yes("auto_advance") { // Stripe tries within the hour
		c.alter(invoice, object{"next_payment_attempt": c.Now + draftLife})
	}
	return invoice, nil
}

// finalize opens a draft: it gets its number and a payment intent. With nothing due it is paid.
func (c call) finalize(invoice object) error {
	before, customer := invoice.Clone(), c.customerOf(invoice)
	left := c.useBalance(invoice, customer)
	pi, err := c.intentFor(invoice)
	if err != nil {
		maps.Copy(invoice, before)
		return err
	}
	n := customer.Num("next_invoice_sequence")
	customer["next_invoice_sequence"] = n + 1
	invoice["number"] = fmt.Sprintf("%s-%04d", customer.Str("invoice_prefix"), n)
	invoice["status"], invoice["effective_at"], invoice["ending_balance"] = "open", c.Now, left
	invoice["automatically_finalizes_at"], invoice["next_payment_attempt"] = nil, nil
	invoice["hosted_invoice_url"] = "https://invoice.stripe.com/i/" + c.Space.Account + "/" + invoice.ID()
	invoice["invoice_pdf"] = "https://pay.stripe.com/invoice/" + c.Space.Account + "/" + invoice.ID() + "/pdf"
	invoice.Sub("status_transitions")["finalized_at"] = c.Now
	if pi != nil {
		invoice["_payment"], invoice["_payment_intent"] = c.addPayment(invoice, pi, true).ID(), pi.ID()
		invoice["_confirmation_secret"] = object{"type": "payment_intent", "client_secret": pi["client_secret"]}
	}
	c.Change("customer.updated", customer, object{"balance": left})
	c.sayChanged(before, invoice)
	c.say("invoice.finalized", invoice, nil)
	if pi == nil && invoice.Str("_pause") == "" {
		c.settle(invoice, 0, "")
	}
	return nil
}

// useBalance applies the customer's balance to an invoice, and returns the balance that is left. A
// negative balance is a credit, which the invoice uses; a negative total becomes such a credit.
func (c call) useBalance(invoice, customer object) (left int64) {
	balance := customer.Num("balance")
	if invoice.Str("_pause") != "" { // it will be closed
		return balance
	}
	due := invoice.Num("total") + balance
	invoice["starting_balance"], left = balance, min(due, 0)
	invoice["amount_due"], invoice["amount_remaining"] = max(due, 0), max(due, 0)
	return left
}

// intentFor makes the payment intent of an invoice; nil if it needs none. Less than Stripe's smallest
// amount is not charged; Stripe adds it to the customer's balance.
func (c call) intentFor(invoice object) (object, error) {
	if invoice.Num("amount_due") == 0 || invoice.Str("_pause") != "" {
		return nil, nil
	}
	members := object{"amount": invoice["amount_due"], "currency": invoice["currency"], "customer": invoice["customer"],
		"_invoice": invoice.ID()}
	if method := c.methodFor(invoice); method != "" {
		members["payment_method"] = method
		if m := c.Space.Get("payment_method", method); m.Str("type") != "card" { // an invoice takes what its account takes
			members["payment_method_types"] = []any{"card", m.Str("type")}
		}
	}
	if sub := c.subscriptionOf(invoice); sub != nil {
		members["description"] = map[bool]string{true: "Subscription creation",
			false: "Subscription update"}[invoice.Str("billing_reason") == "subscription_create"]
		if sub.Sub("payment_settings").Str("save_default_payment_method") == "on_subscription" {
			members["setup_future_usage"] = "off_session"
		}
	}
	pi, err := c.NewIntent(members)
	if e, ok := err.(*shape.Error); ok && e.Code == "amount_too_small" {
		return nil, nil
	}
	return pi, err
}

func (c call) intentOf(invoice object) object {
	return c.Space.Get("payment_intent", invoice.Str("_payment_intent"))
}

// closes returns a handler that closes an invoice in one of the states. act names it in the error.
func closes(status, act string, from ...string) func(call, object) (object, error) {
	return func(c call, invoice object) (object, error) {
		if s := invoice.Str("status"); !slices.Contains(from, s) {
			return nil, shape.Invalid("invoice_not_open", "", "You can only "+act+". This invoice is "+s+".")
		}
		c.close(invoice, status)
		return invoice, nil
	}
}

// close ends an invoice as void or uncollectible. An uncollectible one can still be paid.
func (c call) close(invoice object, status string) {
	before, step := invoice.Clone(), "marked_uncollectible"
	if status == "void" {
		step = "voided"
		c.cancelPayment(invoice, "void_invoice")
		used := invoice.Num("ending_balance") - invoice.Num("starting_balance")
		customer := c.customerOf(invoice)
		c.Change("customer.updated", customer, object{"balance": customer.Num("balance") - used})
	}
	invoice["status"], invoice["auto_advance"], invoice["next_payment_attempt"] = status, false, nil
	invoice.Sub("status_transitions")[step+"_at"] = c.Now
	c.sayChanged(before, invoice)
	c.say("invoice."+step, invoice, nil)
	if sub := c.subscriptionOf(invoice); sub != nil && sub.Str("latest_invoice") == invoice.ID() {
		c.invoiceClosed(sub, status)
	}
}

// addPayment links the payment intent to the invoice.
func (c call) addPayment(invoice, pi object, isDefault bool) object {
	part := c.Create("invoice_payment", "inpay", object{"amount_paid": nil, "amount_requested": pi["amount"],
		"currency": invoice["currency"], "invoice": invoice.ID(), "is_default": isDefault,
		"payment": object{"type": "payment_intent", "payment_intent": pi.ID()}, "status": "open",
		"status_transitions": object{"canceled_at": nil, "paid_at": nil}, "_customer": invoice["customer"]})
	pi["_part"] = part.ID()
	return part
}

// cancelPayment cancels the invoice's payment intent, if its state allows.
func (c call) cancelPayment(invoice object, reason string) {
	if pi := c.intentOf(invoice); pi != nil && payment.IsOpen(pi) {
		_ = c.CancelIntent(pi, reason) // an open one can be
	}
	if part := c.Space.Get("invoice_payment", invoice.Str("_payment")); part.Str("status") == "open" {
		part["status"] = "canceled"
		part.Sub("status_transitions")["canceled_at"] = c.Now
	}
}

func invoiceDue(o object) (int64, bool) {
	if !o.Yes("auto_advance") {
		return 0, false
	}
	var at any
	switch o.Str("status") {
	case "draft":
		at = o["automatically_finalizes_at"]
	case "open":
		at = o["next_payment_attempt"]
	}
	when, ok := at.(int64)
	return when, ok
}

func (c call) invoiceHappens(invoice object) {
	if invoice.Str("status") == "open" {
		c.retry(invoice)
		return
	}
	if err := c.finalize(invoice); err != nil { // as Stripe does: it stays a draft
		c.alter(invoice, object{"auto_advance": false, "automatically_finalizes_at": nil,
			"last_finalization_error": object{"type": "invalid_request_error", "message": err.Error()}})
		c.say("invoice.finalization_failed", invoice, nil)
		return
	}
	switch pause := invoice.Str("_pause"); {
	case invoice.Str("status") != "open":
	case pause != "":
		c.close(invoice, strings.TrimPrefix(pause, "mark_"))
	default:
		c.attempt(invoice)
	}
}
