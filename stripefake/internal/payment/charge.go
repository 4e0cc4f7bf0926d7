package payment

import (
	"fmt"
	"maps"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func chargeRoutes() []api.Route {
	return []api.Route{
		api.Lists("/v1/charges", "charge", "created customer payment_intent transfer_group", nil),
		on("GET", "/v1/charges/{charge}", "", find("charge", "id")),
		on("POST", "/v1/charges/{charge}", "=description metadata =receipt_email",
			api.Update("charge.updated", find("charge", "id"), Call.Describe)),
		on("POST", "/v1/refunds", "amount:int charge payment_intent reason:duplicate|fraudulent|requested_by_customer "+
			"metadata refund_application_fee:bool reverse_transfer:bool ~currency ~customer ~instructions_email ~origin",
			Call.createRefund),
		api.Lists("/v1/refunds", "refund", "charge created payment_intent", nil),
		on("GET", "/v1/refunds/{refund}", "", find("refund", "id")),
		on("POST", "/v1/refunds/{refund}", "metadata", api.Update("refund.updated", find("refund", "id"), Call.Describe)),
		on("POST", "/v1/refunds/{refund}/cancel", "", api.With(find("refund", "id"), Call.cancelRefund)),
	}
}

// charge makes the charge of an attempt to collect the payment. members are its outcome.
func (c Call) charge(pi, m, members object) object {
	o := pi.Pick("amount application application_fee_amount currency customer description _invoice metadata " +
		"receipt_email statement_descriptor statement_descriptor_suffix transfer_data transfer_group").Null(
		"application_fee balance_transaction failure_balance_transaction failure_code failure_message on_behalf_of " +
			"receipt_number receipt_url review shipping source_transfer").Zero("amount_captured amount_refunded")
	maps.Copy(o, object{"billing_details": m.Sub("billing_details").Clone(), "payment_intent": pi.ID(),
		"calculated_statement_descriptor": "STRIPEFAKE", "created": c.TimeOf(pi.Str("customer")), "disputed": false,
		"fraud_details": object{}, "paid": false, "payment_method": m.ID(), "radar_options": object{}, "refunded": false,
		"payment_method_details": methodDetails(m, pi.Num("amount"))})
	maps.Copy(o, members)
	if pi.Sub("transfer_data") != nil {
		o["transfer_data"] = pi.Sub("transfer_data").With("amount", nil)
	}
	o = c.Create("charge", "ch", o)
	pi["_charges"] = append([]any{o.ID()}, pi.List("_charges")...) // newest first, as old versions show them
	return o
}

// methodDetails are the payment method as it was when it was charged.
func methodDetails(m object, amount int64) object {
	if bank := m.Sub("us_bank_account"); bank != nil {
		d := bank.Pick("account_holder_type account_type bank_name fingerprint last4 routing_number")
		return object{"type": "us_bank_account", "us_bank_account": d.Null("payment_reference")}
	}
	card := m.Sub("card")
	d := card.Pick("brand checks country exp_month exp_year fingerprint funding last4 regulated_status")
	maps.Copy(d, object{"amount_authorized": amount, "authorization_code": "000000",
		"extended_authorization": object{"status": "disabled"}, "incremental_authorization": object{"status": "unavailable"},
		"multicapture": object{"status": "unavailable"}, "network": card.Str("brand"), "network_token": object{"used": false},
		"network_transaction_id": "000000000000000",
		"overcapture":            object{"maximum_amount_capturable": amount, "status": "unavailable"}})
	return object{"type": "card", "card": d.Null("installments mandate three_d_secure wallet")}
}

func authorized() object {
	return object{"advice_code": nil, "network_advice_code": nil, "network_decline_code": nil,
		"network_status": "approved_by_network", "reason": nil,
		"risk_level": "normal", "risk_score": int64(20), "seller_message": "Payment complete.", "type": "authorized"}
}

// captureIntent collects the authorized amount, or a part of it; the rest is released.
func (c Call) captureIntent(pi object) (object, error) {
	if pi.Str("status") != NeedsCapture {
		return nil, unexpected(pi, "This PaymentIntent could not be captured because it has a status of "+pi.Str("status")+
			". Only a PaymentIntent with one of the following statuses may be captured: requires_capture.")
	}
	amount := pi.Num("amount_capturable")
	if c.Form.Has("amount_to_capture") {
		amount = c.Num("amount_to_capture")
	}
	if most := pi.Num("amount_capturable"); amount < 1 || amount > most {
		return nil, shape.Invalid("amount_too_large", "amount_to_capture", fmt.Sprintf("The provided amount_to_capture "+
			"(%d) must be from 1 to the capturable amount (%d).", amount, most))
	}
	if final := c.Form.Str("final_capture"); final == "false" {
		return nil, c.BeyondPart("final_capture")
	}
	if err := c.Describe(pi); err != nil {
		return nil, err
	}
	charge := c.Space.Get("charge", pi.Str("latest_charge"))
	charge["captured"], charge["amount_captured"], charge["amount_refunded"] = true, amount, charge.Num("amount")-amount
	pi["status"], pi["amount_capturable"], pi["amount_received"] = Succeeded, int64(0), amount
	c.Emit("charge.captured", charge, nil)
	c.Emit("payment_intent.succeeded", pi, nil)
	c.Follow(IntentMoved, pi)
	return pi, nil
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
			return nil, shape.Invalid("", name, "Charge "+charge.ID()+" has no transfer or application fee, "+
				"so "+name+" cannot be true.")
		}
	}
	left := unrefunded(charge)
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
		"currency": charge.Str("currency"), "payment_intent": charge["payment_intent"], "receipt_number": nil,
		"source_transfer_reversal": nil, "status": Succeeded, "transfer_reversal": nil,
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
	o = c.Make("refund", "re", o)
	charge["amount_refunded"] = charge.Num("amount_refunded") + o.Num("amount")
	charge["refunded"] = charge.Num("amount_refunded") == charge.Num("amount")
	charge["_refunds"] = append([]any{o.ID()}, charge.List("_refunds")...) // newest first, as old versions show them
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
		return shape.Invalid("", "", "Only a pending or succeeded refund can be completed. "+o.ID()+
			" has a status of "+before+".")
	}
	c.Emit("refund.updated", o, object{"status": before})
	c.Emit("charge.refund.updated", o, object{"status": before})
	if !ok {
		c.Emit("refund.failed", o, nil)
	}
	return nil
}

func (c Call) unrefund(o object, status string) {
	o["status"] = status
	delete(o, "pending_reason")
	charge := c.Space.Get("charge", o.Str("charge"))
	charge["amount_refunded"], charge["refunded"] = charge.Num("amount_refunded")-o.Num("amount"), false
}

// cancelRefund is for refunds in requires_action. This fake makes none by itself.
func (c Call) cancelRefund(o object) (object, error) {
	if o.Str("status") != NeedsAction {
		return nil, shape.Invalid("", "", "Refund "+o.ID()+" cannot be canceled because it has a status of "+
			strings.ReplaceAll(o.Str("status"), "_", " ")+". Only refunds that require action can be.")
	}
	c.unrefund(o, canceled)
	c.Emit("refund.updated", o, object{"status": NeedsAction})
	return o, nil
}
