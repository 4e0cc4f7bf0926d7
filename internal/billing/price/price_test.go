package price_test

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

func currency(t interface{ Fatal(...any) }, code string) money.Currency {
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// anyTerms draws a unit amount and valid or invalid terms, with the edges of each.
func anyTerms(t *rapid.T) (money.Amount, price.Terms) {
	c := currency(t, rapid.SampledFrom([]string{"JPY", "USD", "EUR", "KWD", "TND", "IQD", "MGA", "CLF", "UGX"}).Draw(t, "currency"))
	minor := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1_000_000), rapid.Int64Range(1, math.MaxInt64))
	percent := rapid.OneOf(rapid.SampledFrom([]int64{0, 77_000, 100_000, 190_000, 500_000, 990_000}), rapid.Int64Range(0, int64(price.Whole)))
	unit := money.New(inSteps(t, minor.Draw(t, "unit"), c), c)
	var terms price.Terms
	terms.Quantity = rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(0, price.MaxQuantity)).Draw(t, "quantity")
	switch rapid.IntRange(0, 2).Draw(t, "discount") {
	case 1:
		terms.Discount.Percent = price.Percent(percent.Draw(t, "percent"))
	case 2:
		terms.Discount.Amount = money.New(inSteps(t, minor.Draw(t, "off"), c), c)
	}
	if !terms.Discount.IsZero() {
		terms.Discount.From, terms.Discount.Periods = rapid.IntRange(0, 5).Draw(t, "from"), rapid.IntRange(0, 3).Draw(t, "periods")
	}
	if terms.Tax.Mode = rapid.SampledFrom([]price.Mode{price.Untaxed, price.Exclusive, price.Inclusive}).Draw(t, "mode"); terms.Tax.Mode != price.Untaxed {
		terms.Tax.Rate = price.Percent(percent.Draw(t, "rate"))
		terms.Tax.Country, terms.Tax.Note = rapid.SampledFrom([]string{"", "DE"}).Draw(t, "country"), rapid.SampledFrom([]string{"", "reverse charge"}).Draw(t, "note")
	}
	return unit, terms
}

// inSteps makes nine of ten amounts multiples of the currency's step, as Check wants them.
func inSteps(t *rapid.T, minor int64, c money.Currency) int64 {
	if step := stepOf[c.Code()]; step > 0 && minor <= math.MaxInt64/step && rapid.IntRange(0, 9).Draw(t, "stored by another tool") > 0 {
		return minor * step
	}
	return minor
}

// stepOf has the currencies in which a card payment must be a multiple of more than one minor unit.
var stepOf = map[string]int64{"KWD": 10, "TND": 10, "MGA": 100}

