package meta

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Restored records the restoration of the store from a copy made at that time. The next runs look
// at every date since the store was made: rows due in the copy may be older than the walks of the
// lost time. Restored switches charging off, since requests and charges of the lost time are not in
// the copy. Reconcile finds the charges; only a person can repeat the requests and switch it on.
// Links to the customer's page that were made before have no value any more, because the copy may not
// know that they were revoked. aside is where the store is now that the copy has replaced; "": there was none.
func Restored(ctx context.Context, e *billing.Records, made time.Time, from, aside string) error {
	oldest := civil.Earlier(civil.Of(e.Opened.Created), civil.Of(made))
	if err := e.LowerWatermarks(ctx, oldest, oldest); err != nil {
		return err
	}
	set := store.NewItem(store.Attribute{Name: schema.LinkKey, Value: store.S(rand.Text())},
		store.Attribute{Name: billing.RestoredDate, Value: store.S(billing.Stamp(e.Now()))},
		store.Attribute{Name: billing.RestoredFrom, Value: store.S(from)})
	if aside != "" {
		set.Set(billing.RestoredAside, store.S(aside))
	}
	if e.Opened.Moved == "" {
		set.Set(schema.Charging, store.Bool(false))
		reason := billing.PutBack + billing.Stamp(made) + ": duesday reconcile adopts what was charged since"
		set.Set(schema.Reason, store.S(reason))
	}
	return e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil))
}
