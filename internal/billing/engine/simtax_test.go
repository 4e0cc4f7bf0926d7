package engine_test

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// roundedOnce charges three units with a tax whose rounding shows how often it was done: 7.4043 is 7.40, and three
// times 2.4681 is 7.41.
func roundedOnce(p planted) []string {
	w := newWorld("2024-01-31T09:00", p)
	w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		n.Terms = price.Terms{Quantity: 3, Tax: price.Tax{Mode: price.Exclusive, Rate: 190_000}}
	}))
	w.amounts["ACC#a1/s1/0"] = usd(3897 + 740)
	w.start().run(civil.Date{})
	return w.audit()
}

func TestTax_RoundedOnce(t *testing.T) {
	for _, v := range roundedOnce(planted{}) {
		t.Error(v)
	}
}

// roundsEachUnit opens a period at units whose taxes are rounded one by one.
func roundsEachUnit(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		open, terms := w.Item.Get(schema.OpenPeriod).Map(), w.Item.Get(schema.PriceTerms).Map()
		if w.Op == store.OpPut && isSub(w.Item) && open != nil && terms.Has("tax") {
			unit := w.Item.Clone()
			one := terms.Clone()
			one.Remove("quantity")
			unit.Set(schema.PriceTerms, store.M(one))
			open = open.Clone()
			open.Set(schema.Amount, store.S(usd(owed(unit, 0)*max(1, terms.Int("quantity"))).Decimal()))
			w.Item.Set(schema.OpenPeriod, store.M(open))
		}
		return w
	}}
}
