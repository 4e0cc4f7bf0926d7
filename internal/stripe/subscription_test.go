package stripe

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/apitest"
)

const subscriptionText = `{"id":"sub_1","object":"subscription","status":"active","livemode":false,"currency":"eur","created":1764547200,"billing_cycle_anchor":1764547200,
"cancel_at":null,"cancel_at_period_end":false,"ended_at":null,"collection_method":"charge_automatically","automatic_tax":{"enabled":false},
"application_fee_percent":null,"billing_thresholds":null,"on_behalf_of":null,"pause_collection":null,"pending_update":null,"schedule":null,"transfer_data":null,
"customer":{"id":"cus_1","email":"ada@example.com","name":"Ada","balance":0,"discount":null,"tax_exempt":"none","preferred_locales":["de"],"default_source":null,
 "invoice_settings":{"default_payment_method":{"id":"pm_1","customer":"cus_1"}}},
"default_payment_method":null,"default_source":null,"discounts":[],"default_tax_rates":[],
"items":{"has_more":false,"data":[{"current_period_end":1767225600,"quantity":2,"discounts":[],"tax_rates":[],
 "price":{"currency":"eur","product":"prod_1","lookup_key":null,"billing_scheme":"per_unit","unit_amount":1299,"transform_quantity":null,
  "recurring":{"interval":"month","interval_count":3,"usage_type":"licensed"}}}]}}`

// TestConvert_Obstacles: each change of a subscription that can be taken over is named as the reason why it stays.
func TestConvert_Obstacles(t *testing.T) {
	for _, tt := range []struct{ old, now, why string }{
		{"", "", ""},
		{`"status":"active"`, `"status":"trialing"`, ""},
		{`"status":"active"`, `"status":"past_due"`, "it is past_due"},
		{`"status":"active"`, `"status":"canceled"`, "it is canceled"},
		{`"licensed"`, `"metered"`, "metered"},
		{`"per_unit"`, `"tiered"`, "tiered"},
		{`"unit_amount":1299`, `"unit_amount":null`, "fraction"},
		{`"transform_quantity":null`, `"transform_quantity":{"divide_by":10}`, "transforms"},
		{`"data":[{`, `"data":[{},{`, "2 items"},
		{`"has_more":false`, `"has_more":true`, "items"},
		{`"charge_automatically"`, `"send_invoice"`, "sent"},
		{`"billing_thresholds":null`, `"billing_thresholds":{}`, "thresholds"},
		{`"on_behalf_of":null`, `"on_behalf_of":"acct_1"`, "connected"},
		{`"transfer_data":null`, `"transfer_data":{"destination":"acct_1"}`, "connected"},
		{`"application_fee_percent":null`, `"application_fee_percent":2.5`, "connected"},
		{`"enabled":false`, `"enabled":true`, "Stripe Tax"},
		{`"id":"cus_1",`, `"id":"cus_1","deleted":true,`, "deleted"},
		{`"pause_collection":null`, `"pause_collection":{"behavior":"void"}`, "paused"},
		{`"schedule":null`, `"schedule":"sub_sched_1"`, "schedule"},
		{`"pending_update":null`, `"pending_update":{}`, "pending update"},
		{`"cancel_at":null`, `"cancel_at":1767225600`, "canceled on 2026-01-01"},
		{`"balance":0`, `"balance":-500`, "balance"},
		{`"interval":"month"`, `"interval":"fortnight"`, "interval"},
		{`"currency":"eur","product"`, `"currency":"usd","product"`, "another currency"},
		{`"discount":null`, `"discount":{"id":"di_1"}`, "customer has a discount"},
		{`"tax_exempt":"none"`, `"tax_exempt":"exempt"`, ""}, // without a rate
		{`"quantity":2`, `"quantity":0`, "quantity is 0"},
		{`"default_tax_rates":[]`, `"default_tax_rates":[{"percentage":19},{"percentage":7}]`, "several tax rates"},
		{`"discounts":[],"default_tax`, `"discounts":[{},{}],"default_tax`, "several discounts"},
		{`"discounts":[],"tax_rates"`, `"discounts":["di_1"],"tax_rates"`, "one of its item"},
		{`"discounts":[],"default_tax`, `"discounts":[{"source":{"coupon":{"percent_off":10,"duration":"forever","applies_to":{"products":[]}}}}],"default_tax`, "certain products"},
		{`"discounts":[],"default_tax`, `"discounts":[{"coupon":{"amount_off":100,"currency":"usd","duration":"once"}}],"default_tax`, "another currency"},
		{`"discounts":[],"default_tax`, `"discounts":[{"id":"di_1"}],"default_tax`, "not known"},
		{`{"id":"pm_1","customer":"cus_1"}`, `null`, "no payment method"},
		{`{"id":"pm_1","customer":"cus_1"}`, `{"id":"pm_1","customer":"cus_2"}`, "not attached"},
		{`{"id":"pm_1","customer":"cus_1"}`, `{"id":"pm_1","customer":null}`, "not attached"},
		{`"default_payment_method":null,"default_source":null`, `"default_payment_method":null,"default_source":"src_1"`, "source"},
	} {
		s := new(subscription)
		if !strings.Contains(subscriptionText, tt.old) {
			t.Fatalf("%s is not there", tt.old)
		}
		if err := json.Unmarshal([]byte(strings.Replace(subscriptionText, tt.old, tt.now, 1)), s); err != nil {
			t.Fatalf("%s: %v", tt.now, err)
		}
		got := s.convert(unsettled{}).Obstacle
		if (tt.why == "") != (got == "") || !strings.Contains(got, tt.why) {
			t.Errorf("%s: %q, want %q", tt.now, got, tt.why)
		}
	}
}

