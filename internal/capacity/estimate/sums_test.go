package estimate

import (
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/capacity"
	"github.com/duesday/duesday/internal/civil"
)

// TestSumsRideWithTheClaims: where mail is claimed, adding its sums costs a share of one item and one
// check for each batch.
func TestSumsRideWithTheClaims(t *testing.T) {
	const paid = 200
	units := func(counting bool) capacity.Units {
		w, err := openWorld(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.load(t.Context(), paid, civil.Of(firstDay()), "pm_card_visa", 0); err != nil {
			t.Fatal(err)
		}
		w.mail = w.mail.Claiming(time.Hour)
		if counting {
			w.mail = w.mail.Counting(report.Tally(w.engine.Records))
		}
		d, err := w.day(t.Context())
		if err != nil || d.paid != paid {
			t.Fatal(d.paid, err)
		}
		var sum capacity.Units
		for _, u := range d.mail {
			sum = sum.Plus(u.Units)
		}
		return sum
	}
	before, after := units(false), units(true)
	if write := (after.Write - before.Write) / paid; write > 0.25 {
		t.Errorf("%g write units a mail more: %v, then %v", write, before, after)
	}
	if read := (after.Read - before.Read) / paid; read > 0.1 {
		t.Errorf("%g read units a mail more: %v, then %v", read, before, after)
	}
}
