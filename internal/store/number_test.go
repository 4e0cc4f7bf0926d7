package store_test

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

func TestNumber_Canonical(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, c := range []struct{ text, want string }{
		{"0", "0"}, {"-0", "0"}, {"+0", "0"}, {"0.000", "0"}, {"000", "0"}, {"0e99999999999999999999", "0"}, {"-.0E-7", "0"},
		{"5", "5"}, {"+5", "5"}, {"5.", "5"}, {"5.0", "5"}, {"005.00", "5"}, {"50e-1", "5"}, {"0.5E1", "5"},
		{"1e3", "1000"}, {"1000", "1000"}, {"1E+3", "1000"}, {"10.00e2", "1000"}, {"-1e3", "-1000"},
		{".5", "0.5"}, {"-.50", "-0.5"}, {"12.340", "12.34"}, {"1e-1", "0.1"},
		{"1e-7", "0.0000001"}, {"0.00000001", "1E-8"}, {"-0.0000000125", "-1.25E-8"},
		{"1e37", "1" + strings.Repeat("0", 37)}, {"1e38", "1E+38"}, {"125e40", "1.25E+42"},
		{nines, nines}, {"-" + nines, "-" + nines}, {nines + "000", "9." + nines[1:] + "E+40"},
		{"0." + nines, "0." + nines}, {"1." + nines[1:], "1." + nines[1:]},
		{"1e-130", "1E-130"}, {"9.99e125", "9.99E+125"}, {nines + "e88", "9." + nines[1:] + "E+125"},
		{"0." + strings.Repeat("0", 129) + "1", "1E-130"},
		{"9223372036854775807", "9223372036854775807"}, {"-9223372036854775808.0", "-9223372036854775808"},
		{"9223372036854775808", "9223372036854775808"},
	} {
		v, err := store.Number(c.text)
		if err != nil || v.Num() != c.want {
			t.Errorf("Number(%q) = %q, %v; want %q", c.text, v.Num(), err, c.want)
		}
	}
}

func TestNumber_Refused(t *testing.T) {
	for _, text := range []string{
		"", "-", "+", ".", "e", "e5", ".e5", "1e", "1e+", "1e-", "1e1.5", "1e5e5", "--1", "+-1", "1-", "1..2", "1.2.3",
		" 1", "1 ", "1_000", "1,5", "0x10", "1p3", "inf", "Infinity", "NaN", "½", "١", "1\x00",
	} {
		if v, err := store.Number(text); !errors.Is(err, store.ErrInvalid) || !v.IsZero() {
			t.Errorf("Number(%q) = %q, %v; want ErrInvalid", text, v.Num(), err)
		}
	}
	digits := strings.Repeat("1", 39)
	for _, text := range []string{
		digits, "-" + digits, digits[:20] + "." + digits[20:], digits + "e-20", "1" + strings.Repeat("0", 37) + "1",
		"1e126", "-1e126", "10e125", "9e-131", "0.1e-130", "1e99999999999999999999", "1e-99999999999999999999",
	} {
		if v, err := store.Number(text); !errors.Is(err, store.ErrTooLarge) || !v.IsZero() {
			t.Errorf("Number(%q) = %q, %v; want ErrTooLarge", text, v.Num(), err)
		}
	}
}

func TestNumber_IntegersAreInts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, math.MaxInt64, math.MinInt64})).Draw(t, "n")
		plain := strconv.FormatInt(n, 10)
		text := rapid.SampledFrom([]string{plain, plain + ".0", plain + "e0", plain + "00E-2", plain + "."}).Draw(t, "text")
		v, err := store.Number(text)
		if err != nil || !v.Equal(store.Int(n)) {
			t.Fatalf("Number(%q) = %q, %v; want Int(%d)", text, v.Num(), err, n)
		}
		if got, ok := v.Int64(); !ok || got != n {
			t.Fatalf("Number(%q).Int64() = %d, %v", text, got, ok)
		}
	})
}

// decimal draws texts around every limit: many zeros, 36 to 40 digits, exponents
// near -130 and 125.
func decimal() *rapid.Generator[string] {
	run := rapid.OneOf(
		rapid.StringMatching(`[0-9]{0,6}`),
		rapid.StringMatching(`0{0,40}[0-9]{0,3}0{0,40}`),
		rapid.StringMatching(`[1-9][0-9]{35,39}`))
	exponent := rapid.OneOf(rapid.IntRange(-5, 5), rapid.IntRange(-170, -80), rapid.IntRange(80, 130))
	return rapid.Custom(func(t *rapid.T) string {
		text := rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign") + run.Draw(t, "whole")
		if rapid.Bool().Draw(t, "point") {
			text += "." + run.Draw(t, "fraction")
		}
		if rapid.Bool().Draw(t, "scientific") {
			text += rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e") + strconv.Itoa(exponent.Draw(t, "exponent"))
		}
		return text
	})
}

// significantDigits counts the digits of r between the zeros; r has to be a decimal
// fraction of not more than 300 places.
func significantDigits(r *big.Rat) int {
	shift := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(300), nil))
	n := new(big.Rat).Mul(new(big.Rat).Abs(r), shift)
	return len(strings.TrimRight(n.Num().String(), "0"))
}

func TestNumber_AgreesWithMathBig(t *testing.T) {
	power := func(text string) *big.Rat { r, _ := new(big.Rat).SetString(text); return r }
	smallest, beyond := power("1e-130"), power("1e126")
	rapid.Check(t, func(t *rapid.T) {
		text := decimal().Draw(t, "text")
		v, err := store.Number(text)
		want, ok := new(big.Rat).SetString(text)
		if !ok {
			if !errors.Is(err, store.ErrInvalid) {
				t.Fatalf("Number(%q) = %q, %v; want ErrInvalid", text, v.Num(), err)
			}
			return
		}
		size := new(big.Rat).Abs(want)
		fits := want.Sign() == 0 || (size.Cmp(smallest) >= 0 && size.Cmp(beyond) < 0 &&
			significantDigits(want) <= store.MaxNumberDigits)
		if !fits {
			if !errors.Is(err, store.ErrTooLarge) {
				t.Fatalf("Number(%q) = %q, %v; want ErrTooLarge", text, v.Num(), err)
			}
			return
		}
		if err != nil {
			t.Fatalf("Number(%q): %v", text, err)
		}
		if got, ok := new(big.Rat).SetString(v.Num()); !ok || got.Cmp(want) != 0 {
			t.Fatalf("Number(%q) = %q, another value", text, v.Num())
		}
		if again, err := store.Number(v.Num()); err != nil || again.Num() != v.Num() {
			t.Fatalf("Number(%q) = %q, %v; want itself", v.Num(), again.Num(), err)
		}
	})
}

func TestNumber_EqualIsByValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,20}`).Draw(t, "digits")
		exponent := rapid.IntRange(-100, 90).Draw(t, "exponent")
		zeros := rapid.IntRange(0, 30).Draw(t, "zeros")
		a, errA := store.Number(digits + "e" + strconv.Itoa(exponent))
		b, errB := store.Number("00" + digits + strings.Repeat("0", zeros) + "E" + strconv.Itoa(exponent-zeros))
		c, errC := store.Number(digits + "1e" + strconv.Itoa(exponent-1))
		if errA != nil || errB != nil || errC != nil {
			t.Fatal(errA, errB, errC)
		}
		if !a.Equal(b) {
			t.Fatalf("%q and %q differ", a.Num(), b.Num())
		}
		if a.Equal(c) {
			t.Fatalf("%q and %q are equal", a.Num(), c.Num())
		}
	})
}
