package stripefake

import (
	"fmt"
	"maps"
)

func chargeRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/charges", params: "created customer payment_intent transfer_group" + listParams, do: (*call).listCharges},
		{method: "GET", path: "/v1/charges/{charge}", do: (*call).chargeOfPath},
		{method: "POST", path: "/v1/charges/{charge}", params: "description metadata receipt_email", do: (*call).updateCharge},
	}
}

// charge makes the charge of an attempt to collect the payment; members say how it went.
func (c *call) charge(pi, m, members object) object {
	o := object{"amount": pi.num("amount"), "amount_captured": int64(0), "amount_refunded": int64(0), "application": pi["application"], "application_fee": nil,
		"application_fee_amount": pi["application_fee_amount"], "balance_transaction": nil, "billing_details": m.sub("billing_details").clone(),
		"calculated_statement_descriptor": "STRIPEFAKE", "created": c.timeOf(pi.str("customer")), "currency": pi.str("currency"), "customer": pi["customer"],
		"description": pi["description"], "disputed": false, "failure_balance_transaction": nil, "failure_code": nil, "failure_message": nil, "fraud_details": object{},
		"_invoice": pi["_invoice"], "metadata": pi.sub("metadata").clone(), "on_behalf_of": nil, "paid": false, "payment_intent": pi.id(), "payment_method": m.id(),
		"payment_method_details": methodDetails(m, pi.num("amount")), "radar_options": object{}, "receipt_email": pi["receipt_email"], "receipt_number": nil, "receipt_url": nil,
		"refunded": false, "review": nil, "shipping": nil, "source_transfer": nil, "statement_descriptor": pi["statement_descriptor"],
		"statement_descriptor_suffix": pi["statement_descriptor_suffix"], "transfer_data": pi["transfer_data"], "transfer_group": pi["transfer_group"]}
	maps.Copy(o, members)
	if pi.sub("transfer_data") != nil {
		o["transfer_data"] = pi.sub("transfer_data").with("amount", nil)
	}
	o = c.create("charge", "ch", o)
	pi["_charges"] = append([]any{o.id()}, pi.list("_charges")...) // newest first, as old versions show them
	return o
}

// methodDetails are the payment method as it was when it was charged.
func methodDetails(m object, amount int64) object {
	if bank := m.sub("us_bank_account"); bank != nil {
		d := object{"payment_reference": nil}
		for _, name := range []string{"account_holder_type", "account_type", "bank_name", "fingerprint", "last4", "routing_number"} {
			d[name] = bank[name]
		}
		return object{"type": "us_bank_account", "us_bank_account": d}
	}
	card := m.sub("card")
	d := object{"amount_authorized": amount, "authorization_code": "000000", "checks": card.sub("checks").clone(), "extended_authorization": object{"status": "disabled"},
		"incremental_authorization": object{"status": "unavailable"}, "installments": nil, "mandate": nil, "multicapture": object{"status": "unavailable"},
		"network": card.str("brand"), "network_token": object{"used": false}, "network_transaction_id": "000000000000000",
		"overcapture": object{"maximum_amount_capturable": amount, "status": "unavailable"}, "three_d_secure": nil, "wallet": nil}
	for _, name := range []string{"brand", "country", "exp_month", "exp_year", "fingerprint", "funding", "last4", "regulated_status"} {
		d[name] = card[name]
	}
	return object{"type": "card", "card": d}
}

// authorized is the outcome of a charge that succeeds.
func authorized() object {
	return object{"advice_code": nil, "network_advice_code": nil, "network_decline_code": nil, "network_status": "approved_by_network", "reason": nil,
		"risk_level": "normal", "risk_score": int64(20), "seller_message": "Payment complete.", "type": "authorized"}
}

// captureIntent takes what was authorized, or a part of it; the rest goes back.
func (c *call) captureIntent() (object, error) {
	pi, err := c.intentOfPath()
	if err != nil {
		return nil, err
	}
	if pi.str("status") != needsCapture {
		return nil, unexpected(pi, "This PaymentIntent could not be captured because it has a status of "+pi.str("status")+
			". Only a PaymentIntent with one of the following statuses may be captured: requires_capture.")
	}
	amount := pi.num("amount_capturable")
	if c.form.has("amount_to_capture") {
		if amount, err = c.num("amount_to_capture"); err != nil {
			return nil, err
		}
	}
	if most := pi.num("amount_capturable"); amount < 1 || amount > most {
		return nil, invalid("amount_too_large", "amount_to_capture", fmt.Sprintf("The provided amount_to_capture (%d) must be from 1 to the capturable amount (%d).", amount, most))
	}
	if final := c.form.str("final_capture"); final == "false" {
		return nil, c.beyondPart("final_capture")
	}
	if err := c.metadata(pi); err != nil {
		return nil, err
	}
	charge := c.space.get("charge", pi.str("latest_charge"))
	charge["captured"], charge["amount_captured"], charge["amount_refunded"] = true, amount, charge.num("amount")-amount
	pi["status"], pi["amount_capturable"], pi["amount_received"] = succeeded, int64(0), amount
	c.emit("charge.captured", charge, nil)
	c.emit("payment_intent.succeeded", pi, nil)
	c.follow(intentMoved, pi)
	return pi, nil
}

func (c *call) chargeOfPath() (object, error) { return c.find("charge", c.path["charge"], "id") }

func (c *call) updateCharge() (object, error) {
	charge, err := c.chargeOfPath()
	if err != nil {
		return nil, err
	}
	after := charge.clone()
	if err := c.metadata(after); err != nil {
		return nil, err
	}
	setText(after, c.form, "description")
	setText(after, c.form, "receipt_email")
	c.change("charge.updated", charge, after)
	return charge, nil
}

func (c *call) listCharges() (object, error) {
	return c.list("charge", c.filter("customer", "payment_intent", "transfer_group"))
}

// filter keeps what has the members that the request asks for.
func (c *call) filter(names ...string) func(object) bool {
	return func(o object) bool {
		for _, name := range names {
			if want := c.form.str(name); want != "" && o.str(name) != want {
				return false
			}
		}
		return true
	}
}
