package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// minorOf reads an amount of two decimals.
func minorOf(text string) int64 {
	n, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// owed is what the stored subscription says that the period costs, by the spy's own reckoning. It reads the
// attributes as they are stored, so that it shares no code with the engine.
func owed(sub store.Item, period int64) int64 {
	left, terms := discounted(sub, period), sub.Get(schema.PriceTerms).Map()
	if terms.Str("tax") != string(price.Exclusive) {
		return left
	}
	whole, fraction, _ := strings.Cut(terms.Str("tax_rate"), ".")
	rate, err := strconv.ParseInt(whole+(fraction + "0000")[:4], 10, 64) // in ten-thousandths of a percent
	if err != nil {
		panic(err)
	}
	return left + (2*left*rate+1_000_000)/2_000_000 // half up
}

// discounted is owed without its tax.
func discounted(sub store.Item, period int64) int64 {
	terms, unit := sub.Get(schema.PriceTerms).Map(), sub.Str(schema.PaymentAmount)
	if u := sub.Get(schema.Upgrade).Map(); u != nil && !u.Has(schema.Reason) && u.Int(schema.Period) == period {
		unit = u.Str(schema.Amount)
	}
	sum := minorOf(unit) * max(1, terms.Int("quantity"))
	discount, from, periods := terms.Str("discount"), terms.Int("discount_from"), terms.Int("discount_periods")
	if discount == "" || period < from || periods > 0 && period >= from+periods {
		return sum
	}
	percent, is := strings.CutSuffix(discount, "%")
	if !is {
		return sum - minorOf(discount)
	}
	n, err := strconv.ParseInt(percent, 10, 64)
	if err != nil {
		panic(err)
	}
	return sum - (2*sum*n+100)/200 // half up
}

// seePrice: a period is opened at what its terms say, and keeps that. A new discount begins with the next period
// that is not open.
func (s *spy) seePrice(name string, was, is store.Item) {
	before, open := was.Get(schema.OpenPeriod).Map(), is.Get(schema.OpenPeriod).Map()
	n := is.Int(schema.Period)
	if before == nil && open != nil && open.Int(schema.Period) == n && !s.w.foreign {
		if want := owed(is, n); minorOf(open.Str(schema.Amount)) != want {
			s.w.violate("%s: period %d was opened at %s, and its terms say %d", name, n, open.Str(schema.Amount), want)
		}
		if open.Get(schema.Price).Map().Has("discount") {
			s.w.happened(moveDiscounted)
		}
		if open.Get(schema.Price).Map().Has("quantity") {
			s.w.happened(moveUnits)
		}
	}
	if before != nil && open != nil && before.Int(schema.Period) == open.Int(schema.Period) &&
		(before.Str(schema.Amount) != open.Str(schema.Amount) || !before.Get(schema.Price).Equal(open.Get(schema.Price))) {
		s.w.violate("%s: the price of period %d was changed while it was open", name, open.Int(schema.Period))
	}
	const from = "discount_from"
	now, old := is.Get(schema.PriceTerms).Map(), was.Get(schema.PriceTerms).Map()
	if open != nil && open.Int(schema.Period) == n {
		n++
	}
	if changed := now.Str("discount") != old.Str("discount") || now.Int(from) != old.Int(from); changed && now.Has("discount") && now.Int(from) != n {
		s.w.violate("%s: a discount begins with period %d, and the next that is not open is %d", name, now.Int(from), n)
	}
}

// terms are those of a new subscription.
func (s *simulation) terms(i int) (t price.Terms) {
	rng := rand.New(rand.NewPCG(s.seed, uint64(100+i)))
	t.Quantity = pick(rng, 0, 0, 2, 3)
	if rng.IntN(4) == 0 {
		t.Discount = *discount(rng)
	}
	t.Tax = s.tax(rng)
	return t
}

func discount(rng *rand.Rand) *price.Discount {
	d := &price.Discount{Periods: rng.IntN(4)}
	if rng.IntN(2) == 0 {
		d.Percent = price.Percent(1+rng.IntN(99)) * 10_000
	} else {
		d.Amount = usd(1 + rng.Int64N(99))
	}
	return d
}

// changePrice changes the tax, or quantity, discount or both.
func (s *simulation) changePrice(p *process, n billing.Name, rng *rand.Rand) error {
	if s.taxed() && rng.IntN(3) == 0 {
		return s.changeTax(p, n, rng)
	}
	var c billing.Change
	if rng.IntN(2) == 0 {
		c.Quantity = new(1 + rng.IntN(3))
	}
	if c.Quantity == nil || rng.IntN(2) == 0 {
		if c.Discount = discount(rng); rng.IntN(4) == 0 {
			c.Discount = new(price.Discount)
		}
	}
	if c.Quantity != nil && rng.IntN(3) == 0 {
		c.From = s.w.today().AddDays(rng.IntN(60))
	}
	_, err := p.UpdateSubscription(context.Background(), n, c)
	if err == nil {
		s.did["quantity or discount"]++
	}
	return err
}

// tooMuch reports whether a discount leaves nothing of a new amount.
func tooMuch(err error) bool {
	wrong, is := errors.AsType[*billing.FieldError](err)
	return is && wrong.Field == "discount"
}

// counted has a discount of two periods given while a period is open and declined.
func counted(p planted) []string {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", p)
	n := w.create(one("2024-01-31", method(declined)))
	w.start().run(civil.Date{})
	for _, c := range []billing.Change{{Quantity: new(3), Discount: &price.Discount{Percent: 100_000, Periods: 2}}, {Method: new("pm_card_visa")}} {
		if _, err := w.start().UpdateSubscription(ctx, n, c); err != nil {
			w.violate("%v", err)
		}
	}
	for i, minor := range []int64{1299, 3507, 3507, 3897} {
		w.amounts[fmt.Sprintf("ACC#a1/s1/%d", i)] = usd(minor)
	}
	for range 95 {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	if s := w.sub(n); s.Period != 4 {
		w.violate("%s", w.describe(n))
	}
	return w.audit()
}

func TestTerms_Counted(t *testing.T) {
	for _, v := range counted(planted{}) {
		t.Error(v)
	}
}

// discountsEarly counts a discount from the period before its first one.
func discountsEarly(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		if terms := w.Item.Get(schema.PriceTerms).Map(); w.Op == store.OpPut && isSub(w.Item) && terms.Int("discount_from") == 1 {
			terms = terms.Clone()
			terms.Remove("discount_from")
			w.Item.Set(schema.PriceTerms, store.M(terms))
		}
		return w
	}}
}

