package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A TaxOf is what the sums of taxes are added up by.
type TaxOf struct {
	Month    civil.Date // its first day: of the receipt's payment, or of the refund
	Rated    bool       // the receipts have a rate, perhaps of 0. Otherwise Country, Rate and Note are zero
	Country  string
	Rate     price.Percent
	Note     string
	Currency money.Currency
}

func (of *TaxOf) rank() int {
	if of.Rated {
		return 0
	}
	return 1
}

// A Tax is the sum of one month's receipts, and of its refunds and lost disputes. The net amounts and taxes are zero
// if there is no rate. Of the receipts that are kept and can be read, all Gross of a month and currency together are
// what the store received in it, and all Refunded what went back.
type Tax struct {
	TaxOf
	Receipts, Refunds                  int
	Net, Tax, Gross                    money.Amount
	RefundedNet, RefundedTax, Refunded money.Amount // what went back of receipts of any month
}

// taxes adds up taxes while a report is made.
type taxes struct {
	sums      map[TaxOf]*Tax
	reversed  map[store.Key][]*billing.ReversalRecord // by account and charge
	illegible int                                     // receipts and reversals that are left out
	wrong     error                                   // a sum is too large; of no concern in a store without tax
}

// addTaxed adds a receipt, or notes a refund. An illegible one is left out, as it is from each list, and counted.
func (m *maker) addTaxed(it store.Item) {
	switch {
	case billing.IsReversal(it):
		r, err := billing.DecodeReversal(it)
		if err != nil {
			m.taxes.illegible++
		} else if r.State == processor.ReversalSucceeded {
			of := store.Key{PK: r.Account, SK: r.Charge}
			m.taxes.reversed[of] = append(m.taxes.reversed[of], r)
		}
	case strings.HasPrefix(it.Str(schema.SK), billing.RecPrefix):
		if r, err := billing.DecodeReceipt(it); err != nil {
			m.taxes.illegible++
		} else {
			x, p := m.taxOf(r.Price, r.Processed, r.Amount.Currency()), cmp.Or(r.Price, &price.Price{})
			x.Receipts++
			m.taxes.add(x, []*money.Amount{&x.Gross, &x.Net, &x.Tax}, r.Amount, p.Net, p.Tax)
		}
	}
}

// taxOf returns the sums to which a receipt of the price, or a refund of it, belongs at the time.
func (m *maker) taxOf(p *price.Price, at time.Time, c money.Currency) *Tax {
	of, zero := TaxOf{Month: monthOf(civil.Today(at, m.zone)), Currency: c}, money.New(0, c)
	if p != nil && p.Terms.Tax.Mode != price.Untaxed {
		t := p.Terms.Tax
		of.Rated, of.Country, of.Rate, of.Note = true, t.Country, t.Rate, t.Note
	}
	m.taxes.sums[of] = cmp.Or(m.taxes.sums[of], &Tax{of, 0, 0, zero, zero, zero, zero, zero, zero})
	return m.taxes.sums[of]
}

// add adds the amounts, of which the first one is the total. Without a rate, it adds only that.
func (t *taxes) add(x *Tax, to []*money.Amount, amounts ...money.Amount) {
	if !x.Rated {
		amounts = amounts[:1]
	}
	for i, a := range amounts {
		sum, err := to[i].Add(a)
		if err != nil {
			t.wrong = cmp.Or(t.wrong, fmt.Errorf("the taxes of %s: %w", x.Month.String()[:len("2026-01")], err))
			return
		}
		*to[i] = sum
	}
}

// addReversed adds the refunds, with their shares of the receipts' taxes. In a store without tax it removes all sums.
func (m *maker) addReversed(ctx context.Context) error {
	taxed := m.q.Settings.Tax == settings.On
	for of := range m.taxes.sums {
		taxed = taxed || of.Rated
	}
	if !taxed {
		m.taxes.sums = nil
		return nil
	}
	for _, list := range m.taxes.reversed {
		all, err := m.ReceiptsOf(ctx, list[0].Name, list[0].Period)
		if errors.As(err, new(*billing.IllegibleError)) {
			m.taxes.illegible += len(list)
			continue
		}
		if err != nil {
			return err
		}
		var paid *price.Price // none of a receipt that has expired: one with a rate is kept
		if at := slices.IndexFunc(all, func(r *billing.Receipt) bool { return r.Charge == list[0].Charge }); at >= 0 {
			paid = all[at].Price
		}
		m.addRefunds(paid, list)
	}
	m.TaxesLeft = m.taxes.illegible
	return m.taxes.wrong
}

// addRefunds adds all refunds of one receipt, which has the price.
func (m *maker) addRefunds(p *price.Price, list []*billing.ReversalRecord) {
	slices.SortFunc(list, func(a, b *billing.ReversalRecord) int {
		return cmp.Or(a.Processed.Compare(b.Processed), cmp.Compare(a.ReversalID, b.ReversalID))
	})
	c := list[0].Amount.Currency()
	before, share, net := money.New(0, c), money.New(0, c), money.New(0, c)
	for _, r := range list {
		x := m.taxOf(p, r.Processed, c)
		if x.Rated {
			share = tax.Share(p, before, r.Amount)
			net = money.New(r.Amount.Minor()-share.Minor(), c)
		}
		x.Refunds++
		m.taxes.add(x, []*money.Amount{&x.Refunded, &x.RefundedNet, &x.RefundedTax}, r.Amount, net, share)
		sum, err := before.Add(r.Amount)
		if err != nil {
			m.taxes.wrong = cmp.Or(m.taxes.wrong, err)
			return
		}
		before = sum
	}
}

// list returns the sums of the months from first to before end, by month, country, rate, note and currency. Those without
// a rate are the last of their month.
func (t *taxes) list(first, end civil.Date) (list []Tax) {
	for of, x := range t.sums {
		if !of.Month.Before(first) && of.Month.Before(end) {
			list = append(list, *x)
		}
	}
	slices.SortFunc(list, func(a, b Tax) int {
		return cmp.Or(a.Month.Compare(b.Month), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Country, b.Country), cmp.Compare(a.Rate, b.Rate),
			cmp.Compare(a.Note, b.Note), cmp.Compare(a.Currency.Code(), b.Currency.Code()))
	})
	return list
}
