package job

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/store"
)

// A State is how a recorded run stands.
type State string

// The states of runs.
const (
	Running   State = "running"
	Completed State = "completed"  // every row was dealt with, or waits for somebody
	Ended     State = "ended"      // it has ended, and left rows for the next run
	BrokenOff State = "broken off" // its process is gone, or has not written for silentRun
)

const (
	followEvery = 500 * time.Millisecond
	// silentRun is when a silent run counts as broken off if nobody knows which runs are under way.
	silentRun = 30 * time.Second
)

// Find returns the run of the id (kind "": of either), or ErrNotFound: a new one has no record.
func Find(ctx context.Context, e *engine.Engine, kind billing.Kind, id string) (*Report, error) {
	for _, k := range kinds(kind) {
		busy, known, err := worker.Busy(ctx, e.Sharing.Claims, k) // first: a run records its end, and then gives its claim back
		if err != nil {
			return nil, err
		}
		r, err := e.Run(ctx, k, id)
		switch {
		case err == nil:
			return reportOf(e, r, busy, known), nil
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		case busy != nil && busy.ID == id:
			now := e.Now()
			r = &billing.Run{Kind: k, ID: id, Date: busy.Date(), Process: busy.Process, Started: now, Seen: now}
			return reportOf(e, r, busy, known), nil
		}
	}
	return nil, store.ErrNotFound
}

// Latest returns that many runs at most, the latest begun first: those of the latest business
// days, and those under way. An empty kind is both.
func Latest(ctx context.Context, e *engine.Engine, kind billing.Kind, limit int) ([]*Report, error) {
	var all []*Report
	for _, k := range kinds(kind) {
		busy, known, err := worker.Busy(ctx, e.Sharing.Claims, k)
		if err != nil {
			return nil, err
		}
		for r, err := range e.Runs(ctx, k, limit) {
			if err != nil {
				return nil, err
			}
			all = append(all, reportOf(e, r, busy, known))
		}
		if busy != nil && !slices.ContainsFunc(all, func(r *Report) bool { return r.ID == busy.ID }) {
			if r, err := Find(ctx, e, k, busy.ID); err == nil { // else it has ended meanwhile
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Report) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(limit, len(all))], nil
}

func kinds(kind billing.Kind) []billing.Kind {
	if kind == "" {
		return []billing.Kind{billing.Payments, billing.Reminders}
	}
	return []billing.Kind{kind}
}

// reportOf returns the report of a recorded run, with its state.
func reportOf(e *engine.Engine, r *billing.Run, busy *worker.BusyError, known bool) *Report {
	report := &Report{Run: *r, State: BrokenOff, Elapsed: cmp.Or(r.Ended, r.Seen).Sub(r.Started)}
	switch {
	case busy != nil && busy.ID == r.ID: // it may be ended, with its maintenance under way
		report.State = Running
	case r.Completed, !r.Ended.IsZero() && report.Err() == nil: // one by a date ahead decides nothing for later runs
		report.State = Completed
	case !r.Ended.IsZero():
		report.State = Ended
	case !known && e.Now().Sub(r.Seen) < silentRun:
		report.State = Running
	}
	return report
}

// Follow calls each with the run now and then until it is no longer running, and returns it then.
// It returns store.ErrNotFound if the run has ended without a record.
func Follow(ctx context.Context, e *engine.Engine, kind billing.Kind, id string, each func(*Report)) (*Report, error) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		r, err := Find(ctx, e, kind, id)
		if err != nil || r.State != Running {
			return r, err
		}
		each(r)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
