package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

// Checkpoint makes a copy of the store in the folder to, which must not exist yet: the
// store as it stands at one moment, whole commits alone, everything in it that was durable
// when Checkpoint was called. Work goes on meanwhile. Files that never change are hard links
// where the file system allows, so it takes little time and, at first, little space.
//
// The copy is a complete store of its own and is on disk when Checkpoint returns nil. An
// error leaves the store as it was: a full disk under the copy is no reason to end the
// process.
func (s *Store) Checkpoint(ctx context.Context, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	s.disk.spare(to)
	defer s.disk.spare("")
	if err := s.db.Checkpoint(to, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if s.disk.FS == vfs.Default {
		return os.Chmod(to, 0o700) // Pebble makes it readable by all
	}
	return nil
}

// CheckTarget returns why a backup of the store in the folder dir cannot be made in the
// folder to: it must be outside the store, and new or empty.
func CheckTarget(dir, to string) error {
	at, err := placeOf(dir)
	if err != nil {
		return err
	}
	target, err := placeOf(to)
	if err != nil {
		return err
	}
	if inside(target, at) || inside(at, target) {
		return fmt.Errorf("%w: %s and the store %s lie one in the other: name a folder beside it", store.ErrInvalid, to, dir)
	}
	return CheckEmpty(to)
}

// CheckEmpty returns an error when there is something at the path that is no empty folder.
func CheckEmpty(path string) error {
	list, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(list) > 0:
		return fmt.Errorf("%w: the folder %s is not empty", store.ErrInvalid, path)
	}
	return nil
}

// LockFolder keeps every process, this one too, from opening the store in the folder until
// release is called. The lock stays with the folder when that is renamed. It returns
// store.ErrLocked when one has it open.
func LockFolder(dir string) (release func() error, err error) {
	path, err := realPath(dir)
	if err != nil {
		return nil, err
	}
	held, err := pebble.LockDirectory(path, vfs.Default)
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("lock store %s: %w", dir, pathError)
	}
	if err != nil {
		return nil, &lockedError{dir, heldBy(path), err}
	}
	return held.Close, nil
}

// IsStore reports whether a store is in the folder.
func IsStore(dir string) (bool, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	d, err := pebble.Peek(dir, vfs.Default)
	if err != nil {
		return false, err
	}
	return d.Exists, nil
}

// placeOf returns the one name of a path, parts of which may not exist yet.
func placeOf(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		parent := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || parent == path {
			return "", err
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// inside reports whether the path is the folder or in it.
func inside(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
