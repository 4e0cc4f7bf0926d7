package replaced

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestOthers: what is not compared by name and not changed by runs is told by its name, once, whoever has
// made it, also where one side lacks it.
func TestOthers(t *testing.T) {
	item := func(value string, names ...string) store.Item {
		it := store.NewItem(store.Attribute{Name: schema.PaymentDetails, Value: store.M(store.NewItem(
			store.Attribute{Name: "iban", Value: store.S(value)}, store.Attribute{Name: schema.PaymentMethod, Value: store.S(value)}))})
		for _, name := range names {
			it.Set(name, store.S(value))
		}
		return it
	}
	shared := append([]string{schema.Interval, schema.Installments, schema.TrialEnds, schema.Anchor, "Notes"}, subscriptionFlags...)
	told := map[string]int{}
	new(Comparison).others(billing.Name{}, item("1", append(shared, "Old")...), item("2", append(shared, "New")...), subscriptionFlags,
		func(c Change) { told[c.What]++ })
	for _, name := range []string{schema.Interval, schema.Installments, schema.TrialEnds, schema.Anchor, "Notes", "Old", "New", "iban"} {
		if told["attribute "+name+" was changed"] != 1 {
			t.Errorf("%s is not told once: %v", name, told)
		}
	}
	if len(told) != 8 {
		t.Errorf("told %v", told)
	}
}
