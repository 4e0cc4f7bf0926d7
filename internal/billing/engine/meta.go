package engine

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
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

// mayMake returns an error if the table may not become a store. A copy of another store without
// its META would be a new installation, and charge every account again.
func (e *Engine) mayMake(ctx context.Context, making Making) error {
	switch making {
	case MakeNever:
		return fmt.Errorf("table %s has no META item: %w", e.Table, billing.ErrNoStore)
	case MakeAdopted:
		for _, kind := range [...]billing.Kind{billing.Payments, billing.Reminders} {
			there, err := billing.AnyItem(e.Store.Query(ctx,
				store.Query{Table: e.Table, Partition: billing.RunPK(kind), Limit: 1}))
			if err != nil {
				return err
			}
			if there {
				const part = "table %s has runs of Duesday's in it and no META item: %w; it was part of a store, which has " +
					"to be put back whole"
				return fmt.Errorf(part, e.Table, billing.ErrNoStore)
			}
		}
		return nil
	}
	there, err := billing.AnyItem(e.Store.Scan(ctx, store.Scan{Table: e.Table}))
	if err == nil && there {
		const others = "table %s has items in it and no META item: %w; duesday store adopt takes over a table that " +
			"other tools have made"
		err = fmt.Errorf(others, e.Table, billing.ErrNoStore)
	}
	return err
}
