package engine

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Making says what Open does about a store that has no META item.
type Making uint8

// What Open may do.
const (
	MakeNew     Making = iota // make one, in a table that is empty
	MakeNever                 // ErrNoStore
	MakeAdopted               // make one beside the items that other tools have written
)

func (e *Engine) makeMeta(ctx context.Context, making Making, shards int) error {
	if err := e.mayMake(ctx, making); err != nil {
		return err
	}
	return e.Store.Commit(ctx, store.Put(e.Table, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(billing.MetaPK)},
		store.Attribute{Name: schema.SK, Value: store.S(billing.MetaPK)},
		store.Attribute{Name: schema.Installation, Value: store.S(rand.Text())},
		store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion)},
		store.Attribute{Name: schema.Shards, Value: store.Int(int64(shards))},
		store.Attribute{Name: schema.Charging, Value: store.Bool(true)},
		store.Attribute{Name: schema.CreatedDate, Value: store.S(billing.Stamp(e.Now()))}), store.Absent()))
}

// mayMake refuses to make a store out of a table where that is not what was asked for: a copy
// of another store without its META would be a new installation, and charge everybody again.
func (e *Engine) mayMake(ctx context.Context, making Making) error {
	switch making {
	case MakeNever:
		return fmt.Errorf("table %s has no META item: %w", e.Table, billing.ErrNoStore)
	case MakeAdopted:
		for _, kind := range [...]billing.Kind{billing.Payments, billing.Reminders} {
			if there, err := billing.AnyItem(e.Store.Query(ctx, store.Query{Table: e.Table, Partition: billing.RunPK(kind), Limit: 1})); err != nil {
				return err
			} else if there {
				return fmt.Errorf("table %s has runs of Duesday's in it and no META item: %w; it was part of a store, which has to be put back whole", e.Table, billing.ErrNoStore)
			}
		}
		return nil
	}
	there, err := billing.AnyItem(e.Store.Scan(ctx, store.Scan{Table: e.Table}))
	if err == nil && there {
		err = fmt.Errorf("table %s has items in it and no META item: %w; duesday store adopt takes over a table that other tools have made", e.Table, billing.ErrNoStore)
	}
	return err
}
