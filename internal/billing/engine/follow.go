package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/store"
)

// A RunState is how a recorded run stands.
type RunState string

// The states of runs.
const (
	RunRunning   RunState = "running"
	RunCompleted RunState = "completed"  // every row was dealt with, or waits for somebody
	RunEnded     RunState = "ended"      // it has ended, and left rows for the next run
	RunBrokenOff RunState = "broken off" // its process is gone, or has not written for silentRun
)

const (
	followEvery = 500 * time.Millisecond
	// silentRun is the time without a word after which a run counts as broken off where nobody
	// knows which runs are under way.
	silentRun = 30 * time.Second
)

// A RunStatus is the record of a run with its state.
type RunStatus struct {
	billing.Run
	State RunState
}

// FindRun returns the run with that id, or store.ErrNotFound. An empty kind is either.
func (e *Engine) FindRun(ctx context.Context, kind billing.Kind, id string) (*RunStatus, error) {
	for _, k := range kinds(kind) {
		busy, known, err := e.Busy(ctx, k) // first: a run records its end, and then gives its claim back
		if err != nil {
			return nil, err
		}
		r, err := e.Run(ctx, k, id)
		if err == nil {
			return &RunStatus{*r, e.stateOf(r, busy, known)}, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return nil, store.ErrNotFound
}

// LatestRunsOf returns that many runs at most, the latest begun first, of the latest business days.
// An empty kind is both.
func (e *Engine) LatestRunsOf(ctx context.Context, kind billing.Kind, limit int) ([]RunStatus, error) {
	var all []RunStatus
	for _, k := range kinds(kind) {
		busy, known, err := e.Busy(ctx, k)
		if err != nil {
			return nil, err
		}
		for r, err := range e.Runs(ctx, k, limit) {
			if err != nil {
				return nil, err
			}
			all = append(all, RunStatus{*r, e.stateOf(r, busy, known)})
		}
	}
	slices.SortFunc(all, func(a, b RunStatus) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID)) })
	return all[:min(limit, len(all))], nil
}

func kinds(kind billing.Kind) []billing.Kind {
	if kind == "" {
		return []billing.Kind{billing.Payments, billing.Reminders}
	}
	return []billing.Kind{kind}
}

func (e *Engine) stateOf(r *billing.Run, busy *BusyError, known bool) RunState {
	switch {
	case busy != nil && busy.ID == r.ID: // it may be ended, with its maintenance under way
		return RunRunning
	case r.Completed:
		return RunCompleted
	case !r.Ended.IsZero():
		return RunEnded
	case !known && e.Now().Sub(r.Seen) < silentRun:
		return RunRunning
	}
	return RunBrokenOff
}

// Follow calls each with the run now and then until it is no longer running, and returns it then.
// It returns store.ErrNotFound if the run has ended without a record.
func (e *Engine) Follow(ctx context.Context, kind billing.Kind, id string, each func(*RunStatus)) (*RunStatus, error) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		busy, _, err := e.Busy(ctx, kind) // a run that has just begun has no record
		if err != nil {
			return nil, err
		}
		r, err := e.FindRun(ctx, kind, id)
		beginning := errors.Is(err, store.ErrNotFound) && busy != nil && busy.ID == id
		switch {
		case err != nil && !beginning:
			return nil, err
		case err == nil && r.State != RunRunning:
			return r, nil
		case err == nil:
			each(r)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
