package money

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func anyCurrency(t *rapid.T) Currency {
	return rapid.SampledFrom(allCurrencies()).Draw(t, "currency")
}

// anyMinor draws any int64, often next to a limit or to zero.
func anyMinor(t *rapid.T, label string) int64 {
	return rapid.OneOf(
		rapid.Int64(),
		rapid.Int64Range(-100_000, 100_000),
		rapid.Int64Range(math.MinInt64, math.MinInt64+1000),
		rapid.Int64Range(math.MaxInt64-1000, math.MaxInt64),
	).Draw(t, label)
}

// exact returns the amount's value as a fraction.
func exact(a Amount) *big.Rat {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Currency().Exponent())), nil)
	return new(big.Rat).SetFrac(big.NewInt(a.Minor()), unit)
}

func TestParse(t *testing.T) {
	tests := []struct {
		code, text string
		minor      int64
		decimal    string
	}{
		{"USD", "12.99", 1299, "12.99"},
		{"USD", "12", 1200, "12.00"},
		{"USD", "12.9", 1290, "12.90"},
		{"USD", "0", 0, "0.00"},
		{"USD", "-0", 0, "0.00"},
		{"USD", "0.05", 5, "0.05"},
		{"USD", "-0.05", -5, "-0.05"},
		{"USD", "-12.5", -1250, "-12.50"},
		{"USD", "007.50", 750, "7.50"},
		{"USD", "92233720368547758.07", math.MaxInt64, "92233720368547758.07"},
		{"USD", "-92233720368547758.08", math.MinInt64, "-92233720368547758.08"},
		{"USD", "00000000000000000000000000000001", 100, "1.00"},
		{"JPY", "500", 500, "500"},
		{"JPY", "9223372036854775807", math.MaxInt64, "9223372036854775807"},
		{"JPY", "-9223372036854775808", math.MinInt64, "-9223372036854775808"},
		{"KWD", "1.234", 1234, "1.234"},
		{"KWD", "1.2", 1200, "1.200"},
		{"CLF", "0.0001", 1, "0.0001"},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text, mustCurrency(t, tt.code))
		if err != nil || got.Minor() != tt.minor || got.Decimal() != tt.decimal || got.Currency().Code() != tt.code {
			t.Errorf("Parse(%q, %s) = %v (%d), %v; want %s", tt.text, tt.code, got, got.Minor(), err, tt.decimal)
		}
	}
}

func TestParse_RefusesAndSaysWhatWouldBeRight(t *testing.T) {
	const two = "must be digits with at most 2 decimals, such as 12.99"
	tests := []struct{ code, text, says string }{
		{"USD", "12.990", two},
		{"USD", "12,99", two},
		{"USD", "", two},
		{"USD", "-", two},
		{"USD", ".", two},
		{"USD", "5.", two},
		{"USD", ".5", two},
		{"USD", "-.5", two},
		{"USD", "-5.", two},
		{"USD", "--5", two},
		{"USD", "+5", two},
		{"USD", "5-", two},
		{"USD", " 5", two},
		{"USD", "5 ", two},
		{"USD", "1 000", two},
		{"USD", "1,000.00", two},
		{"USD", "1_000", two},
		{"USD", "1.2.3", two},
		{"USD", "1..2", two},
		{"USD", "1e3", two},
		{"USD", "0x10", two},
		{"USD", "NaN", two},
		{"USD", "Inf", two},
		{"USD", "$5", two},
		{"USD", "５", two},
		{"USD", "99999999999999999999,99", two},
		{"USD", "99999999999999999999.999", two},
		{"JPY", "500.0", "must be digits without decimals, such as 500"},
		{"JPY", "500.", "must be digits without decimals, such as 500"},
		{"KWD", "1.2345", "must be digits with at most 3 decimals, such as 12.990"},
		{"CLF", "1.23456", "must be digits with at most 4 decimals, such as 12.9900"},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text, mustCurrency(t, tt.code))
		if want := fmt.Sprintf("amount %s (got %q)", tt.says, tt.text); err == nil || err.Error() != want {
			t.Errorf("Parse(%q, %s) = %v, %v; want error %s", tt.text, tt.code, got, err, want)
		}
		if errors.Is(err, ErrOverflow) || got != (Amount{}) {
			t.Errorf("Parse(%q, %s) = %v, %v; want no amount and no overflow", tt.text, tt.code, got, err)
		}
	}
	if got, err := Parse("5", Currency{}); err == nil {
		t.Errorf("without a currency: %v", got)
	}
	if _, err := Parse(strings.Repeat("9", 1<<20), mustCurrency(t, "USD")); !errors.Is(err, ErrOverflow) ||
		len(err.Error()) > 200 {
		t.Error("the error for a megabyte of digits is not a short overflow")
	}
}

