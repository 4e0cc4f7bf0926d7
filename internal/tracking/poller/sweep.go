package poller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

const (
	sweepEvery   = 7 * day
	sweepOverlap = 30 * day // each sweep covers this again; a payment may complete weeks after its creation
	sweepErrors  = 10       // number of failed objects after which an account's sweep stops
	underWay     = 4 * day  // longest time until an event is applied or is a dead letter
)

// A SweepReport is the result of a sweep.
type SweepReport struct {
	Accounts int // accounts whose objects were listed
	Skipped  int // connected accounts that were compared less than a week ago
	Objects  int // objects that Stripe listed
	Changed  int // listed objects that differed from the stored rows
	Untold   int // changed objects without an event in the last four days
	Failed   int // accounts whose comparison did not complete
	Failures []Failure
}

// Sweep compares the Stripe objects of connected accounts with the stored rows, and merges the
// changes. It finds changes for which Stripe created no event, or whose event Stripe has deleted
// after 30 days. It covers the accounts that were not compared for a week, or all accounts if all
// is set. If one account fails, Sweep reports the failure and continues with the others. Sweep
// returns an error only if it cannot read the registry, or if ctx ends.
func (p *Poller) Sweep(ctx context.Context, all bool) (SweepReport, error) {
	accounts, err := p.connected(ctx)
	if err != nil {
		return SweepReport{}, err
	}
	now := p.o.Now()
	due := slices.DeleteFunc(slices.Clone(accounts), func(a *tracking.ConnectedAccount) bool {
		age := now.Sub(a.Polled.Swept)
		return !all && age >= 0 && age < sweepEvery
	})
	var mu sync.Mutex // guards report
	report := SweepReport{Skipped: len(accounts) - len(due)}
	p.inParallel(ctx, due, func(ctx context.Context, a *tracking.ConnectedAccount) {
		objects, changed, err := p.sweep(ctx, a, now)
		untold := p.untold(ctx, a, now, changed)
		mu.Lock()
		defer mu.Unlock()
		report.Accounts++
		report.Objects, report.Changed = report.Objects+objects, report.Changed+len(changed)
		report.Untold += untold
		if err == nil {
			return
		}
		if report.Failed++; len(report.Failures) < maxFailures && ctx.Err() == nil {
			report.Failures = append(report.Failures, Failure{a.StripeAccount, secret.Short(err.Error())})
			p.o.Log.Warn("the poller could not compare an account's objects", "stripe_account", a.StripeAccount, "error",
				secret.Short(err.Error()))
		}
	})
	return report, context.Cause(ctx)
}

// sweep compares the objects of one account, and saves the time if it could apply all of them.
func (p *Poller) sweep(ctx context.Context, a *tracking.ConnectedAccount, now time.Time) (objects int,
	changed []string, err error) {
	since := a.Polled.Swept.Add(-sweepOverlap)
	if a.Polled.Swept.IsZero() || a.Polled.Swept.After(now) { // never swept, or swept by a wrong clock
		since = now.Add(-stripeKeeps)
	}
	if objects, changed, err = p.compare(ctx, a, since); err != nil {
		return objects, changed, err
	}
	a.Polled.Swept = now
	if err := p.o.Ledger.SavePoll(ctx, a.StripeAccount, a.Polled); err != nil {
		return objects, changed, fmt.Errorf("save the time of the sweep: %w", err)
	}
	return objects, changed, nil
}

// compare applies the account's objects that Stripe lists since then. It returns the IDs of those
// that changed a row.
func (p *Poller) compare(ctx context.Context, a *tracking.ConnectedAccount, since time.Time) (objects int,
	changed []string, err error) {
	at := atOf(a)
	var broken []error
	err = p.o.Lister.ListObjects(ctx, at, since, func(o tracking.Object) error {
		objects++
		merged, err := p.o.Ledger.Apply(ctx, at, o)
		if merged {
			changed = append(changed, o.ID)
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("apply %s %s: %w", o.Kind, o.ID, err)
		if broken = append(broken, err); len(broken) < sweepErrors && ctx.Err() == nil {
			return nil
		}
		return err
	})
	switch {
	case len(broken) > 0:
		return objects, changed, errors.Join(broken...)
	case err != nil:
		return objects, changed, fmt.Errorf("list the objects: %w", err)
	}
	return objects, changed, nil
}

// untold counts the changed objects that no event mentions. Stripe still lists an event that has
// not arrived or that waits in the inbox. If Stripe's list cannot be read, untold returns zero
// because nothing is known. If only a thin event mentions an object, the following rounds list the
// account's thin events.
func (p *Poller) untold(ctx context.Context, a *tracking.ConnectedAccount, now time.Time, changed []string) int {
	if len(changed) == 0 {
		return 0
	}
	left, thin := map[string]bool{}, false
	for _, id := range changed {
		left[id] = true
	}
	told := func(e RawEvent) error {
		var about struct {
			Data struct {
				Object struct{ ID string } `json:"object"`
			} `json:"data"`
			Related struct{ ID string } `json:"related_object"`
		}
		_ = json.Unmarshal(e.Body, &about) // an unreadable event mentions no object
		thin = thin || left[about.Related.ID]
		delete(left, about.Data.Object.ID)
		delete(left, about.Related.ID)
		return nil
	}
	_, err := p.o.Lister.ListEvents(ctx, atOf(a), now.Add(-underWay), told)
	if err == nil && len(left) > 0 {
		err = p.o.Lister.ListThin(ctx, atOf(a), now.Add(-underWay), told)
	}
	if thin && !a.Polled.Thin {
		a.Polled.Thin, a.Polled.Checked = true, time.Time{}
		_ = p.o.Ledger.SavePoll(ctx, a.StripeAccount, a.Polled) // if this fails, the next sweep notes it
	}
	if err != nil && !errors.Is(err, ErrNoThin) {
		return 0
	}
	return len(left)
}