// TestOf_Exact: every amount is the exact one rounded half up once to the currency's step, in every currency, and the
// lines add up. What does not fit is a field.Error, and then the price is zero.
func TestOf_Exact(t *testing.T) {
	var step int64
	rounded := func(t *rapid.T, what string, exact *big.Rat, got money.Amount) {
		half, off := big.NewRat(step, 2), new(big.Rat).Sub(new(big.Rat).SetInt64(got.Minor()), exact)
		if off.Cmp(half) > 0 || off.Cmp(new(big.Rat).Neg(half)) <= 0 { // half goes up
			t.Fatalf("%s is %s, exactly %s", what, got, exact.FloatString(6))
		}
	}
	of := func(n money.Amount, p price.Percent, whole price.Percent) *big.Rat {
		return new(big.Rat).Mul(new(big.Rat).SetInt64(n.Minor()), big.NewRat(int64(p), int64(whole)))
	}
	rapid.Check(t, func(t *rapid.T) {
		unit, terms := anyTerms(t)
		period := rapid.IntRange(0, 9).Draw(t, "period")
		p, err := price.Of(unit, terms, period)
		if err != nil {
			if e, ok := errors.AsType[*field.Error](err); !ok || e.Field == "" || !p.Gross.IsZero() || p.Gross.Currency() != unit.Currency() {
				t.Fatalf("%+v: %v", p, err)
			}
			units := new(big.Int).Mul(big.NewInt(unit.Minor()), big.NewInt(int64(terms.Count())))
			if terms.Discount.IsZero() && units.Cmp(big.NewInt(400_000_000_000)) < 0 {
				t.Fatalf("%s is refused: %v", units, err)
			}
			return
		}
		d := terms.Discount
		on := d.On(period)
		step = max(1, stepOf[unit.Currency().Code()])
		if stored := unit.Minor()%step != 0 || on && d.Amount.Minor()%step != 0; stored {
			step = 1
		}
		for _, a := range [...]money.Amount{p.Subtotal, p.Discount, p.Net, p.Tax, p.Gross} {
			if a.Minor()%step != 0 {
				t.Fatalf("no card can pay %s: %+v", a, p)
			}
		}
		sum := func(a, b money.Amount) money.Amount {
			s, err := a.Add(b)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		plain := terms.Count() == 1 && !on && terms.Tax == price.Tax{}
		if p.IsPlain() != plain || plain && p.Gross != unit || p.Unit != unit {
			t.Fatalf("plain %v: %+v", plain, p)
		}
		if p.Subtotal.Minor() != unit.Minor()*int64(terms.Count()) || p.Discount.Minor() < 0 || p.Net.Minor() < 0 || p.Tax.Minor() < 0 || !p.Gross.IsPositive() {
			t.Fatalf("%+v", p)
		}
		switch {
		case !on && !p.Discount.IsZero():
			t.Fatal("a discount on a period that is not one of its own")
		case on && !d.Amount.IsZero() && p.Discount != d.Amount:
			t.Fatal(p.Discount)
		case on && d.Percent > 0:
			rounded(t, "discount", of(p.Subtotal, d.Percent, price.Whole), p.Discount)
		}
		left := sum(p.Subtotal, money.New(-p.Discount.Minor(), unit.Currency()))
		if sum(p.Net, p.Tax) != p.Gross {
			t.Fatalf("net %s and tax %s are not gross %s", p.Net, p.Tax, p.Gross)
		}
		switch terms.Tax.Mode {
		case price.Untaxed:
			rounded(t, "tax", new(big.Rat), p.Tax)
		case price.Exclusive:
			rounded(t, "tax", of(left, terms.Tax.Rate, price.Whole), p.Tax)
			if p.Net != left {
				t.Fatal(p)
			}
		case price.Inclusive:
			rounded(t, "tax", of(left, terms.Tax.Rate, price.Whole+terms.Tax.Rate), p.Tax)
			if p.Gross != left {
				t.Fatal(p)
			}
		}
		if err := p.Explain(period, p.Gross); err != nil {
			t.Fatal(err)
		}
		if other := money.New(p.Gross.Minor()+1, unit.Currency()); !plain && p.Explain(period, other) == nil {
			t.Fatal("another amount is explained")
		}
		if on && d.From > 0 && p.Explain(d.From-1, p.Gross) == nil {
			t.Fatal("a discount on a period before it is explained")
		}
		if back := price.ReadText(p.Text(), period, p.Gross); plain && back != nil || !plain && (back == nil || *back != p) {
			t.Fatalf("%+v is read from %s as %+v", p, p.Text(), back)
		}
		back, err := price.Decode(p.Item(), unit.Currency())
		if err != nil || back != p {
			t.Fatalf("%+v is stored as %+v: %v", p, back, err)
		}
	})
}

// TestStep: discount and tax are rounded to what a card can pay. A price of an earlier version, which did not
// round so, is explained as it is, and an amount that no card can pay is refused.
func TestStep(t *testing.T) {
	kwd := currency(t, "KWD")
	unit := money.New(12_350, kwd)
	terms := price.Terms{Discount: price.Discount{Percent: 333_333}, Tax: price.Tax{Mode: price.Exclusive, Rate: 55_000}}
	p, err := price.Of(unit, terms, 0)
	if err != nil || p.Discount.Minor() != 4_120 || p.Tax.Minor() != 450 || p.Net.Minor() != 8_230 || p.Gross.Minor() != 8_680 {
		t.Errorf("%+v: %v", p, err) // exactly 4116.66 and 452.65
	}
	earlier := p
	earlier.Discount, earlier.Net = money.New(4_117, kwd), money.New(8_233, kwd)
	earlier.Tax, earlier.Gross = money.New(453, kwd), money.New(8_686, kwd)
	if err := earlier.Explain(0, earlier.Gross); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][2]int64{{453, 8_680}, {460, 8_690}, {4_117, 8_680}} { // not what the terms say, either way
		changed := p
		changed.Tax, changed.Gross = money.New(wrong[0], kwd), money.New(wrong[1], kwd)
		if changed.Explain(0, changed.Gross) == nil {
			t.Errorf("explained: %+v", changed)
		}
	}
	if err := price.CheckAmount(unit, kwd); err != nil {
		t.Error(err)
	}
	const why = " must be a multiple of 0.010 KWD, the smallest step of a card payment (got 1.234)"
	if err := price.CheckAmount(money.New(1234, kwd), kwd); err == nil || err.Error() != "amount:"+why {
		t.Error(err)
	}
	if all := price.Check(unit, price.Terms{Discount: price.Discount{Amount: money.New(1234, kwd)}}, billing.CheckText); len(all) != 1 || all[0].Error() != "discount:"+why {
		t.Error(all)
	}
}

