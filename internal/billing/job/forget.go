package job

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// keepDays is the age at which records of runs and dead letters are deleted, and mostForgotten the
// number of records of a job deleted at a time.
const (
	keepDays      = 400
	mostForgotten = 100
)

// Forget deletes up to 100 records of each job, of runs that are too old to be kept. It returns
// the time before which they and dead letters are; zero: none are. Their age counts to the payment
// run before the last one, and not to now. A clock that nothing shows to be right deletes nothing.
func Forget(ctx context.Context, e *billing.Records) (before time.Time, err error) {
	if shown, _, err := e.ClockShown(ctx); err != nil || !shown {
		return before, err
	}
	n := 0
	for it, err := range e.LatestRuns(ctx, billing.Payments, 2) {
		if err != nil {
			return before, err
		}
		before = billing.ParseStamp(it.Str(schema.StartedDate))
		n++
	}
	if n < 2 || before.IsZero() || before.After(e.Now()) {
		return time.Time{}, nil
	}
	before = before.AddDate(0, 0, -keepDays)
	for _, kind := range [...]billing.Kind{billing.Payments, billing.Reminders, billing.Audits, billing.Adoptions} {
		var old []store.Key
		for it, err := range e.Store.Query(ctx, store.Query{Table: e.Table, Partition: billing.RunPK(kind),
			To: before.UTC().Format(time.DateOnly), Limit: mostForgotten}) {
			if err != nil {
				return before, err
			}
			if at := billing.ParseStamp(it.Str(schema.StartedDate)); !at.IsZero() && at.Before(before) {
				old = append(old, billing.KeyOf(it))
			}
		}
		for _, key := range old {
			if err := e.Store.Commit(ctx, store.Delete(e.Table, key)); err != nil && !store.Retryable(err) {
				return before, err
			}
		}
	}
	return before, nil
}
