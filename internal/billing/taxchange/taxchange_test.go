package taxchange_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/billing/taxchange"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A book is a store with accounts and subscriptions, and nothing else.
type book struct {
	*testing.T
	*billing.Records
}

func newBook(t *testing.T) *book {
	t.Helper()
	tables := schema.New(schema.DefaultPrefix)
	now := func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }
	mem, err := memstore.Open(tables.All(), now)
	if err != nil {
		t.Fatal(err)
	}
	return &book{t, billing.NewRecords(mem, tables, now, nil)}
}

func (b *book) put(items ...store.Item) {
	b.Helper()
	for _, it := range items {
		if err := b.Store.Commit(b.Context(), store.Put(b.Table, it)); err != nil {
			b.Fatal(err)
		}
	}
}

// has stores an account in the country, if there is one, and its subscription to an SKU.
func (b *book) has(account, country, sku, amount string, t price.Tax, change ...func(*billing.Subscription)) *billing.Subscription {
	b.Helper()
	digits, code, _ := strings.Cut(amount, " ")
	c, err := money.ParseCurrency(code)
	if err != nil {
		b.Fatal(err)
	}
	n := billing.NewSubscription{Account: account, Email: "ada@example.com", ID: "1", SKU: sku, PaymentDay: 31, Method: "pm_1", Terms: price.Terms{Tax: t}}
	if n.Amount, err = money.Parse(digits, c); err != nil {
		b.Fatal(err)
	}
	n.Details.Address.Country = country
	s, err := n.Build(b.Now(), 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range change {
		f(s)
	}
	b.put(s.Item(), n.NewAccount(s.Created).Item())
	return s
}

func (b *book) plan(w taxchange.Where, c tax.Change) *taxchange.Plan {
	b.Helper()
	p, err := taxchange.Make(b.Context(), b.Records, w, c, price.Exclusive)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// selects checks the accounts of the plan's names.
func (b *book) selects(p *taxchange.Plan, want ...string) {
	b.Helper()
	var got []string
	for _, n := range p.Names {
		got = append(got, n.Account)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		b.Errorf("selected are %v, want %v", got, want)
	}
}

func (b *book) equal(what string, got, want any) {
	b.Helper()
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		b.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func rate(mode price.Mode, percent, country, note string) price.Tax {
	p, _ := price.ParsePercent(percent)
	return price.Tax{Mode: mode, Rate: p, Country: country, Note: note}
}

// mixed are subscriptions that differ in all that selects them.
func mixed(t *testing.T) *book {
	b := newBook(t)
	b.has("a", "DE", "gym", "10.00 EUR", rate(price.Inclusive, "19", "DE", ""))
	b.has("b", "DE", "club", "10.00 EUR", rate(price.Exclusive, "7", "DE", ""))
	b.has("c", "FR", "gym", "10.00 EUR", rate(price.Exclusive, "20", "FR", ""))
	b.has("d", "FR", "gym", "1000 JPY", rate(price.Exclusive, "0", "FR", "reverse charge"))
	b.has("e", "", "gym", "10.00 EUR", price.Tax{})
	b.has("f", "DE", "club", "1000 JPY", price.Tax{})
	over := func(status billing.Status) func(*billing.Subscription) {
		return func(s *billing.Subscription) { s.Status = status }
	}
	b.has("g", "DE", "gym", "10.00 EUR", rate(price.Inclusive, "19", "DE", ""), over(billing.CanceledSub))
	b.has("h", "DE", "gym", "10.00 EUR", price.Tax{}, over(billing.Completed))
	b.has("i", "DE", "gym", "10.00 EUR", rate(price.Inclusive, "19", "DE", ""), over(billing.Paused))
	return b
}

// TestMake_Where: each condition, and all of them together, select subscriptions that are not over. A change without
// a rate is for subscriptions that have one.
func TestMake_Where(t *testing.T) {
	b := mixed(t)
	new16 := tax.Change{Rate: new("16")}
	for _, tt := range []struct {
		where  taxchange.Where
		change tax.Change
		want   string
	}{
		{taxchange.Where{}, new16, "a b c d e f i"},
		{taxchange.Where{SKU: "gym"}, new16, "a c d e i"},
		{taxchange.Where{Currency: "JPY"}, new16, "d f"},
		{taxchange.Where{Country: "DE"}, new16, "a b f i"},
		{taxchange.Where{Rate: "19"}, new16, "a i"},
		{taxchange.Where{Rate: "19.0"}, new16, "a i"},
		{taxchange.Where{Rate: "0"}, new16, "d"}, // which is not the lack of a rate
		{taxchange.Where{Rate: tax.None}, new16, "e f"},
		{taxchange.Where{SKU: "gym", Currency: "EUR", Country: "FR", Rate: "20"}, new16, "c"},
		{taxchange.Where{SKU: "gym", Currency: "JPY", Country: "FR", Rate: "20"}, new16, ""},
		{taxchange.Where{SKU: "gy"}, new16, ""},
		{taxchange.Where{}, tax.Change{Mode: price.Inclusive}, "b c d"},
		{taxchange.Where{}, tax.Change{Note: new("reverse charge")}, "a b c i"},
		{taxchange.Where{Country: "DE"}, tax.Change{Note: new("by law")}, "a b i"},
		{taxchange.Where{}, tax.Change{Rate: new(tax.None)}, "a b c d i"},
	} {
		b.T.Run(fmt.Sprintf("%+v", tt.where), func(t *testing.T) {
			(&book{t, b.Records}).selects(b.plan(tt.where, tt.change), strings.Fields(tt.want)...)
		})
	}
	if _, err := taxchange.Make(t.Context(), b.Records, taxchange.Where{Rate: tax.None}, tax.Change{Note: new("by law")}, price.Exclusive); err == nil ||
		!strings.Contains(err.Error(), "tax_rate") {
		t.Errorf("a note for subscriptions without a rate: %v", err)
	}
}

// TestMake_Sums: the plan counts subscriptions by their tax before and after the change, by country and then by rate. The
// country is the account's. A rate for one that has none gets the usual mode, and a new rate removes the note.
func TestMake_Sums(t *testing.T) {
	b := mixed(t)
	b.has("j", "DE", "gym", "10.00 EUR", rate(price.Inclusive, "19", "AT", "")) // it has moved
	p := b.plan(taxchange.Where{}, tax.Change{Rate: new("16")})
	b.equal("sums", p.Sums, []taxchange.Sum{
		{price.Tax{}, rate(price.Exclusive, "16", "", ""), 1},
		{price.Tax{}, rate(price.Exclusive, "16", "DE", ""), 1},
		{rate(price.Exclusive, "7", "DE", ""), rate(price.Exclusive, "16", "DE", ""), 1},
		{rate(price.Inclusive, "19", "AT", ""), rate(price.Inclusive, "16", "DE", ""), 1},
		{rate(price.Inclusive, "19", "DE", ""), rate(price.Inclusive, "16", "DE", ""), 2},
		{rate(price.Exclusive, "0", "FR", "reverse charge"), rate(price.Exclusive, "16", "FR", ""), 1},
		{rate(price.Exclusive, "20", "FR", ""), rate(price.Exclusive, "16", "FR", ""), 1},
	})
	b.equal("already", p.Already, 0)
}

// TestMake_Again: a plan made after an interruption has the subscriptions that are left, and counts the changed ones,
// although the condition no longer selects their rate. It does not count those of another condition.
func TestMake_Again(t *testing.T) {
	b := newBook(t)
	for _, account := range []string{"a", "b", "c"} {
		b.has(account, "DE", "gym", "10.00 EUR", rate(price.Inclusive, "19", "DE", ""))
	}
	b.has("d", "DE", "club", "10.00 EUR", rate(price.Inclusive, "16", "DE", ""))
	where, change := taxchange.Where{SKU: "gym", Rate: "19"}, tax.Change{Rate: new("16")}
	for i, account := range []string{"a", "b", "c"} {
		p := b.plan(where, change)
		b.selects(p, []string{"a", "b", "c"}[i:]...)
		b.equal("already", p.Already, i)
		b.has(account, "DE", "gym", "10.00 EUR", rate(price.Inclusive, "16", "DE", ""))
	}
	p := b.plan(where, change)
	b.selects(p)
	b.equal("already", p.Already, 3)
	b.equal("sums", len(p.Sums), 0)
}

// TestMake_Unreadable: the plan names what cannot be read and selects the others, also those of the next account. An
// unreadable account is not named for a subscription that the conditions do not select. An absent one has no country.
func TestMake_Unreadable(t *testing.T) {
	b := newBook(t)
	for _, account := range []string{"a", "b", "c", "d", "e"} {
		b.has(account, "DE", "gym", "10.00 EUR", rate(price.Inclusive, "19", "DE", ""))
	}
	b.has("f", "DE", "gym", "10.00 EUR", rate(price.Inclusive, "7", "DE", ""))
	damaged := b.has("b", "DE", "gym", "10.00 EUR", rate(price.Inclusive, "19", "DE", "")).Item()
	damaged.Set(schema.PaymentAmount, store.S("a dozen"))
	b.put(damaged)
	for _, account := range []string{"c", "f"} {
		it := billing.ItemAt(billing.AccountKey(account))
		it.Set(schema.ApplicationFee, store.S("a dozen"))
		b.put(it)
	}
	if err := b.Store.Commit(b.Context(), store.Delete(b.Table, billing.AccountKey("e"))); err != nil {
		b.Fatal(err)
	}
	p := b.plan(taxchange.Where{Rate: "19"}, tax.Change{Rate: new("16")})
	b.selects(p, "a", "d", "e")
	slices.Sort(p.Left)
	if len(p.Left) != 2 || !strings.HasPrefix(p.Left[0], "item ACC#b SUB#1") || !strings.HasPrefix(p.Left[1], "subscription c/1: account c's "+schema.ApplicationFee) {
		b.Errorf("left: %q", p.Left)
	}
	b.selects(b.plan(taxchange.Where{Rate: "19", Country: "DE"}, tax.Change{Rate: new("16")}), "a", "d")
	if p := b.plan(taxchange.Where{SKU: "other"}, tax.Change{Rate: new("16")}); len(p.Names) > 0 || len(p.Left) != 1 {
		b.Errorf("an SKU that no one has: %v, left %q; a row that cannot be read may have it", p.Names, p.Left)
	}
}

// TestMake_Left: a subscription that cannot have the change is named, and does not stop the others. A discount that
// is over need not fit the amount.
func TestMake_Left(t *testing.T) {
	b := newBook(t)
	b.has("a", "DE", "gym", "10.00 EUR", rate(price.Exclusive, "0", "DE", ""))
	b.has("b", "DE", "gym", "9999999999.99 EUR", rate(price.Exclusive, "0", "DE", ""))
	b.has("c", "DE", "gym", "10.00 EUR", rate(price.Exclusive, "0", "DE", ""), func(s *billing.Subscription) {
		s.Terms.Discount, s.Period = price.Discount{Amount: money.New(2000, s.Amount.Currency()), Periods: 1}, 1
	})
	p := b.plan(taxchange.Where{}, tax.Change{Rate: new("19")})
	b.selects(p, "a", "c")
	if len(p.Left) != 1 || !strings.Contains(p.Left[0], "subscription b/1: tax_rate: must leave an amount of at most twelve digits") {
		b.Errorf("left: %q", p.Left)
	}
}

// TestMake_Refused: there is no plan for a change that is wrong by itself, nor if the store fails.
func TestMake_Refused(t *testing.T) {
	b := newBook(t)
	b.has("a", "DE", "gym", "10.00 EUR", rate(price.Exclusive, "0", "DE", ""))
	b.has("b", "DE", "gym", "9999999999.99 EUR", rate(price.Exclusive, "0", "DE", ""))
	for _, tt := range []struct {
		where  taxchange.Where
		change tax.Change
		want   string
	}{
		{taxchange.Where{}, tax.Change{Rate: new("19%")}, "tax_rate: must be a percentage"},
		{taxchange.Where{}, tax.Change{Note: new(strings.Repeat("x", 201))}, "tax_note: "},
		{taxchange.Where{}, tax.Change{Mode: "gross"}, "tax: must be inclusive or exclusive"},
	} {
		if p, err := taxchange.Make(b.Context(), b.Records, tt.where, tt.change, price.Exclusive); p != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			b.Errorf("%+v: %+v, %v; want %q", tt.change, p, err, tt.want)
		}
	}
	b.selects(b.plan(taxchange.Where{SKU: "gym", Rate: "0"}, tax.Change{Rate: new("19"), Mode: price.Inclusive}), "a", "b")
	for _, f := range []failing{{b.Store, true}, {b.Store, false}} {
		b.Store = f
		if p, err := taxchange.Make(b.Context(), b.Records, taxchange.Where{}, tax.Change{Rate: new("7")}, price.Exclusive); p != nil || !errors.Is(err, errDown) {
			b.Errorf("%+v, %v", p, err)
		}
		b.Store = f.Store
	}
}

var errDown = errors.New("the store is down")

// A failing store cannot read its accounts, or cannot be scanned.
type failing struct {
	store.Store
	scans bool
}

func (f failing) Get(context.Context, string, store.Key) (store.Item, error) { return nil, errDown }

func (f failing) Scan(ctx context.Context, sc store.Scan) iter.Seq2[store.Item, error] {
	if f.scans {
		return f.Store.Scan(ctx, sc)
	}
	return func(yield func(store.Item, error) bool) { yield(nil, errDown) }
}
