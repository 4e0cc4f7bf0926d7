package money

import (
	"cmp"
	"fmt"
	"iter"
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
	return func(yield func(Amount) bool) {
		sorted := make([]Amount, 0, len(t.sums))
		for _, sum := range t.sums {
			sorted = append(sorted, sum)
		}
		slices.SortFunc(sorted, func(a, b Amount) int {
			return cmp.Compare(a.currency.Code(), b.currency.Code())
		})
		for _, sum := range sorted {
			if !yield(sum) {
				return
			}
		}
	}
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
