package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Maintenance is the work of a payment run beside charging. Before it, card updates; after it,
// reversals are recorded and unbound payment intents are cancelled. It does not decide about
// charges, so a failure is reported and left for the next run.

const (
	// orphanAge is the age at which an unbound intent is cancelled: no worker is between OPEN and
	// BIND by then. Such a worker would only open another intent.
	orphanAge = 48 * time.Hour
	// reversalAge is up to which age reversals are listed. A processor lists older disputes that
	// may still change, too.
	reversalAge = 120 * 24 * time.Hour
)

// before does the card updates.
func (j *job) before(ctx context.Context) (err error) {
	if _, ok := j.e.proc.(processor.Wallet); !ok {
		return nil
	}
	if j.previous, err = j.e.LastRunEnded(ctx); err != nil {
		return err
	}
	j.previous = cmp.Or(j.previous, j.e.Opened.Created)
	given, err := j.e.CollectCards(ctx, j.previous.Add(-rollbackMargin))
	for _, g := range given {
		if j.report.Cards++; g.Subscription == "" {
			kept, failed := j.e.KeepOwn(ctx, g.Account)
			j.report.KeepOwn, err = append(j.report.KeepOwn, kept...), errors.Join(err, failed)
		}
	}
	if errors.Is(err, processor.ErrRefused) { // a refused key may not charge either
		return &StopError{err}
	}
	return j.missed(ctx, "using the cards that customers entered", err)
}

// after records reversals and cancels orphans.
func (j *job) after(ctx context.Context) (err error) {
	if _, ok := j.e.proc.(processor.Refunder); ok {
		j.report.Reversals, err = j.e.Refunds().Collect(ctx, j.e.Now().Add(-reversalAge))
		if err = j.missed(ctx, "recording refunds and disputes", err); err != nil {
			return err
		}
	}
	if _, ok := j.e.proc.(processor.Wallet); !ok { // people look at intents only where there are customers
		return nil
	}
	j.report.Orphans, err = j.e.cancelOrphans(ctx, j.previous)
	return j.missed(ctx, "canceling payment intents that no period uses", err)
}

// missed notes a failed task, for example of a key without the permission.
func (j *job) missed(ctx context.Context, task string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, store.ErrClosed):
		return err
	}
	j.report.Missed = append(j.report.Missed, fmt.Errorf("%s: %w", task, err))
	return nil
}

// cancelOrphans cancels this installation's intents opened more than orphanAge ago, never tried and
// not bound: a worker died between OPEN and BIND. They move no money, but people see them. It lists
// the intents that reached this age since a week before the previous run, which checked older ones.
func (e *Engine) cancelOrphans(ctx context.Context, previous time.Time) (canceled int, err error) {
	const week = 7 * 24 * time.Hour
	since, until := previous.Add(-orphanAge-week), e.Now().Add(-orphanAge)
	counts, err := billing.OfPlaces(ctx, e.Records, func(at string) (int, error) {
		return e.cancelOrphansAt(ctx, processor.ListRequest{At: at, Since: since, Until: until})
	})
	for _, n := range counts {
		canceled += n
	}
	return canceled, err
}

func (e *Engine) cancelOrphansAt(ctx context.Context, r processor.ListRequest) (canceled int, err error) {
	for in, err := range e.proc.List(ctx, r) {
		if err != nil {
			return canceled, fmt.Errorf("listing the processor's payment intents: %w", err)
		}
		if in.Tag.Installation != e.Opened.Installation || in.State != processor.Opened || in.Opened.IsZero() ||
			in.Opened.After(r.Until) {
			continue
		}
		bound, err := e.knows(ctx, in)
		if err != nil {
			return canceled, err
		}
		if bound {
			continue
		}
		if _, err := e.proc.Cancel(ctx, in.Ref); err != nil {
			return canceled, fmt.Errorf("canceling payment intent %s: %w", in.Ref, err)
		}
		canceled++
	}
	return canceled, nil
}
