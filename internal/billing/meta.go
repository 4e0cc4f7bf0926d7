package billing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// Meta is what a store says about itself.
type Meta struct {
	Installation string // random, made once; part of every idempotency key
	Charging     bool
	Reason       string // why charging is off
	Created      time.Time
	Shards       int    // partitions of an index per date
	Moved        string // where the store has been moved to; "" when it is the live one
	Processor    string // whose money it moves, as Identified tells; "" before one that tells was used
}

// format is the version of the items' layout. A store written by a newer Duesday is
// refused, since its items may mean what this one does not know.
const format = 1

// A Making says what Open does about a store that has no META item.
type Making uint8

// What Open may do.
const (
	MakeNew     Making = iota // make one, in a table that is empty
	MakeNever                 // ErrNoStore
	MakeAdopted               // make one beside the items that other tools have written
)

// ErrNoStore: the table is no store of Duesday's, or not one any more. It is
// store.ErrMissing, too.
var ErrNoStore = fmt.Errorf("this is no store of Duesday's (%w)", store.ErrMissing)

// metaItem is the key of the store's item about itself.
var metaItem = store.Key{PK: metaKey, SK: metaKey}

func (e *Engine) makeMeta(ctx context.Context, making Making, shards int) error {
	if err := e.mayMake(ctx, making); err != nil {
		return err
	}
	return e.store.Commit(ctx, store.Put(e.table, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(metaKey)},
		store.Attribute{Name: schema.SK, Value: store.S(metaKey)},
		store.Attribute{Name: schema.Installation, Value: store.S(rand.Text())},
		store.Attribute{Name: schema.Format, Value: store.Int(format)},
		store.Attribute{Name: schema.Shards, Value: store.Int(int64(shards))},
		store.Attribute{Name: schema.Charging, Value: store.Bool(true)},
		store.Attribute{Name: schema.CreatedDate, Value: store.S(stamp(e.now()))}), store.Absent()))
}

// mayMake refuses to make a store out of a table where that is not what was asked for: a copy
// of another store without its META would be a new installation, and charge everybody again.
func (e *Engine) mayMake(ctx context.Context, making Making) error {
	switch making {
	case MakeNever:
		return fmt.Errorf("table %s has no META item: %w", e.table, ErrNoStore)
	case MakeAdopted:
		for _, kind := range [...]Kind{Payments, Reminders} {
			if there, err := anything(e.store.Query(ctx, store.Query{Table: e.table, Partition: runPK(kind), Limit: 1})); err != nil {
				return err
			} else if there {
				return fmt.Errorf("table %s has runs of Duesday's in it and no META item: %w; it was part of a store, which has to be put back whole", e.table, ErrNoStore)
			}
		}
		return nil
	}
	there, err := anything(e.store.Scan(ctx, store.Scan{Table: e.table}))
	if err == nil && there {
		err = fmt.Errorf("table %s has items in it and no META item: %w; duesday store adopt takes over a table that other tools have made", e.table, ErrNoStore)
	}
	return err
}

// anything reports whether there is an item.
func anything(items iter.Seq2[store.Item, error]) (there bool, err error) {
	for _, err := range items {
		return err == nil, err
	}
	return false, nil
}

func (e *Engine) readMeta(ctx context.Context) (Meta, error) {
	it, err := e.store.Get(ctx, e.table, metaItem)
	if err != nil {
		return Meta{}, err
	}
	if f := it.Int(schema.Format); f > format {
		return Meta{}, fmt.Errorf("%w: this store has format %d, this Duesday knows up to %d: use a newer one", store.ErrFormat, f, format)
	}
	return Meta{Installation: it.Str(schema.Installation), Charging: it.Get(schema.Charging).Bool(),
		Reason: it.Str(schema.Reason), Created: parseStamp(it.Str(schema.CreatedDate)),
		Shards: max(1, int(it.Int(schema.Shards))), Moved: it.Str(schema.Moved), Processor: it.Str(schema.Processor)}, nil
}

// live refuses a store that has been moved elsewhere since it was opened, where others can
// have done that: what is written now would be in no store that anybody looks at.
func (e *Engine) live(ctx context.Context) error {
	if e.lease == 0 {
		return nil
	}
	meta, err := e.readMeta(ctx)
	if err == nil && meta.Moved != "" {
		err = fmt.Errorf("%w: %s", ErrMoved, meta.Moved)
	}
	return err
}

// Meta returns what the store says about itself now.
func (e *Engine) Meta(ctx context.Context) (Meta, error) { return e.readMeta(ctx) }

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
	err := e.store.Commit(ctx, store.Update(e.table, metaItem, set, remove, store.AttributeAbsent(schema.Moved)))
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("this store was %w", ErrMoved)
	}
	return err
}