func TestParse_Overflow(t *testing.T) {
	for _, tt := range []struct{ code, text string }{
		{"USD", "92233720368547758.08"},
		{"USD", "-92233720368547758.09"},
		{"USD", "92233720368547759"},
		{"USD", "922337203685477580.7"},
		{"USD", "184467440737095516.16"}, // 1<<64 minor units wraps to 0
		{"USD", "184467440737095516.17"},
		{"JPY", "9223372036854775808"},
		{"JPY", "-9223372036854775809"},
		{"KWD", "9223372036854775.808"},
	} {
		got, err := Parse(tt.text, mustCurrency(t, tt.code))
		if !errors.Is(err, ErrOverflow) || got != (Amount{}) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("Parse(%q, %s) = %v, %v; want ErrOverflow", tt.text, tt.code, got, err)
		}
	}
}

func TestDecimal_RoundTripForEveryCurrency(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, a Amount) {
		text := a.Decimal()
		got, err := Parse(text, a.Currency())
		if err != nil || got != a {
			t.Fatalf("Parse(%q, %v) = %v, %v; want %d minor units", text, a.Currency(), got, err, a.Minor())
		}
		_, decimals, _ := strings.Cut(text, ".")
		if len(decimals) != a.Currency().Exponent() {
			t.Fatalf("%d minor units of %v print as %q", a.Minor(), a.Currency(), text)
		}
		if value, ok := new(big.Rat).SetString(text); !ok || value.Cmp(exact(a)) != 0 {
			t.Fatalf("%d minor units of %v print as %q", a.Minor(), a.Currency(), text)
		}
		if got := string(a.AppendDecimal([]byte("x"))); got != "x"+text {
			t.Fatalf("AppendDecimal gave %q, want x%s", got, text)
		}
		if got, want := a.String(), text+" "+a.Currency().Code(); got != want {
			t.Fatalf("String() = %q, want %q", got, want)
		}
	}
	for _, c := range allCurrencies() {
		for _, minor := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 9, 10, 99, 100, math.MaxInt64} {
			check(t, New(minor, c))
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, New(anyMinor(t, "minor"), anyCurrency(t))) })
}

func TestAdd_AgreesWithBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCurrency(t)
		a, b := New(anyMinor(t, "a"), c), New(anyMinor(t, "b"), c)
		want := new(big.Int).Add(big.NewInt(a.Minor()), big.NewInt(b.Minor()))
		got, err := a.Add(b)
		if want.IsInt64() {
			if err != nil || got != New(want.Int64(), c) {
				t.Fatalf("%v + %v = %v, %v; want %v minor units", a, b, got, err, want)
			}
		} else if !errors.Is(err, ErrOverflow) || got != (Amount{}) {
			t.Fatalf("%v + %v = %v, %v; want ErrOverflow", a, b, got, err)
		}
	})
}

func TestAdd_RefusesOtherCurrencies(t *testing.T) {
	usd, eur := New(1, mustCurrency(t, "USD")), New(1, mustCurrency(t, "EUR"))
	for _, pair := range [][2]Amount{{usd, eur}, {eur, usd}, {usd, {}}, {{}, usd}, {{}, {}}} {
		if got, err := pair[0].Add(pair[1]); !errors.Is(err, ErrCurrency) || got != (Amount{}) {
			t.Errorf("%v + %v = %v, %v; want ErrCurrency", pair[0], pair[1], got, err)
		}
	}
}

func TestAmount_Sign(t *testing.T) {
	usd := mustCurrency(t, "USD")
	for minor, want := range map[int64][2]bool{-1: {false, false}, 0: {false, true}, 1: {true, false}} {
		a := New(minor, usd)
		if got := [2]bool{a.IsPositive(), a.IsZero()}; got != want {
			t.Errorf("%v: positive, zero = %v, want %v", a, got, want)
		}
	}
	if got := (Amount{}).String(); got != "0 (no currency)" {
		t.Errorf("the zero value prints as %q", got)
	}
}

