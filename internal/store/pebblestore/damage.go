package pebblestore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// A damagedError is ErrDamaged with the folder, the damage and the next step for a person, in one line.
type damagedError struct {
	dir   string
	cause error
}

func (e *damagedError) Error() string {
	cause, _, _ := strings.Cut(e.cause.Error(), "\n")
	return fmt.Sprintf("%v: %s: %s; nothing was changed. Keep a copy of the folder, see how far the damage goes with "+
		"duesday store check, and put a backup back with duesday store restore --replace", store.ErrDamaged, e.dir, cause)
}

func (e *damagedError) Unwrap() []error { return []error{store.ErrDamaged, e.cause} }

// damaged returns Pebble's error of a damaged file as a damagedError, and other errors as they are.
func damaged(dir string, err error) error {
	if errors.Is(err, pebble.ErrCorruption) && !errors.Is(err, store.ErrDamaged) {
		return &damagedError{dir, err}
	}
	return err
}
