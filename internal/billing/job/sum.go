package job

import (
	"errors"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/money"
)

// Sum returns the latest of the payment runs, the most recently started first, with the counts and amounts of all of
// them. Each run counts again what waits, so Sum takes that from one run: see latest. Sum returns an error for a sum
// that is more than an amount can hold.
func Sum(runs []*Report) (*Report, error) {
	sum, err := *runs[0], error(nil)
	sum.Counts, sum.Amounts, sum.Unpaid = map[engine.Outcome]int{}, money.Totals{}, map[engine.Outcome]money.Totals{}
	add := func(to *money.Totals, from money.Totals) {
		for a := range from.All() {
			err = errors.Join(err, to.Add(a))
		}
	}
	last := latest(runs)
	sum.Awaited = runs[last].Awaited
	for i, r := range runs {
		add(&sum.Amounts, r.Amounts)
		for o, n := range r.Counts {
			if i == last || !waits(o) {
				sum.Counts[o] += n
			}
		}
		for o, amounts := range r.Unpaid {
			if i == last || !waits(o) {
				unpaid := sum.Unpaid[o]
				add(&unpaid, amounts)
				sum.Unpaid[o] = unpaid
			}
		}
	}
	return &sum, err
}

// latest returns the index of the last completed run, or 0 if none has completed. Processes that share a store divide
// the work, so of the completed runs that overlap that one in time, latest returns the run that counted most of what waits.
func latest(runs []*Report) int {
	waiting := func(r *Report) (n int) {
		for o, count := range r.Counts {
			if waits(o) {
				n += count
			}
		}
		return n
	}
	first := slices.IndexFunc(runs, func(r *Report) bool { return r.State == Completed })
	last := max(0, first)
	for i, r := range runs {
		if first >= 0 && r.State == Completed && r.Ended.After(runs[first].Started) && waiting(r) > waiting(runs[last]) {
			last = i
		}
	}
	return last
}

// waits reports whether each run counts the outcome again.
func waits(o engine.Outcome) bool {
	return slices.Contains([]engine.Outcome{engine.OutcomePending, billing.AwaitsCustomer, engine.OutcomeParked, engine.OutcomeUnreadable}, o)
}
