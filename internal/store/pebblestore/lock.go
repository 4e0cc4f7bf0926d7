package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

// holderFile names the holder of the store. It is for people; the lock decides.
const holderFile = "HOLDER"

// A lock keeps other processes, and other Opens in this one, out of a folder.
type lock struct {
	held   *pebble.Lock
	fs     vfs.FS
	holder string // path of the holder file
}

// acquireLock locks the folder at path. shown is how the user names it.
func acquireLock(files vfs.FS, path, shown, holder string) (*lock, error) {
	l := &lock{fs: files, holder: files.PathJoin(path, holderFile)}
	held, err := pebble.LockDirectory(path, files)
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("lock store %s: %w", shown, pathError)
	}
	if err != nil {
		return nil, &lockedError{shown, l.readHolder(), err}
	}
	l.held = held
	if err := l.writeHolder(holder); err != nil {
		return nil, errors.Join(fmt.Errorf("lock store %s: %w", shown, err), held.Close())
	}
	return l, nil
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

func (l *lock) writeHolder(holder string) error {
	f, err := l.fs.Create(l.holder, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if holder == "" {
		holder = "another program"
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text := fmt.Sprintf("%q (pid %d on host %s since %s)\n", holder, os.Getpid(), host,
		time.Now().UTC().Format(time.RFC3339))
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Close())
}

func (l *lock) readHolder() string {
	const unknown = "another process"
	f, err := l.fs.Open(l.holder)
	if err != nil {
		return unknown
	}
	var text bytes.Buffer
	_, err = io.CopyN(&text, f, 1000)
	_ = f.Close()
	line, _, whole := strings.Cut(text.String(), "\n")
	if !whole || (err != nil && !errors.Is(err, io.EOF)) {
		return unknown // its holder has just taken the lock
	}
	return line
}

// release gives the folder back.
func (l *lock) release() error {
	err := l.fs.Remove(l.holder)
	return errors.Join(err, l.held.Close())
}
