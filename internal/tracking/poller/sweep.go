package poller

import (
	"context"
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
	sweepOverlap = 30 * day // before the last sweep: a payment may be completed weeks after it was made
	sweepErrors  = 10       // failed objects after which an account's sweep ends
)

// A SweepReport is the result of a sweep.
type SweepReport struct {
	Accounts int       `json:"accounts"` // whose objects were listed
	Skipped  int       `json:"skipped"`  // connected, and compared less than a week ago
	Objects  int       `json:"objects"`  // from Stripe
	Changed  int       `json:"changed"`  // of them, unlike the stored events
	Failed   int       `json:"failed"`   // accounts not compared as a whole
	Failures []Failure `json:"failures,omitempty"`
}

// Sweep compares the objects of connected accounts with the stored rows, and merges them. It takes
// the accounts not compared for a week, or all accounts if all is set. Stripe may fail to make an
// event, and keeps none for longer than 30 days. The failure of one account is in the report, and
// stops no other. Sweep returns an error only if it cannot read the registry, or if ctx ends.
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
	var mu sync.Mutex // guards the report
	report := SweepReport{Skipped: len(accounts) - len(due)}
	p.inParallel(ctx, due, func(ctx context.Context, a *tracking.ConnectedAccount) {
		objects, changed, err := p.sweep(ctx, a, now)
		mu.Lock()
		defer mu.Unlock()
		report.Accounts++
		report.Objects, report.Changed = report.Objects+objects, report.Changed+changed
		if err == nil {
			return
		}
		if report.Failed++; len(report.Failures) < maxFailures && ctx.Err() == nil {
			report.Failures = append(report.Failures, Failure{a.StripeAccount, secret.Short(err.Error())})
			p.o.Log.Warn("the objects of an account could not be compared", "stripe_account", a.StripeAccount, "error",
				secret.Short(err.Error()))
		}
	})
	return report, context.Cause(ctx)
}

// sweep compares the objects of one account, and saves the time if all could be applied. Else the
// next sweep lists the same time again.
func (p *Poller) sweep(ctx context.Context, a *tracking.ConnectedAccount, now time.Time) (objects, changed int,
	err error) {
	since := a.Polled.Swept.Add(-sweepOverlap)
	if a.Polled.Swept.IsZero() || a.Polled.Swept.After(now) { // never, or by a wrong clock
		since = now.Add(-stripeKeeps)
	}
	if objects, changed, err = p.compare(ctx, a, since); err != nil {
		return objects, changed, err
	}
	state := a.Polled
	state.Swept = now
	if err := p.o.Ledger.SavePoll(ctx, a.StripeAccount, state); err != nil {
		return objects, changed, fmt.Errorf("save that it was compared: %w", err)
	}
	return objects, changed, nil
}

// compare applies the objects of an account made at or after since.
func (p *Poller) compare(ctx context.Context, a *tracking.ConnectedAccount, since time.Time) (objects, changed int,
	err error) {
	at := atOf(a)
	var broken []error
	err = p.o.Lister.ListObjects(ctx, at, since, func(o tracking.Object) error {
		objects++
		merged, err := p.o.Ledger.Apply(ctx, at, o)
		if merged {
			changed++
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
