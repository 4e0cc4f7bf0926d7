package stripefake

import (
	"slices"
	"strings"
)

func disputeRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/disputes", params: "charge created payment_intent" + listParams, do: (*call).listDisputes},
		{method: "GET", path: "/v1/disputes/{dispute}", do: (*call).disputeOfPath},
		{method: "POST", path: "/v1/disputes/{dispute}", params: "evidence metadata submit", do: (*call).updateDispute},
		{method: "POST", path: "/v1/disputes/{dispute}/close", do: (*call).closeOfPath},
	}
}

// evidenceTexts are what evidence can have.
const evidenceTexts = "access_activity_log billing_address cancellation_policy cancellation_policy_disclosure cancellation_rebuttal customer_communication customer_email_address customer_name " +
	"customer_purchase_ip customer_signature duplicate_charge_documentation duplicate_charge_explanation duplicate_charge_id product_description receipt refund_policy refund_policy_disclosure " +
	"refund_refusal_explanation service_date service_documentation shipping_address shipping_carrier shipping_date shipping_documentation shipping_tracking_number uncategorized_file uncategorized_text"

const evidenceTime = 9 * 24 * 60 * 60 // seconds that there are for evidence

// dispute makes a dispute of the whole payment. The reason ("": fraudulent) is one of
// Stripe's.
func (c *call) dispute(pi object, reason string) (object, error) {
	charge := c.space.get("charge", pi.str("latest_charge"))
	switch {
	case charge == nil || charge.str("status") != succeeded || !charge.yes("captured"):
		return nil, invalid("", "payment_intent", "This PaymentIntent ("+pi.id()+") does not have a successful charge to dispute.")
	case charge.yes("disputed"):
		return nil, invalid("", "payment_intent", "Charge "+charge.id()+" is disputed already.")
	case reason == "":
		reason = "fraudulent"
	}
	return c.disputeOf(charge, reason, false), nil
}

func (c *call) disputeOf(charge object, reason string, inquiry bool) object {
	evidence := object{"enhanced_evidence": object{}}
	for name := range strings.FieldsSeq(evidenceTexts) {
		evidence[name] = nil
	}
	now := c.timeOf(charge.str("customer"))
	o := object{"amount": charge.num("amount"), "balance_transactions": []any{}, "charge": charge.id(), "created": now, "currency": charge.str("currency"),
		"enhanced_eligibility_types": []any{}, "evidence": evidence, "is_charge_refundable": inquiry, "payment_intent": charge["payment_intent"], "reason": reason,
		"status": "needs_response", "metadata": object{},
		"evidence_details": object{"due_by": now + evidenceTime, "enhanced_eligibility": object{}, "has_evidence": false, "past_due": false, "submission_count": int64(0)}}
	if card := charge.sub("payment_method_details").sub("card"); card != nil {
		kind, code := "chargeback", "10.4"
		if inquiry {
			kind = "inquiry"
		}
		if reason != "fraudulent" {
			code = "13.1"
		}
		o["payment_method_details"] = object{"type": "card", "card": object{"brand": card.str("brand"), "case_type": kind, "network": card.str("brand"), "network_reason_code": code}}
	}
	if inquiry {
		o["status"] = "warning_needs_response"
	}
	charge["disputed"], charge["_inquiry"] = true, inquiry
	o = c.create("dispute", "du", o)
	c.emit("charge.dispute.created", o, nil)
	if !inquiry {
		c.emit("charge.dispute.funds_withdrawn", o, nil)
	}
	return o
}

// isClosed reports whether the dispute is over.
func isClosed(o object) bool {
	return slices.Contains([]string{"won", "lost", "warning_closed", "prevented"}, o.str("status"))
}

// closeDispute ends the dispute: status is won or lost. An inquiry that ends is
// warning_closed, whoever is right.
func (c *call) closeDispute(o object, status string) error {
	switch {
	case status != "won" && status != "lost":
		return invalid("", "status", "Invalid status: must be one of won, lost")
	case isClosed(o):
		return invalid("", "dispute", "This dispute is already closed.")
	case strings.HasPrefix(o.str("status"), "warning_"):
		status = "warning_closed"
	}
	o["status"] = status
	c.emit("charge.dispute.closed", o, nil)
	if status == "won" {
		c.emit("charge.dispute.funds_reinstated", o, nil)
	}
	return nil
}

func (c *call) disputeOfPath() (object, error) {
	return c.find("dispute", c.path["dispute"], "dispute")
}

// openDispute returns the dispute in the path if it is not over.
func (c *call) openDispute() (object, error) {
	o, err := c.disputeOfPath()
	if err == nil && isClosed(o) {
		return nil, invalid("", "dispute", "This dispute is already closed.")
	}
	return o, err
}

// updateDispute takes evidence. As in Stripe's test mode, evidence that is submitted with
// the text winning_evidence or losing_evidence decides the dispute.
func (c *call) updateDispute() (object, error) {
	o, err := c.disputeOfPath()
	if err != nil {
		return nil, err
	}
	if c.form.has("evidence") && isClosed(o) {
		return nil, invalid("", "dispute", "This dispute is already closed.")
	}
	after := o.clone()
	evidence := after.sub("evidence")
	for name := range c.form.sub("evidence") {
		if !among(" "+evidenceTexts+" ", name) {
			return nil, c.beyondPart("evidence[" + name + "]")
		}
		setText(evidence, c.form.sub("evidence"), name)
	}
	if err := c.metadata(after); err != nil {
		return nil, err
	}
	submit := true
	if c.form.has("submit") {
		if submit, err = c.flag("submit"); err != nil {
			return nil, err
		}
	}
	details := after.sub("evidence_details")
	if c.form.sub("evidence") != nil {
		details["has_evidence"] = true
		if submit {
			details["submission_count"] = details.num("submission_count") + 1
			after["status"] = strings.Replace(o.str("status"), "needs_response", "under_review", 1)
		}
	}
	c.change("charge.dispute.updated", o, after)
	if submit && !isClosed(o) {
		switch c.form.sub("evidence").str("uncategorized_text") {
		case "winning_evidence":
			return o, c.closeDispute(o, "won")
		case "losing_evidence":
			return o, c.closeDispute(o, "lost")
		}
	}
	return o, nil
}

func (c *call) closeOfPath() (object, error) {
	o, err := c.openDispute()
	if err != nil {
		return nil, err
	}
	return o, c.closeDispute(o, "lost")
}

func (c *call) listDisputes() (object, error) {
	return c.list("dispute", c.filter("charge", "payment_intent"))
}