// TestConvert: the terms of a subscription, with a coupon, a tax rate and a method of its own.
func TestConvert(t *testing.T) {
	text := strings.NewReplacer(`"discounts":[],"default_tax_rates":[]`, `"discounts":[{"end":1772323200,"source":{"coupon":{"percent_off":12.5,"duration":"repeating"}}}],
		"default_tax_rates":[{"percentage":8.1,"inclusive":true}]`, `"default_payment_method":null`, `"default_payment_method":{"id":"pm_2","customer":"cus_1"}`,
		`"lookup_key":null`, `"lookup_key":"gym"`).Replace(subscriptionText)
	s := new(subscription)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	c := s.convert(unsettled{"sub_1": "its invoice in_1 is open"})
	if c.Obstacle != "its invoice in_1 is open" || c.Percent != "12.5" || c.TaxRate != "8.1" || !c.TaxInclusive || c.Method != "pm_2" || c.SKU != "gym" || c.Quantity != 2 ||
		c.Interval.String() != "3 months" || c.Amount != apitest.Money(t, "EUR", 1299) || !c.DiscountEnds.Equal(time.Unix(1772323200, 0)) || c.Locale != "de" {
		t.Errorf("%+v", c)
	}
}

// TestRenews: an invoice renews a subscription if it has a line for a period that ends after the boundary.
func TestRenews(t *testing.T) {
	for _, tt := range []struct {
		line    string
		renewed bool
	}{
		{`{"parent":{"type":"subscription_item_details"},"period":{"start":100,"end":200}}`, true},
		{`{"parent":{"type":"subscription_item_details"},"period":{"start":50,"end":200}}`, true}, // it spans the boundary
		{`{"parent":{"type":"subscription_item_details"},"period":{"start":50,"end":100}}`, false},
		{`{"parent":{"type":"invoice_item_details"},"period":{"start":150,"end":150}}`, false},
		{`{"type":"subscription","period":{"start":100,"end":200}}`, true},
		{`{"type":"invoiceitem","period":{"start":100,"end":200}}`, false},
		{`{"period":{"start":100,"end":200}}`, true}, // unknown, so it counts
	} {
		d := new(debt)
		if err := json.Unmarshal([]byte(`{"lines":{"data":[`+tt.line+`]}}`), d); err != nil {
			t.Fatal(err)
		}
		if _, end := d.renews(time.Unix(100, 0)); end.IsZero() == tt.renewed {
			t.Errorf("%s: %v", tt.line, end)
		}
	}
}
