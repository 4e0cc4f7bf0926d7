package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// The classes of errors, by errors.Is.
var (
	// ErrNotFound means that the item does not exist or has expired.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that a condition did not hold, and nothing was written. See ConflictError.
	ErrConflict = errors.New("conflict")
	// ErrTooLarge means that an item, key or commit exceeds a limit, and nothing was written.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid means that the request can never succeed (unknown table, empty key), and nothing
	// was written.
	ErrInvalid = errors.New("invalid request")
	// ErrThrottled means that the engine is overloaded, and nothing was written.
	ErrThrottled = errors.New("throttled")
	// ErrUnknown means that the answer was lost, so the writes may or may not have landed.
	ErrUnknown = errors.New("outcome unknown")
	// ErrClosed means that the store has been closed, and nothing was written.
	ErrClosed = errors.New("store is closed")
	// ErrLocked means that another process holds the store.
	ErrLocked = errors.New("store is in use")
	// ErrMissing means that the store does not exist and the caller did not allow its creation.
	ErrMissing = errors.New("no store here")
	// ErrFormat: the store was written by a newer Duesday or by another program; or an item
	// is damaged or has a value that is not supported (see the package comment).
	ErrFormat = errors.New("unreadable store format")
	// ErrDamaged means that files of the store are damaged or missing.
	ErrDamaged = errors.New("the store is damaged")
)

// IsUnwritable reports whether the error is about a full or read-only disk, or about missing
// permissions.
func IsUnwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) ||
		errors.Is(err, syscall.EDQUOT)
}

// A ConflictError names the write of a Commit that failed, and its condition. It is an ErrConflict.
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

// MaxTries is the number of tries after which Retry gives up. Only a broken store, or writers that
// constantly conflict, reach this number.
const MaxTries = 32

// ErrOvertaken means that Retry gave up after MaxTries tries.
var ErrOvertaken = errors.New("overtaken by other writers")

// Retryable reports whether an error of Commit is ErrConflict or ErrUnknown: the caller
// should read again and decide again. It is false for an error that Retry gave up with, so
// that one Retry inside another does not multiply the tries.
func Retryable(err error) bool {
	return (errors.Is(err, ErrConflict) || errors.Is(err, ErrUnknown)) && !errors.Is(err, ErrOvertaken)
}

// Retry calls try until it returns nil or an error that is not Retryable, and returns that
// error as it is. It is the loop around every step that reads, decides and commits:
//
//	err := store.Retry(ctx, "account "+id, func() error {
//		it, err := s.Get(ctx, table, key)
//		if err != nil {
//			return err
//		}
//		return s.Commit(ctx, store.Put(table, changed(it), unchanged(it)))
//	})
//
// Each try must read afresh: after ErrUnknown the commit of an earlier try may have landed,
// or may land during the next one. Therefore a try must recognise its own writes, or carry
// conditions that the first landing makes false. A try that wants another without a commit
// returns ErrConflict. Retry does not wait between tries.
//
// After MaxTries tries Retry returns an error that is ErrOvertaken, names the step and wraps the
// last try's. If ctx ends between two tries, Retry returns ctx.Err(), as an engine would.
func Retry(ctx context.Context, step string, try func() error) error {
	var err error
	for range MaxTries {
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err = try(); !Retryable(err) {
			return err
		}
	}
	return fmt.Errorf("%s: %w %d times: %w", step, ErrOvertaken, MaxTries, err)
}
