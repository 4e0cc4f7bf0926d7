package stripefake_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestRefunds(t *testing.T) {
	l := newTill(t)
	id := l.inState("succeeded")
	charge := l.get("payment_intents/" + id).at("latest_charge")
	a := l.must(l.post("refunds", "payment_intent="+id, "amount=300", "reason=requested_by_customer", "metadata[a]=b"))
	l.expect(a, "status=succeeded", "amount=300", "charge="+charge, "payment_intent="+id, "reason=requested_by_customer",
		"metadata.a=b", "livemode=absent")
	l.expect(l.get("charges/"+charge), "amount_refunded=300", "refunded=false")
	over := l.post("refunds", "charge="+charge, "amount=701")
	l.expect(over, "error.param=amount", "error.message=Refund amount ($7.01) is greater than unrefunded amount on "+
		"charge ($7.00)")
	l.expect(l.must(l.post("refunds", "charge="+charge)), "amount=700")
	l.expect(l.get("charges/"+charge), "amount_refunded=1000", "refunded=true")
	l.expect(l.post("refunds", "charge="+charge), "error.code=charge_already_refunded")
	l.expect(l.get("refunds", "payment_intent="+id), "data.0.amount=700", "data.1.amount=300", "data.2=absent")
	l.expect(l.get("refunds", "charge=ch_other"), "data.0=absent")
	l.expect(l.must(l.post("refunds/"+a.id(), "metadata[a]=c")), "metadata.a=c")
	if a := l.post("refunds/" + a.id() + "/cancel"); a.status != http.StatusBadRequest {
		t.Errorf("the cancelling of a refund that succeeded: %d, want 400", a.status)
	}
	if got, want := l.events("refund."), "refund.created refund.created refund.updated"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	for _, params := range [][]string{{}, {"payment_intent=pi_none"}, {"payment_intent=" + l.intent()},
		{"payment_intent=" + id, "amount=0"}, {"payment_intent=" + id, "reason=bored"}} {
		if a := l.post("refunds", params...); a.status != http.StatusBadRequest {
			t.Errorf("a refund with %v: %d, want 400", params, a.status)
		}
	}
}

func TestRefundsThatFail(t *testing.T) {
	l := newTill(t)
	for _, c := range []struct {
		method, before string
		ok             bool
		after, left    string
	}{
		{"pm_card_refundFail", "succeeded", false, "failed", "0"},
		{"pm_card_pendingRefund", "pending", true, "succeeded", "1000"},
		{"pm_card_pendingRefund", "pending", false, "failed", "0"},
	} {
		id := l.intent("payment_method="+c.method, "confirm=true")
		a := l.must(l.post("refunds", "payment_intent="+id))
		l.expect(a, "status="+c.before)
		if err := l.fake.FinishRefund(a.id(), c.ok); err != nil {
			t.Fatal(err)
		}
		l.expect(l.get("refunds/"+a.id()), "status="+c.after)
		l.expect(l.get("charges/"+a.at("charge")), "amount_refunded="+c.left)
		if err := l.fake.FinishRefund(a.id(), true); err == nil {
			t.Errorf("%s: a refund that is over was finished", c.method)
		}
	}
}

