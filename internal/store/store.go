package store

import (
	"context"
	"iter"
)

// A Store holds tables. It is safe for concurrent use. The package comment has the guarantees
// of every engine.
type Store interface {
	// Get returns the item at the key: strongly consistent, durable, not expired. It returns
	// ErrNotFound if the key holds no item, and ErrFormat if it cannot return the item whole.
	Get(ctx context.Context, table string, key Key) (Item, error)

	// Query yields the items of one partition in sort order. It yields an error at
	// most once, last.
	Query(ctx context.Context, q Query) iter.Seq2[Item, error]

	// Scan yields every item of one segment of a table, in no particular order. It
	// yields an error at most once, last. No job and no page uses it.
	Scan(ctx context.Context, s Scan) iter.Seq2[Item, error]

	// Commit applies all writes or none, and is durable when it returns nil. It returns a
	// ConflictError if a condition does not hold, and ErrTooLarge or ErrInvalid if every
	// engine would refuse the writes. It returns ErrThrottled if the caller may repeat it
	// unchanged, and ErrUnknown if the answer was lost.
	Commit(ctx context.Context, writes ...Write) error

	// Close waits for running commits and releases the store. Every later call
	// returns ErrClosed.
	Close() error
}
