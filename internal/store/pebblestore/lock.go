package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/socket"
	"github.com/duesday/duesday/internal/store"
)

// holderFile names the holder of the store. It is for people; the lock decides.
const holderFile = "HOLDER"

// A lock keeps other processes, and other Opens in this one, out of a folder. It is the kernel's lock
// on the folder, which decides, and Pebble's on the file LOCK.
type lock struct {
	folder *os.File     // nil: not on a disk, or on one without such locks
	file   *pebble.Lock // nil: of a reader
	fs     vfs.FS
	holder string // path of the holder file; "": none
}

// acquireLock locks the folder at path. shown is how the user names the folder.
func acquireLock(path, shown string, o *Options) (*lock, error) {
	l, err := lockFolder(o.FS, path, shown, o.ReadOnly)
	if err != nil || o.ReadOnly {
		return l, err
	}
	name := o.FS.PathJoin(path, holderFile)
	f, err := o.FS.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		l.holder = name
		err = errors.Join(socket.WriteHolder(f, o.Holder, o.Socket), f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock store %s: %w", shown, err), l.release())
	}
	return l, nil
}

// errFlocked: another process, or another Open of this one, has the folder.
var errFlocked = errors.New("the folder is locked")

func (l *lock) release() (err error) {
	if l.holder != "" {
		err = l.fs.Remove(l.holder)
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
	l, err := &lock{fs: files}, error(nil)
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
	holder, _ := readHolder(files, path)
	return nil, &lockedError{shown, holder, err}
}

// LockFolder keeps every process, this one included, from opening the store in the folder
// until release is called. The lock follows the folder when it is renamed. LockFolder returns
// store.ErrLocked if a process has the store open.
func LockFolder(dir string) (release func() error, err error) {
	path, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	l, err := lockFolder(vfs.Default, path, dir, false)
	if err != nil {
		return nil, err
	}
	return l.release, nil
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
