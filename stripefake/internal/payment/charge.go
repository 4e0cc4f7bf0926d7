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
		on("GET", "/v1/charges/{charge}", "", Call.chargeOfPath),
		on("POST", "/v1/charges/{charge}", "description metadata receipt_email",
			api.With(Call.chargeOfPath, Call.updateCharge)),
	}
}

// charge makes the charge of an attempt to collect the payment. members are its outcome.
func (c Call) charge(pi, m, members object) object {
	o := object{
		"amount": pi.Num("amount"), "amount_captured": int64(0), "amount_refunded": int64(0),
		"application": pi["application"], "application_fee_amount": pi["application_fee_amount"],
		"billing_details": m.Sub("billing_details").Clone(), "calculated_statement_descriptor": "STRIPEFAKE",
		"created": c.TimeOf(pi.Str("customer")), "currency": pi.Str("currency"), "customer": pi["customer"],
		"description": pi["description"], "disputed": false, "fraud_details": object{},
		"_invoice": pi["_invoice"], "metadata": pi.Sub("metadata").Clone(), "paid": false,
		"payment_intent": pi.ID(), "payment_method": m.ID(),
		"payment_method_details": methodDetails(m, pi.Num("amount")), "radar_options": object{},
		"receipt_email": pi["receipt_email"], "refunded": false,
		"statement_descriptor":        pi["statement_descriptor"],
		"statement_descriptor_suffix": pi["statement_descriptor_suffix"], "transfer_data": pi["transfer_data"],
		"transfer_group": pi["transfer_group"],
	}.Null("application_fee balance_transaction failure_balance_transaction failure_code failure_message " +
		"on_behalf_of receipt_number receipt_url review shipping source_transfer")
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
		d := object{"payment_reference": nil}
		for _, name := range []string{"account_holder_type", "account_type", "bank_name", "fingerprint", "last4",
			"routing_number"} {
			d[name] = bank[name]
		}
		return object{"type": "us_bank_account", "us_bank_account": d}
	}
	card := m.Sub("card")
	d := object{"amount_authorized": amount, "authorization_code": "000000", "checks": card.Sub("checks").Clone(),
		"extended_authorization":    object{"status": "disabled"},
		"incremental_authorization": object{"status": "unavailable"}, "installments": nil, "mandate": nil,
		"multicapture": object{"status": "unavailable"},
		"network":      card.Str("brand"), "network_token": object{"used": false},
		"network_transaction_id": "000000000000000",
		"overcapture":            object{"maximum_amount_capturable": amount, "status": "unavailable"}, "three_d_secure": nil,
		"wallet": nil}
	for _, name := range []string{"brand", "country", "exp_month", "exp_year", "fingerprint", "funding", "last4",
		"regulated_status"} {
		d[name] = card[name]
	}
	return object{"type": "card", "card": d}
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
	if err := c.Metadata(pi); err != nil {
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

func (c Call) chargeOfPath() (object, error) { return c.Find("charge", c.Path["charge"], "id") }

func (c Call) updateCharge(charge object) (object, error) {
	after := charge.Clone()
	if err := c.Metadata(after); err != nil {
		return nil, err
	}
	shape.SetText(after, c.Form, "description")
	shape.SetText(after, c.Form, "receipt_email")
	c.Change("charge.updated", charge, after)
	return charge, nil
}
