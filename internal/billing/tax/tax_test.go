package tax_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/money"
)

func TestTable(t *testing.T) {
	table := tax.Table{"US:0", "LI:8.1", "DE:19"}
	if !table.Check() || !slices.Equal(table, tax.Table{"DE:19", "LI:8.1", "US:0"}) {
		t.Errorf("got %v, want the sorted table", table)
	}
	for country, rate := range map[string]price.Percent{"DE": 190_000, "LI": 81_000, "US": 0} {
		want := price.Tax{Mode: price.Exclusive, Rate: rate, Country: country}
		if got := table.Of(country, price.Exclusive); got != want {
			t.Errorf("%s: got %+v, want %+v", country, got, want)
		}
	}
	for _, country := range []string{"FR", "", "D", "DE:19"} {
		if got := table.Of(country, price.Inclusive); got != (price.Tax{}) {
			t.Errorf("%q: got %+v, want none", country, got)
		}
	}
	for _, line := range []string{"", "DE", "DE:", ":19", "de:19", "DE:-1", "DE:+1", "DE:100.1", "DE:1.00001", "DE:19%", "DE:.5", "DE:1.", "XX:5",
		"DE:19:20", "DE:1e1", "DE: 19"} {
		if (tax.Table{line}).Check() {
			t.Errorf("%q is taken", line)
		}
	}
	if (tax.Table{"DE:7", "DE:19"}).Check() {
		t.Error("a country with two rates is taken")
	}
}

func of(t interface{ Fatal(...any) }, code string, unit int64, terms price.Terms) (price.Price, money.Currency) {
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	p, err := price.Of(money.New(unit, c), terms, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// TestRoundedOnce: three units of 0.33 have 0.19 of 19 % tax. Rounded by line, they would have three times 0.06.
func TestRoundedOnce(t *testing.T) {
	rate := price.Tax{Mode: price.Exclusive, Rate: 190_000}
	three, c := of(t, "EUR", 33, price.Terms{Quantity: 3, Tax: rate})
	one, _ := of(t, "EUR", 33, price.Terms{Tax: rate})
	if three.Tax != money.New(19, c) || three.Gross != money.New(118, c) || one.Tax != money.New(6, c) {
		t.Errorf("three: %s of tax in %s, one: %s; want 0.19 in 1.18, and 0.06", three.Tax, three.Gross, one.Tax)
	}
}

// TestShare: whatever refunds a receipt has, each gives back some of the tax and no more than the refund, their sum
// is in proportion to the refunded amount, and a full refund gives back all of the tax.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]string{"JPY", "USD", "EUR", "KWD"}).Draw(t, "currency")
		p, c := of(t, code, rapid.Int64Range(1, 5000).Draw(t, "unit"), price.Terms{Quantity: rapid.IntRange(0, 9).Draw(t, "quantity"),
			Tax: price.Tax{Mode: rapid.SampledFrom([]price.Mode{price.Inclusive, price.Exclusive}).Draw(t, "mode"),
				Rate: price.Percent(rapid.Int64Range(0, int64(price.Whole)).Draw(t, "rate"))}})
		before, back := int64(0), int64(0)
		for before < p.Gross.Minor() {
			refund := rapid.Int64Range(1, p.Gross.Minor()-before).Draw(t, "refund")
			share := tax.Share(&p, money.New(before, c), money.New(refund, c))
			before, back = before+refund, back+share.Minor()
			if share.Minor() < 0 || share.Minor() > refund || share.Currency() != c {
				t.Fatalf("a refund of %d gives back %s", refund, share)
			}
			if twice := 2*back*p.Gross.Minor() - 2*p.Tax.Minor()*before; twice > p.Gross.Minor() || twice <= -p.Gross.Minor() {
				t.Fatalf("%d of %s refunded gives back %d of %s", before, p.Gross, back, p.Tax)
			}
		}
		if back != p.Tax.Minor() {
			t.Fatalf("refunds of all give back %d of %s", back, p.Tax)
		}
		if more := tax.Share(&p, p.Gross, money.New(5, c)); !more.IsZero() {
			t.Fatalf("a refund beyond the amount gives back %s", more)
		}
	})
}
