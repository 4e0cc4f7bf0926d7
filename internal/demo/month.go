package demo

import (
	"strconv"

	"github.com/duesday/duesday/internal/billing/engine"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
)

// A Month counts the events of one month of a demo.
type Month struct {
	Name      string // such as 2026-03
	Joined    int    // new subscriptions
	Changes   int    // at people's request
	Reminders int
	Paid      int
	Outside   int // paid outside
	Retry     int // declined attempts with a retry to come
	Failed    int
	Pending   int // periods with at least one wait for the customer
	Parked    int
	Mails     int
	Amounts   money.Totals

	seen map[string]bool // pending and parked periods: every run meets them
}

// add counts the outcome of one period.
func (t *Month) add(r engine.Result) error {
	switch r.Outcome {
	case engine.OutcomePaid:
		t.Paid++
		return t.Amounts.Add(r.Amount)
	case engine.OutcomeRetry:
		t.Retry++
	case engine.OutcomeFailed:
		t.Failed++
	case engine.OutcomePending:
		t.Pending += t.once(r)
	case engine.OutcomeParked:
		t.Parked += t.once(r)
	}
	return nil
}

func (t *Month) once(r engine.Result) int {
	key := string(r.Outcome) + " " + r.Name.String() + " " + strconv.Itoa(r.Period)
	if t.seen[key] {
		return 0
	}
	t.seen[key] = true
	return 1
}

// change counts a person's request if it was carried out.
func (t *Month) change(_ *billing.Subscription, err error) error {
	if err == nil {
		t.Changes++
	}
	return err
}
