package proof

import (
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// TestConclude goes through every combination of what the store has of a period with up to two
// intents: no period with two successes, or with a charge that the store does not have, is called right.
func TestConclude(t *testing.T) {
	due, err := civil.Parse("2026-03-15")
	if err != nil {
		t.Fatal(err)
	}
	receipts := map[string][]*billing.Receipt{"none": nil, "charge": {{Kind: billing.Charged, Charge: "pi_1"}},
		"external": {{Kind: billing.External}},
		"overpaid": {{Kind: billing.Charged, Charge: "pi_1"}, {Kind: "overpayment"}}}
	endings := []billing.Ending{"", billing.EndFailed, billing.EndVoid, billing.EndSkipped, billing.EndParked}
	states := []processor.State{"", processor.Opened, processor.Succeeded, processor.Declined, processor.RequiresAction, processor.Processing,
		processor.Canceled}
	why := map[string]int{}
	for name, list := range receipts {
		for _, ending := range endings {
			for _, open := range []bool{false, true} {
				for _, next := range []int{1, 2} { // the period's own number, or after it
					for i := range len(states) * len(states) {
						p := &Proof{Period: 1, Due: due, Receipts: list, ReceiptMonths: 6,
							sub: &billing.Subscription{Period: next}}
						if ending != "" {
							p.Ended = &billing.EndedPeriod{Ending: ending}
						}
						if open {
							p.OpenPeriod = &billing.OpenPeriod{Ref: "pi_1"}
						}
						successes := 0
						for k, state := range []processor.State{states[i%len(states)], states[i/len(states)]} {
							if state == processor.Succeeded {
								successes++
							}
							if state != "" {
								in := processor.Intent{Ref: []string{"pi_1", "pi_2"}[k], State: state, Changed: due.In(time.UTC)}
								p.Intents = append(p.Intents, Intent{Intent: in})
							}
						}
						p.conclude(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC))
						charged := name == "charge" || name == "overpaid"
						unknown := successes == 1 && !open && !charged
						if (successes > 1 || unknown || successes == 0 && charged) && !p.Alarm {
							t.Errorf("%s, %s, open %t, next %d, %v: no alarm: %s", name, ending, open, next, p.Intents, p.Why)
						}
						if !p.Alarm && strings.HasPrefix(p.Why, "There was one charge") != (successes == 1) {
							t.Errorf("%s, %s, open %t, next %d, %v: %s", name, ending, open, next, p.Intents, p.Why)
						}
						if name == "overpaid" && !p.Alarm && !open && !strings.HasSuffix(p.Why, "return one of them.") {
							t.Errorf("overpaid: %s", p.Why)
						}
						if !strings.HasSuffix(p.Why, ".") || p.State == "" {
							t.Errorf("%s, %s, open %t: %q, %q", name, ending, open, p.State, p.Why)
						}
						why[p.Why]++
					}
				}
			}
		}
	}
	if len(why) < 15 {
		t.Errorf("%d sentences: %v", len(why), why)
	}
}
