package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Making is the action of Open on a store without a META item.
type Making uint8

// The actions of Open.
const (
	MakeNew     Making = iota // make one, in an empty table
	MakeNever                 // ErrNoStore
	MakeAdopted               // make one beside the items of other tools
)

// MayMake returns an error if the table is no store and may not become one. A copy of another store
// without its META would be a new installation, and charge every account again.
func MayMake(ctx context.Context, e *Records, making Making) error {
	_, err := e.Meta(ctx)
	switch {
	case !errors.Is(err, store.ErrNotFound):
		return err
	case making == MakeNever:
		return fmt.Errorf("table %s has no META item: %w", e.Table, ErrNoStore)
	case making == MakeAdopted:
		for _, kind := range [...]Kind{Payments, Reminders} {
			there, err := AnyItem(e.Store.Query(ctx,
				store.Query{Table: e.Table, Partition: RunPK(kind), Limit: 1}))
			if err != nil {
				return err
			}
			if there {
				const part = "table %s has runs of Duesday's in it and no META item: %w; it was part of a store, which has " +
					"to be put back whole"
				return fmt.Errorf(part, e.Table, ErrNoStore)
			}
		}
		return nil
	}
	there, err := AnyItem(e.Store.Scan(ctx, store.Scan{Table: e.Table}))
	if err == nil && there {
		const others = "table %s has items in it and no META item: %w; duesday store adopt takes over a table that " +
			"other tools have made"
		err = fmt.Errorf(others, e.Table, ErrNoStore)
	}
	return err
}

// Restored records the restoration of the store from a copy made at that time. The next runs look
// at every date since the store was made: rows due in the copy may be older than the walks of the
// lost time. Restored switches charging off, since requests and charges of the lost time are not in
// the copy. Reconcile finds the charges; only a person can repeat the requests and switch it on.
func (e *Records) Restored(ctx context.Context, made time.Time, from string) error {
	oldest := civil.Earlier(civil.Of(e.Opened.Created), civil.Of(made))
	if err := e.LowerWatermarks(ctx, oldest, oldest); err != nil {
		return err
	}
	set := store.NewItem(
		store.Attribute{Name: RestoredDate, Value: store.S(Stamp(e.Now()))},
		store.Attribute{Name: RestoredFrom, Value: store.S(from)})
	if e.Opened.Moved == "" {
		set.Set(schema.Charging, store.Bool(false))
		reason := "put back to how it stood at " + Stamp(made) + ": duesday reconcile adopts what was charged since"
		set.Set(schema.Reason, store.S(reason))
	}
	return e.Store.Commit(ctx, store.Update(e.Table, MetaKey, set, nil))
}
