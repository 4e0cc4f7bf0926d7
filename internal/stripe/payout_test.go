package stripe

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/stripefake"
)

// TestPayouts: what the fake pays out is read as it was charged, at a connected account.
func TestPayouts(t *testing.T) {
	p, fake := stateful(t)
	if err := fake.Connect("acct_a", ""); err != nil {
		t.Fatal(err)
	}
	in, _ := charged(t, p, customer(t, p, "acct_a", "pm_card_visa"))
	if _, err := p.Refund(t.Context(), processor.RefundRequest{Key: "dd_r", ID: "r1", Ref: in.Ref, Amount: apitest.USD(t, 299),
		Tag: testTag}); err != nil {
		t.Fatal(err)
	}
	ids := fake.PayOut(stripefake.Payout{Account: "acct_a"})
	payouts, err := processor.Gather(p.Payouts(t.Context(), processor.ListRequest{At: "acct_a", Since: apitest.Now}))
	want := []processor.Payout{{At: "acct_a", ID: ids[0], Amount: apitest.USD(t, 1000-67-12), State: "in_transit",
		Arrival: civil.Of(apitest.Now.Add(48 * time.Hour))}}
	if err != nil || !slices.Equal(payouts, want) {
		t.Fatalf("got %+v, %v; want %+v", payouts, err, want)
	}
	var got []string
	for x, err := range p.Settled(t.Context(), "acct_a", ids[0]) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Ref != in.Ref || x.Tag != testTag {
			t.Errorf("of another payment: %+v", x)
		}
		got = append(got, fmt.Sprint(x.Kind, " ", x.Gross, " ", x.Fee, " ", x.Net, " ", x.Charged))
	}
	slices.Sort(got)
	if want := []string{"charge 12.99 USD -0.79 USD 12.20 USD 12.99 USD",
		"refund -2.99 USD 0.00 USD -2.99 USD 0 (no currency)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func payoutFields(changes ...apitest.Fields) string {
	return apitest.Object(apitest.Fields{"object": "payout", "id": "po_1", "amount": 970, "currency": "usd", "arrival_date": 86400,
		"automatic": true, "livemode": false, "status": "paid", "reconciliation_status": "completed"}, changes...)
}

func transactionFields(changes ...apitest.Fields) string {
	return apitest.Object(apitest.Fields{"object": "balance_transaction", "id": "txn_1", "type": "charge", "amount": 1000, "fee": 30,
		"net": 970, "currency": "usd", "created": 6000, "fee_details": []any{},
		"source": apitest.Fields{"id": "ch_1", "object": "charge", "payment_intent": "pi_1", "amount_captured": 900, "currency": "eur"}}, changes...)
}

func TestPayouts_Hidden(t *testing.T) {
	for name, c := range map[string]struct {
		change apitest.Fields
		hidden bool
		fails  bool
	}{
		"listed":         {apitest.Fields{}, false, false},
		"manual":         {apitest.Fields{"automatic": false}, true, false},
		"in progress":    {apitest.Fields{"reconciliation_status": "in_progress"}, true, false},
		"not applicable": {apitest.Fields{"reconciliation_status": "not_applicable"}, true, false},
		"no currency":    {apitest.Fields{"currency": "usdc"}, false, true},
		"no arrival":     {apitest.Fields{"arrival_date": 0}, false, true},
		"another object": {apitest.Fields{"object": "charge"}, false, true},
		"another mode":   {apitest.Fields{"livemode": true}, false, true},
	} {
		got, err := processor.Gather(scripted(t, apitest.NewScript(t, apitest.List(false, payoutFields(c.change)))).Payouts(t.Context(),
			processor.ListRequest{}))
		if (err != nil) != c.fails || err == nil && (got[0].Hidden != "") != c.hidden {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestSettled_Types: each type of Stripe's has its kind, and amounts that do not add up are an error.
func TestSettled_Types(t *testing.T) {
	zero := apitest.Fields{"fee": 0, "net": 1000}
	for name, c := range map[string]struct {
		change apitest.Fields
		want   string // kind, gross, fee
	}{
		"charge":     {apitest.Fields{}, "charge 10.00 USD -0.30 USD"},
		"payment":    {apitest.Fields{"type": "payment"}, "charge 10.00 USD -0.30 USD"},
		"of an id":   {apitest.Fields{"source": "ch_1"}, "charge 10.00 USD -0.30 USD"},
		"nothing":    {apitest.Fields{"source": nil, "type": "topup"}, "other 10.00 USD -0.30 USD"},
		"unknown":    {apitest.Fields{"type": "of_tomorrow"}, "other 10.00 USD -0.30 USD"},
		"dispute":    {apitest.Fields{"type": "adjustment", "source": apitest.Fields{"id": "du_1"}}, "dispute 10.00 USD -0.30 USD"},
		"adjustment": {apitest.Fields{"type": "adjustment"}, "other 10.00 USD -0.30 USD"},
		"returned":   {apitest.Fields{"type": "payment_failure_refund"}, "dispute 10.00 USD -0.30 USD"},
		"a fee": {apitest.Fields{"type": "stripe_fee", "amount": -1000, "fee": 0, "net": -1000, "source": nil},
			"fee 0.00 USD -10.00 USD"},
		"a tax":      {apitest.Fields{"type": "tax_fee", "fee": 0, "net": 1000}, "fee 0.00 USD 10.00 USD"},
		"the fee":    {apitest.Fields{"type": "application_fee", "fee": 0, "net": 1000}, "fee 0.00 USD 10.00 USD"},
		"failed":     {apitest.Fields{"type": "payout_failure", "fee": 0, "net": 1000}, "other 10.00 USD 0.00 USD"},
		"wrong net":  {apitest.Fields{"net": 971}, ""},
		"currency":   {apitest.Fields{"currency": "usdc"}, ""},
		"not one":    {apitest.Fields{"object": "charge"}, ""},
		"its payout": {apitest.Fields{"type": "payout", "source": apitest.Fields{"id": "po_1", "amount": zero["net"]}}, "none"},
	} {
		got, err := processor.Gather(scripted(t, apitest.NewScript(t, apitest.List(false, transactionFields(c.change)))).Settled(t.Context(),
			"", "po_1"))
		said := "none"
		if len(got) > 0 {
			x := got[0]
			said = fmt.Sprint(x.Kind, " ", x.Gross, " ", x.Fee)
		} else if err != nil {
			said = ""
		}
		if said != c.want {
			t.Errorf("%s: got %q, %v; want %q", name, said, err, c.want)
		}
	}
	for _, id := range []string{"", "po_", "ch_1", "po_1/x"} {
		if _, err := processor.Gather(scripted(t, apitest.NewScript(t)).Settled(t.Context(), "", id)); err == nil {
			t.Errorf("the payout %q was asked for", id)
		}
	}
}
