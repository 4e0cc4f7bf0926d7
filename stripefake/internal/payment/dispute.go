package payment

import (
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func disputeRoutes() []api.Route {
	return []api.Route{
		api.Lists("/v1/disputes", "dispute", "charge created payment_intent", nil),
		on("GET", "/v1/disputes/{dispute}", "", find("dispute", "dispute")),
		on("POST", "/v1/disputes/{dispute}", "evidence metadata submit:bool",
			api.With(find("dispute", "dispute"), Call.updateDispute)),
		on("POST", "/v1/disputes/{dispute}/close", "", api.With(find("dispute", "dispute"),
			func(c Call, o object) (object, error) { return o, c.CloseDispute(o, "lost") })),
	}
}

// evidenceTexts are the members of evidence.
const evidenceTexts = "access_activity_log billing_address cancellation_policy cancellation_policy_disclosure " +
	"cancellation_rebuttal customer_communication customer_email_address customer_name " +
	"customer_purchase_ip customer_signature duplicate_charge_documentation duplicate_charge_explanation " +
	"duplicate_charge_id product_description receipt refund_policy refund_policy_disclosure " +
	"refund_refusal_explanation service_date service_documentation shipping_address shipping_carrier shipping_date " +
	"shipping_documentation shipping_tracking_number uncategorized_file uncategorized_text"

const evidenceTime = 9 * 24 * 60 * 60 // seconds until evidence is due

// Dispute disputes the part of a payment that was not refunded, for one of Stripe's reasons. At Stripe
// a charge that is fully refunded cannot be disputed (docs.stripe.com/refunds). After a partial refund
// an issuer may dispute the full amount at first, but once the issuer has corrected it, the merchant
// loses only what was not refunded (support.stripe.com, "Dispute for full charge amount after a partial
// refund was issued"). The fake's issuers dispute the corrected amount from the start.
func (c Call) Dispute(pi object, reason string) (object, error) {
	charge := c.Space.Get("charge", pi.Str("latest_charge"))
	switch {
	case charge == nil || charge.Str("status") != Succeeded || !charge.Yes("captured"):
		return nil, shape.Invalid("", "payment_intent",
			"This PaymentIntent ("+pi.ID()+") does not have a successful charge to dispute.")
	case charge.Yes("disputed"):
		return nil, shape.Invalid("", "payment_intent", "Charge "+charge.ID()+" is disputed already.")
	case unrefunded(charge) == 0:
		return nil, shape.Invalid("", "payment_intent", "Charge "+charge.ID()+" is fully refunded and cannot be disputed.")
	}
	return c.disputeOf(charge, reason, false), nil
}

// unrefunded returns the captured amount of a charge that was not refunded.
func unrefunded(charge object) int64 { return charge.Num("amount") - charge.Num("amount_refunded") }

func (c Call) disputeOf(charge object, reason string, inquiry bool) object {
	now := c.TimeOf(charge.Str("customer"))
	o := object{"amount": unrefunded(charge), "balance_transactions": []any{}, "charge": charge.ID(), "created": now,
		"currency": charge.Str("currency"), "enhanced_eligibility_types": []any{},
		"evidence": object{"enhanced_evidence": object{}}.Null(evidenceTexts), "is_charge_refundable": inquiry,
		"payment_intent": charge["payment_intent"], "reason": reason, "status": "needs_response",
		"evidence_details": object{"due_by": now + evidenceTime, "enhanced_eligibility": object{},
			"has_evidence": false, "past_due": false, "submission_count": int64(0)}}
	if card := charge.Sub("payment_method_details").Sub("card"); card != nil {
		kind, code := "chargeback", "10.4"
		if inquiry {
			kind = "inquiry"
		}
		if reason != "fraudulent" {
			code = "13.1"
		}
		o["payment_method_details"] = object{"type": "card", "card": object{"brand": card.Str("brand"), "case_type": kind,
			"network": card.Str("brand"), "network_reason_code": code}}
	}
	if inquiry {
		o["status"] = "warning_needs_response"
	}
	charge["disputed"], charge["_inquiry"] = true, inquiry
	o = c.Create("dispute", "du", o)
	c.Emit("charge.dispute.created", o, nil)
	if !inquiry {
		c.Emit("charge.dispute.funds_withdrawn", o, nil)
	}
	return o
}

func isClosed(o object) bool {
	return slices.Contains([]string{"won", "lost", "warning_closed", "prevented"}, o.Str("status"))
}

// CloseDispute ends the dispute as won or lost, or an inquiry as warning_closed.
func (c Call) CloseDispute(o object, status string) error {
	switch {
	case isClosed(o):
		return alreadyClosed()
	case strings.HasPrefix(o.Str("status"), "warning_"):
		status = "warning_closed"
	}
	o["status"] = status
	c.Emit("charge.dispute.closed", o, nil)
	if status == "won" {
		c.Emit("charge.dispute.funds_reinstated", o, nil)
	}
	return nil
}

// AppealDispute appeals a lost dispute, or submits the appeal that was begun.
func (c Call) AppealDispute(o object) error {
	after := o.Clone()
	switch o.Str("status") {
	case "lost":
		after["status"] = "appeal_needs_response"
		after.Sub("evidence_details")["due_by"] = c.TimeOf(c.Space.Get("charge", o.Str("charge")).Str("customer")) + evidenceTime
	case "appeal_needs_response":
		after["status"] = "appeal_under_review"
	default:
		return shape.Invalid("", "dispute", "This dispute is "+o.Str("status")+": only a lost one can be appealed.")
	}
	c.Change("charge.dispute.updated", o, after)
	return nil
}

func alreadyClosed() error { return shape.Invalid("", "dispute", "This dispute is already closed.") }

// updateDispute takes evidence. The text winning_evidence or losing_evidence decides the dispute.
func (c Call) updateDispute(o object) (object, error) {
	if c.Form.Has("evidence") && (isClosed(o) || strings.HasPrefix(o.Str("status"), "appeal_")) {
		return nil, alreadyClosed()
	}
	after := o.Clone()
	evidence := c.Form.Sub("evidence")
	if name := evidence.Other(evidenceTexts); name != "" {
		return nil, c.BeyondPart(name)
	}
	evidence.SetTexts(after.Sub("evidence"), evidenceTexts)
	if err := c.Describe(after); err != nil {
		return nil, err
	}
	submit := !c.Form.Has("submit") || c.Flag("submit")
	details := after.Sub("evidence_details")
	if evidence.Given() {
		details["has_evidence"] = true
		if submit {
			details["submission_count"] = details.Num("submission_count") + 1
			after["status"] = strings.Replace(o.Str("status"), "needs_response", "under_review", 1)
		}
	}
	c.Change("charge.dispute.updated", o, after)
	if submit && !isClosed(o) {
		switch evidence.Str("uncategorized_text") {
		case "winning_evidence":
			return o, c.CloseDispute(o, "won")
		case "losing_evidence":
			return o, c.CloseDispute(o, "lost")
		}
	}
	return o, nil
}
