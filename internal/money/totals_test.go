package money

import (
	"errors"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// texts returns the sums by currency code.
func texts(t *Totals) map[string]string {
	m := map[string]string{}
	for sum := range t.All() {
		m[sum.Currency().Code()] = sum.Decimal()
	}
	return m
}

func TestTotals(t *testing.T) {
	var totals Totals
	if m := texts(&totals); len(m) != 0 || totals.Len() != 0 {
		t.Errorf("empty totals are %v", m)
	}
	usd, jpy, eur := mustCurrency(t, "USD"), mustCurrency(t, "JPY"), mustCurrency(t, "EUR")
	for _, a := range []Amount{New(1299, usd), New(500, jpy), New(1, usd), New(5, eur), New(-5, eur)} {
		if err := totals.Add(a); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"USD": "13.00", "JPY": "500", "EUR": "0.00"}
	if got := texts(&totals); !maps.Equal(got, want) {
		t.Errorf("the sums are %v, want %v", got, want)
	}
	sums := []Amount{New(0, eur), New(500, jpy), New(1300, usd)}
	if got := slices.Collect(totals.All()); !slices.Equal(got, sums) || totals.Len() != 3 {
		t.Errorf("All() = %v, want %v", got, sums)
	}
	for first := range totals.All() {
		if first != sums[0] {
			t.Errorf("the first sum is %v", first)
		}
		break
	}
	if err := totals.Add(Amount{}); !errors.Is(err, ErrCurrency) {
		t.Errorf("adding an amount of no currency: %v", err)
	}
	if err := totals.Add(New(math.MaxInt64, usd)); !errors.Is(err, ErrOverflow) {
		t.Errorf("adding the largest amount: %v", err)
	}
	if got := texts(&totals); !maps.Equal(got, want) {
		t.Errorf("after the errors the sums are %v, want %v", got, want)
	}
}

func TestTotals_AgreeWithBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var totals Totals
		want := make(map[Currency]*big.Int)
		for range rapid.IntRange(0, 30).Draw(t, "amounts") {
			c := mustCurrency(t, rapid.SampledFrom([]string{"USD", "JPY", "KWD", "EUR"}).Draw(t, "code"))
			a := New(anyMinor(t, "minor"), c)
			before := want[c]
			if before == nil {
				before = new(big.Int)
			}
			sum := new(big.Int).Add(before, big.NewInt(a.Minor()))
			err := totals.Add(a)
			if !sum.IsInt64() {
				if !errors.Is(err, ErrOverflow) {
					t.Fatalf("adding %v to %v minor units: %v, want ErrOverflow", a, before, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			want[c] = sum
		}
		previous := ""
		for sum := range totals.All() {
			c := sum.Currency()
			if want[c] == nil || want[c].Int64() != sum.Minor() || c.Code() <= previous {
				t.Fatalf("the sum %v after %q, want %v minor units", sum, previous, want[c])
			}
			previous = c.Code()
		}
		if totals.Len() != len(want) || len(texts(&totals)) != len(want) {
			t.Fatalf("%v, want %d currencies", texts(&totals), len(want))
		}
	})
}