// TestReadText: a text that does not explain the charge, because somebody changed it at the processor, is not a price.
func TestReadText(t *testing.T) {
	eur := currency(t, "EUR")
	p, err := price.Of(money.New(1000, eur), price.Terms{Quantity: 2, Tax: price.Tax{Mode: price.Inclusive, Rate: 190_000, Note: `"a" <b>`}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	text := p.Text()
	if back := price.ReadText(text, 3, p.Gross); back == nil || *back != p {
		t.Errorf("%s is %+v", text, back)
	}
	for _, bad := range []string{"", "{}", "[]", text[1:], strings.Replace(text, "19", "7", 1), strings.Replace(text, "10.00", "5.00", 1),
		strings.Replace(text, `"2"`, `"two"`, 1), strings.Replace(text, `"2"`, `"2000000000000000000000"`, 1)} {
		if back := price.ReadText(bad, 3, p.Gross); back != nil {
			t.Errorf("%s is %+v", bad, back)
		}
	}
	if back := price.ReadText(text, 3, p.Unit); back != nil {
		t.Error("another amount is explained")
	}
	p.Terms.Tax.Note = strings.Repeat("\u0001", 100) // of six characters each in JSON
	if text := p.Text(); text != "" {
		t.Errorf("Stripe refuses %d characters", len(text))
	}
}

// TestTerms_Stored: terms are read as they were written, and the zero Terms have no item.
func TestTerms_Stored(t *testing.T) {
	if it := new(price.Terms).Item(); len(it) != 0 {
		t.Fatal(it)
	}
	rapid.Check(t, func(t *rapid.T) {
		unit, terms := anyTerms(t)
		if price.Check(unit, terms, billing.CheckText) != nil {
			return
		}
		if terms.Discount.IsZero() {
			terms.Discount = price.Discount{}
		}
		if back, err := price.DecodeTerms(terms.Item(), unit.Currency()); err != nil || back != terms {
			t.Fatalf("%+v is stored as %+v: %v", terms, back, err)
		}
		for period := range 12 { // what Check accepts can be charged
			if _, err := price.Of(unit, terms, period); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestDiscount_On(t *testing.T) {
	ten := price.Percent(100_000)
	for _, tt := range []struct {
		d    price.Discount
		want string // periods 0 to 5
	}{
		{price.Discount{}, "------"},
		{price.Discount{Percent: ten}, "++++++"},
		{price.Discount{Percent: ten, From: 2}, "--++++"},
		{price.Discount{Percent: ten, From: 2, Periods: 1}, "--+---"},
		{price.Discount{Percent: ten, From: 2, Periods: 3}, "--+++-"},
		{price.Discount{From: 2, Periods: 3}, "------"},
	} {
		var got strings.Builder
		for period := range 6 {
			got.WriteString(map[bool]string{true: "+", false: "-"}[tt.d.On(period)])
		}
		if got.String() != tt.want {
			t.Errorf("%+v: %s, want %s", tt.d, got.String(), tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	usd, eur := currency(t, "USD"), currency(t, "EUR")
	ten := money.New(1000, usd)
	off := func(text string) price.Terms {
		d, err := price.ParseDiscount(text, usd)
		if err != nil {
			t.Fatal(err)
		}
		return price.Terms{Discount: d}
	}
	with := func(p price.Terms, change func(*price.Terms)) price.Terms {
		change(&p)
		return p
	}
	for name, tt := range map[string]struct {
		terms price.Terms
		field string
	}{
		"plain":          {price.Terms{}, ""},
		"one":            {price.Terms{Quantity: 1}, ""},
		"most":           {price.Terms{Quantity: price.MaxQuantity}, ""},
		"negative":       {price.Terms{Quantity: -1}, "quantity"},
		"too many":       {price.Terms{Quantity: price.MaxQuantity + 1}, "quantity"},
		"percent":        {off("10%"), ""},
		"almost all":     {off("99.9%"), ""},
		"nothing left":   {off("99.9999%"), "discount"}, // rounds to the whole amount
		"all":            {off("100%"), "discount"},
		"amount":         {off("9.99"), ""},
		"whole amount":   {off("10"), "discount"},
		"more":           {off("10.01"), "discount"},
		"less than all":  {with(off("10.01"), func(p *price.Terms) { p.Quantity = 2 }), ""},
		"below zero":     {off("-1"), "discount"},
		"currency":       {price.Terms{Discount: price.Discount{Amount: money.New(1, eur)}}, "discount"},
		"both":           {with(off("1"), func(p *price.Terms) { p.Discount.Percent = 10_000 }), "discount"},
		"periods":        {with(off("1"), func(p *price.Terms) { p.Discount.Periods = 9999 }), ""},
		"too long":       {with(off("1"), func(p *price.Terms) { p.Discount.Periods = 10_000 }), "discount_periods"},
		"only periods":   {price.Terms{Discount: price.Discount{Periods: 2}}, "discount_periods"},
		"tax":            {price.Terms{Tax: price.Tax{Mode: price.Inclusive, Rate: 190_000, Country: "DE", Note: "19 %"}}, ""},
		"zero rate":      {price.Terms{Tax: price.Tax{Mode: price.Exclusive, Note: "reverse charge"}}, ""},
		"no mode":        {price.Terms{Tax: price.Tax{Rate: 190_000}}, "tax_rate"},
		"unknown mode":   {price.Terms{Tax: price.Tax{Mode: "both", Rate: 190_000}}, "tax"},
		"over 100":       {price.Terms{Tax: price.Tax{Mode: price.Exclusive, Rate: price.Whole + 1}}, "tax_rate"},
		"country":        {price.Terms{Tax: price.Tax{Mode: price.Exclusive, Country: "UK"}}, "tax_country"},
		"card in a note": {price.Terms{Tax: price.Tax{Mode: price.Exclusive, Note: "4242424242424242"}}, "tax_note"},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, err := range price.Check(ten, tt.terms, billing.CheckText) {
				e, _ := errors.AsType[*field.Error](err)
				got.WriteString(e.Field)
			}
			if got.String() != tt.field {
				t.Errorf("wrong: %q, want %q", got.String(), tt.field)
			}
		})
	}
	if _, err := price.Of(money.New(math.MaxInt64, usd), price.Terms{Quantity: 2}, 0); err == nil {
		t.Error("an overflow is no error")
	}
	if p, err := price.Of(money.New(-5, usd), price.Terms{}, 0); err != nil || p.Gross.Minor() != -5 { // as another tool wrote it
		t.Error(p, err)
	}
	if _, err := price.Of(money.New(-5, usd), price.Terms{Quantity: 2}, 0); err == nil {
		t.Error("a negative amount is charged")
	}
}

func TestParse(t *testing.T) {
	usd, jpy := currency(t, "USD"), currency(t, "JPY")
	for text, want := range map[string]string{"10%": "10%", "7.50%": "7.5%", "0.0001%": "0.0001%", "2.5": "2.50", "010%": "10%"} {
		if d, err := price.ParseDiscount(text, usd); err != nil || d.String() != want {
			t.Errorf("%s is %s: %v", text, d, err)
		}
	}
	for _, text := range []string{"", "%", "-1%", "100.1%", "1.00000%", ".5%", "5.%", "1e1%", "10 %", "10%%", "+1%", "1000%", "1.001", "x", strings.Repeat("9", 400)} {
		if d, err := price.ParseDiscount(text, usd); err == nil {
			t.Errorf("%q is %s", text, d)
		}
	}
	if d, err := price.ParseDiscount("2.5", jpy); err == nil {
		t.Error(d)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := price.Percent(rapid.Int64Range(0, int64(price.Whole)).Draw(t, "percent"))
		if back, err := price.ParsePercent(p.String()); err != nil || back != p {
			t.Fatalf("%d is %s, which is %d: %v", p, p, back, err)
		}
	})
}

// TestDecode_Unreadable: a map that another tool has changed is an error, not other money.
func TestDecode_Unreadable(t *testing.T) {
	usd := currency(t, "USD")
	d, err := price.ParseDiscount("10%", usd)
	if err != nil {
		t.Fatal(err)
	}
	p, err := price.Of(money.New(1000, usd), price.Terms{Quantity: 3, Discount: d, Tax: price.Tax{Mode: price.Inclusive, Rate: 190_000}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole := p.Item()
	for name, bad := range map[string]any{"quantity": -3, "discount": "x", "discount_amount": "1.005", "unit_amount": "ten",
		"tax": "some", "tax_amount": "-", "tax_rate": "101"} {
		it := whole.Clone()
		set(&it, name, bad)
		if got, err := price.Decode(it, usd); err == nil {
			t.Errorf("%s %v: %+v", name, bad, got)
		}
	}
	changed := whole.Clone()
	set(&changed, "discount_amount", "3.01")
	if got, err := price.Decode(changed, usd); err != nil || got.Explain(0, got.Gross) == nil {
		t.Errorf("another discount than the terms say is explained: %+v, %v", got, err)
	}
}

func set(it *store.Item, name string, v any) {
	if n, ok := v.(int); ok {
		it.Set(name, store.Int(int64(n)))
		return
	}
	it.Set(name, store.S(v.(string)))
}

// TestDiscount_Replace: the same discount again does not last longer, except after its end.
func TestDiscount_Replace(t *testing.T) {
	ten, five := price.Percent(100_000), price.Percent(50_000)
	given := price.Discount{Percent: ten, From: 2, Periods: 3}
	for name, tt := range map[string]struct {
		by   price.Discount
		from int
		want price.Discount
	}{
		"again at once":       {price.Discount{Percent: ten, Periods: 3}, 2, given},
		"again in its last":   {price.Discount{Percent: ten, Periods: 3}, 4, given},
		"again after its end": {price.Discount{Percent: ten, Periods: 3}, 5, price.Discount{Percent: ten, From: 5, Periods: 3}},
		"for longer":          {price.Discount{Percent: ten, Periods: 4}, 4, price.Discount{Percent: ten, From: 4, Periods: 4}},
		"another":             {price.Discount{Percent: five, Periods: 3}, 3, price.Discount{Percent: five, From: 3, Periods: 3}},
		"none":                {price.Discount{}, 3, price.Discount{}},
	} {
		if got := given.Replace(tt.by, tt.from); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
