package engine_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// roundedOnce charges three units with a tax whose rounding shows how often it was done: 7.4043 is 7.40, and three
// times 2.4681 is 7.41.
func roundedOnce(p planted) []string {
	w := newWorld("2024-01-31T09:00", p)
	w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		n.Terms = price.Terms{Quantity: 3, Tax: price.Tax{Mode: price.Exclusive, Rate: 190_000}}
	}))
	w.amounts["ACC#a1/s1/0"] = usd(3897 + 740)
	w.start().run(civil.Date{})
	return w.audit()
}

func TestTax_RoundedOnce(t *testing.T) {
	for _, v := range roundedOnce(planted{}) {
		t.Error(v)
	}
}

// roundsEachUnit opens a period at units whose taxes are rounded one by one.
func roundsEachUnit(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		open, terms := w.Item.Get(schema.OpenPeriod).Map(), w.Item.Get(schema.PriceTerms).Map()
		if w.Op == store.OpPut && isSub(w.Item) && open != nil && terms.Has("tax") {
			unit := w.Item.Clone()
			one := terms.Clone()
			one.Remove("quantity")
			unit.Set(schema.PriceTerms, store.M(one))
			open = open.Clone()
			open.Set(schema.Amount, store.S(usd(owed(unit, 0)*max(1, terms.Int("quantity"))).Decimal()))
			w.Item.Set(schema.OpenPeriod, store.M(open))
		}
		return w
	}}
}

// rates are the taxes in a simulation: two rates, and a zero rate with its note.
func rates(rng *rand.Rand) tax.Change {
	return pick(rng, tax.Change{Rate: new("19"), Mode: price.Exclusive}, tax.Change{Rate: new("8.1"), Mode: price.Inclusive},
		tax.Change{Rate: new("0"), Mode: price.Exclusive, Note: new("reverse charge")})
}

// taxed reports whether the seed's store has tax=on, in which every fourth new subscription has no rate.
func (s *simulation) taxed() bool { return s.seed%2 == 0 }

// tax is that of a new subscription.
func (s *simulation) tax(rng *rand.Rand) (t price.Tax) {
	if s.taxed() && rng.IntN(4) > 0 {
		c := rates(rng)
		t, _ = c.Of(t)
	}
	return t
}

// changeTax sets a rate, or removes it, from the next period.
func (s *simulation) changeTax(p *process, n billing.Name, rng *rand.Rand) error {
	c := rates(rng)
	if rng.IntN(5) == 0 {
		c = tax.Change{Rate: new(tax.None)}
	}
	_, err := p.UpdateSubscription(context.Background(), n, billing.Change{Tax: &c})
	if err == nil {
		s.did["tax"]++
	}
	return err
}

// rate gives a rate to a subscription that is parked without one, so that the next run continues it. It reports
// whether the subscription is parked for that reason.
func (s *simulation) rate(p *process, sub *billing.Subscription) bool {
	if !s.taxed() || sub.Parked != billing.NoTaxRate {
		return false
	}
	s.did["parked without a rate"]++
	c := tax.Change{Rate: new("19"), Mode: price.Inclusive}
	if _, err := p.UpdateSubscription(context.Background(), sub.Name, billing.Change{Tax: &c}); err != nil {
		s.w.violate("rate for %s: %v", sub.Name, err)
	}
	return true
}

// taxes checks that each receipt's net amount and tax are its total, that no period was charged without a rate, and
// that the report has the receipts' sums, whose totals are those of its months.
func (s *simulation) taxes() {
	w, ctx := s.w, context.Background()
	want, got, rated := map[report.TaxOf][4]int64{}, map[report.TaxOf][4]int64{}, s.taxed()
	for _, a := range w.accounts() {
		for r, err := range w.start().GetReceiptsByAccount(ctx, a.ID) {
			if err != nil {
				w.violate("receipts of %s: %v", a.ID, err)
				continue
			}
			day := civil.Today(r.Processed, time.UTC)
			of, net, levied := report.TaxOf{Month: day.AddDays(1 - day.In(time.UTC).Day()), Currency: r.Amount.Currency()}, int64(0), int64(0)
			switch {
			case r.Price != nil && r.Price.Terms.Tax.Mode != price.Untaxed:
				x, t := r.Price, r.Price.Terms.Tax
				net, levied, rated = x.Net.Minor(), x.Tax.Minor(), true
				if net+levied != r.Amount.Minor() {
					w.violate("%s period %d: net %s and tax %s are not %s", r.Name, r.Period, x.Net, x.Tax, r.Amount)
				}
				of.Rated, of.Country, of.Rate, of.Note = true, t.Country, t.Rate, t.Note
				s.did["taxed receipts"]++
			case r.Kind == billing.Imported:
				continue
			case s.taxed() && r.Kind == billing.Charged:
				w.violate("%s period %d was charged without a rate", r.Name, r.Period)
			}
			sum := want[of]
			want[of] = [4]int64{sum[0] + 1, sum[1] + net, sum[2] + levied, sum[3] + r.Amount.Minor()}
		}
	}
	if !rated {
		clear(want)
	}
	rep, err := w.start().Report(ctx, report.Query{From: date("2023-11-01"), To: w.today(), Days: 30, Progress: func(int64) {}})
	if err != nil {
		w.violate("report: %v", err)
		return
	}
	type month struct {
		civil.Date
		money.Currency
	}
	differ := map[month][2]int64{} // the journal's payments and reversals, less those of the taxes
	if rated {
		for _, x := range rep.Months {
			differ[month{x.First, x.Outstanding.Currency()}] = [2]int64{x.Sums[report.Collected].Minor() + x.Sums[report.Outside].Minor(), x.Sums[report.Refunded].Minor()}
		}
	}
	for _, x := range rep.Taxes {
		of := month{x.Month, x.Currency}
		differ[of] = [2]int64{differ[of][0] - x.Gross.Minor(), differ[of][1] - x.Refunded.Minor()}
		if x.Receipts > 0 {
			got[x.TaxOf] = [4]int64{int64(x.Receipts), x.Net.Minor(), x.Tax.Minor(), x.Gross.Minor()}
		}
	}
	for of, by := range differ {
		if by != [2]int64{} {
			w.violate("the month's payments and reversals in %v differ from the taxes' by %v", of, by)
		}
	}
	if !maps.Equal(want, got) {
		w.violate("the report's taxes are %v, and the receipts' %v", got, want)
	}
}
