package cause

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
)

// TestOfSubscription_HandedBack: a shop does not hear of a cancellation that only hands the subscription back to the
// processor, because its customer keeps it.
func TestOfSubscription_HandedBack(t *testing.T) {
	was := &billing.Subscription{Status: billing.Active, Takeover: &billing.Takeover{Stage: billing.TakeoverEnding}}
	for stage, want := range map[billing.TakeoverStage]int{billing.TakeoverUndoing: 0, billing.TakeoverEnding: 1} {
		now := &billing.Subscription{Status: billing.CanceledSub, Takeover: &billing.Takeover{Stage: stage}}
		if events := new(causes).ofSubscription(was, now); len(events) != want {
			t.Errorf("%s: %+v", stage, events)
		}
	}
}
