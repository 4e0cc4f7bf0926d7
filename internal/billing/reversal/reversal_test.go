package reversal_test

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

func amount(t *testing.T, decimal, code string) money.Amount {
	t.Helper()
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	a, err := money.Parse(decimal, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func record(t *testing.T, kind processor.ReversalKind, state processor.ReversalState, decimal, code string) *billing.ReversalRecord {
	return &billing.ReversalRecord{Name: billing.Name{ID: "s1"}, Kind: kind, State: state, Charge: "pi_1", Ref: "du_1",
		ReversalID: "du_1", Amount: amount(t, decimal, code)}
}

// TestOf: only the whole amount in the charge's currency, which the customer has for good, reverses a charge.
func TestOf(t *testing.T) {
	const lost, won, open = processor.ReversalSucceeded, processor.ReversalFailed, processor.ReversalPending
	dispute := func(s processor.ReversalState, decimal, code string) *billing.ReversalRecord {
		return record(t, processor.Disputed, s, decimal, code)
	}
	other, refused := dispute(lost, "10.00", "EUR"), dispute(won, "10.00", "EUR")
	other.Charge, refused.Ref = "pi_2", ""
	for name, test := range map[string]struct {
		list []*billing.ReversalRecord
		want reversal.Standing
	}{
		"none":                       {nil, reversal.Kept},
		"lost":                       {[]*billing.ReversalRecord{dispute(lost, "10.00", "EUR")}, reversal.Reversed},
		"lost, more than charged":    {[]*billing.ReversalRecord{dispute(lost, "10.01", "EUR")}, reversal.Reversed},
		"lost in part":               {[]*billing.ReversalRecord{dispute(lost, "9.99", "EUR")}, reversal.Kept},
		"lost in another currency":   {[]*billing.ReversalRecord{dispute(lost, "10.00", "USD")}, reversal.Kept},
		"undecided":                  {[]*billing.ReversalRecord{dispute(open, "10.00", "EUR")}, reversal.Kept},
		"an inquiry":                 {[]*billing.ReversalRecord{dispute(processor.ReversalInquiry, "10.00", "EUR")}, reversal.Kept},
		"won":                        {[]*billing.ReversalRecord{dispute(won, "10.00", "EUR")}, reversal.Reinstated},
		"won in part":                {[]*billing.ReversalRecord{dispute(won, "4.00", "EUR"), dispute(lost, "6.00", "EUR")}, reversal.Reinstated},
		"a refund and the rest lost": {[]*billing.ReversalRecord{record(t, processor.Refunded, lost, "4.00", "EUR"), dispute(lost, "6.00", "EUR")}, reversal.Reversed},
		"of another charge":          {[]*billing.ReversalRecord{other}, reversal.Kept},
		"a refused refund":           {[]*billing.ReversalRecord{refused}, reversal.Kept},
	} {
		if got := reversal.Of(test.list, "pi_1", amount(t, "10.00", "EUR")); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if got := reversal.Of([]*billing.ReversalRecord{dispute(lost, "10.00", "EUR")}, "pi_1", money.Amount{}); got != reversal.Kept {
		t.Errorf("an unknown amount: %d", got)
	}
}

// TestTakenBack: only a dispute that becomes lost, and only once.
func TestTakenBack(t *testing.T) {
	states := []processor.ReversalState{processor.ReversalRequested, processor.ReversalInquiry, processor.ReversalPending,
		processor.ReversalSucceeded, processor.ReversalFailed, processor.ReversalCanceled}
	for _, kind := range []processor.ReversalKind{processor.Refunded, processor.Disputed} {
		for _, now := range states {
			r := record(t, kind, now, "1.00", "EUR")
			if got, want := reversal.TakenBack(nil, r), kind == processor.Disputed && now == processor.ReversalSucceeded; got != want {
				t.Errorf("a new %s that is %s: %t", kind, now, got)
			}
			for _, before := range states {
				got := reversal.TakenBack(record(t, kind, before, "1.00", "EUR"), r)
				want := kind == processor.Disputed && now == processor.ReversalSucceeded && before != now
				if got != want {
					t.Errorf("a %s from %s to %s: %t", kind, before, now, got)
				}
			}
		}
	}
}

// TestPark goes through the statuses: only what is charged is parked.
func TestPark(t *testing.T) {
	day, err := civil.Parse("2024-02-10")
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []billing.Status{billing.Active, billing.ParkedState, billing.Paused, billing.PastDue, billing.CanceledSub,
		billing.Completed} {
		s := &billing.Subscription{Status: status, Anchor: day.AddDays(20), Collect: 3}
		want := status == billing.Active || status == billing.ParkedState
		if got := reversal.Park(s, record(t, processor.Disputed, processor.ReversalSucceeded, "1.00", "EUR"), day); got != want {
			t.Errorf("%s: %t", status, got)
		}
		if want && (s.Status != billing.ParkedState || s.NextPayment != day || s.Collect != 0 || !reversal.Holds(s)) || !want && s.Status != status {
			t.Errorf("%s: became %+v", status, s)
		}
		if got := reversal.Release(s); got != want || reversal.Holds(s) || want && s.Parked != "period 0 by dispute du_1" {
			t.Errorf("%s: released %t, %q", status, got, s.Parked)
		}
	}
}
