package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// TestMarkerGone: a folder with data and without the marker of the manifest is damaged. Nobody takes
// it for an empty one, and nothing in it changes.
func TestMarkerGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := Options{Tables: crashTables(), Create: true}
	s := openTest(t, dir, o)
	for range 3 { // so that tables are written too
		if err := s.Commit(t.Context(), store.Put("marks", store.NewItem(store.Attribute{Name: "id", Value: store.S("1")}))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	markers, err := filepath.Glob(filepath.Join(dir, "marker.manifest.*"))
	if err != nil || len(markers) != 1 {
		t.Fatalf("%v, %v", markers, err)
	}
	if err := os.Remove(markers[0]); err != nil {
		t.Fatal(err)
	}
	had := files(t, dir)
	for _, create := range []bool{true, false} {
		o.Create = create
		if _, err := Open(dir, o); !errors.Is(err, store.ErrDamaged) || strings.Contains(err.Error(), "\n") {
			t.Errorf("create %t: %v, want ErrDamaged in one line", create, err)
		}
	}
	if is, err := IsStore(dir); is || !errors.Is(err, store.ErrDamaged) {
		t.Errorf("IsStore: %t, %v", is, err)
	}
	other := t.TempDir()
	for _, name := range []string{"serve.log", ".log", "7 of 9.sst"} {
		if err := os.WriteFile(filepath.Join(other, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := IsStore(other); is || err != nil {
		t.Errorf("another program's log: %t, %v", is, err)
	}
	if now := files(t, dir); now != had {
		t.Errorf("the folder was changed:\n%s\nnow\n%s", had, now)
	}
}

// files lists a folder, with sizes.
func files(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.Name() + " " + info.ModTime().String() + "\n")
	}
	return b.String()
}

// TestLockRemoved: who removes the file LOCK lets nobody in.
func TestLockRemoved(t *testing.T) {
	dir := t.TempDir()
	o := Options{Tables: crashTables(), Create: true, Holder: "this test"}
	s := openTest(t, dir, o)
	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
		t.Fatal(err)
	}
	if held, err := flock(dir, true); !errors.Is(err, errFlocked) {
		t.Errorf("the folder is not locked: %v, %v", held, err)
	}
	if _, err := Open(dir, o); !errors.Is(err, store.ErrLocked) {
		t.Errorf("Open: %v, want ErrLocked", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := openTest(t, dir, o).Close(); err != nil {
		t.Error(err)
	}
}

// TestReadOnly: a reader sees what was committed, also in a log that was not closed, and changes no file.
// Readers share the folder and keep writers out.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	o := Options{Tables: crashTables(), Create: true}
	s := openTest(t, dir, o)
	item := store.NewItem(store.Attribute{Name: "id", Value: store.S("1")})
	if err := s.Commit(t.Context(), store.Put("marks", item)); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "killed") // with its log
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.ReadOnly = true
	for _, dir := range []string{dir, killed} {
		had := files(t, dir)
		first, second := openTest(t, dir, o), openTest(t, dir, o)
		if it, err := first.Get(t.Context(), "marks", store.Key{PK: "1"}); err != nil || !it.Equal(item) {
			t.Errorf("%v, %v", it, err)
		}
		if err := first.Commit(t.Context(), store.Put("marks", item)); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Commit: %v", err)
		}
		if _, err := Open(dir, Options{Tables: crashTables()}); !errors.Is(err, store.ErrLocked) {
			t.Errorf("a writer beside readers: %v", err)
		}
		if err := errors.Join(first.Close(), second.Close()); err != nil {
			t.Error(err)
		}
		if now := files(t, dir); now != had {
			t.Errorf("the folder was changed:\n%s\nnow\n%s", had, now)
		}
	}
	for _, err := range []error{syscall.EROFS, syscall.ENOSPC, fs.ErrPermission} {
		if !store.IsUnwritable(fmt.Errorf("lock: %w", &fs.PathError{Op: "create", Err: err})) {
			t.Error(err)
		}
	}
}

// TestMissingTable: a file that the manifest names and that is gone, or is shorter, is damage.
func TestMissingTable(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{Tables: crashTables(), Create: true})
	if err := errors.Join(s.Commit(t.Context(), store.Put("marks",
		store.NewItem(store.Attribute{Name: "id", Value: store.S("1")}))), s.Close()); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, spoil := range []func() error{func() error { return os.Truncate(tables[0], 100) },
		func() error { return os.Remove(tables[0]) }} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{Tables: crashTables()}); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("Open: %v", err)
		}
		list, _, err := Check(t.Context(), dir, Options{Tables: crashTables()})
		if err != nil || len(list) != 1 || strings.Contains(list[0].Detail, "\n") {
			t.Errorf("Check: %v, %v", list, err)
		}
	}
}