func TestDisputes(t *testing.T) {
	l := newTill(t)
	made := func(method string) answer {
		id := l.intent("payment_method="+method, "confirm=true")
		list := l.must(l.get("disputes", "payment_intent="+id))
		return l.must(l.get("disputes/" + list.at("data.0.id")))
	}
	a := made("pm_card_createDispute")
	l.expect(a, "status=needs_response", "reason=fraudulent", "amount=1000", "payment_method_details.card.brand=visa")
	l.expect(l.get("charges/"+a.at("charge")), "disputed=true")
	l.expect(l.post("refunds", "charge="+a.at("charge")), "error.code=charge_disputed")
	l.expect(l.must(l.post("disputes/"+a.id(), "evidence[product_description]=a book", "submit=false")),
		"status=needs_response", "evidence.product_description=a book", "evidence_details.has_evidence=true",
		"evidence_details.submission_count=0")
	l.expect(l.must(l.post("disputes/"+a.id(), "evidence[uncategorized_text]=winning_evidence")), "status=won")
	if a := l.post("disputes/" + a.id() + "/close"); a.status != http.StatusBadRequest {
		t.Errorf("the closing of a dispute that is over: %d, want 400", a.status)
	}
	if got, want := l.events("charge.dispute."), "charge.dispute.created charge.dispute.funds_withdrawn "+
		"charge.dispute.updated charge.dispute.updated charge.dispute.closed charge.dispute.funds_reinstated"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	a = made("pm_card_createDisputeProductNotReceived")
	l.expect(a, "reason=product_not_received")
	l.expect(l.must(l.post("disputes/"+a.id()+"/close")), "status=lost")
	a = made("pm_card_createDisputeInquiry")
	l.expect(a, "status=warning_needs_response", "is_charge_refundable=true")
	l.expect(l.must(l.post("refunds", "charge="+a.at("charge"))), "status=succeeded")
	l.expect(l.must(l.post("disputes/"+a.id()+"/close")), "status=warning_closed")

	id, err := l.fake.Dispute(l.inState("succeeded"), "duplicate")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.fake.CloseDispute(id, "won"); err != nil {
		t.Fatal(err)
	}
	l.expect(l.get("disputes/"+id), "reason=duplicate", "status=won")
	a = made("pm_card_createDispute")
	if err := l.fake.AppealDispute(a.id()); err == nil {
		t.Error("a dispute that is not lost was appealed")
	}
	l.must(l.post("disputes/" + a.id() + "/close"))
	for _, status := range []string{"appeal_needs_response", "appeal_under_review"} {
		if err := l.fake.AppealDispute(a.id()); err != nil {
			t.Fatal(err)
		}
		l.expect(l.get("disputes/"+a.id()), "status=lost") // the specification's version knows no appeal
		shown := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/v1/disputes/"+a.id(), nil)
		r.Header.Set("Authorization", "Bearer sk_test_duesday")
		r.Header.Set("Stripe-Version", "2026-10-28.endive")
		if l.fake.ServeHTTP(shown, r); !strings.Contains(shown.Body.String(), `"status": "`+status+`"`) {
			t.Errorf("got %s, want the status %s", shown.Body, status)
		}
	}
	if err := l.fake.CloseDispute(a.id(), "won"); err != nil {
		t.Fatal(err)
	}
	l.expect(l.get("disputes/"+a.id()), "status=won")
	if _, err := l.fake.Dispute(l.intent(), ""); err == nil {
		t.Error("a payment intent without a charge was disputed")
	}
}

// TestDispute_AfterRefund: a refund and then a lost dispute never take more than the charge.
func TestDispute_AfterRefund(t *testing.T) {
	l := newTill(t)
	id := l.inState("succeeded")
	l.must(l.post("refunds", "payment_intent="+id, "amount=300"))
	dispute, err := l.fake.Dispute(id, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.fake.CloseDispute(dispute, "lost"); err != nil {
		t.Fatal(err)
	}
	l.expect(l.get("disputes/"+dispute), "amount=700", "status=lost")
	l.expect(l.post("refunds", "payment_intent="+id), "error.code=charge_disputed")
	var taken []int64
	for e := range l.fake.Ledger() {
		taken = append(taken, e.Amount)
	}
	if !slices.Equal(taken, []int64{1000, 300, 700}) {
		t.Errorf("the ledger has %v, want 1000, 300 and 700", taken)
	}

	id = l.intent("payment_method=pm_card_visa", "capture_method=manual", "confirm=true")
	l.must(l.post("payment_intents/"+id+"/capture", "amount_to_capture=400"))
	if dispute, err = l.fake.Dispute(id, ""); err != nil {
		t.Fatal(err)
	}
	l.expect(l.get("disputes/"+dispute), "amount=400")

	id = l.inState("succeeded")
	l.must(l.post("refunds", "payment_intent="+id))
	if _, err := l.fake.Dispute(id, ""); err == nil || !strings.Contains(err.Error(), "fully refunded") {
		t.Errorf("got %v, want that a refunded charge cannot be disputed", err)
	}
}
