// Package meta creates a store's META item, and upgrades one from an older version.
//
// It does not read settings or accounts, and does not move stores.
package meta

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Options contains the engine's options for META.
type Options struct {
	Making   billing.Making
	Shards   int
	Program  string
	ReadOnly bool
	First    []store.Write // added to the commit that creates the item
}

// Open reads the item into the records. If there is none and Options.Making allows it, Open creates the item.
// It returns an error if the store was moved or has a different number of shards.
func Open(ctx context.Context, r *billing.Records, o Options) error {
	if o.Shards < 0 || o.Shards > billing.MaxShards {
		return fmt.Errorf("shards per date must be 1 to %[2]d (got %[1]d)", o.Shards, billing.MaxShards)
	}
	err := store.Retry(ctx, "creating the store", func() (err error) {
		if r.Opened, err = r.Meta(ctx); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err = create(ctx, r, &o); err == nil {
			err = store.ErrConflict // so that Retry reads the item
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case o.Shards != 0 && o.Shards != r.Opened.Shards:
		return fmt.Errorf("the store has %d shards per date, not %d; store create sets the number, and store copy "+
			"changes it", r.Opened.Shards, o.Shards)
	case r.Opened.Moved != "" && !o.ReadOnly:
		return fmt.Errorf("%w: %s", billing.ErrMoved, r.Opened.Moved)
	}
	return nil
}

func create(ctx context.Context, r *billing.Records, o *Options) error {
	if err := MayMake(ctx, r, o.Making); err != nil {
		return err
	}
	meta := billing.ItemAt(billing.MetaKey,
		store.Attribute{Name: schema.Installation, Value: store.S(rand.Text())}, store.Attribute{Name: schema.Salt, Value: store.S(rand.Text())},
		store.Attribute{Name: schema.LinkKey, Value: store.S(rand.Text())},
		store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion)},
		store.Attribute{Name: schema.Shards, Value: store.Int(int64(max(1, o.Shards)))},
		store.Attribute{Name: schema.Charging, Value: store.Bool(true)},
		store.Attribute{Name: schema.CreatedDate, Value: store.S(billing.Stamp(r.Now()))})
	if o.Making == billing.MakeNew {
		meta.Set(schema.SumsDate, meta.Get(schema.CreatedDate))
		meta.Set(schema.CausesDate, meta.Get(schema.CreatedDate))
		meta.Set(schema.LookupDate, meta.Get(schema.CreatedDate))
	}
	if o.Program != "" {
		meta.Set(schema.Program, store.S(o.Program))
	}
	return r.Store.Commit(ctx, append(o.First, store.Put(r.Table, meta, store.Absent()))...)
}

// causesFormat is the first format whose builds store the cause of each status.
const causesFormat = 4

// Upgrade records since when an older store has kept sums and the causes of statuses, and gives it a salt
// and a link key. No build that does not keep them may use the store at the same time. alone means that no
// other process can have it open.
func Upgrade(ctx context.Context, r *billing.Records, alone bool) error {
	if alone && r.Opened.Format < billing.FormatVersion { // afterwards, no older build can open the folder
		set := store.NewItem(store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion)})
		raise := store.Update(r.Table, billing.MetaKey, set, nil)
		if err := store.Retry(ctx, "raising the format", func() error { return r.Store.Commit(ctx, raise) }); err != nil {
			return err
		}
		r.Opened.Format = billing.FormatVersion
	}
	now := billing.Stamp(r.Now())
	err := begin(ctx, r, schema.SumsDate, now, func() bool { return !r.Opened.Summed.IsZero() })
	if err == nil && (alone || r.Opened.Format >= causesFormat) {
		err = begin(ctx, r, schema.CausesDate, now, func() bool { return !r.Opened.Caused.IsZero() })
	}
	if err == nil {
		err = begin(ctx, r, schema.Salt, rand.Text(), func() bool { return r.Opened.Salt != "" })
	}
	if err == nil {
		err = begin(ctx, r, schema.LinkKey, rand.Text(), func() bool { return r.Opened.LinkKey != "" })
	}
	return err
}

// begin sets META's attribute to the value, unless it is set.
func begin(ctx context.Context, r *billing.Records, attribute, value string, begun func() bool) error {
	if begun() {
		return nil
	}
	set := store.NewItem(store.Attribute{Name: attribute, Value: store.S(value)})
	return store.Retry(ctx, "noting "+attribute, func() (err error) {
		err = r.Store.Commit(ctx, store.Update(r.Table, billing.MetaKey, set, nil, store.AttributeAbsent(attribute)))
		if err != nil && !store.Retryable(err) {
			return err
		}
		if r.Opened, err = r.Meta(ctx); err == nil && !begun() {
			err = store.ErrUnknown // the commit has not succeeded
		}
		return err
	})
}

// Expire allows a store that deletes expired items itself to do so while there is evidence that the clock is
// right.
func Expire(r *billing.Records) {
	s, ok := r.Store.(interface {
		ExpireWhile(may func(context.Context, store.Store) bool)
	})
	if !ok {
		return
	}
	s.ExpireWhile(func(ctx context.Context, s store.Store) bool { // it must not read r.Beside, which the session sets meanwhile
		at := billing.Records{Store: s, Table: r.Table, Now: r.Now, Witnesses: r.Witnesses}
		shown, _, err := at.ClockShown(ctx)
		return err == nil && shown
	})
}

// MayMake returns an error if the table is no store and may not become one. A copy of another store
// without its META would become a new installation, and would charge every account again.
func MayMake(ctx context.Context, e *billing.Records, making billing.Making) error {
	_, err := e.Meta(ctx)
	switch {
	case !errors.Is(err, store.ErrNotFound):
		return err
	case making == billing.MakeNever:
		return fmt.Errorf("table %s has no META item: %w", e.Table, billing.ErrNoStore)
	case making == billing.MakeAdopted:
		for _, kind := range [...]billing.Kind{billing.Payments, billing.Reminders} {
			there, err := billing.AnyItem(e.Store.Query(ctx,
				store.Query{Table: e.Table, Partition: billing.RunPK(kind), Limit: 1}))
			if err != nil {
				return err
			}
			if there {
				const part = "table %s contains Duesday runs but no META item: %w; it belonged to a store, which has " +
					"to be put back whole"
				return fmt.Errorf(part, e.Table, billing.ErrNoStore)
			}
		}
		return nil
	}
	there, err := billing.AnyItem(e.Store.Scan(ctx, store.Scan{Table: e.Table}))
	if err == nil && there {
		const others = "table %s contains items but no META item: %w; duesday store adopt takes over a table that " +
			"other tools have made"
		err = fmt.Errorf(others, e.Table, billing.ErrNoStore)
	}
	return err
}
