package page

import (
	"testing"

	"github.com/duesday/duesday/stripefake/internal/payment"
)

// TestCardChoices: the checkout page offers test payment methods alone.
func TestCardChoices(t *testing.T) {
	for _, choice := range cardChoices() {
		if _, ok := payment.CardOf(choice.ID); !ok {
			t.Errorf("the checkout page offers %s, which is no test payment method", choice.ID)
		}
	}
}
