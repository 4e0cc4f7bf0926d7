package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Maintenance is the work of a payment run beside charging. Before it, card updates; after it,
// reversals are recorded and unbound payment intents are cancelled. It does not decide about
// charges, so a failure is reported and left for the next run.

// reversalAge is up to which age reversals are listed. A processor lists older disputes that
// may still change, too.
const reversalAge = 120 * 24 * time.Hour

// before does the card updates.
func (j *job) before(ctx context.Context) (err error) {
	if _, ok := j.e.Charging().Processor.(processor.Wallet); !ok {
		return nil
	}
	if j.previous, err = j.e.LastRunEnded(ctx); err != nil {
		return err
	}
	j.previous = cmp.Or(j.previous, j.e.Opened.Created)
	given, err := j.e.CollectCards(ctx, j.previous.Add(-charging.RollbackMargin))
	for _, g := range given {
		if j.report.Cards++; g.Subscription == "" {
			kept, failed := j.e.KeepOwn(ctx, g.Account)
			j.report.KeepOwn, err = append(j.report.KeepOwn, kept...), errors.Join(err, failed)
		}
	}
	if errors.Is(err, processor.ErrRefused) { // a refused key may not charge either
		return &charging.StopError{Err: err}
	}
	return j.missed(ctx, "using the cards that customers entered", err)
}

// after records reversals and cancels orphans.
func (j *job) after(ctx context.Context) (err error) {
	if _, ok := j.e.Charging().Processor.(processor.Refunder); ok {
		j.report.Reversals, err = j.e.Refunds().Collect(ctx, j.e.Now().Add(-reversalAge))
		if err = j.missed(ctx, "recording refunds and disputes", err); err != nil {
			return err
		}
	}
	if _, ok := j.e.Charging().Processor.(processor.Wallet); !ok { // people look at intents only where there are customers
		return nil
	}
	j.report.Orphans, err = j.e.Charging().CancelOrphans(ctx, j.previous)
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
