package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

func (e *Engine) makeMeta(ctx context.Context, o *Options) error {
	if err := billing.MayMake(ctx, e.Records, o.Making); err != nil {
		return err
	}
	var first []store.Write
	if o.KeepSettings {
		first = settings.First(e.Records, o.Config.Settings)
	}
	meta := billing.ItemAt(billing.MetaKey,
		store.Attribute{Name: schema.Installation, Value: store.S(rand.Text())},
		store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion)},
		store.Attribute{Name: schema.Shards, Value: store.Int(int64(max(1, o.Shards)))},
		store.Attribute{Name: schema.Charging, Value: store.Bool(true)},
		store.Attribute{Name: schema.CreatedDate, Value: store.S(billing.Stamp(e.Now()))})
	if o.Making == billing.MakeNew {
		meta.Set(schema.SumsDate, meta.Get(schema.CreatedDate))
		meta.Set(schema.CausesDate, meta.Get(schema.CreatedDate))
	}
	if o.Program != "" {
		meta.Set(schema.Program, store.S(o.Program))
	}
	return e.Store.Commit(ctx, append(first, store.Put(e.Table, meta, store.Absent()))...)
}

// ErrOtherProcessor: the store was charged through another processor account, or in its other mode.
var ErrOtherProcessor = errors.New("this store belongs to another processor")

// pin stores the identity of the first processor account, and refuses every other one from then
// on: a test key would pay periods with nothing, a live key would charge a copy made for testing.
// A processor without an identity is accepted until an identity is stored. After a run with such
// a processor no identity is accepted.
func (e *Engine) pin(ctx context.Context, readOnly bool) error {
	if e.proc == nil {
		return nil
	}
	identity := ""
	if p, ok := e.proc.(processor.Identified); ok {
		var err error
		if identity, err = p.Identity(ctx); err != nil {
			return fmt.Errorf("asking the processor for its account: %w", err)
		}
	}
	return store.Retry(ctx, "recording the processor in the store", func() error {
		switch {
		case e.Opened.Processor == identity, e.Opened.Processor == "" && readOnly:
			return nil
		case e.Opened.Processor != "":
			return fmt.Errorf("%w: it is charged through %s, but this is %s",
				ErrOtherProcessor, e.Opened.Processor, cmp.Or(identity, "a sandbox"))
		}
		ran, err := billing.AnyItem(e.LatestRuns(ctx, billing.Payments, 1))
		if err != nil {
			return err
		}
		if ran {
			return fmt.Errorf("%w: it has been charged through a sandbox, but this is %s", ErrOtherProcessor, identity)
		}
		set := store.NewItem(store.Attribute{Name: schema.Processor, Value: store.S(identity)})
		err = e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil, store.AttributeAbsent(schema.Processor)))
		if err != nil && !store.Retryable(err) {
			return err
		}
		if e.Opened, err = e.Meta(ctx); err == nil && e.Opened.Processor != identity {
			err = store.ErrConflict // another process was first, or nothing landed
		}
		return err
	})
}

// SetCharging switches charging on or off for the whole store. While it is off, no job opens or
// confirms an intent. On also accepts the clock, and redates the rows put off by a clock ahead.
func (e *Engine) SetCharging(ctx context.Context, on bool, reason string) error {
	var set store.Item
	var remove []string
	var err error
	if on {
		if err = e.redate(ctx); err == nil {
			set, remove, err = e.AcceptClock(ctx)
		}
		if err != nil {
			return err
		}
	}
	if set.Set(schema.Charging, store.Bool(on)); on || reason == "" {
		remove = append(remove, schema.Reason)
	} else {
		set.Set(schema.Reason, store.S(secret.MaskCards(reason)))
	}
	err = e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, remove, store.AttributeAbsent(schema.Moved)))
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("this store was %w", billing.ErrMoved)
	}
	return err
}

// ErrChargingOff: charging is switched off for the whole store.
var ErrChargingOff = errors.New("charging is switched off: duesday charging on")

// switchAge is the age of what a run knows about charging, at most, when it opens or confirms an
// intent. It reads META when it needs to know, and not for every row.
const switchAge = 300 * time.Millisecond

// A chargingSwitch tells a run whether charging is on. nil always says so: a person has looked.
type chargingSwitch struct {
	e   *Engine
	old atomic.Bool // set every switchAge: META is to be read again

	mu  sync.Mutex
	off error // guarded by mu
}

// check returns a StopError if charging was switched off, the store moved, or the clock is wrong.
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

// mayCharge returns ErrChargingOff if charging is off, ErrMoved if the store moved, or ErrClock.
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
