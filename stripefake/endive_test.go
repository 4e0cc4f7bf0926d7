package stripefake

import (
	"strings"
	"testing"
	"time"
)

// TestEndive: what 2026-09-30.endive took from requests, and what earlier versions still have. Its
// answers are judged by TestTypes_Newest.
func TestEndive(t *testing.T) {
	s := newShop(t)
	s.handler = s.Fake // the specification is of an earlier version
	for path, params := range map[string]string{"payment_intents": "amount=500&currency=usd", "setup_intents": "",
		"checkout/sessions": "mode=setup&success_url=http://a.example"} {
		types := strings.TrimPrefix(params+"&payment_method_types[]=card", "&")
		s.do("POST", "/v1/"+path, types, "Stripe-Version", "2026-09-30.endive").refused(t, path, 400,
			"payment_method_types_no_longer_supported", "payment_method_types")
		s.ok("POST", "/v1/"+path, types)
	}
	for version, ways := range map[string][2]string{"2026-09-30.endive": {"billing_cycle_anchor[type]=now",
		"billing_cycle_anchor=now"}, NewestVersion: {"billing_cycle_anchor=now", "billing_cycle_anchor[type]=now"}} {
		nobody, _ := s.buyerWith("")
		sub := s.subscribe(nobody, "trial_period_days=1",
			"trial_settings[end_behavior][missing_payment_method]=pause").id()
		s.Advance(24 * time.Hour)
		card := s.post("payment_methods/pm_card_visa/attach", "customer="+nobody).id()
		s.post("subscriptions/"+sub, "default_payment_method="+card)
		resume := "/v1/subscriptions/" + sub + "/resume"
		s.do("POST", resume, ways[1], "Stripe-Version", version).refused(t, version, 400, nil, "billing_cycle_anchor")
		resumed := s.ok("POST", resume, ways[0], "Stripe-Version", version)
		s.is(resumed, "status=active")
		_, there := resumed.at("trial_settings.end_behavior").(map[string]any)["billing_cycle_anchor"]
		equal(t, version+" has the new member", there, version != NewestVersion)
	}
}
