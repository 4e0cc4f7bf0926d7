package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

// Checkpoint copies the store into the folder to, which must not exist yet. The copy has the
// state of one moment: whole commits, and all of them that were durable when Checkpoint was
// called. Commits go on meanwhile. Immutable files are hard links where the file system allows,
// so a copy takes little time and, at first, little space.
//
// The copy is a complete store, on disk when Checkpoint returns nil. An error leaves the store
// unchanged: a full disk under the copy does not end the process.
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

// CheckTarget returns an error unless the folder to can take a backup of the store in the
// folder dir: it must be outside the store, and new or empty.
func CheckTarget(dir, to string) error {
	at, err := PlaceOf(dir)
	if err != nil {
		return err
	}
	target, err := PlaceOf(to)
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	if inside(target, at) || inside(at, target) {
		return fmt.Errorf("%w: %s and the store %s must not contain each other; use a folder next to the store", store.ErrInvalid, to, dir)
	}
	list, err := os.ReadDir(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(list) > 0:
		return fmt.Errorf("%w: the folder %s is not empty", store.ErrInvalid, to)
	}
	return nil
}

// IsStore reports whether a store is in the folder. It returns ErrDamaged if there are only parts
// of one.
func IsStore(dir string) (bool, error) { return isStore(dir, vfs.Default) }

func isStore(dir string, files vfs.FS) (bool, error) {
	if _, err := files.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	d, err := pebble.Peek(dir, files)
	if err != nil || d.Exists {
		return err == nil, damaged(dir, err)
	}
	list, err := files.List(dir)
	for _, name := range list { // the creation of a store makes the marker first
		ext := filepath.Ext(name)
		number := strings.TrimSuffix(name, ext) // of a file of Pebble's; another program's log may lie there, too
		if slices.Contains([]string{".sst", ".log", ".blob"}, ext) && strings.Trim(number, "0123456789") == "" && number != "" {
			return false, &damagedError{dir, fmt.Errorf("%s exists, but the manifest's marker is missing", name)}
		}
	}
	return false, err
}

// PlaceOf returns the one name of a path whose last parts may not exist yet; a link may lead there.
// Pebble's lock goes by name: under a second name the same process would get the lock again, and closing
// either store would release it.
func PlaceOf(path string) (string, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil { // Abs would take a .. after a link for its own folder
		return filepath.Abs(real)
	}
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
		if to, lerr := os.Readlink(path); lerr != nil {
			path, rest = parent, filepath.Join(filepath.Base(path), rest)
		} else if path = to; !filepath.IsAbs(to) {
			if parent, err = filepath.EvalSymlinks(parent); err != nil {
				return "", err
			}
			path = filepath.Join(parent, to)
		}
	}
}

// inside reports whether the path is the folder or in it.
func inside(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
