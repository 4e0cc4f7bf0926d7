package money

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Totals sums amounts by currency. The zero value is empty and ready to use. It
// is not safe for concurrent use.
type Totals struct {
	sums map[Currency]Amount
}

// Add adds a to the sum of its currency. On an error the sums are unchanged; it
// wraps [ErrOverflow] or, for an amount of no currency, [ErrCurrency].
func (t *Totals) Add(a Amount) error {
	sum, err := New(t.sums[a.currency].minor, a.currency).Add(a)
	if err != nil {
		return fmt.Errorf("totals: %w", err)
	}
	if t.sums == nil {
		t.sums = make(map[Currency]Amount)
	}
	t.sums[a.currency] = sum
	return nil
}

// Len returns the number of currencies that were added, those whose sum is zero included.
func (t *Totals) Len() int { return len(t.sums) }

// All yields the sums in the order of their currency codes.
func (t *Totals) All() iter.Seq[Amount] {
	return slices.Values(slices.SortedFunc(maps.Values(t.sums), func(a, b Amount) int {
		return cmp.Compare(a.currency.Code(), b.currency.Code())
	}))
}

// Strings returns the sums as a new map from currency code to [Amount.Decimal].
// It is empty, not nil, when nothing was added.
func (t *Totals) Strings() map[string]string {
	m := make(map[string]string, len(t.sums))
	for c, sum := range t.sums {
		m[c.Code()] = sum.Decimal()
	}
	return m
}
