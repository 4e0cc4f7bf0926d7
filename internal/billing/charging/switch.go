// Package charging decides whether a store may charge, based on the charging switch, the store's
// processor account, the rollback check, and other installations' charges. It also compares the
// processor's payment intents with the store, finds lost intents and orphans, and cancels them.
//
// It does not charge, and never decides about a single period.
package charging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Control decides whether a store may charge. It reads the store's charging switch and checks the
// processor.
type Control struct {
	*billing.Records
	Processor processor.Charger // nil if nothing can be charged
}

// Turn switches charging on or off for the whole store. Turning it on also accepts the clock. While
// charging is off, no job opens or confirms an intent. Commands call engine.SetCharging instead, which
// also redates the rows that were put off while the clock was ahead.
func (c *Control) Turn(ctx context.Context, on bool, reason string) (err error) {
	var set store.Item
	var remove []string
	if on {
		if set, remove, err = c.AcceptClock(ctx); err != nil {
			return err
		}
	}
	if asked := call.Of(ctx); asked != nil {
		set.Set(schema.Actor, store.S(asked.Actor))
	} else {
		remove = append(remove, schema.Actor)
	}
	if set.Set(schema.Charging, store.Bool(on)); on || reason == "" {
		remove = append(remove, schema.Reason)
	} else {
		set.Set(schema.Reason, store.S(secret.MaskCards(reason)))
	}
	err = call.Commit(ctx, c.Store, store.Update(c.Table, billing.MetaKey, set, remove, store.AttributeAbsent(schema.Moved)))
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("this store was %w", billing.ErrMoved)
	}
	return err
}

// Reconciled allows reminders again after reconcile has found out which reminders the replaced
// store sent.
func (c *Control) Reconciled(ctx context.Context) error {
	meta, err := c.Meta(ctx)
	if err != nil || !meta.Unreconciled() {
		return err
	}
	return c.Turn(ctx, false, "it was put back and is reconciled: duesday charging on")
}

// ErrOff is returned when charging is switched off for the whole store.
var ErrOff = errors.New("charging is switched off: duesday charging on")

// switchAge is the maximum age of the charging state that a run uses when it opens or confirms an
// intent. A run reads META only when it needs a newer state, and not for every row.
const switchAge = 300 * time.Millisecond

// A Switch tells a run whether charging is on. A nil Switch always allows charging, because an
// operator requested it.
type Switch struct {
	control *Control
	old     atomic.Bool // set every switchAge, so that Check reads META again

	mu  sync.Mutex
	off error // guarded by mu
}

// Watch returns a Switch for a run. Until the caller calls stop, Check reads META again if
// switchAge has passed since its last read.
func (c *Control) Watch(t worker.Ticker) (s *Switch, stop func()) {
	s = &Switch{control: c}
	return s, t.Every(switchAge, func() { s.old.Store(true) })
}

// Check returns a StopError if charging is switched off, the store has moved, or the clock is
// wrong.
func (s *Switch) Check(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off != nil || !s.old.Swap(false) {
		return s.off
	}
	err := s.control.MayCharge(ctx)
	switch {
	case IsOff(err), errors.Is(err, billing.ErrClock):
		s.off = &StopError{err}
		return s.off
	case err != nil:
		s.old.Store(true)
	}
	return err
}

// MayCharge returns ErrOff if charging is off, ErrMoved if the store has moved, or ErrClock if the
// clock is wrong.
func (c *Control) MayCharge(ctx context.Context) error {
	meta, err := c.Meta(ctx)
	switch {
	case err != nil:
		return err
	case meta.Moved != "":
		return fmt.Errorf("%w: %s", billing.ErrMoved, meta.Moved)
	case !meta.Charging:
		return ErrOff
	}
	_, err = c.Compare(ctx)
	return err
}

// IsOff reports whether the error ends the run because charging is off, the store has moved, or a
// newer Duesday has upgraded the format.
func IsOff(err error) bool {
	return errors.Is(err, ErrOff) || errors.Is(err, billing.ErrMoved) || errors.Is(err, store.ErrFormat)
}

// A StopError ends the whole job, because every other subscription would cause the same error.
type StopError struct{ Err error }

func (e *StopError) Error() string { return e.Err.Error() }
func (e *StopError) Unwrap() error { return e.Err }

// ErrOtherProcessor is returned when the store was charged through another processor account, or in
// the other mode.
var ErrOtherProcessor = errors.New("this store belongs to another processor")

// Pin stores the identity of the first processor account, and refuses every other account from then
// on. Otherwise a test key would mark periods as paid without money, and a live key would charge a
// copy made for testing. Pin accepts a processor without an identity until an identity is stored.
// After a run with such a processor, Pin accepts no identity.
func (c *Control) Pin(ctx context.Context, readOnly bool) error {
	if c.Processor == nil {
		return nil
	}
	identity := ""
	if p, ok := c.Processor.(processor.Identified); ok {
		var err error
		if identity, err = p.Identity(ctx); err != nil {
			return fmt.Errorf("asking the processor for its account: %w", err)
		}
	}
	return store.Retry(ctx, "recording the processor in the store", func() error {
		switch {
		case c.Opened.Processor == identity, c.Opened.Processor == "" && readOnly:
			return nil
		case c.Opened.Processor != "":
			return fmt.Errorf("%w: it is charged through %s, but this is %s",
				ErrOtherProcessor, c.Opened.Processor, cmp.Or(identity, "a sandbox"))
		}
		ran, err := billing.AnyItem(c.LatestRuns(ctx, billing.Payments, 1))
		if err != nil {
			return err
		}
		if ran {
			return fmt.Errorf("%w: it has been charged through a sandbox, but this is %s", ErrOtherProcessor, identity)
		}
		set := store.NewItem(store.Attribute{Name: schema.Processor, Value: store.S(identity)})
		err = c.Store.Commit(ctx, store.Update(c.Table, billing.MetaKey, set, nil, store.AttributeAbsent(schema.Processor)))
		if err != nil && !store.Retryable(err) {
			return err
		}
		if c.Opened, err = c.Meta(ctx); err == nil && c.Opened.Processor != identity {
			err = store.ErrConflict // another process was faster, or the store wrote nothing
		}
		return err
	})
}
