package billing

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A DailyRun is a completed run of a job for the day on which it began.
type DailyRun struct {
	Begun time.Time
	Told  time.Time // when a monitor was told of the finished day; zero: not
	key   store.Key
}

// clockSlack is how far apart the clocks of two processes on one store may stand.
const clockSlack = 5 * time.Minute

// LastDailyRun returns the daily run that began last; zero if there is none. A run for an earlier
// business day is not a daily one. Nor is one that a clock ahead of this one recorded: until that
// instant it would stop the job.
func (e *Records) LastDailyRun(ctx context.Context, kind Kind) (DailyRun, error) {
	for _, limit := range [...]int{16, 0} { // all runs of a store may be a megabyte
		for it, err := range e.LatestRuns(ctx, kind, limit) {
			if err != nil {
				return DailyRun{}, err
			}
			begun := ParseStamp(it.Str(schema.StartedDate))
			day, err := civil.Parse(it.Str(schema.RunDate))
			if err == nil && it.Get(schema.Completed).Bool() && !day.Before(civil.Of(begun)) &&
				!begun.After(e.Now().Add(clockSlack)) {
				return DailyRun{begun, ParseStamp(it.Str(schema.HeartbeatDate)), KeyOf(it)}, nil
			}
		}
	}
	return DailyRun{}, nil
}

// NoteHeartbeat notes that a monitor was told of the day that the run finished. The note is durable
// when NoteHeartbeat returns nil.
func (e *Records) NoteHeartbeat(ctx context.Context, r DailyRun) error {
	set := store.NewItem(store.Attribute{Name: schema.HeartbeatDate, Value: store.S(Stamp(e.Now()))})
	return e.Store.Commit(ctx, store.Update(e.Table, r.key, set, nil))
}
