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
	Country  string
	Rate     price.Percent
	Note     string
	Currency money.Currency
}

// A Tax is the sum of one month's receipts with tax, and of its refunds and lost disputes.
type Tax struct {
	TaxOf
	Receipts, Refunds                  int
	Net, Tax, Gross                    money.Amount
	RefundedNet, RefundedTax, Refunded money.Amount // what went back of receipts of any month
}

// taxes adds up taxes while a report is made.
type taxes struct {
	sums     map[TaxOf]*Tax
	reversed map[store.Key][]*billing.ReversalRecord // by account and charge
}

// addTaxed adds a receipt that has tax, or notes a refund. An illegible one is left out, as it is from each list.
func (m *maker) addTaxed(it store.Item) error {
	switch {
	case billing.IsReversal(it):
		if r, err := billing.DecodeReversal(it); err == nil && r.State == processor.ReversalSucceeded {
			of := store.Key{PK: r.Account, SK: r.Charge}
			m.taxes.reversed[of] = append(m.taxes.reversed[of], r)
		}
	case it.Has(schema.Price) && strings.HasPrefix(it.Str(schema.SK), billing.RecPrefix):
		if r, err := billing.DecodeReceipt(it); err == nil && taxed(r) {
			x, p := m.taxOf(r, r.Processed), r.Price
			x.Receipts++
			return x.add([...]*money.Amount{&x.Net, &x.Tax, &x.Gross}, p.Net, p.Tax, p.Gross)
		}
	}
	return nil
}

// taxed reports whether the receipt has a tax rate, perhaps of zero.
func taxed(r *billing.Receipt) bool { return r.Price != nil && r.Price.Terms.Tax.Mode != price.Untaxed }

// taxOf returns the sums to which the receipt, or a refund of it at the time, belongs.
func (m *maker) taxOf(r *billing.Receipt, at time.Time) *Tax {
	t, zero := r.Price.Terms.Tax, money.New(0, r.Amount.Currency())
	of := TaxOf{monthOf(civil.Today(at, m.zone)), t.Country, t.Rate, t.Note, zero.Currency()}
	if m.taxes.sums[of] == nil {
		m.taxes.sums[of] = &Tax{of, 0, 0, zero, zero, zero, zero, zero, zero}
	}
	return m.taxes.sums[of]
}

func (x *Tax) add(to [3]*money.Amount, amounts ...money.Amount) (err error) {
	for i, a := range amounts {
		sum, wrong := to[i].Add(a)
		if err = cmp.Or(err, wrong); wrong == nil {
			*to[i] = sum
		}
	}
	if err != nil {
		return fmt.Errorf("the tax of %s in %s: %w", x.Country, x.Month.String()[:len("2026-01")], err)
	}
	return nil
}

// addReversed adds the refunds, with their shares of the receipts' taxes.
func (m *maker) addReversed(ctx context.Context) error {
	if len(m.taxes.sums) == 0 {
		return nil
	}
	for _, list := range m.taxes.reversed {
		all, err := m.ReceiptsOf(ctx, list[0].Name, list[0].Period)
		if err != nil && !errors.As(err, new(*billing.IllegibleError)) {
			return err
		}
		at := slices.IndexFunc(all, func(r *billing.Receipt) bool { return r.Charge == list[0].Charge && taxed(r) })
		if at < 0 {
			continue
		}
		slices.SortFunc(list, func(a, b *billing.ReversalRecord) int {
			return cmp.Or(a.Processed.Compare(b.Processed), cmp.Compare(a.ReversalID, b.ReversalID))
		})
		before := money.New(0, list[0].Amount.Currency())
		for _, r := range list {
			x, share := m.taxOf(all[at], r.Processed), tax.Share(all[at].Price, before, r.Amount)
			net := money.New(r.Amount.Minor()-share.Minor(), share.Currency())
			x.Refunds++
			if err := x.add([...]*money.Amount{&x.RefundedNet, &x.RefundedTax, &x.Refunded}, net, share, r.Amount); err != nil {
				return err
			}
			if before, err = before.Add(r.Amount); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the sums of the months from first to before end, by month, country, rate, note and currency.
func (t *taxes) list(first, end civil.Date) (list []Tax) {
	for of, x := range t.sums {
		if !of.Month.Before(first) && of.Month.Before(end) {
			list = append(list, *x)
		}
	}
	slices.SortFunc(list, func(a, b Tax) int {
		return cmp.Or(a.Month.Compare(b.Month), cmp.Compare(a.Country, b.Country), cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Note, b.Note),
			cmp.Compare(a.Currency.Code(), b.Currency.Code()))
	})
	return list
}
