package report

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// Expect calls note with each charge that the runs of the given days, today the first, are expected to make. It
// may change s.
type Expect func(ctx context.Context, s *billing.Subscription, days int, note func(civil.Date, money.Amount) error) error

// A Forecast adds up what subscriptions are expected to pay, one subscription at a time.
type Forecast struct {
	Days          int
	Expect        Expect
	Subscriptions int // added so far
	Unreadable    int // subscriptions left out: another tool has made their items unreadable

	monthly  map[money.Currency]*big.Rat
	expected table
}

// Add adds the subscription, and may change it.
func (f *Forecast) Add(ctx context.Context, s *billing.Subscription) error {
	if f.expected == nil {
		f.monthly, f.expected = map[money.Currency]*big.Rat{}, table{}
	}
	f.Subscriptions++
	if s.Status == billing.Active && !s.CancelAtEnd && s.Requested == billing.RequestNone && !s.PaidOff() && !s.InTrial() {
		c, amount := s.Amount.Currency(), s.AmountOf(s.Period)
		if f.monthly[c] == nil {
			f.monthly[c] = new(big.Rat)
		}
		f.monthly[c].Add(f.monthly[c], new(big.Rat).Mul(big.NewRat(amount.Minor(), 1), s.Interval.PerMonth()))
	}
	if err := f.Expect(ctx, s, f.Days, f.expected.add); err != nil {
		return fmt.Errorf("subscription %s: %w", s.Name, err)
	}
	return nil
}

// MRR returns the monthly recurring revenue, by currency.
func (f *Forecast) MRR() (list []money.Amount, err error) {
	for currency, exact := range f.monthly {
		amount, err := money.Round(exact, currency)
		if err != nil {
			return nil, fmt.Errorf("the recurring revenue in %s: %w", currency.Code(), err)
		}
		list = append(list, amount)
	}
	slices.SortFunc(list, func(a, b money.Amount) int { return cmp.Compare(a.Currency().Code(), b.Currency().Code()) })
	return list, nil
}

// Expected returns the expected charges by date, then by currency.
func (f *Forecast) Expected() []Expected { return f.expected.list() }
