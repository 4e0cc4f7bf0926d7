package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/socket"
	"github.com/duesday/duesday/internal/store"
)

// holderFile names the holder of the store and its socket. The lock decides.
const holderFile = "HOLDER"

// A lock keeps other processes, and other Opens in this one, out of a folder. It is the kernel's lock
// on the folder, which decides, and Pebble's on the file LOCK.
type lock struct {
	folder *os.File     // nil: not on a disk, or on one without such locks
	file   *pebble.Lock // nil: of a reader
	post   socket.Post  // without a file: of a reader, or not on a disk
}

// acquireLock locks the folder at path. shown is how the user names the folder.
func acquireLock(path, shown string, o *Options) (*lock, error) {
	l, err := lockFolder(o.FS, path, shown, o.ReadOnly)
	if err != nil || o.ReadOnly || o.FS != vfs.Default {
		return l, err
	}
	l.post = socket.Post{Held: path, File: filepath.Join(path, holderFile), Holder: o.Holder, Socket: o.Socket}
	if err := l.post.Write(); err != nil {
		return nil, errors.Join(fmt.Errorf("lock store %s: %w", shown, err), l.release())
	}
	return l, nil
}

// errFlocked: another process, or another Open of this one, has the folder.
var errFlocked = errors.New("the folder is locked")

func (l *lock) release() (err error) {
	if l.post.File != "" {
		if err = os.Remove(l.post.File); errors.Is(err, fs.ErrNotExist) {
			err = nil // someone else has
		}
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return errors.Join(err, unflock(l.folder))
}

// unflock gives the lock back, though a child that is just being started has it too.
func unflock(d *os.File) error {
	if d == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(d.Fd()), syscall.LOCK_UN), d.Close())
}

// flock locks the folder itself, shared or alone. It makes no file, and removing or renaming files
// unlocks nothing. It returns errFlocked if others have the folder, and nil where the file system
// has no such locks, as over some networks: then Pebble's lock on the file LOCK decides.
func flock(path string, shared bool) (*os.File, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(d.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return d, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(errFlocked, d.Close())
	}
	return nil, d.Close()
}

// lockFolder locks the folder at path, of which readers share the lock.
func lockFolder(files vfs.FS, path, shown string, reader bool) (*lock, error) {
	l, err := new(lock), error(nil)
	if files == vfs.Default {
		if os.Geteuid() == 0 { // others are kept out by the system
			if err := socket.CheckOwner(path); err != nil {
				return nil, fmt.Errorf("store %w", err)
			}
		}
		l.folder, err = flock(path, reader)
	}
	if err == nil && !reader {
		l.file, err = pebble.LockDirectory(path, files)
	}
	if err == nil {
		return l, nil
	}
	err = errors.Join(err, unflock(l.folder))
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("lock store %s: %w", shown, pathError)
	}
	holder, _ := socket.ReadHolder(filepath.Join(path, holderFile), path)
	return nil, &lockedError{shown, holder, err}
}

// Post returns what this process leaves in the folder for others to find it.
func (s *Store) Post() socket.Post { return s.lock.post }

// LockFolder keeps every process, this one included, from opening the store in the folder
// until release is called. The lock follows the folder when it is renamed. LockFolder returns
// store.ErrLocked if a process has the store open.
func LockFolder(dir string) (release func() error, err error) {
	path, err := PlaceOf(dir)
	if err != nil {
		return nil, err
	}
	l, err := lockFolder(vfs.Default, path, dir, false)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(filepath.Join(path, holderFile)) // of a killed process; in a folder that nobody can write it stays
	return l.release, nil
}

// lockedError is ErrLocked with the holder and the next step for a person.
type lockedError struct {
	shown  string
	holder string
	cause  error
}

func (e *lockedError) Error() string {
	return fmt.Sprintf("store %s is in use by %s; wait until it ends, or stop it", e.shown, e.holder)
}

func (e *lockedError) Unwrap() []error { return []error{store.ErrLocked, e.cause} }

// HolderOf returns how the holder of the store in the folder names itself, and the path at which it
// serves the store. The path is "" if it serves nobody, or has just taken the folder.
func HolderOf(dir string) (holder, at string) {
	path, err := PlaceOf(dir)
	if err != nil {
		return socket.Unnamed, ""
	}
	return socket.ReadHolder(filepath.Join(path, holderFile), path)
}
