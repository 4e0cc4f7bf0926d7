package api

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/apitest"
)

func TestUnits(t *testing.T) {
	tests := []struct {
		code  string
		minor int64
		units int64 // -1: refused
	}{
		{"USD", 1299, 1299}, {"JPY", 500, 500}, {"HUF", 17599, 17599}, {"TWD", 1234, 1234},
		{"ISK", 5, 500}, {"UGX", 1200, 120000}, // whole, written with 00
		{"MGA", 500, 5}, {"MGA", 501, -1}, // two decimals in ISO 4217, none at Stripe
		{"KWD", 1230, 1230}, {"KWD", 1234, -1}, {"TND", 10, 10},
		{"KPW", 100, -1}, {"CLF", 10000, -1}, {"IQD", 1000, -1}, // not at Stripe
		{"ISK", math.MaxInt64, -1},
	}
	for _, tt := range tests {
		a := apitest.Money(t, tt.code, tt.minor)
		got, err := Units(a)
		if tt.units < 0 {
			if !errors.Is(err, processor.ErrInvalid) {
				t.Errorf("%s: got %d, %v; want ErrInvalid", a, got, err)
			}
			continue
		}
		if err != nil || got != tt.units {
			t.Errorf("%s: got %d, %v; want %d", a, got, err, tt.units)
		}
		if back := Amount(got, strings.ToLower(tt.code)); back != a {
			t.Errorf("%d units: got %s back, want %s", got, back, a)
		}
	}
	for _, wrong := range []money.Amount{Amount(550, "isk"), Amount(1, "xxx"), Amount(1, "usdc"), Amount(1, "kpw"),
		Amount(math.MaxInt64, "mga"), Amount(1, "")} {
		if wrong != (money.Amount{}) {
			t.Errorf("what is no amount was read as %s", wrong)
		}
	}
}

func TestChargeLimits(t *testing.T) {
	for _, tt := range []struct {
		code        string
		least, most int64 // minor units
	}{
		{"USD", 50, 99_999_999}, {"EUR", 50, 99_999_999}, {"GBP", 30, 99_999_999}, {"JPY", 50, 9_999_999_999},
		{"HUF", 17500, 9_999_999_999},
		{"SEK", 300, 99_999_999}, {"CZK", 1500, 99_999_999}, {"MXN", 1000, 99_999_999}, {"IDR", 1, 999_999_999_999},
		{"KRW", 1, 99_999_999},
		{"ISK", 1, 999_999}, {"KWD", 10, 99_999_990},
	} {
		for minor, want := range map[int64]bool{tt.least: true, tt.most: true, 0: false, -tt.least: false} {
			if _, err := ChargeUnits(apitest.Money(t, tt.code, minor)); (err == nil) != want {
				t.Errorf("%d of %s: got %v, want it charged: %t", minor, tt.code, err, want)
			}
		}
		step := int64(1)
		if tt.code == "KWD" {
			step = 10
		}
		for _, minor := range []int64{tt.least - step, tt.most + step} {
			if _, err := ChargeUnits(apitest.Money(t, tt.code, minor)); !errors.Is(err, processor.ErrInvalid) {
				t.Errorf("%d of %s: got %v, want ErrInvalid", minor, tt.code, err)
			}
		}
	}
	_, err := ChargeUnits(apitest.Money(t, "EUR", 49))
	if err == nil || !strings.Contains(err.Error(), "0.49 EUR is outside Stripe's limits: 0.50 EUR to 999999.99 EUR") {
		t.Errorf("got %v", err)
	}
}

func allCodes() []string {
	return strings.Fields(twoDecimals + " " + zeroDecimals + " " + wholeOnly + " " + threeDecimals)
}

func TestEveryCurrencyOfTheTable(t *testing.T) {
	seen := map[string]bool{}
	for _, code := range allCodes() {
		if seen[code] {
			t.Errorf("%s is in the table twice", code)
		}
		seen[code] = true
		c, err := money.ParseCurrency(code)
		if err != nil {
			t.Error(err)
			continue
		}
		s, ok := scaleOf(c)
		if !ok {
			t.Errorf("%s is not found", code)
		}
		for minor := c.Step(); minor <= 1000; minor++ { // prices are multiples of the step
			if _, err := Units(money.New(minor, c)); (err == nil) != (minor%c.Step() == 0) {
				t.Errorf("%s: %v", money.New(minor, c), err)
			}
		}
		if exceptions := " MGA ISK UGX "; s.decimals != c.Exponent() && !strings.Contains(exceptions, " "+code+" ") {
			t.Errorf("%s has %d decimals at Stripe and %d in ISO 4217", code, s.decimals, c.Exponent())
		}
		least, most := limits(code)
		if least%s.step != 0 || most%s.step != 0 || least < 1 || most < least {
			t.Errorf("%s: limits %d to %d", code, least, most)
		}
	}
	if len(seen) < 135 {
		t.Errorf("the table has %d currencies; Stripe has more than 135", len(seen))
	}
}

func TestUnits_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom(allCodes()).Draw(t, "code")
		minor := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1e7, 1e7)).Draw(t, "minor")
		a := apitest.Money(t, code, minor)
		units, err := Units(a)
		if err != nil {
			if !errors.Is(err, processor.ErrInvalid) || units != 0 {
				t.Fatalf("%s: got %d, %v", a, units, err)
			}
			return
		}
		if back := Amount(units, strings.ToLower(code)); back != a {
			t.Fatalf("%s became %d and then %s", a, units, back)
		}
		s, _ := scaleOf(a.Currency())
		if exact := new(big.Rat).SetFrac(big.NewInt(units),
			pow10(s.decimals)); exact.Cmp(new(big.Rat).SetFrac(big.NewInt(minor), pow10(a.Currency().Exponent()))) != 0 {
			t.Fatalf("%s became %d units", a, units)
		}
	})
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func TestFee_IsRoundedDown(t *testing.T) {
	usd, kwd, isk := apitest.Money(t, "USD", 0).Currency(), apitest.Money(t, "KWD", 0).Currency(), apitest.Money(t, "ISK",
		0).Currency()
	for _, tt := range []struct {
		units int64
		fee   int
		in    money.Currency
		want  int64
	}{{1299, 250, usd, 32}, {1299, 10000, usd, 1299}, {1299, 0, usd, 0}, {99, 100, usd, 0}, {100, 100, usd, 1},
		{1230, 1000, kwd, 120}, {50000, 333, isk, 1600}} {
		if got, err := FeeUnits(tt.units, tt.fee, tt.in); err != nil || got != tt.want {
			t.Errorf("%d of %d %s: got %d, %v; want %d", tt.fee, tt.units, tt.in, got, err, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		units, fee := rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "units"), rapid.IntRange(0, 10000).Draw(t, "fee")
		got, err := FeeUnits(units, fee, usd)
		want := new(big.Int).Div(new(big.Int).Mul(big.NewInt(units), big.NewInt(int64(fee))), big.NewInt(10000))
		if err != nil || got != want.Int64() {
			t.Fatalf("%d of %d: got %d, %v; want %s", fee, units, got, err, want)
		}
	})
}
