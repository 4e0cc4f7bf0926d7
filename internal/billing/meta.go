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

// Meta is the store's item about itself.
type Meta struct {
	Installation string // random, made once; part of every idempotency key
	Charging     bool
	Reason       string // why charging is off
	Created      time.Time
	Shards       int    // partitions of an index per date
	Moved        string // the place of the live store; "": this one is it
	Processor    string // the Identity of the processor in use; "": none has told it yet
}

// FormatVersion is the version of the items' layout. A store of a newer one is refused: its
// items may mean other things.
const FormatVersion = 1

// ErrNoStore: the table is no store of Duesday's, or not one any more. It is also
// store.ErrMissing.
var ErrNoStore = fmt.Errorf("this is no store of Duesday's (%w)", store.ErrMissing)

// ErrMoved: the store, or the subscription, has been copied to another store, which charges
// from now on.
var ErrMoved = errors.New("moved to another store")

// MetaKey is the key of the store's item about itself.
var MetaKey = store.Key{PK: MetaPK, SK: MetaPK}

// AnyItem reports whether there is an item.
func AnyItem(items iter.Seq2[store.Item, error]) (there bool, err error) {
	for _, err := range items {
		return err == nil, err
	}
	return false, nil
}

// Meta reads the store's item about itself.
func (e *Records) Meta(ctx context.Context) (Meta, error) {
	it, err := e.Store.Get(ctx, e.Table, MetaKey)
	if err != nil {
		return Meta{}, err
	}
	return decodeMeta(it)
}

func decodeMeta(it store.Item) (Meta, error) {
	if f := it.Int(schema.Format); f > FormatVersion {
		return Meta{}, fmt.Errorf("%w: this store has format %d, this Duesday knows up to %d: use a newer one",
			store.ErrFormat, f, FormatVersion)
	}
	return Meta{Installation: it.Str(schema.Installation), Charging: it.Get(schema.Charging).Bool(),
		Reason: it.Str(schema.Reason), Created: ParseStamp(it.Str(schema.CreatedDate)),
		Shards: max(1, int(it.Int(schema.Shards))), Moved: it.Str(schema.Moved), Processor: it.Str(schema.Processor)}, nil
}

// Live returns ErrMoved if another process has moved the store since it was opened: nobody
// reads writes to it any more.
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
