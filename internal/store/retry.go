package store

import (
	"context"
	"errors"
	"fmt"
)

// MaxTries is the number of tries after which Retry gives up. Only a broken store, or
// writers that overtake each other without end, come near it.
const MaxTries = 32

// ErrOvertaken: Retry gave up after MaxTries tries.
var ErrOvertaken = errors.New("overtaken by others")

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
// After MaxTries tries Retry returns an error that is ErrOvertaken, names the step and wraps
// the error of the last try. If ctx ends between two tries, Retry returns ctx.Err(), as an
// engine would.
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
