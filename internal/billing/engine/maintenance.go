package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/store"
)

// What a payment run does beside charging: before it, cards that customers have given by
// links are taken over; after it, what went back to customers is recorded, and payment
// intents that were opened and never bound are cancelled. None of it decides whether anybody
// is charged, so what cannot be done is reported and left for the next run.

const (
	// orphanAge is how old an unbound intent is when it is cancelled: by then nobody is
	// between OPEN and BIND any more, and who were would only open another.
	orphanAge = 48 * time.Hour
	// returnAge is how far back refunds and disputes are listed: a dispute is decided within
	// about three months.
	returnAge = 120 * 24 * time.Hour
)

func (j *job) before(ctx context.Context) (err error) {
	if _, ok := j.e.proc.(billing.Wallet); !ok {
		return nil
	}
	if j.previous, err = j.e.LastRunEnded(ctx); err != nil {
		return err
	}
	if j.previous.IsZero() {
		j.previous = j.e.Opened.Created
	}
	j.report.Cards, err = j.e.CollectCards(ctx, j.previous.Add(-gateMargin))
	if errors.Is(err, billing.ErrRefused) { // who may not ask this may not charge either
		return &StopError{err}
	}
	return j.missed(ctx, "taking over cards that customers have given", err)
}

func (j *job) after(ctx context.Context) (err error) {
	if _, ok := j.e.proc.(billing.Refunder); ok {
		j.report.Reversals, err = j.e.Refunds().Collect(ctx, j.e.Now().Add(-returnAge))
		if err = j.missed(ctx, "recording refunds and disputes", err); err != nil {
			return err
		}
	}
	if _, ok := j.e.proc.(billing.Wallet); !ok { // without customers there are no people who look at intents
		return nil
	}
	j.report.Orphans, err = j.e.cancelOrphans(ctx, j.previous)
	return j.missed(ctx, "cancelling payment intents that nothing was bound to", err)
}

// missed notes what could not be done: a key without the permission for it among the reasons.
func (j *job) missed(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, store.ErrClosed):
		return err
	}
	j.report.Missed = append(j.report.Missed, fmt.Errorf("%s: %w", what, err))
	return nil
}

// sweep cancels the intents of this installation that were opened more than orphanAge ago,
// never tried, and are bound to nothing: a worker died between OPEN and BIND. They move no
// money, but people see them at the processor. Those that were that old when the run before
// ended have been looked at by it, or by those of the week before it.
func (e *Engine) cancelOrphans(ctx context.Context, previous time.Time) (canceled int, err error) {
	places, err := e.Places(ctx)
	if err != nil {
		return 0, err
	}
	const week = 7 * 24 * time.Hour
	counts, errs := make([]int, len(places)), make([]error, len(places))
	billing.AskEach(places, func(i int, at string) error {
		counts[i], errs[i] = e.cancelOrphansAt(ctx, billing.ListRequest{At: at, Since: previous.Add(-orphanAge - week), Until: e.Now().Add(-orphanAge)})
		return errs[i]
	})
	for i, at := range places {
		canceled += counts[i]
		if at != "" && errors.Is(errs[i], billing.ErrAccountRefused) {
			errs[i] = nil // the gate has told
		}
	}
	return canceled, errors.Join(errs...)
}

func (e *Engine) cancelOrphansAt(ctx context.Context, r billing.ListRequest) (canceled int, err error) {
	for in, err := range e.proc.List(ctx, r) {
		if err != nil {
			return canceled, fmt.Errorf("listing the processor's payment intents: %w", err)
		}
		if in.Tag.Installation != e.Opened.Installation || in.State != billing.Opened || in.Opened.IsZero() || in.Opened.After(e.Now().Add(-orphanAge)) {
			continue
		}
		bound, err := e.bound(ctx, in)
		if err != nil {
			return canceled, err
		}
		if bound {
			continue
		}
		if _, err := e.proc.Cancel(ctx, in.Ref); err != nil {
			return canceled, fmt.Errorf("cancelling payment intent %s: %w", in.Ref, err)
		}
		canceled++
	}
	return canceled, nil
}

// bound reports whether a period is open with the intent.
func (e *Engine) bound(ctx context.Context, in billing.Intent) (bool, error) {
	s, err := e.Load(ctx, billing.Name{Account: in.Tag.Account, ID: in.Tag.Subscription, SKU: in.Tag.SKU})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if _, bad := errors.AsType[*billing.IllegibleError](err); bad {
		return true, nil // for all that is known
	}
	if err != nil {
		return false, err
	}
	return s.Open != nil && s.Open.Ref == in.Ref, nil
}
