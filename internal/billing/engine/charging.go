package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// SetCharging switches charging on or off for the whole store. While it is off no job
// opens or confirms anything. Switching it on also accepts the clock as it stands.
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
