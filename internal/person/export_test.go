package person_test

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/view"
)

// TestExport: the export of a person has every personal value that the store has of them, and no other person's.
func TestExport(t *testing.T) {
	for kind := range engines {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			d, err := person.Export(t.Context(), w.engine(w.store).Records, personID)
			w.must(err)
			text, err := view.Append(nil, view.Export(d), false)
			w.must(err)
			for _, m := range w.marks {
				if !strings.Contains(string(text), m) {
					t.Errorf("the export lacks %q", m)
				}
			}
			for _, m := range []string{"two@example.com", "cus_two", "seti_2", `"account":"` + otherID} {
				if strings.Contains(string(text), m) {
					t.Errorf("the export has %s of another person", m)
				}
			}
			for name, n := range map[string]int{"subscriptions": len(d.Subscriptions), "periods": len(d.Periods), "receipts": len(d.Receipts),
				"reversals": len(d.Reversals), "history": len(d.History), "mail": len(d.Mail), "requests": len(d.Requests),
				"purchases": len(d.Purchases), "events": len(d.Events)} {
				if n == 0 {
					t.Errorf("there are no %s", name)
				}
			}
		})
	}
}
