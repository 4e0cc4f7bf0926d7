package poller

import (
	"context"
	"time"
)

// hurry is how much sooner than after an interval a round is tried again that failed as a
// whole: the service may be about to come up.
const hurry = 10

// Run does a round at once and then every Interval, and a sweep of the accounts that are due
// for one after the first round and then every MaxQuiet, until ctx ends; then it returns nil.
// A round or sweep that fails is logged, and tried again.
func (p *Poller) Run(ctx context.Context) error {
	sweeps := time.NewTimer(0)
	defer sweeps.Stop()
	for ctx.Err() == nil {
		rounds := time.NewTimer(p.o.Interval) // from the beginning of a round: a long one puts off no other
		if !p.turn(ctx) {
			rounds.Reset(p.o.Interval / hurry)
		}
		select {
		case <-sweeps.C:
			if p.sweepTurn(ctx) {
				sweeps.Reset(p.o.MaxQuiet)
			} else {
				sweeps.Reset(0) // with the next round
			}
		default:
		}
		select {
		case <-ctx.Done():
		case <-rounds.C:
		}
		rounds.Stop()
	}
	return nil
}

// turn is one round. It reports whether there was one.
func (p *Poller) turn(ctx context.Context) bool {
	r, err := p.Round(ctx, false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.o.Log.Error("the poller's round failed, and is tried again", "error", textOf(err))
	case r.Sent > 0 || r.Failed > 0:
		p.o.Log.Info("events that had not come were fetched", "accounts", r.Accounts, "listed", r.Listed, "missing", r.Missing, "sent", r.Sent,
			"failed", r.Failed, "verified_through", r.Through)
	default:
		p.o.Log.Debug("no event is missing", "accounts", r.Accounts, "skipped", r.Skipped, "listed", r.Listed, "verified_through", r.Through)
	}
	return err == nil
}

// sweepTurn is one sweep. It reports whether there was one.
func (p *Poller) sweepTurn(ctx context.Context) bool {
	r, err := p.Sweep(ctx, false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.o.Log.Error("the sweep failed, and is tried again", "error", textOf(err))
	case r.Changed > 0 || r.Failed > 0:
		p.o.Log.Warn("objects had changed without an event", "accounts", r.Accounts, "objects", r.Objects, "changed", r.Changed, "failed", r.Failed)
	default:
		p.o.Log.Debug("no object has changed without an event", "accounts", r.Accounts, "objects", r.Objects)
	}
	return err == nil
}
