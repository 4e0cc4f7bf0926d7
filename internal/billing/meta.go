package billing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/schema"
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
const FormatVersion = 1

// ErrNoStore: the table is no store of Duesday's, or not one any more. It is
// store.ErrMissing, too.
var ErrNoStore = fmt.Errorf("this is no store of Duesday's (%w)", store.ErrMissing)

// metaItem is the key of the store's item about itself.
var MetaKey = store.Key{PK: MetaPK, SK: MetaPK}

// anything reports whether there is an item.
func AnyItem(items iter.Seq2[store.Item, error]) (there bool, err error) {
	for _, err := range items {
		return err == nil, err
	}
	return false, nil
}

// Meta returns what the store says about itself now.
func (e *Records) Meta(ctx context.Context) (Meta, error) {
	it, err := e.Store.Get(ctx, e.Table, MetaKey)
	if err != nil {
		return Meta{}, err
	}
	if f := it.Int(schema.Format); f > FormatVersion {
		return Meta{}, fmt.Errorf("%w: this store has format %d, this Duesday knows up to %d: use a newer one", store.ErrFormat, f, FormatVersion)
	}
	return Meta{Installation: it.Str(schema.Installation), Charging: it.Get(schema.Charging).Bool(),
		Reason: it.Str(schema.Reason), Created: ParseStamp(it.Str(schema.CreatedDate)),
		Shards: max(1, int(it.Int(schema.Shards))), Moved: it.Str(schema.Moved), Processor: it.Str(schema.Processor)}, nil
}

// live refuses a store that has been moved elsewhere since it was opened, where others can
// have done that: what is written now would be in no store that anybody looks at.
func (e *Records) Live(ctx context.Context) error {
	if !e.Shared {
		return nil
	}
	meta, err := e.Meta(ctx)
	if err == nil && meta.Moved != "" {
		err = fmt.Errorf("%w: %s", ErrMoved, meta.Moved)
	}
	return err
}

// ErrMoved: the store, or the subscription, has been copied to another store, which charges
// from now on.
var ErrMoved = errors.New("moved to another store")
