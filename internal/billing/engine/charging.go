package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// SetCharging switches charging on or off for the whole store. While it is off, no job opens or
// confirms an intent. Switching it on also accepts the clock.
func (e *Engine) SetCharging(ctx context.Context, on bool, reason string) error {
	if on {
		if err := e.acceptClock(ctx); err != nil {
			return err
		}
	}
	set := store.NewItem(store.Attribute{Name: schema.Charging, Value: store.Bool(on)})
	var remove []string
	if on || reason == "" {
		remove = []string{schema.Reason}
	} else {
		set.Set(schema.Reason, store.S(secret.MaskCards(reason)))
	}
	err := e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, remove, store.AttributeAbsent(schema.Moved)))
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("this store was %w", billing.ErrMoved)
	}
	return err
}

// ErrChargingOff: charging is switched off for the whole store.
var ErrChargingOff = errors.New("charging is switched off: duesday charging on")

// acceptClock marks the runs that ended later than now: the clock was ahead then, and is right now.
func (e *Engine) acceptClock(ctx context.Context) error {
	for it, err := range e.LatestRuns(ctx, billing.Payments, 0) {
		if err != nil {
			return err
		}
		if billing.ParseStamp(it.Str(schema.EndedDate)).After(e.Now()) {
			set := store.NewItem(store.Attribute{Name: schema.Accepted, Value: store.Bool(true)})
			if err := e.Store.Commit(ctx, store.Update(e.Table, billing.KeyOf(it), set, nil)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Restored records the restoration of the store from a copy made at that time. The next runs look
// at every date since the store was made: rows due in the copy may be older than the walks of the
// lost time. Restored switches charging off, since requests and charges of the lost time are not in
// the copy. Reconcile finds the charges; only a person can repeat the requests and switch charging
// on again.
func (e *Engine) Restored(ctx context.Context, made time.Time, from string) error {
	oldest := civil.Earlier(civil.Of(e.Opened.Created), civil.Of(made))
	if err := e.LowerWatermarks(ctx, oldest, oldest); err != nil {
		return err
	}
	set := store.NewItem(
		store.Attribute{Name: billing.RestoredDate, Value: store.S(billing.Stamp(e.Now()))},
		store.Attribute{Name: billing.RestoredFrom, Value: store.S(from)})
	if e.Opened.Moved == "" {
		set.Set(schema.Charging, store.Bool(false))
		reason := "put back to how it stood at " + billing.Stamp(made) + ": duesday reconcile adopts what was charged since"
		set.Set(schema.Reason, store.S(reason))
	}
	return e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil))
}
