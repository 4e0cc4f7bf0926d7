package outbox

import (
	"context"
	"slices"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Numbers gives the receipts and refunds of counted rows their numbers.
type Numbers interface {
	// Mine reports whether this process may give numbers. Another process may hold the lease.
	Mine(ctx context.Context) (bool, error)
	// Give returns the writes that give each object the next number, in this order. Their
	// conditions must fail if another commit has given a number since.
	Give(ctx context.Context, objects []store.Key) ([]store.Write, error)
}

// Numbering returns an outbox whose counting drains also give numbers. A row that names receipts is
// counted, and then delivered, only by a process that may give numbers.
func (o Outbox) Numbering(n Numbers) *Outbox {
	o.numbers = n
	return &o
}

// SetNumbered sets the Numbered attribute on an effect's put.
func SetNumbered(w *store.Write, objects []store.Key) {
	if len(objects) == 0 {
		return
	}
	texts := make([]store.Value, 0, 2*len(objects))
	for _, key := range objects {
		texts = append(texts, store.S(key.PK), store.S(key.SK))
	}
	w.Item.Set(schema.Numbered, store.L(texts...))
}

// numbered returns the keys of the row's receipts or refund. It ignores an illegible list.
func numbered(it store.Item) (objects []store.Key) {
	for two := range slices.Chunk(it.Get(schema.Numbered).List(), 2) {
		if key := (store.Key{PK: two[0].Str(), SK: two[len(two)-1].Str()}); len(two) == 2 && key.PK != "" && key.SK != "" {
			objects = append(objects, key)
		}
	}
	return objects
}

// ours returns the rows that this process may count: all, or those that need no number.
func (o *Outbox) ours(ctx context.Context, rows []store.Item) ([]store.Item, error) {
	names := func(it store.Item) bool { return len(numbered(it)) > 0 }
	if o.numbers == nil || !slices.ContainsFunc(rows, names) {
		return rows, nil
	}
	mine, err := o.numbers.Mine(ctx)
	if err != nil || mine {
		return rows, err
	}
	return slices.DeleteFunc(rows, names), nil
}
