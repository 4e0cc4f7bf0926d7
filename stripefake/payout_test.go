package stripefake

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// pays makes a payment and returns its payment intent.
func (s *shop) pays(amount int, currency string, pairs ...string) string {
	s.t.Helper()
	return s.post("payment_intents", append([]string{fmt.Sprintf("amount=%d", amount), "currency=" + currency,
		"payment_method_types[]=card", "payment_method=pm_card_visa", "confirm=true"}, pairs...)...).id()
}

// settled returns the transactions of a payout as texts, oldest first, without the payout's own.
func (s *shop) settled(payout string) (list []string) {
	s.t.Helper()
	data, _ := s.get("balance_transactions", "payout="+payout, "limit=100").at("data").([]any)
	for _, o := range slices.Backward(data) {
		if m := o.(map[string]any); m["type"] != "payout" {
			list = append(list, fmt.Sprint(m["type"], " ", m["amount"], " ", m["fee"], " ", m["net"], " ", m["currency"]))
		}
	}
	return list
}

// TestPayOut: each change of the balance is in one payout, and the payout is their sum.
func TestPayOut(t *testing.T) {
	s := newShop(t)
	equal(t, "nothing", len(s.PayOut(Payout{})), 0)
	a := s.pays(10000, "usd")
	s.Advance(time.Minute)
	b := s.pays(2000, "eur")
	s.post("refunds", "payment_intent="+a, "amount=1000")
	lost, err := s.Dispute(b, "")
	if err != nil {
		t.Fatal(err)
	}
	ids := s.PayOut(Payout{})
	equal(t, "payouts", len(ids), 1) // the euros are less than nothing
	equal(t, "dollars", s.settled(ids[0]), []string{"charge 10000 320 9680 usd", "refund -1000 0 -1000 usd"})
	s.is(s.get("payouts/"+ids[0]), "amount=8680", "status=in_transit", "automatic=true", "reconciliation_status=completed")
	equal(t, "no second time", len(s.PayOut(Payout{})), 0)

	if err := s.CloseDispute(lost, "won"); err != nil {
		t.Fatal(err)
	}
	s.pays(5000, "eur")
	euros := s.PayOut(Payout{Currency: "usd", Rates: map[string]float64{"eur": 1.5}})
	equal(t, "payouts", len(euros), 1) // in dollars; the first euros were settled as euros
	equal(t, "dollars", s.settled(euros[0]), []string{"charge 7500 247 7253 usd", "adjustment 3000 0 3000 usd"})

	s.Advance(48 * time.Hour)
	s.is(s.get("payouts/"+ids[0]), "status=paid")
	if err := s.FailPayout(ids[0]); err != nil {
		t.Fatal(err)
	}
	s.is(s.get("payouts/"+ids[0]), "status=failed", "failure_code=account_closed")
	if err := s.FailPayout(ids[0]); err == nil {
		t.Error("a payout failed twice")
	}
	manual := s.PayOut(Payout{Manual: true})
	s.is(s.get("payouts/"+manual[0]), "amount=8680", "automatic=false", "reconciliation_status=not_applicable")
	equal(t, "a manual payout", s.do("GET", "/v1/balance_transactions", "payout="+manual[0]).status, http.StatusBadRequest)
	equal(t, "its return", s.get("balance_transactions", "type=payout_failure").at("data.0.amount"), any(float64(8680)))
	arrival := fmt.Sprintf("arrival_date[gte]=%d", testStart.Add(72*time.Hour).Unix())
	equal(t, "later", s.get("payouts", arrival).ids(), manual)
}

// TestPayOut_Connected: an account's balance is its own, and has paid the platform's fee.
func TestPayOut_Connected(t *testing.T) {
	s := newShop(t)
	if err := s.Connect("acct_a", ""); err != nil {
		t.Fatal(err)
	}
	s.ok("POST", "/v1/payment_intents", "amount=1000&currency=usd&payment_method_types[]=card&payment_method=pm_card_visa&"+
		"confirm=true&application_fee_amount=100", "Stripe-Account", "acct_a")
	equal(t, "the platform's", len(s.PayOut(Payout{})), 0)
	id := s.PayOut(Payout{Account: "acct_a"})[0]
	list := s.ok("GET", "/v1/balance_transactions", "payout="+id+"&type=charge", "Stripe-Account", "acct_a")
	equal(t, "fee", list.at("data.0.fee"), any(float64(159)))
	equal(t, "details", list.at("data.0.fee_details.1.type"), any("application_fee"))
}