// quantityAtOnce applies a quantity to the open period.
func quantityAtOnce(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		open, quantity := w.Item.Get(schema.OpenPeriod).Map(), w.Item.Get(schema.PriceTerms).Map().Int("quantity")
		if w.Op == store.OpPut && isSub(w.Item) && quantity > 1 && open != nil && !open.Has(schema.Price) {
			open = open.Clone()
			open.Set(schema.Amount, store.S(usd(minorOf(open.Str(schema.Amount))*quantity).Decimal()))
			w.Item.Set(schema.OpenPeriod, store.M(open))
		}
		return w
	}}
}

// TestAudit_Prices: the audit finds a receipt whose amount is not what its price says, a discount on a period
// that is not one of its own, and a price that is not the charge's, or is gone.
func TestAudit_Prices(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		n.Terms = price.Terms{Quantity: 2, Discount: price.Discount{Percent: 100_000, Periods: 1}}
	}))
	w.start().run(civil.Date{})
	ctx := t.Context()
	var receipt store.Item
	for it, err := range w.spy.Query(ctx, store.Query{Table: w.tables.RecurringPayments.Name, Partition: billing.AccountPK(n.Account), Prefix: billing.RecPrefix}) {
		mustNot(t, err)
		receipt = it
	}
	kinds := func() (kinds []string) {
		r, err := w.start().Verify(ctx)
		mustNot(t, err)
		for _, p := range r.Problems {
			kinds = append(kinds, p.Kind)
		}
		return kinds
	}
	if got := kinds(); len(got) > 0 || receipt.Str(schema.ProcessedAmount) != "23.38" {
		t.Fatalf("%v, receipt %v", got, receipt)
	}
	w.foreign = true
	for name, change := range map[string]func(*store.Item){
		"other discount": func(it *store.Item) { it.Set("discount_amount", store.S("2.61")) },
		"other period":   func(it *store.Item) { it.Set("discount_from", store.Int(1)) },
		"other quantity": func(it *store.Item) { it.Set("quantity", store.Int(3)) },
		"not readable":   func(it *store.Item) { it.Set("discount", store.S("some")) },
		"other tax":      func(it *store.Item) { it.Set("tax", store.S("inclusive")); it.Set("tax_rate", store.S("0")) },
		"gone":           func(it *store.Item) { *it = nil },
	} {
		x, changed := receipt.Get(schema.Price).Map().Clone(), receipt.Clone()
		change(&x)
		if changed.Set(schema.Price, store.M(x)); x == nil {
			changed.Remove(schema.Price)
		}
		mustNot(t, w.spy.mem.Commit(ctx, store.Put(w.tables.RecurringPayments.Name, changed)))
		if got := kinds(); !slices.ContainsFunc(got, func(kind string) bool { return kind == "price differs" || strings.HasPrefix(kind, "unreadable") }) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
