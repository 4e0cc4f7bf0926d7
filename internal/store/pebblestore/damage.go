package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

// A damagedError is ErrDamaged with the folder, the damage and the next step for a person, in one
// line.
type damagedError struct {
	dir   string
	cause error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("%v: %s: %s; to find all damage, run duesday store check; to restore a backup, run "+
		"duesday store restore --replace, which keeps the damaged folder", store.ErrDamaged, e.dir, firstLine(e.cause))
}

func (e *damagedError) Unwrap() []error { return []error{store.ErrDamaged, e.cause} }

// damaged returns Pebble's error of a damaged file as a damagedError, and other errors as they are.
func damaged(dir string, err error) error {
	if pebble.IsCorruptionError(err) && !errors.Is(err, store.ErrDamaged) {
		return &damagedError{dir, err}
	}
	return err
}

// damagedAtOpen is damaged, of an error of opening a store that is there: a file that its manifest
// names may be missing, or have another size, and the marker of Pebble's format may.
func damagedAtOpen(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, pebble.ErrDBNotPristine) || strings.Contains(err.Error(), "object size mismatch") {
		return &damagedError{dir, err}
	}
	return damaged(dir, err)
}

// A Damage is one damaged file of a store.
type Damage struct {
	File   string // its name in the folder; "" if the damage keeps the store from being opened
	Detail string // in one line
}

// Check reads every block of every file of the store in the folder, and returns what is damaged. It
// changes nothing, and also works in a read-only folder and on an older store. The number is the
// number of files that Check has read.
func Check(ctx context.Context, dir string, o Options) (list []Damage, files int, err error) {
	o.ReadOnly, o.Create, o.Tables = true, false, nil // nothing of the tables has to be known
	s, err := Open(dir, o)
	if broken, ok := errors.AsType[*damagedError](err); ok {
		return []Damage{{Detail: firstLine(broken.cause)}}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, 0, err
	}
	seen := map[string]bool{}
	for _, t := range slices.Concat(levels...) {
		name := t.BackingSSTNum.String() + ".sst"
		if seen[name] {
			continue
		}
		seen[name] = true
		if err := readWhole(ctx, filepath.Join(dir, name)); err != nil {
			list = append(list, Damage{name, firstLine(err)})
		}
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
	}
	return list, len(seen), nil
}

func readWhole(ctx context.Context, path string) error {
	f, err := vfs.Default.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(ctx, readable, sstable.ReaderOptions{})
	if err != nil {
		return err // it has closed the file
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// firstLine returns an error's first line: Pebble's have a stack below.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