func TestFormat(t *testing.T) {
	tests := []struct {
		code  string
		minor int64
		want  string
	}{
		{"USD", 1299, "$12.99"},
		{"USD", 0, "$0.00"},
		{"USD", 99999, "$999.99"},
		{"USD", 100000, "$1,000.00"},
		{"USD", 123450, "$1,234.50"},
		{"USD", 123456789, "$1,234,567.89"},
		{"USD", -500, "-$5.00"},
		{"USD", math.MinInt64, "-$92,233,720,368,547,758.08"},
		{"EUR", 950, "€9.50"},
		{"GBP", 500, "£5.00"},
		{"JPY", 500, "¥500"},
		{"JPY", 1000, "¥1,000"},
		{"KWD", 1234, "KWD 1.234"},
		{"KWD", -1234567, "-KWD 1,234.567"},
		{"CHF", 123450, "CHF 1,234.50"},
		{"SEK", 100, "SEK 1.00"},
		{"CAD", 100, "CA$1.00"},
		{"AUD", 100, "A$1.00"},
		{"CLF", 12345678, "CLF 1,234.5678"},
	}
	for _, tt := range tests {
		if got := New(tt.minor, mustCurrency(t, tt.code)).Format(); got != tt.want {
			t.Errorf("%d minor units of %s format as %q, want %q", tt.minor, tt.code, got, tt.want)
		}
	}
}

func TestFormat_IsTheDecimalWithASymbolAndSeparators(t *testing.T) {
	grouped := regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?$`)
	rapid.Check(t, func(t *rapid.T) {
		a := New(anyMinor(t, "minor"), anyCurrency(t))
		text, negative := strings.CutPrefix(a.Format(), "-")
		number := strings.TrimLeft(text, text[:strings.IndexAny(text, "0123456789")])
		if !grouped.MatchString(number) {
			t.Fatalf("%v formats as %q", a, a.Format())
		}
		plain := strings.ReplaceAll(number, ",", "")
		if want := strings.TrimPrefix(a.Decimal(), "-"); plain != want || negative != (a.Minor() < 0) {
			t.Fatalf("%v formats as %q", a, a.Format())
		}
	})
}

// plainNumber is the grammar that Parse documents, without the decimals' limit.
var plainNumber = regexp.MustCompile(`\A-?[0-9]+(\.[0-9]+)?\z`)

func FuzzParse(f *testing.F) {
	for i, text := range []string{
		"12.99", "-0.05", "500", "1.234", "5.", ".5", "1e9", "NaN", "1,000",
		"92233720368547758.07", "-92233720368547758.08", "18446744073709551616",
	} {
		f.Add(text, uint8(i*31))
	}
	all := allCurrencies()
	f.Fuzz(func(t *testing.T, text string, pick uint8) {
		c := all[int(pick)%len(all)]
		got, err := Parse(text, c)
		_, decimals, _ := strings.Cut(text, ".")
		if !plainNumber.MatchString(text) || len(decimals) > c.Exponent() {
			if err == nil || errors.Is(err, ErrOverflow) {
				t.Fatalf("Parse(%q, %v) = %v, %v; want a refusal of the form", text, c, got, err)
			}
			return
		}
		want, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("math/big does not read %q", text)
		}
		least, most := exact(New(math.MinInt64, c)), exact(New(math.MaxInt64, c))
		if want.Cmp(least) < 0 || want.Cmp(most) > 0 {
			if !errors.Is(err, ErrOverflow) {
				t.Fatalf("Parse(%q, %v) = %v, %v; want ErrOverflow", text, c, got, err)
			}
			return
		}
		if err != nil || exact(got).Cmp(want) != 0 || got.Currency() != c {
			t.Fatalf("Parse(%q, %v) = %v, %v; want %v", text, c, got, err, want)
		}
		if again, err := Parse(got.Decimal(), c); err != nil || again != got {
			t.Fatalf("%v read back as %v, %v", got, again, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	usd := mustCurrency(b, "USD")
	for b.Loop() {
		if _, err := Parse("1234.56", usd); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseCurrency(b *testing.B) {
	for b.Loop() {
		if _, err := ParseCurrency("EUR"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendDecimal(b *testing.B) {
	a := New(123456, mustCurrency(b, "USD"))
	buf := make([]byte, 0, 32)
	for b.Loop() {
		buf = a.AppendDecimal(buf[:0])
	}
}
