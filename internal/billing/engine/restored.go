package engine

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Restored records that the store was put back to a copy that was made then, and makes the
// next runs look at every date since the store was made: what is due in the copy may be
// older than where the walks of the lost time began. Charging is switched off: what people
// asked for in the lost time, and what was charged then, is not in the copy, and only the
// latter can be seen (Reconcile). A person switches it on again.
func (e *Engine) Restored(ctx context.Context, made time.Time, from string) error {
	oldest := civil.Earlier(civil.Of(e.Opened.Created), civil.Of(made))
	for _, kind := range [...]billing.Kind{billing.Payments, billing.Reminders} {
		if err := e.LowerWatermark(ctx, kind, oldest); err != nil {
			return err
		}
	}
	set := store.NewItem(
		store.Attribute{Name: billing.RestoredDate, Value: store.S(billing.Stamp(e.Now()))},
		store.Attribute{Name: billing.RestoredFrom, Value: store.S(from)})
	if e.Opened.Moved == "" {
		set.Set(schema.Charging, store.Bool(false))
		set.Set(schema.Reason, store.S("put back to how it stood at "+billing.Stamp(made)+": duesday reconcile adopts what was charged since"))
	}
	return e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil))
}
