package payment

import (
	"fmt"
	"maps"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func refundRoutes() []api.Route {
	return []api.Route{
		on("POST", "/v1/refunds", "amount:int charge payment_intent reason:duplicate|fraudulent|requested_by_customer "+
			"metadata refund_application_fee:bool reverse_transfer:bool ~currency ~customer ~instructions_email ~origin",
			Call.createRefund),
		api.Lists("/v1/refunds", "refund", "charge created payment_intent", nil),
		on("GET", "/v1/refunds/{refund}", "", find("refund", "id")),
		on("POST", "/v1/refunds/{refund}", "metadata", api.Update("refund.updated", find("refund", "id"), Call.Describe)),
		on("POST", "/v1/refunds/{refund}/cancel", "", api.With(find("refund", "id"), Call.cancelRefund)),
	}
}

// refundable returns the charge of a refund. An uncaptured charge is released by cancelling its
// payment intent; Stripe takes a refund for it too, this fake does not.
func (c Call) refundable() (object, error) {
	id, intent := c.Form.Str("charge"), c.Form.Str("payment_intent")
	switch {
	case id == "" && intent == "":
		return nil, shape.Invalid("parameter_missing", "payment_intent", "One of the following params should be "+
			"provided for this request: payment_intent or charge.")
	case intent != "":
		pi := c.Space.Get("payment_intent", intent)
		if pi == nil {
			return nil, shape.Absent("payment_intent", intent, "payment_intent")
		}
		latest := c.Space.Get("charge", pi.Str("latest_charge"))
		if latest == nil || latest.Str("status") != Succeeded || !latest.Yes("captured") || id != "" && id != latest.ID() {
			return nil, shape.Invalid("", "payment_intent",
				"This PaymentIntent ("+pi.ID()+") does not have a successful charge to refund.")
		}
		return latest, nil
	}
	charge := c.Space.Get("charge", id)
	if charge == nil {
		return nil, shape.Absent("charge", id, "charge")
	}
	if charge.Str("status") != Succeeded || !charge.Yes("captured") {
		return nil, shape.Invalid("", "charge", "Charge "+id+" has not been captured; cancel its PaymentIntent instead "+
			"of a refund.")
	}
	return charge, nil
}

func (c Call) createRefund() (object, error) {
	charge, err := c.refundable()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"refund_application_fee", "reverse_transfer"} {
		if c.Flag(name) && !c.Connected() && charge["transfer_data"] == nil {
			return nil, shape.Invalid("", name, "Charge "+charge.ID()+" has nothing that "+name+" could return.")
		}
	}
	left := charge.Num("amount") - charge.Num("amount_refunded")
	amount, currency := c.Num("amount"), charge.Str("currency")
	switch {
	case charge.Yes("disputed") && !charge.Yes("_inquiry"):
		return nil, shape.Invalid("charge_disputed", "",
			"Charge "+charge.ID()+" has been charged back; cannot issue a refund.")
	case left == 0:
		return nil, shape.Invalid("charge_already_refunded", "", "Charge "+charge.ID()+" has already been refunded.")
	case !c.Form.Has("amount"):
		amount = left
	case amount < 1:
		return nil, shape.Invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1.")
	case amount > left:
		return nil, shape.Invalid("", "amount", fmt.Sprintf("Refund amount (%s) is greater than unrefunded amount on "+
			"charge (%s)", ShowMoney(amount, currency), ShowMoney(left, currency)))
	case among(threeDecimal, currency) && amount%10 != 0:
		return nil, shape.Invalid("parameter_invalid_integer", "amount",
			"Invalid amount: the last digit of an amount in "+currency+" must be 0.")
	}
	members := object{"metadata": object{}, "reason": c.Form.OrNil("reason"), "amount": amount}
	if err := c.Form.Metadata(members); err != nil {
		return nil, err
	}
	return c.refund(charge, members), nil
}

// refund makes the refund. It succeeds, or is pending with some payment methods.
func (c Call) refund(charge, members object) object {
	m := c.Space.Get("payment_method", charge.Str("payment_method"))
	o := object{"balance_transaction": nil, "charge": charge.ID(), "created": c.TimeOf(charge.Str("customer")),
		"currency":       charge.Str("currency"),
		"payment_intent": charge["payment_intent"], "receipt_number": nil, "source_transfer_reversal": nil,
		"status": Succeeded, "transfer_reversal": nil,
		"destination_details": object{"type": "card", "card": object{"reference_status": "pending",
			"reference_type": "acquirer_reference_number", "type": "refund"}}}
	maps.Copy(o, members)
	acts := BehaviourOf(m)
	if acts.bank {
		o["destination_details"] = object{"type": "us_bank_transfer", "us_bank_transfer": object{}}
	}
	if acts.refund == "pending" || acts.bank {
		o["status"], o["pending_reason"] = "pending", "processing"
	}
	o = c.Create("refund", "re", o)
	charge["amount_refunded"] = charge.Num("amount_refunded") + o.Num("amount")
	charge["refunded"] = charge.Num("amount_refunded") == charge.Num("amount")
	charge["_refunds"] = append([]any{o.ID()}, charge.List("_refunds")...) // newest first, as old versions show them
	c.Emit("refund.created", o, nil)
	c.Emit("charge.refunded", charge, object{"amount_refunded": charge.Num("amount_refunded") - o.Num("amount"),
		"refunded": false})
	return o
}

// finishRefund is the bank's answer to a refund. A pending one succeeds or fails. One that has
// succeeded can still fail, when the customer's bank sends it back.
func (c Call) finishRefund(o object, ok bool) error {
	before := o.Str("status")
	switch {
	case before == "pending" && ok:
		o["status"] = Succeeded
		delete(o, "pending_reason")
	case (before == "pending" || before == Succeeded) && !ok:
		c.unrefund(o, "failed")
		o["failure_reason"] = "expired_or_canceled_card"
	default:
		return shape.Invalid("", "", "There is nothing to finish: "+o.ID()+" has a status of "+before+".")
	}
	c.Emit("refund.updated", o, object{"status": before})
	c.Emit("charge.refund.updated", o, object{"status": before})
	if !ok {
		c.Emit("refund.failed", o, nil)
	}
	return nil
}

// unrefund takes the refund back.
func (c Call) unrefund(o object, status string) {
	o["status"] = status
	delete(o, "pending_reason")
	charge := c.Space.Get("charge", o.Str("charge"))
	charge["amount_refunded"], charge["refunded"] = charge.Num("amount_refunded")-o.Num("amount"), false
}

// cancelRefund is for refunds in requires_action. This fake makes none by itself.
func (c Call) cancelRefund(o object) (object, error) {
	if o.Str("status") != NeedsAction {
		return nil, shape.Invalid("", "",
			"Refund "+o.ID()+" cannot be canceled because it has a status of "+strings.ReplaceAll(o.Str("status"), "_", " ")+". Only refunds that require action can be.")
	}
	c.unrefund(o, canceled)
	c.Emit("refund.updated", o, object{"status": NeedsAction})
	return o, nil
}
