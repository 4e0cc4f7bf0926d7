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

// Maintenance is the work that a payment run does besides charging. The run applies card updates
// before it charges. After charging, it records reversals and cancels unbound payment intents.
// Maintenance does not decide about charges, so the run reports a failed task and leaves it to the
// next run.

// reversalAge is the maximum age of the reversals that a run lists. A processor also lists older
// disputes that may still change.
const reversalAge = 120 * 24 * time.Hour

// before applies card updates.
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
	if errors.Is(err, processor.ErrRefused) { // a key that the processor refuses cannot charge either
		return &charging.StopError{Err: err}
	}
	return j.missed(ctx, "using the cards that customers entered", err)
}

// after records reversals and cancels orphaned payment intents.
func (j *job) after(ctx context.Context) (err error) {
	if _, ok := j.e.Charging().Processor.(processor.Refunder); ok {
		j.report.Reversals, err = j.e.Refunds().Collect(ctx, j.e.Now().Add(-reversalAge))
		if err = j.missed(ctx, "recording refunds and disputes", err); err != nil {
			return err
		}
	}
	if _, ok := j.e.Charging().Processor.(processor.Wallet); !ok { // without customers, no one looks at intents
		return nil
	}
	j.report.Orphans, err = j.e.Charging().CancelOrphans(ctx, j.previous)
	return j.missed(ctx, "canceling payment intents that no period uses", err)
}

// missed adds a failed task to the report, for example when the key lacks a permission.
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
