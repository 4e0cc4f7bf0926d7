package worker

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
)

// Exclusive acquires the run's kind for this process until release is called: by a claim on a store that keeps
// claims, and by a lease on a shared store, which expires if this process is silent. Held reports whether the
// work may go on. Exclusive returns a BusyError if another process has the kind.
func (s *Sharing) Exclusive(ctx context.Context, e *billing.Records, run *billing.Run) (held func() bool, release func(), err error) {
	c := NewClaim(s.Claims, run)
	if err := c.Hold(ctx); err != nil {
		return nil, nil, err
	}
	if s.Lease == 0 {
		return func() bool { return c.Hold(ctx) == nil }, c.End, nil
	}
	leases := Leases{Records: e, Length: s.Lease, Ticker: s.Ticker}
	l, err := leases.Acquire(ctx, run.Kind, "RUN", run.ID)
	if l == nil {
		if c.End(); err == nil {
			err = &BusyError{Kind: run.Kind, ID: run.ID}
		}
		return nil, nil, err
	}
	always := context.WithoutCancel(ctx)
	stop := l.Keep(always)
	return l.Held, func() {
		stop()
		_ = l.Release(always) // otherwise it expires
		c.End()
	}, nil
}
