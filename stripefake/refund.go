package stripefake

import (
	"fmt"
	"maps"
	"strings"
)

func refundRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/refunds", params: "amount charge payment_intent reason metadata refund_application_fee reverse_transfer " + beyondRefund, do: (*call).createRefund},
		{method: "GET", path: "/v1/refunds", params: "charge created payment_intent" + listParams, do: (*call).listRefunds},
		{method: "GET", path: "/v1/refunds/{refund}", do: (*call).refundOfPath},
		{method: "POST", path: "/v1/refunds/{refund}", params: "metadata", do: (*call).updateRefund},
		{method: "POST", path: "/v1/refunds/{refund}/cancel", do: (*call).cancelRefund},
	}
}

const beyondRefund = "currency customer instructions_email origin"

// refundable returns the charge that a refund is for. What is only authorized is given back by
// cancelling its payment intent; that Stripe also takes a refund for that is not done here.
func (c *call) refundable() (object, error) {
	id, intent := c.form.str("charge"), c.form.str("payment_intent")
	switch {
	case id == "" && intent == "":
		return nil, invalid("parameter_missing", "payment_intent", "One of the following params should be provided for this request: payment_intent or charge.")
	case intent != "":
		pi := c.space.get("payment_intent", intent)
		if pi == nil {
			return nil, absent("payment_intent", intent, "payment_intent")
		}
		latest := c.space.get("charge", pi.str("latest_charge"))
		if latest == nil || latest.str("status") != succeeded || !latest.yes("captured") || id != "" && id != latest.id() {
			return nil, invalid("", "payment_intent", "This PaymentIntent ("+pi.id()+") does not have a successful charge to refund.")
		}
		return latest, nil
	}
	charge := c.space.get("charge", id)
	if charge == nil {
		return nil, absent("charge", id, "charge")
	}
	if charge.str("status") != succeeded || !charge.yes("captured") {
		return nil, invalid("", "charge", "Charge "+id+" has not been captured; cancel its PaymentIntent instead of a refund.")
	}
	return charge, nil
}

func (c *call) createRefund() (object, error) {
	if err := c.beyond(beyondRefund); err != nil {
		return nil, err
	}
	charge, err := c.refundable()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"refund_application_fee", "reverse_transfer"} {
		if asked, err := c.flag(name); err != nil {
			return nil, err
		} else if asked && !c.connected() && charge["transfer_data"] == nil {
			return nil, invalid("", name, "Charge "+charge.id()+" has nothing that "+name+" could return.")
		}
	}
	reason, err := c.choice("reason", "duplicate", "fraudulent", "requested_by_customer")
	if err != nil {
		return nil, err
	}
	left := charge.num("amount") - charge.num("amount_refunded")
	amount, err := c.num("amount")
	currency := charge.str("currency")
	switch {
	case err != nil:
		return nil, err
	case charge.yes("disputed") && !charge.yes("_inquiry"):
		return nil, invalid("charge_disputed", "", "Charge "+charge.id()+" has been charged back; cannot issue a refund.")
	case left == 0:
		return nil, invalid("charge_already_refunded", "", "Charge "+charge.id()+" has already been refunded.")
	case !c.form.has("amount"):
		amount = left
	case amount < 1:
		return nil, invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1.")
	case amount > left:
		return nil, invalid("", "amount", fmt.Sprintf("Refund amount (%s) is greater than unrefunded amount on charge (%s)", showMoney(amount, currency), showMoney(left, currency)))
	case among(threeDecimal, currency) && amount%10 != 0:
		return nil, invalid("parameter_invalid_integer", "amount", "Invalid amount: the last digit of an amount in "+currency+" must be 0.")
	}
	members := object{"metadata": object{}, "reason": orNil(reason), "amount": amount}
	if err := c.metadata(members); err != nil {
		return nil, err
	}
	return c.refund(charge, members), nil
}

// refund gives the amount back. It succeeds, or is pending if the payment method is one for
// which it is.
func (c *call) refund(charge, members object) object {
	m := c.space.get("payment_method", charge.str("payment_method"))
	o := object{"balance_transaction": nil, "charge": charge.id(), "created": c.timeOf(charge.str("customer")), "currency": charge.str("currency"),
		"payment_intent": charge["payment_intent"], "receipt_number": nil, "source_transfer_reversal": nil, "status": succeeded, "transfer_reversal": nil,
		"destination_details": object{"type": "card", "card": object{"reference_status": "pending", "reference_type": "acquirer_reference_number", "type": "refund"}}}
	maps.Copy(o, members)
	acts := behaviourOf(m)
	if acts.bank {
		o["destination_details"] = object{"type": "us_bank_transfer", "us_bank_transfer": object{}}
	}
	if acts.refund == "pending" || acts.bank {
		o["status"], o["pending_reason"] = "pending", "processing"
	}
	o = c.create("refund", "re", o)
	charge["amount_refunded"] = charge.num("amount_refunded") + o.num("amount")
	charge["refunded"] = charge.num("amount_refunded") == charge.num("amount")
	charge["_refunds"] = append([]any{o.id()}, charge.list("_refunds")...) // newest first, as old versions show them
	c.emit("refund.created", o, nil)
	c.emit("charge.refunded", charge, object{"amount_refunded": charge.num("amount_refunded") - o.num("amount"), "refunded": false})
	return o
}

// finishRefund is the bank's answer to a refund: one that is pending succeeds or fails, and
// one that has succeeded can still fail, when the customer's bank sends it back.
func (c *call) finishRefund(o object, ok bool) error {
	before := o.str("status")
	switch {
	case before == "pending" && ok:
		o["status"] = succeeded
		delete(o, "pending_reason")
	case (before == "pending" || before == succeeded) && !ok:
		c.unrefund(o, "failed")
		o["failure_reason"] = "expired_or_canceled_card"
	default:
		return invalid("", "", "There is nothing to finish: "+o.id()+" has a status of "+before+".")
	}
	c.emit("refund.updated", o, object{"status": before})
	c.emit("charge.refund.updated", o, object{"status": before})
	if !ok {
		c.emit("refund.failed", o, nil)
	}
	return nil
}

// unrefund takes the refund back.
func (c *call) unrefund(o object, status string) {
	o["status"] = status
	delete(o, "pending_reason")
	charge := c.space.get("charge", o.str("charge"))
	charge["amount_refunded"], charge["refunded"] = charge.num("amount_refunded")-o.num("amount"), false
}

func (c *call) refundOfPath() (object, error) { return c.find("refund", c.path["refund"], "id") }

func (c *call) updateRefund() (object, error) {
	o, err := c.refundOfPath()
	if err != nil {
		return nil, err
	}
	after := o.clone()
	if err := c.metadata(after); err != nil {
		return nil, err
	}
	c.change("refund.updated", o, after)
	return o, nil
}

// cancelRefund is for refunds that wait for the customer, of which this fake makes none.
func (c *call) cancelRefund() (object, error) {
	o, err := c.refundOfPath()
	if err != nil {
		return nil, err
	}
	if o.str("status") != needsAction {
		return nil, invalid("", "", "Refund "+o.id()+" cannot be canceled because it has a status of "+strings.ReplaceAll(o.str("status"), "_", " ")+". Only refunds that require action can be.")
	}
	c.unrefund(o, canceled)
	c.emit("refund.updated", o, object{"status": needsAction})
	return o, nil
}

func (c *call) listRefunds() (object, error) {
	return c.list("refund", c.filter("charge", "payment_intent"))
}
