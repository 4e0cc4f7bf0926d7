package payment

import (
	"fmt"
	"maps"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func chargeRoutes() []api.Route {
	return []api.Route{
		api.Lists("/v1/charges", "charge", "created customer payment_intent transfer_group", nil),
		on("GET", "/v1/charges/{charge}", "", find("charge", "id")),
		on("POST", "/v1/charges/{charge}", "=description metadata =receipt_email",
			api.Update("charge.updated", find("charge", "id"), Call.Describe)),
	}
}

// charge makes the charge of an attempt to collect the payment. members are its outcome.
func (c Call) charge(pi, m, members object) object {
	o := pi.Pick("amount application application_fee_amount currency customer description _invoice metadata receipt_email " +
		"statement_descriptor statement_descriptor_suffix transfer_data transfer_group").Null("application_fee " +
		"balance_transaction failure_balance_transaction failure_code failure_message on_behalf_of receipt_number " +
		"receipt_url review shipping source_transfer").Zero("amount_captured amount_refunded")
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

// authorized is the outcome of a successful charge.
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
