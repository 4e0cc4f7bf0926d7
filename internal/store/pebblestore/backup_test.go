package pebblestore

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestAskCheckpoint: another process holds the store, and makes the checkpoint when asked.
func TestAskCheckpoint(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "store")
	s := openTest(t, dir, Options{Tables: crashTables(), Create: true})
	if err := s.Commit(t.Context(), (mark{0, 1}).writes(10)...); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{requestFile, answerPrefix + "OLDER"} { // of an earlier asker, who is gone
		if err := os.WriteFile(filepath.Join(dir, left), []byte(`{"ID":"OLD","To":"`+filepath.Join(base, "old")+`"}`),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	release := hold(t, dir)
	to := filepath.Join(base, "copy")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := AskCheckpoint(ctx, dir, to); err != nil {
		t.Fatal(err)
	}
	if err := AskCheckpoint(ctx, dir, filepath.Join(dir, "inside")); err == nil ||
		!strings.Contains(err.Error(), "lie one in the other") {
		t.Errorf("inside the store: %v", err)
	}
	if err := AskCheckpoint(ctx, dir, to); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("onto what is there: %v", err)
	}
	release()
	again := openTest(t, to, Options{Tables: crashTables()})
	if err := errors.Join(audit(t.Context(), again, [crashSlots]int64{1}), again.Close()); err != nil {
		t.Error(err)
	}
	list, err := filepath.Glob(filepath.Join(dir, "BACKUP*"))
	if err != nil || len(list) != 1 || filepath.Base(list[0]) != answerPrefix+"OLD" {
		t.Errorf("left in the folder: %q, %v", list, err)
	}
	if b, err := os.ReadFile(list[0]); err != nil || !errors.Is(decodeAnswer(b, "OLD"), ErrAskAgain) {
		t.Errorf("answer to an old request: %s, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(base, "old")); err == nil {
		t.Error("an old request was answered")
	}
}

// TestAskCheckpoint_NobodyAnswers: an older Duesday, or a stopped one, takes no request.
func TestAskCheckpoint_NobodyAnswers(t *testing.T) {
	dir := t.TempDir()
	release, err := LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := AskCheckpoint(ctx, dir, filepath.Join(t.TempDir(), "copy")); !errors.Is(err, ErrNoAnswer) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if list, err := filepath.Glob(filepath.Join(dir, "BACKUP*")); err != nil || len(list) > 0 {
		t.Errorf("left in the folder: %q, %v", list, err)
	}
	if _, err := LockFolder(dir); !errors.Is(err, store.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// hold has another process hold the store in the folder until release is called.
func hold(t *testing.T, dir string) (release func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.CommandContext(t.Context(), exe)
	holder.Env = append(os.Environ(), holdStore+"="+dir)
	holder.Stderr = os.Stderr
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("holder: %q, %v", line, err)
	}
	return func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, out)
		if err := holder.Wait(); err != nil {
			t.Error(err)
		}
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
		"full": "not empty", "store": "lie one in the other", "store/sub/new": "lie one in the other",
		".":        "lie one in the other",
		"link/new": "lie one in the other",
	} {
		err := CheckTarget(dir, filepath.Join(base, to))
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", to, err, want)
		}
	}
}
