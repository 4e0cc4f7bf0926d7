package report_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A book is a store with receipts and refunds, and nothing else.
type book struct {
	t        interface{ Fatal(...any) }
	records  *billing.Records
	settings settings.Settings
	items    int
}

func newBook(t interface{ Fatal(...any) }) *book {
	tables := schema.New(schema.DefaultPrefix)
	now := func() time.Time { return at("2026-12-31T12:00") }
	mem, err := memstore.Open(tables.All(), now)
	if err != nil {
		t.Fatal(err)
	}
	return &book{t: t, records: billing.NewRecords(mem, tables, now, nil), settings: settings.Default()}
}

func at(text string) time.Time {
	at, _ := time.Parse("2006-01-02T15:04", text)
	return at
}

func (b *book) amount(text, code string) money.Amount {
	c, err := money.ParseCurrency(code)
	if err != nil {
		b.t.Fatal(err)
	}
	a, err := money.Parse(text, c)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *book) commit(writes ...store.Write) {
	if err := b.records.Store.Commit(context.Background(), writes...); err != nil {
		b.t.Fatal(err)
	}
}

// pays stores the receipt of a charge with the tax.
func (b *book) pays(when string, unit money.Amount, t price.Tax) *billing.Receipt {
	p, err := price.Of(unit, price.Terms{Tax: t}, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	b.items++
	r := &billing.Receipt{Name: billing.Name{Account: fmt.Sprint("a", b.items), ID: "1", SKU: "gym"}, SKU: "gym", Kind: billing.Charged,
		Processed: at(when), Amount: p.Gross, Price: &p, Charge: "pi_1"}
	b.commit(store.Put(b.records.Table, r.Item()))
	return r
}

// goesBack stores a refund of the receipt.
func (b *book) goesBack(when string, r *billing.Receipt, minor int64, change ...func(*billing.ReversalRecord)) {
	b.items++
	x := &billing.ReversalRecord{Name: r.Name, ReversalID: fmt.Sprint("rf_", b.items), Kind: processor.Refunded, Period: r.Period, Charge: r.Charge,
		Amount: money.New(minor, r.Amount.Currency()), State: processor.ReversalSucceeded, Ref: fmt.Sprint("re_", b.items), Created: at(when),
		Processed: at(when)}
	for _, f := range change {
		f(x)
	}
	b.commit(x.Writes(b.records.Table, nil, nil)...)
}

// report returns the report of the year 2026.
func (b *book) report() *report.Report {
	r, err := b.made()
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *book) made() (*report.Report, error) {
	return report.Make(context.Background(), b.records, report.Query{From: civil.Of(at("2026-01-01T00:00")), To: civil.Of(at("2026-12-31T00:00")), Days: 1,
		Settings: b.settings, Progress: func(int64) {},
		Expect: func(context.Context, *billing.Subscription, int, func(civil.Date, money.Amount) error) error {
			return nil
		}})
}

// text returns a tax, such as 2026-01 DE 19 EUR: 2 have 20.00 + 3.80 = 23.80, 1 back 10.00 + 1.90 = 11.90.
func text(x report.Tax) string {
	of := fmt.Sprintf("%.7s %s %s %s%s:", x.Month, x.Country, x.Rate, strings.TrimLeft(x.Note+" ", " "), x.Currency.Code())
	if !x.Rated {
		of = fmt.Sprintf("%.7s no rate %s:", x.Month, x.Currency.Code())
	}
	parts := []string{of}
	for _, p := range []struct {
		count           int
		verb            string
		net, tax, gross money.Amount
	}{{x.Receipts, "have", x.Net, x.Tax, x.Gross}, {x.Refunds, "back", x.RefundedNet, x.RefundedTax, x.Refunded}} {
		if p.count > 0 || !p.gross.IsZero() {
			parts = append(parts, fmt.Sprintf("%d %s %s + %s = %s", p.count, p.verb, p.net.Decimal(), p.tax.Decimal(), p.gross.Decimal()))
		}
	}
	return strings.Join(parts, " ")
}

func (b *book) holds(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, x := range b.report().Taxes {
		got = append(got, text(x))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func rate(mode price.Mode, percent, country, note string) price.Tax {
	p, _ := price.ParsePercent(percent)
	return price.Tax{Mode: mode, Rate: p, Country: country, Note: note}
}

var (
	german = rate(price.Exclusive, "19", "DE", "")
	meal   = rate(price.Exclusive, "7", "DE", "")
)

// TestTaxes_Sums: receipts are added up by month, country, rate, note and currency. Receipts of both modes are in one
// sum. A rate of 0 is a rate. The months are in the store's zone, and the report has those that it is asked for.
func TestTaxes_Sums(t *testing.T) {
	b := newBook(t)
	b.settings.TimeZone = "Europe/Berlin"
	ten, yen := b.amount("10.00", "EUR"), b.amount("1000", "JPY")
	b.pays("2025-12-31T22:59", ten, german) // before the first month
	b.pays("2025-12-31T23:00", ten, german)
	b.pays("2026-01-31T22:59", b.amount("11.90", "EUR"), rate(price.Inclusive, "19", "DE", ""))
	b.pays("2026-01-31T23:00", ten, german) // in February, in Berlin
	b.pays("2026-01-15T09:00", ten, meal)
	b.pays("2026-01-15T09:00", ten, rate(price.Exclusive, "7", "", ""))
	b.pays("2026-01-15T09:00", ten, rate(price.Exclusive, "19", "FR", ""))
	b.pays("2026-01-15T09:00", ten, rate(price.Exclusive, "0", "FR", ""))
	b.pays("2026-01-15T09:00", ten, rate(price.Exclusive, "0", "FR", "reverse charge"))
	b.pays("2026-01-15T09:00", ten, rate(price.Exclusive, "8.1", "FR", ""))
	b.pays("2026-01-15T09:00", b.amount("1.000", "KWD"), german)
	b.pays("2026-01-15T09:00", yen, german)
	b.pays("2026-01-16T09:00", b.amount("333", "JPY"), rate(price.Inclusive, "19", "DE", ""))
	b.pays("2026-12-31T22:59", ten, german)
	b.pays("2026-12-31T23:00", ten, german) // after the last month
	b.holds(t,
		"2026-01  7 EUR: 1 have 10.00 + 0.70 = 10.70",
		"2026-01 DE 7 EUR: 1 have 10.00 + 0.70 = 10.70",
		"2026-01 DE 19 EUR: 2 have 20.00 + 3.80 = 23.80",
		"2026-01 DE 19 JPY: 2 have 1280 + 243 = 1523",
		"2026-01 DE 19 KWD: 1 have 1.000 + 0.190 = 1.190",
		"2026-01 FR 0 EUR: 1 have 10.00 + 0.00 = 10.00",
		"2026-01 FR 0 reverse charge EUR: 1 have 10.00 + 0.00 = 10.00",
		"2026-01 FR 8.1 EUR: 1 have 10.00 + 0.81 = 10.81",
		"2026-01 FR 19 EUR: 1 have 10.00 + 1.90 = 11.90",
		"2026-02 DE 19 EUR: 1 have 10.00 + 1.90 = 11.90",
		"2026-12 DE 19 EUR: 1 have 10.00 + 1.90 = 11.90")
}

// TestTaxes_NoRate: receipts without a rate, such as a manual payment of another amount, are added up apart from those
// with a rate of 0, with what went back of them. So is a refund whose receipt has expired. Imported receipts and what
// cannot be read are left out.
func TestTaxes_NoRate(t *testing.T) {
	b := newBook(t)
	ten := b.amount("10.00", "EUR")
	zero := rate(price.Exclusive, "0", "", "")
	paid := func(when string, change func(*billing.Receipt)) *billing.Receipt {
		b.items++
		r := &billing.Receipt{Name: billing.Name{Account: fmt.Sprint("a", b.items), ID: "1", SKU: "gym"}, SKU: "gym", Kind: billing.External,
			Processed: at(when), Amount: ten, Charge: "wire 1"}
		change(r)
		b.commit(store.Put(b.records.Table, r.Item()))
		return r
	}
	as := func(kind billing.ReceiptKind) func(*billing.Receipt) {
		return func(r *billing.Receipt) { r.Kind = kind }
	}
	charged := paid("2026-01-15T09:00", as(billing.Charged))
	paid("2026-01-16T09:00", as(billing.External))
	paid("2026-01-17T09:00", as(billing.Overpayment))
	paid("2026-01-18T09:00", func(r *billing.Receipt) {
		p, err := price.Of(ten, price.Terms{Quantity: 2}, 0)
		if err != nil {
			t.Fatal(err)
		}
		r.Price, r.Amount = &p, p.Gross
	})
	paid("2026-01-19T09:00", func(r *billing.Receipt) { r.Amount = b.amount("500", "JPY") })
	imported := paid("2026-01-20T09:00", as(billing.Imported))
	b.goesBack("2026-02-15T09:00", charged, 300)
	b.goesBack("2026-03-15T09:00", charged, 700)
	damaged := paid("2026-01-15T09:00", as(billing.Charged))
	b.goesBack("2026-02-15T09:00", damaged, 10)
	it := damaged.Item()
	it.Set(schema.ProcessedAmount, store.S("much"))
	b.commit(store.Put(b.records.Table, it))
	b.holds(t) // a store without tax has no table of it

	b.settings.Tax = settings.On
	none := []string{"2026-01 no rate EUR: 4 have 0.00 + 0.00 = 50.00", "2026-01 no rate JPY: 1 have 0 + 0 = 500",
		"2026-02 no rate EUR: 1 back 0.00 + 0.00 = 3.00", "2026-03 no rate EUR: 1 back 0.00 + 0.00 = 7.00"}
	b.holds(t, none...)
	if n := b.report().TaxesLeft; n != 2 {
		t.Errorf("%d are said to be left out, want the damaged receipt and its refund", n)
	}
	b.settings.Tax = settings.Off
	b.pays("2026-01-15T09:00", ten, zero)
	b.holds(t, append([]string{"2026-01  0 EUR: 1 have 10.00 + 0.00 = 10.00"}, none...)...)
	b.goesBack("2026-04-15T09:00", imported, 100)
	b.goesBack("2026-04-16T09:00", &billing.Receipt{Name: billing.Name{Account: "gone", ID: "1", SKU: "gym"}, Amount: ten, Charge: "pi_9"}, 200)
	both := b.pays("2026-05-15T09:00", ten, german) // and, before, by wire
	paid("2026-05-14T09:00", func(r *billing.Receipt) { r.Name, r.Kind = both.Name, billing.Overpayment })
	b.goesBack("2026-06-15T09:00", both, 1190)
	none = append(none, "2026-04 no rate EUR: 2 back 0.00 + 0.00 = 3.00", "2026-05 DE 19 EUR: 1 have 10.00 + 1.90 = 11.90",
		"2026-05 no rate EUR: 1 have 0.00 + 0.00 = 10.00", "2026-06 DE 19 EUR: 1 back 10.00 + 1.90 = 11.90")
	b.holds(t, append([]string{"2026-01  0 EUR: 1 have 10.00 + 0.00 = 10.00"}, none...)...)
}

// TestTaxes_TooLarge: totals that no amount can hold are an error of the report, but not in a store without tax.
func TestTaxes_TooLarge(t *testing.T) {
	b := newBook(t)
	for i := range 2 {
		most := b.amount("92233720368547758.07", "EUR")
		r := &billing.Receipt{Name: billing.Name{Account: fmt.Sprint("a", i), ID: "1", SKU: "gym"}, SKU: "gym", Kind: billing.External,
			Processed: at("2026-01-15T09:00"), Amount: most, Charge: "wire 1"}
		b.commit(store.Put(b.records.Table, r.Item()))
	}
	b.holds(t)
	b.settings.Tax = settings.On
	if _, err := b.made(); !errors.Is(err, money.ErrOverflow) || !strings.Contains(err.Error(), "the taxes of 2026-01") {
		t.Error(err)
	}
}

// TestTaxes_RefundedLater: a refund or a lost dispute is in its own month, also if the receipt is from before the first
// one. One that is not final, or was sent back, is in none.
func TestTaxes_RefundedLater(t *testing.T) {
	b := newBook(t)
	b.settings.TimeZone = "Europe/Berlin"
	ten := b.amount("10.00", "EUR")
	first, older := b.pays("2026-01-15T09:00", ten, german), b.pays("2025-11-15T09:00", ten, meal)
	b.goesBack("2026-02-28T22:59", first, 595)
	b.goesBack("2026-02-28T23:00", first, 595)
	b.goesBack("2026-04-02T09:00", older, 1070, func(r *billing.ReversalRecord) { r.Kind, r.ReversalID, r.Ref = processor.Disputed, "dp_1", "dp_1" })
	for i, state := range []processor.ReversalState{processor.ReversalRequested, processor.ReversalInquiry, processor.ReversalPending,
		processor.ReversalFailed, processor.ReversalCanceled} {
		b.goesBack(fmt.Sprintf("2026-05-0%dT09:00", i+1), b.pays("2025-11-15T09:00", ten, german), 100, func(r *billing.ReversalRecord) { r.State = state })
	}
	b.holds(t,
		"2026-01 DE 19 EUR: 1 have 10.00 + 1.90 = 11.90",
		"2026-02 DE 19 EUR: 1 back 5.00 + 0.95 = 5.95",
		"2026-03 DE 19 EUR: 1 back 5.00 + 0.95 = 5.95",
		"2026-04 DE 7 EUR: 1 back 10.00 + 0.70 = 10.70")
}

// TestTaxes_Thirds: three refunds share a receipt's tax in the order of their times, so that their sum is the tax. Each
// refund rounded alone would leave a cent, or a yen, of it.
func TestTaxes_Thirds(t *testing.T) {
	for _, tt := range []struct {
		unit, currency string
		parts          [3]int64
		want           []string
	}{
		{"10.00", "EUR", [3]int64{397, 397, 396}, []string{"1 back 3.34 + 0.63 = 3.97", "1 back 3.33 + 0.64 = 3.97", "1 back 3.33 + 0.63 = 3.96"}},
		{"100", "JPY", [3]int64{40, 40, 39}, []string{"1 back 34 + 6 = 40", "1 back 33 + 7 = 40", "1 back 33 + 6 = 39"}},
	} {
		b := newBook(t)
		r := b.pays("2026-01-15T09:00", b.amount(tt.unit, tt.currency), german)
		alone := int64(0)
		for i := range tt.parts {
			b.goesBack(fmt.Sprintf("2026-0%d-15T09:00", i+2), r, tt.parts[i], func(r *billing.ReversalRecord) {
				scanned := []int{2, 1, 3}[i]
				r.Created, r.ReversalID = r.Created.AddDate(-1, 0, scanned), fmt.Sprint("rf_", scanned)
			})
			alone += tax.Share(r.Price, money.New(0, r.Amount.Currency()), money.New(tt.parts[i], r.Amount.Currency())).Minor()
		}
		if alone == r.Price.Tax.Minor() {
			t.Errorf("%s: the parts do not show how they are rounded", tt.currency)
		}
		b.holds(t, "2026-01 DE 19 "+tt.currency+": 1 have "+r.Price.Net.Decimal()+" + "+r.Price.Tax.Decimal()+" = "+r.Amount.Decimal(),
			"2026-02 DE 19 "+tt.currency+": "+tt.want[0], "2026-03 DE 19 "+tt.currency+": "+tt.want[1], "2026-04 DE 19 "+tt.currency+": "+tt.want[2])
	}
}

// TestTaxes_Shares: whatever parts of a receipt go back, in whatever months and order, its sums go back to the minor unit.
func TestTaxes_Shares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBook(t)
		code := rapid.SampledFrom([]string{"JPY", "EUR", "KWD"}).Draw(t, "currency")
		unit := money.New(rapid.Int64Range(1, 500).Draw(t, "unit")*10, b.amount("0", code).Currency())
		r := b.pays("2026-01-15T09:00", unit, price.Tax{Mode: rapid.SampledFrom([]price.Mode{price.Inclusive, price.Exclusive}).Draw(t, "mode"),
			Rate: price.Percent(rapid.Int64Range(0, 250_000).Draw(t, "rate"))})
		var parts []int64
		for left := r.Amount.Minor(); left > 0; left -= parts[len(parts)-1] {
			parts = append(parts, rapid.Int64Range(max(1, r.Amount.Minor()/9), max(left, r.Amount.Minor()/9)).Draw(t, "part"))
			if parts[len(parts)-1] > left {
				parts[len(parts)-1] = left
			}
		}
		rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "order"))).Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		for _, part := range parts {
			b.goesBack(fmt.Sprintf("2026-%02d-%02dT09:00", rapid.IntRange(2, 12).Draw(t, "month"), rapid.IntRange(1, 28).Draw(t, "day")), r, part)
		}
		back, count := [3]int64{}, 0
		for _, x := range b.report().Taxes {
			if x.RefundedNet.Minor() < 0 || x.RefundedTax.Minor() < 0 || x.RefundedNet.Minor()+x.RefundedTax.Minor() != x.Refunded.Minor() {
				t.Fatal(text(x))
			}
			back[0], back[1], back[2], count = back[0]+x.RefundedNet.Minor(), back[1]+x.RefundedTax.Minor(), back[2]+x.Refunded.Minor(), count+x.Refunds
		}
		if want := [3]int64{r.Price.Net.Minor(), r.Price.Tax.Minor(), r.Amount.Minor()}; back != want || count != len(parts) {
			t.Fatalf("%d refunds give back %v, want %d and %v", count, back, len(parts), want)
		}
	})
}
