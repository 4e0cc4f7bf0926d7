package money

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func mustCurrency(t interface{ Fatal(...any) }, code string) Currency {
	c, err := ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// allCurrencies returns every currency that the package knows.
func allCurrencies() []Currency {
	var all []Currency
	for i := range len(entries) - 1 {
		all = append(all, Currency{index: uint8(i + 1)})
	}
	return all
}

// published reads the list of codes and decimals; "-" stands for no minor unit.
func published(t *testing.T) map[string]string {
	text, err := os.ReadFile("testdata/iso4217.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		code, exponent, ok := strings.Cut(strings.TrimSpace(line), " ")
		if _, twice := list[code]; !ok || twice {
			t.Fatalf("line %q is malformed or repeats a code", line)
		}
		list[code] = exponent
	}
	return list
}

func TestCurrencies_AreThePublishedList(t *testing.T) {
	list := published(t)
	accepted := 0
	for code, exponent := range list {
		c, err := ParseCurrency(code)
		if exponent == "-" {
			if err == nil || !strings.Contains(err.Error(), "no minor unit") {
				t.Errorf("%s: %v, %v; want an error with the reason", code, c, err)
			}
			continue
		}
		accepted++
		if err != nil || c.Code() != code || fmt.Sprint(c.Exponent()) != exponent {
			t.Errorf("%s: %v with %d decimals, %v; want %s decimals", code, c, c.Exponent(), err, exponent)
		}
	}
	if got := len(allCurrencies()); got != accepted {
		t.Errorf("the package knows %d currencies, the list %d", got, accepted)
	}
}

func TestParseCurrency_AcceptsNothingElse(t *testing.T) {
	list := published(t)
	for i := range 26 * 26 * 26 {
		code := string([]byte{'A' + byte(i/676), 'A' + byte(i/26%26), 'A' + byte(i%26)})
		c, err := ParseCurrency(code)
		exponent, listed := list[code]
		if want := listed && exponent != "-"; (err == nil) != want {
			t.Errorf("ParseCurrency(%s) = %v, %v; accepted in the list: %v", code, c, err, want)
		}
		if err != nil && (!c.IsZero() || !strings.Contains(err.Error(), code)) {
			t.Errorf("ParseCurrency(%s) = %v, %v; want no currency and an error with the code", code, c, err)
		}
	}
	for _, code := range []string{"", "US", "USDX", "U$D", "€", "US ", "840", "\x00\x00\x00", "ＵＳＤ",
		strings.Repeat("A", 1<<20)} {
		if c, err := ParseCurrency(code); err == nil || !c.IsZero() || len(err.Error()) > 300 {
			t.Errorf("ParseCurrency(%.40q) = %v, %.300v; want a short error", code, c, err)
		}
	}
}

func TestParseCurrency_FoldsCase(t *testing.T) {
	for _, code := range []string{"usd", "Usd", "uSD", "USD"} {
		if c := mustCurrency(t, code); c != mustCurrency(t, "USD") || c.Code() != "USD" || c.String() != "USD" {
			t.Errorf("ParseCurrency(%s) = %v", code, c)
		}
	}
	// the ends of the alphabet
	for lower, upper := range map[string]string{"aed": "AED", "zar": "ZAR", "nzd": "NZD", "azn": "AZN"} {
		if c, err := ParseCurrency(lower); err != nil || c.Code() != upper {
			t.Errorf("ParseCurrency(%s) = %v, %v", lower, c, err)
		}
	}
}

func TestCurrency_ZeroValueIsNoCurrency(t *testing.T) {
	var zero Currency
	if !zero.IsZero() || zero.Code() != "" || zero.Exponent() != 0 || zero.String() != "(no currency)" {
		t.Errorf("%+v: code %q, %d decimals", zero, zero.Code(), zero.Exponent())
	}
	if mustCurrency(t, "AED").IsZero() {
		t.Error("the table's first currency counts as none")
	}
}

func TestTable(t *testing.T) {
	if len(entries) > 256 {
		t.Error("an index does not fit a uint8")
	}
	if !slices.IsSortedFunc(entries[:], func(a, b entry) int { return strings.Compare(a.code, b.code) }) {
		t.Error("the codes are not sorted")
	}
	symbols := make(map[string]string)
	for _, e := range entries {
		if other, taken := symbols[e.symbol]; taken && e.symbol != "" {
			t.Errorf("%s and %s share the symbol %s", e.code, other, e.symbol)
		}
		symbols[e.symbol] = e.code
	}
}
