package consumption

import (
	"testing"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/test/metering"
)

// TestSumsRideWithTheClaims: where mail is claimed, adding its sums costs a share of one item and one
// check for each batch, and a unit because the claim is then in a transaction.
func TestSumsRideWithTheClaims(t *testing.T) {
	const paid = 200
	units := func(counting bool) metering.Units {
		w, err := openWorld(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.load(t.Context(), paid, civil.Of(firstDay()), "pm_card_visa", 0); err != nil {
			t.Fatal(err)
		}
		if !counting {
			w.mail = w.mail.Counting(nil)
		}
		w.mail = w.mail.Numbering(nil)
		d, err := w.day(t.Context())
		if err != nil || d.paid != paid {
			t.Fatal(d.paid, err)
		}
		var sum metering.Units
		for _, u := range d.mail {
			sum = sum.Plus(u.Units)
		}
		return sum
	}
	before, after := units(false), units(true)
	if write := (after.Write - before.Write) / paid; write > 1.25 {
		t.Errorf("%g write units a mail more: %v, then %v", write, before, after)
	}
	if read := (after.Read - before.Read) / paid; read > 0.1 {
		t.Errorf("%g read units a mail more: %v, then %v", read, before, after)
	}
}
