package pebblestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/duesday/duesday/internal/store"
)

// TestCheckpoint_WhileWorking: a checkpoint made under load opens, has everything that was
// acknowledged or seen before it was asked for, and every commit wholly or not at all.
func TestCheckpoint_WhileWorking(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, filepath.Join(dir, "store"), Options{Tables: crashTables(), Create: true, tune: tiny})
	ctx, cancel := context.WithCancel(t.Context())
	w := &witness{enough: 60, reached: make(chan struct{})}
	all := work(ctx, s, w, 1)
	for _, name := range []string{"one", "two", "three"} {
		<-w.reached
		before := w.so()
		to := filepath.Join(dir, name)
		if err := s.Checkpoint(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", to, info, err)
		}
		if err := s.Checkpoint(t.Context(), to); !errors.Is(err, os.ErrExist) {
			t.Errorf("again: %v", err)
		}
		again := openTest(t, to, Options{Tables: crashTables(), tune: tiny})
		if err := errors.Join(audit(t.Context(), again, before), again.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	cancel()
	all.Wait()
	if err := audit(t.Context(), s, w.so()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(t.Context(), filepath.Join(dir, "late")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
}

// failIn fails every write in a folder.
type failIn string

func (f failIn) String() string { return "(fails in " + string(f) + ")" }

func (f failIn) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasPrefix(op.Path, string(f)) {
		return errorfs.ErrInjected
	}
	return nil
}

// TestCheckpoint_AFullDiskThereIsNoFailureHere: the store goes on working.
func TestCheckpoint_AFullDiskThereIsNoFailureHere(t *testing.T) {
	fatal := make(chan error, 1)
	s, err := Open("d/store", Options{Tables: crashTables(), FS: errorfs.Wrap(vfs.NewMem(), failIn("d/backup")),
		Create: true, tune: tiny,
		Fatal: func(err error) { fatal <- err }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Checkpoint(t.Context(), "d/backup"); !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("checkpoint: %v", err)
		}
	}
	if err := s.Commit(t.Context(), (mark{0, 1}).writes(10)...); err != nil {
		t.Error(err)
	}
	if err := s.Checkpoint(t.Context(), "d/other"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-fatal:
		t.Errorf("the store has failed: %v", err)
	default:
	}
}

func TestLockFolder(t *testing.T) {
	dir := t.TempDir()
	release, err := LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockFolder(dir); !errors.Is(err, store.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func TestCheckTarget(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "store")
	full := filepath.Join(base, "full")
	link := filepath.Join(base, "link")
	for _, d := range []string{dir, filepath.Join(full, "x"), filepath.Join(base, "empty")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{
		"new": "", "empty": "", "a/b/c": "", "store-copy": "",
		"full": "not empty", "store": "must not contain each other", "store/sub/new": "must not contain each other",
		".":        "must not contain each other",
		"link/new": "must not contain each other",
	} {
		err := CheckTarget(dir, filepath.Join(base, to))
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", to, err, want)
		}
	}
}

// TestLockFolder_Owner: root makes no file in another user's folder.
func TestLockFolder_Owner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := LockFolder(dir); err == nil || !strings.Contains(err.Error(), "uid 12345") {
		t.Errorf("LockFolder = %v, want the owner", err)
	}
	if made, err := os.ReadDir(dir); len(made) != 0 || err != nil {
		t.Errorf("%v were made, %v", made, err)
	}
}
