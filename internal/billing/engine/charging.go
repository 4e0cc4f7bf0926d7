package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/store"
)

// switchAge is the age of what a run knows about charging, at most, when it opens or confirms an
// intent. It reads META when it needs to know, and not for every row.
const switchAge = 300 * time.Millisecond

// A chargingSwitch tells a run whether charging is on. nil always says so: a person's request has
// looked itself.
type chargingSwitch struct {
	e   *Engine
	old atomic.Bool // set every switchAge: META is to be read again

	mu  sync.Mutex
	off error // guarded by mu
}

// check returns a StopError if charging was switched off, the store has moved, or the clock is
// wrong.
func (s *chargingSwitch) check(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off != nil || !s.old.Swap(false) {
		return s.off
	}
	err := s.e.mayCharge(ctx)
	switch {
	case isOff(err), errors.Is(err, billing.ErrClock):
		s.off = &StopError{err}
		return s.off
	case err != nil:
		s.old.Store(true)
	}
	return err
}

// mayCharge returns ErrChargingOff if charging is off, ErrMoved if the store has moved, or
// ErrClock.
func (e *Engine) mayCharge(ctx context.Context) error {
	meta, err := e.Meta(ctx)
	switch {
	case err != nil:
		return err
	case meta.Moved != "":
		return fmt.Errorf("%w: %s", billing.ErrMoved, meta.Moved)
	case !meta.Charging:
		return ErrChargingOff
	}
	_, err = e.Compare(ctx)
	return err
}

// isOff reports whether the run must end: nobody charges, or a newer Duesday has raised the format.
func isOff(err error) bool {
	return errors.Is(err, ErrChargingOff) || errors.Is(err, billing.ErrMoved) || errors.Is(err, store.ErrFormat)
}
