package engine

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// An Expected is what the runs of a day are expected to charge in a currency.
type Expected struct {
	Date   civil.Date
	Amount money.Amount
	Count  int // periods
}

// A Forecast is what the subscriptions, as they now are, say about money to come.
type Forecast struct {
	MRR         []money.Amount // monthly recurring revenue, by currency
	Expected    []Expected     // by date, then by currency
	Outstanding []Expected     // unpaid amounts, by the first day of the month in which they were due
	Unreadable  int            // subscriptions left out: another tool has made their items unreadable
}

// dated tells amounts apart.
type dated struct {
	date     civil.Date
	currency money.Currency
}

// A forecaster adds up all subscriptions.
type forecaster struct {
	*Engine
	days        int
	monthly     map[money.Currency]*big.Rat
	expected    map[dated]*Expected
	outstanding map[dated]*Expected
	unreadable  int
}

// Forecast reads all subscriptions, and decides about the days to come, today the first, as runs
// do. It calls progress with the number of items read. It scans.
func (e *Engine) Forecast(ctx context.Context, days int, progress func(int64)) (*Forecast, error) {
	f := forecaster{e, days, map[money.Currency]*big.Rat{}, map[dated]*Expected{}, map[dated]*Expected{}, 0}
	read := int64(0)
	for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table}) {
		if err != nil {
			return nil, err
		}
		read++
		progress(read)
		if _, is := billing.NameOf(billing.KeyOf(it)); !is {
			continue
		}
		s, err := billing.DecodeSubscription(it)
		if err != nil {
			f.unreadable++
		} else if err := f.add(ctx, s); err != nil {
			return nil, fmt.Errorf("subscription %s: %w", s.Name, err)
		}
	}
	r := &Forecast{Expected: listed(f.expected), Outstanding: listed(f.outstanding), Unreadable: f.unreadable}
	for currency, exact := range f.monthly {
		amount, err := rounded(exact, currency)
		if err != nil {
			return nil, err
		}
		r.MRR = append(r.MRR, amount)
	}
	slices.SortFunc(r.MRR, func(a, b money.Amount) int { return cmp.Compare(a.Currency().Code(), b.Currency().Code()) })
	return r, nil
}

// rounded returns the amount of so many minor units, rounded half up.
func rounded(exact *big.Rat, c money.Currency) (money.Amount, error) {
	minor := new(big.Int).Quo(new(big.Int).Add(new(big.Int).Lsh(exact.Num(), 1), exact.Denom()),
		new(big.Int).Lsh(exact.Denom(), 1))
	if !minor.IsInt64() {
		return money.Amount{}, money.ErrOverflow
	}
	return money.New(minor.Int64(), c), nil
}

func listed(of map[dated]*Expected) (list []Expected) {
	for _, x := range of {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(a, b Expected) int {
		return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.Amount.Currency().Code(), b.Amount.Currency().Code()))
	})
	return list
}

func note(to map[dated]*Expected, d civil.Date, amount money.Amount) (err error) {
	key := dated{d, amount.Currency()}
	x := to[key]
	if x == nil {
		x = &Expected{Date: d, Amount: money.New(0, amount.Currency())}
		to[key] = x
	}
	x.Count++
	x.Amount, err = x.Amount.Add(amount)
	return err
}

// perMonth is how many periods of the interval a month has: a year has 12 months and 52 weeks.
func perMonth(i civil.Interval) *big.Rat {
	switch n := int64(i.N); i.Unit {
	case civil.Week:
		return big.NewRat(52, 12*n)
	case civil.Year:
		return big.NewRat(1, 12*n)
	default:
		return big.NewRat(1, n)
	}
}

func (f *forecaster) add(ctx context.Context, s *billing.Subscription) error {
	today := s.Today(civil.Date{}, f.Now())
	if s.Status == billing.Active && !s.CancelAtEnd && s.Requested == billing.RequestNone && !s.PaidOff() && !s.InTrial() {
		c := s.Amount.Currency()
		if f.monthly[c] == nil {
			f.monthly[c] = new(big.Rat)
		}
		f.monthly[c].Add(f.monthly[c], new(big.Rat).Mul(big.NewRat(s.Amount.Minor(), 1), perMonth(s.Interval)))
	}
	if err := f.unpaid(ctx, s, today); err != nil {
		return err
	}
	return f.charges(ctx, s, today)
}

// unpaid notes the amounts of the periods that were due and may still be paid: open, due or parked
// ones, one to be collected, and the failed one of a past_due subscription.
func (f *forecaster) unpaid(ctx context.Context, s *billing.Subscription, today civil.Date) error {
	owed := func(due civil.Date, amount money.Amount) error {
		return note(f.outstanding, due.AddDays(1-due.Day()), amount)
	}
	next := s.Period
	if s.Open != nil {
		if err := owed(s.Open.Due, s.Open.Amount); err != nil {
			return err
		}
		next = max(next, s.Open.Period+1)
	}
	past := s.Collect - 1
	if s.Status == billing.PastDue && s.Open == nil && past < 0 {
		past = s.Period - 1
	}
	if past >= 0 {
		p, err := f.recordOf(ctx, s.Name, past)
		if err == nil && (p.Ending == billing.EndFailed || s.Collect > 0) {
			err = owed(p.Due, p.Amount)
		}
		if billing.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if s.Status != billing.Active && s.Status != billing.ParkedState || s.CancelAtEnd {
		return nil
	}
	for ; s.Installments == 0 || s.Paid+next-s.Period < s.Installments; next++ {
		due, err := s.Schedule().Due(next)
		if err != nil || due.After(today) {
			return nil
		}
		_, amount := s.PlanOn(due)
		if err := owed(due, amount); err != nil {
			return err
		}
	}
	return nil
}

// charges notes the charges of the days to come, if every one succeeds.
func (f *forecaster) charges(ctx context.Context, s *billing.Subscription, today civil.Date) error {
	last := today.AddDays(f.days - 1)
	method := ""
	for w, day := (work{}), today; ; {
		switch {
		case s.Open != nil:
			day = civil.Later(day, s.Open.Retry)
		case s.Collect == 0:
			due, err := s.Due()
			if err != nil {
				return nil // its last year is over
			}
			if later := civil.Later(due, today); later != day {
				w, day = work{}, later
			}
		}
		if day.After(last) {
			return nil
		}
		x, err := f.situation(s, &w, day, false)
		if err != nil {
			return err
		}
		a, past := next(x), s.AtHand() < s.Period
		if (a == doOpen || a == doReopen) && method == "" {
			if method, _, err = f.methodOf(ctx, s); err != nil || method == "" {
				return err
			}
		}
		switch a {
		case doOpen:
			s.TakeEffect()
			err = note(f.expected, day, s.Amount)
			w.paid++
		case doReopen:
			var p *billing.EndedPeriod
			if p, err = f.recordOf(ctx, s.Name, s.Collect-1); err == nil {
				err = note(f.expected, day, p.Amount)
			}
			s.Collect = 0
		case doLookUp:
			switch r := dryRunOpen(s); {
			case r.Outcome == OutcomeSkipped:
				err = note(f.expected, day, s.Open.Amount)
			case s.Ending() || s.Status == billing.ParkedState:
				return nil
			}
			s.Open = nil // the customer or the processor may take longer than to the next period
		default:
			return nil
		}
		if billing.IgnoreNotFound(err) != nil {
			return err
		}
		if s.Paid++; !past {
			s.Period++
		}
	}
}