// TestDamagedRecords: a damaged record of the log or of the manifest, before others that were synced
// later, is damage. Pebble would drop it and all later ones, and delete them: no command may do that.
func TestDamagedRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := Options{Tables: crashTables(), Create: true}
	first := filepath.Join(t.TempDir(), "first") // killed, with its log
	killed := filepath.Join(t.TempDir(), "killed")
	s := openTest(t, dir, o)
	for i := range 30 {
		if err := s.Commit(t.Context(), store.Put("marks",
			store.NewItem(store.Attribute{Name: "id", Value: store.S(fmt.Sprint(i))}))); err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			if err := os.CopyFS(first, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
		}
		if i == 10 || i == 13 || i == 16 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(os.CopyFS(killed, os.DirFS(dir)), s.Close()); err != nil {
		t.Fatal(err)
	}
	last := func(dir, pattern string) string {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		return filepath.Base(list[len(list)-1])
	}
	log, manifest := last(killed, "*.log"), last(killed, "MANIFEST-*")
	flip := func(name string) func(string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil {
				b[len(b)/3] ^= 0x55
				err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
			}
			return err
		}
	}
	without := func(pattern string) func(string) error {
		return func(dir string) error {
			list, err := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range list {
				err = errors.Join(err, os.Remove(path))
			}
			return err
		}
	}
	for name, c := range map[string]struct {
		spoil   func(dir string) error
		damaged bool
	}{
		"whole":            {func(string) error { return nil }, false},
		"log":              {flip(log), true},
		"first log":        {flip(last(first, "*.log")), true},
		"manifest":         {flip(manifest), true},
		"no log":           {without("*.log"), true},
		"no format marker": {without("marker.format-version.*"), true},
		"torn log": {func(dir string) error { // by a power cut
			info, err := os.Stat(filepath.Join(dir, log))
			if err == nil {
				err = os.Truncate(filepath.Join(dir, log), info.Size()-3)
			}
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			from, dir := killed, filepath.Join(t.TempDir(), "store")
			if name == "first log" {
				from = first
			}
			if err := errors.Join(os.CopyFS(dir, os.DirFS(from)), c.spoil(dir)); err != nil {
				t.Fatal(err)
			}
			list, _, err := Check(t.Context(), dir, o)
			if err != nil || len(list) > 0 != c.damaged {
				t.Errorf("Check: %v, %v", list, err)
			}
			s, err := Open(dir, o)
			if errors.Is(err, store.ErrDamaged) != c.damaged {
				t.Errorf("Open: %v", err)
			}
			if err == nil {
				err = s.Close()
			}
			if err != nil && !c.damaged {
				t.Error(err)
			}
		})
	}
}

// TestDamageInBackground: damage that Pebble meets by itself ends the process as damage, in one line.
func TestDamageInBackground(t *testing.T) {
	var got error
	log := pebbleLog{failure: newFailure(func(err error) { got = err }), dir: "folder"}
	log.events().BackgroundError(fmt.Errorf("a table: %w\nwith a stack", pebble.ErrCorruption))
	if !errors.Is(got, store.ErrDamaged) || strings.Contains(got.Error(), "\n") || !strings.Contains(got.Error(), "store check") {
		t.Errorf("%v, want ErrDamaged in one line", got)
	}
}

// TestDamageInCommit: damage that a commit meets, wherever it is in a table, ends the process as
// damage, if at all.
func TestDamageInCommit(t *testing.T) {
	whole := t.TempDir()
	item := func(i int) store.Item {
		return store.NewItem(store.Attribute{Name: "id", Value: store.S(fmt.Sprint(i))})
	}
	s := openTest(t, whole, Options{Tables: crashTables(), Create: true})
	for i := range 300 {
		if err := s.Commit(t.Context(), store.Put("marks", item(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.db.Compact(t.Context(), []byte{0}, []byte{255}, false), s.Close()); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(whole, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	table := filepath.Base(tables[len(tables)-1])
	bytes, err := os.ReadFile(filepath.Join(whole, table))
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for at := 20; at < len(bytes); at += 100 {
		dir := filepath.Join(t.TempDir(), "store")
		spoilt := slices.Clone(bytes)
		spoilt[at] ^= 0x55
		if err := errors.Join(os.CopyFS(dir, os.DirFS(whole)), os.WriteFile(filepath.Join(dir, table), spoilt, 0o600)); err != nil {
			t.Fatal(err)
		}
		fatal := make(chan error, 1)
		s, err := Open(dir, Options{Tables: crashTables(), Fatal: func(err error) { fatal <- err }})
		if err != nil {
			continue // as TestMissingTable
		}
		err = s.Commit(t.Context(), store.Put("marks", item(at), store.Absent()))
		_ = s.Close() // fails after Fatal
		select {
		case err = <-fatal:
			ended++
			if !errors.Is(err, store.ErrDamaged) || strings.Contains(err.Error(), "\n") {
				t.Errorf("byte %d: %v, want ErrDamaged in one line", at, err)
			}
		default:
			t.Logf("byte %d of %d: %v", at, len(bytes), err)
		}
	}
	if ended == 0 {
		t.Error("no damage was met")
	}
}
