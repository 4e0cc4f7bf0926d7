package payment

import "testing"

// TestTestCards: no test payment method is declined for a reason that there is not, and
// Stripe's tokens lead to the same cards.
func TestTestCards(t *testing.T) {
	for id, card := range testCards {
		code := card.acts.declines
		if _, known := declines[code]; code != "" && code != blockedCode && !known {
			t.Errorf("%s is declined with %s, which is not in the table", id, code)
		}
		if card.acts.refuses && card.acts.declines == "" {
			t.Errorf("%s refuses for no reason", id)
		}
		if len(card.last4) != 4 {
			t.Errorf("%s ends in %q", id, card.last4)
		}
	}
	for code := range declines {
		if d := reasonFor(code); d.Decline != code {
			t.Errorf("%s is shown as %s", code, d.Decline)
		}
		if id := SandboxDecline + code; BehaviourOf(object{"_test": id}).declines != code {
			t.Errorf("%s is not declined with %s", id, code)
		}
	}
	for token, want := range map[string]string{"tok_visa": "pm_card_visa",
		"tok_chargeDeclined": "pm_card_chargeDeclined", "tok_chargeDeclinedLostCard": "pm_card_visa_chargeDeclinedLostCard",
		"tok_none": "", "pm_card_visa": "", "tok_": ""} {
		if got, ok := tokenMethod(token); got != want || ok != (want != "") {
			t.Errorf("%s is %q, want %q", token, got, want)
		}
	}
}
