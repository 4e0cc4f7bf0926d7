package pebblestore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// IsStore reports whether a store is in the folder.
func IsStore(dir string) (bool, error) { return isStore(dir, vfs.Default) }

func isStore(dir string, files vfs.FS) (bool, error) {
	if _, err := files.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	d, err := pebble.Peek(dir, files)
	return err == nil && d.Exists, err
}

// placeOf returns the one name of a path whose last parts may not exist yet. Pebble's lock goes by
// name: under a second name the same process would get the lock again, and closing either store
// would release it.
func placeOf(path string) (string, error) {
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
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// inside reports whether the path is the folder or in it.
func inside(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// One process holds a folder, perhaps for days. Another process asks it for a checkpoint by a
// request file in the folder. The holder looks for one a few times a second, takes it away, makes
// the checkpoint and leaves an answer file. Both files appear whole, by a link or a rename.
const (
	requestFile  = "BACKUP.request"
	answerPrefix = "BACKUP.answer-"

	requestEvery = 250 * time.Millisecond // of the holder, for requests
	answerEvery  = 50 * time.Millisecond  // of the asker, for its answer
	takenWithin  = 15 * time.Second       // else the holder is too old for requests, or hangs
)

type backupRequest struct {
	ID string
	To string // absolute
}

type backupAnswer struct {
	ID    string
	Error string `json:",omitempty"`
	Again bool   `json:",omitempty"` // the asked process has ended
}

// ErrNoAnswer: the holder of the store has not made the checkpoint.
var ErrNoAnswer = errors.New("the process that holds the store does not answer")

// ErrAskAgain: the asked process has ended, and another one has opened the store.
var ErrAskAgain = errors.New("the process that was asked for a backup has ended")

// AskCheckpoint asks the holder of the store in the folder dir for a checkpoint in the folder
// to, and waits for it until ctx ends. It returns ErrNoAnswer if the holder has not taken the
// request within some seconds: it is an older Duesday, or a stopped process.
func AskCheckpoint(ctx context.Context, dir, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	r := backupRequest{ID: rand.Text(), To: to}
	request := filepath.Join(dir, requestFile)
	if err := leave(dir, request, r, os.Link); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: another backup of %s is being asked for; if none is, remove %s", ErrNoAnswer, dir, request)
	} else if err != nil {
		return err
	}
	answer := filepath.Join(dir, answerPrefix+r.ID)
	defer os.Remove(answer)
	tick := time.NewTicker(answerEvery)
	defer tick.Stop()
	late := time.NewTimer(takenWithin)
	defer late.Stop()
	for {
		b, err := os.ReadFile(answer)
		if err == nil {
			return decodeAnswer(b, r.ID)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-tick.C:
		case <-late.C:
			if withdraw(request, r.ID) {
				holder, _ := readHolder(vfs.Default, dir)
				return fmt.Errorf("%w within %s: %s may be an older Duesday, or stopped; back up when it has ended", ErrNoAnswer,
					takenWithin, holder)
			}
		case <-ctx.Done():
			withdraw(request, r.ID)
			return fmt.Errorf("%w: %w", ErrNoAnswer, context.Cause(ctx))
		}
	}
}

func decodeAnswer(b []byte, id string) error {
	var a backupAnswer
	if err := json.Unmarshal(b, &a); err != nil || a.ID != id {
		return fmt.Errorf("%w: what it left is no answer", ErrNoAnswer)
	}
	if a.Again {
		return ErrAskAgain
	}
	if a.Error != "" {
		return errors.New("the process that holds the store: " + a.Error)
	}
	return nil
}

// withdraw takes the request back, and reports whether it was still there.
func withdraw(request, id string) bool {
	r, err := readRequest(request)
	return err == nil && r.ID == id && os.Remove(request) == nil
}

// leave writes the value to a temporary file and moves it to the path by appear: os.Link, which
// refuses an existing file, or os.Rename.
func leave(dir, path string, v any, appear func(from, to string) error) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "BACKUP.tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return appear(f.Name(), path)
}

func readRequest(path string) (r backupRequest, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

// sweepRequests answers the requests to an earlier holder with ErrAskAgain, and removes answers
// without an asker. There is no request to this process yet: it has just got the lock.
func sweepRequests(dir string) error {
	list, err := filepath.Glob(filepath.Join(dir, answerPrefix+"*"))
	if err != nil {
		return err
	}
	for _, left := range list {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	path := filepath.Join(dir, requestFile)
	r, err := readRequest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if removing := os.Remove(path); err != nil || removing != nil || !r.valid() {
		return removing // an unreadable request has no asker
	}
	return leave(dir, filepath.Join(dir, answerPrefix+r.ID), backupAnswer{ID: r.ID, Again: true}, os.Rename)
}

// valid reports whether the request is well formed: its id becomes the name of a file.
func (r backupRequest) valid() bool {
	return r.ID != "" && !strings.ContainsAny(r.ID, `/\`) && filepath.IsAbs(r.To)
}

// answerRequest makes the checkpoint of a request, if there is one, and leaves the outcome.
func (s *Store) answerRequest(ctx context.Context, dir string) error {
	path := filepath.Join(dir, requestFile)
	r, err := readRequest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if removing := os.Remove(path); err != nil || removing != nil {
		return errors.Join(err, removing)
	}
	if !r.valid() {
		return fmt.Errorf("%w: a request for a backup without an id or a folder", store.ErrInvalid)
	}
	a := backupAnswer{ID: r.ID}
	err = CheckTarget(dir, r.To)
	if err == nil {
		err = s.Checkpoint(ctx, r.To)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return errors.Join(err, leave(dir, filepath.Join(dir, answerPrefix+r.ID), a, os.Rename))
}
