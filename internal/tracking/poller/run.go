package poller

import (
	"context"
	"time"
)

// hurry divides the interval after a failed round: the service may be about to start.
const hurry = 10

// Run does a round at once, and then every Interval. After the first round, and then every
// MaxQuiet, it sweeps the accounts that are due for it. It returns nil when ctx ends. A failed
// round or sweep is logged and tried again.
func (p *Poller) Run(ctx context.Context) error {
	sweeps := time.NewTimer(0)
	defer sweeps.Stop()
	for ctx.Err() == nil {
		rounds := time.NewTimer(p.o.Interval) // from the start of a round: a long one does not delay the next
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

// turn does one round. It reports its success.
func (p *Poller) turn(ctx context.Context) bool {
	r, err := p.Round(ctx, false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.o.Log.Error("the poller's round failed, and is tried again", "error", textOf(err))
	case r.Sent > 0 || r.Failed > 0:
		p.o.Log.Info("events that had not come were fetched", "accounts", r.Accounts, "listed", r.Listed,
			"missing", r.Missing, "sent", r.Sent, "failed", r.Failed, "verified_through", r.Through)
	default:
		p.o.Log.Debug("no event is missing", "accounts", r.Accounts, "skipped", r.Skipped, "listed", r.Listed,
			"verified_through", r.Through)
	}
	return err == nil
}

// sweepTurn does one sweep. It reports its success.
func (p *Poller) sweepTurn(ctx context.Context) bool {
	r, err := p.Sweep(ctx, false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.o.Log.Error("the sweep failed, and is tried again", "error", textOf(err))
	case r.Changed > 0 || r.Failed > 0:
		p.o.Log.Warn("objects had changed without an event", "accounts", r.Accounts, "objects", r.Objects, "changed",
			r.Changed, "failed", r.Failed)
	default:
		p.o.Log.Debug("no object has changed without an event", "accounts", r.Accounts, "objects", r.Objects)
	}
	return err == nil
}
