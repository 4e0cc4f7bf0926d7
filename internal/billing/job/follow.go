package job

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// A State reports whether a recorded run is still running and, if not, how it ended.
type State string

// The states of a run.
const (
	Running   State = "running"
	Completed State = "completed"  // the run handled every row, or left it waiting for a person
	Ended     State = "ended"      // the run ended and left rows for the next run
	BrokenOff State = "broken off" // the process is gone, or has not written for silentRun
)

const (
	followEvery = 500 * time.Millisecond
	// silentRun is the time without a write after which a run counts as broken off, if the store
	// does not know which runs are active.
	silentRun = 30 * time.Second
)

// Find returns the run with the id, or store.ErrNotFound. An empty kind searches both kinds. Find
// also returns an active run that has not written its record yet.
func Find(ctx context.Context, e *engine.Engine, kind billing.Kind, id string) (*Report, error) {
	id = strings.Replace(id, "~", "#", 1) // Run.PathID
	for _, k := range kinds(kind) {
		busy, known, err := worker.Busy(ctx, e.Sharing.Claims, k) // read first, because a run ends its record before its claim
		if err != nil {
			return nil, err
		}
		r, err := e.Run(ctx, k, id)
		switch {
		case err == nil:
			report := reportOf(e, r, busy, known)
			if report.State == BrokenOff && busy == nil { // or it has begun since the claim was read
				if busy, known, err = worker.Busy(ctx, e.Sharing.Claims, k); err == nil && busy != nil {
					report = reportOf(e, r, busy, known)
				}
			}
			return report, err
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

// Latest returns at most limit runs, the most recently started first. The runs are those of the
// latest business days and the active runs. An empty kind returns both kinds.
func Latest(ctx context.Context, e *engine.Engine, kind billing.Kind, limit int) ([]*Report, error) {
	all, err := reports(ctx, e, kind, func(k billing.Kind) iter.Seq2[*billing.Run, error] { return e.Runs(ctx, k, limit) })
	return all[:min(limit, len(all))], err
}

// Since returns the kind's runs of the business day and later ones, the most recently started first.
func Since(ctx context.Context, e *engine.Engine, kind billing.Kind, day civil.Date) ([]*Report, error) {
	return reports(ctx, e, kind, func(k billing.Kind) iter.Seq2[*billing.Run, error] { return e.RunsSince(ctx, k, day) })
}

// reports returns the recorded runs of each kind, and the active ones, the most recently started first.
func reports(ctx context.Context, e *engine.Engine, kind billing.Kind, recorded func(billing.Kind) iter.Seq2[*billing.Run, error]) (all []*Report, err error) {
	for _, k := range kinds(kind) {
		busy, known, err := worker.Busy(ctx, e.Sharing.Claims, k)
		if err != nil {
			return nil, err
		}
		for r, err := range recorded(k) {
			if err != nil {
				return nil, err
			}
			report := reportOf(e, r, busy, known)
			if report.State == BrokenOff && e.Now().Sub(r.Seen) < silentRun { // or it has begun since the claim was read
				if report, err = Find(ctx, e, k, r.ID); err != nil {
					return nil, err
				}
			}
			all = append(all, report)
		}
		if busy != nil && !slices.ContainsFunc(all, func(r *Report) bool { return r.ID == busy.ID }) {
			if r, err := Find(ctx, e, k, busy.ID); err == nil { // otherwise the run has ended in the meantime
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Report) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

func kinds(kind billing.Kind) []billing.Kind {
	if kind == "" {
		return []billing.Kind{billing.Payments, billing.Reminders}
	}
	return []billing.Kind{kind}
}

// reportOf returns the report of a recorded run and sets its state.
func reportOf(e *engine.Engine, r *billing.Run, busy *worker.BusyError, known bool) *Report {
	report := &Report{Run: *r, State: BrokenOff, Elapsed: cmp.Or(r.Ended, r.Seen).Sub(r.Started)}
	switch {
	case busy != nil && busy.ID == r.ID: // the run may have recorded its end while its maintenance continues
		report.State = Running
	case r.Completed, !r.Ended.IsZero() && report.Err() == nil: // a run for a future date is never recorded as completed
		report.State = Completed
	case !r.Ended.IsZero():
		report.State = Ended
	case (!known || r.Process == "") && e.Now().Sub(r.Seen) < silentRun: // without a process, it has not begun
		report.State = Running
	}
	return report
}

// Follow calls each with the run every followEvery while the run is running, and returns the run
// when it has stopped. Follow returns store.ErrNotFound if the run ended without a record.
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
