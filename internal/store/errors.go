package store

import (
	"errors"
	"fmt"
)

// The classes of errors, by errors.Is.
var (
	// ErrNotFound: Get found no item, or an expired one.
	ErrNotFound = errors.New("not found")
	// ErrConflict: a condition did not hold; nothing was written. See ConflictError.
	ErrConflict = errors.New("conflict")
	// ErrTooLarge: an item, key or commit is over a limit; nothing was written.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid: the request can never succeed as it is (an unknown table, an empty
	// key, two writes on one key); nothing was written.
	ErrInvalid = errors.New("invalid request")
	// ErrThrottled: the engine refused for now; nothing was written.
	ErrThrottled = errors.New("throttled")
	// ErrUnknown: the answer was lost; the writes may or may not have landed.
	ErrUnknown = errors.New("outcome unknown")
	// ErrClosed: the store has been closed; nothing was written.
	ErrClosed = errors.New("store is closed")
	// ErrLocked: another process holds the store.
	ErrLocked = errors.New("store is in use")
	// ErrMissing: there is no store at that place, and none may be created.
	ErrMissing = errors.New("no store here")
	// ErrFormat: the store was written by a newer Duesday or by another program; or an item
	// is damaged or has a value that is not supported (see the package comment).
	ErrFormat = errors.New("unreadable store format")
)

// A ConflictError names the write of a Commit that failed, and its condition. It is
// ErrConflict, by errors.Is.
type ConflictError struct {
	Write     int    // index into the writes of the Commit
	Table     string // of that write
	Key       Key    // of that write
	Condition string // the condition that failed, or "item exists"
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict: write %d on %s %s/%s: %s does not hold", e.Write, e.Table, e.Key.PK, e.Key.SK,
		e.Condition)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }
