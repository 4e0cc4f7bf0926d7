package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/socket"
	"github.com/duesday/duesday/internal/store"
)

// holderFile names the holder of the store. It is for people; the lock decides.
const holderFile = "HOLDER"

// A lock keeps other processes, and other Opens in this one, out of a folder.
type lock struct {
	held   *folderLock
	fs     vfs.FS
	holder string // path of the holder file
}

// acquireLock locks the folder at path for the holder. shown is how the user names the folder.
func acquireLock(files vfs.FS, path, shown, holder, at string) (*lock, error) {
	held, err := lockFolder(files, path, shown)
	if err != nil {
		return nil, err
	}
	l := &lock{held, files, files.PathJoin(path, holderFile)}
	if err := l.writeHolder(holder, at); err != nil {
		return nil, errors.Join(fmt.Errorf("lock store %s: %w", shown, err), held.Close())
	}
	return l, nil
}

// A folderLock is the kernel's lock on the folder, which decides, and Pebble's on the file LOCK.
type folderLock struct {
	*pebble.Lock
	folder io.Closer // nil: the system has none
}

// errFlocked: another process, or another Open of this one, has the folder.
var errFlocked = errors.New("the folder is locked")

// Close gives the folder back.
func (l *folderLock) Close() error {
	err := l.Lock.Close()
	if l.folder != nil {
		err = errors.Join(err, l.folder.Close())
	}
	return err
}

func lockFolder(files vfs.FS, path, shown string) (*folderLock, error) {
	if files == vfs.Default && os.Geteuid() == 0 { // others are kept out by the system
		if err := socket.CheckOwner(path); err != nil {
			return nil, fmt.Errorf("store %w", err)
		}
	}
	l, err := new(folderLock), error(nil)
	if files == vfs.Default {
		l.folder, err = flock(path)
	}
	if err == nil {
		l.Lock, err = pebble.LockDirectory(path, files)
		if err != nil && l.folder != nil {
			err = errors.Join(err, l.folder.Close())
		}
	}
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("lock store %s: %w", shown, pathError)
	}
	if err != nil {
		holder, _ := readHolder(files, path)
		return nil, &lockedError{shown, holder, err}
	}
	return l, nil
}

// LockFolder keeps every process, this one included, from opening the store in the folder
// until release is called. The lock follows the folder when it is renamed. LockFolder returns
// store.ErrLocked if a process has the store open.
func LockFolder(dir string) (release func() error, err error) {
	path, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	held, err := lockFolder(vfs.Default, path, dir)
	if err != nil {
		return nil, err
	}
	return held.Close, nil
}

// lockedError is ErrLocked with the holder and the next step for a person.
type lockedError struct {
	shown  string
	holder string
	cause  error
}

func (e *lockedError) Error() string {
	return fmt.Sprintf("store %s is in use by %s; wait for it or stop it", e.shown, e.holder)
}

func (e *lockedError) Unwrap() []error { return []error{store.ErrLocked, e.cause} }

func (l *lock) writeHolder(holder, path string) error {
	f, err := l.fs.Create(l.holder, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(socket.WriteHolder(f, holder, path), f.Close())
}

// readHolder returns how the holder of the store in the folder names itself, and its socket or "".
func readHolder(files vfs.FS, path string) (holder, at string) {
	f, err := files.Open(files.PathJoin(path, holderFile))
	if err != nil {
		return socket.Unnamed, ""
	}
	holder, at = socket.ReadHolder(f)
	_ = f.Close()
	return holder, at
}

// HolderOf returns how the holder of the store in the folder names itself, and the path at which it
// serves the store. The path is "" if it serves nobody, or has just taken the folder.
func HolderOf(dir string) (holder, at string) {
	path, err := placeOf(dir)
	if err != nil {
		return socket.Unnamed, ""
	}
	return readHolder(vfs.Default, path)
}

// release gives the folder back.
func (l *lock) release() error {
	return errors.Join(l.fs.Remove(l.holder), l.held.Close())
}
