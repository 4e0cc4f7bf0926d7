package transfer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/transfer"
)

// A folder is a store in a folder of the test's, with one account.
type folder struct {
	t *testing.T
	transfer.Folders
	base string
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	now := time.Date(2024, 1, 31, 9, 0, 0, 0, time.UTC)
	f := &folder{t: t, base: t.TempDir(),
		Folders: transfer.Folders{Tables: schema.New(schema.DefaultPrefix), Names: schema.Names(),
			Now: func() time.Time { return now }, Holder: "test"}}
	f.open("store", true, func(e *engine.Engine) {
		if _, err := account.Create(t.Context(), e.Records, "a1", billing.Account{Email: "a@example.com"}); err != nil {
			t.Fatal(err)
		}
	})
	return f
}

func (f *folder) path(name string) string { return filepath.Join(f.base, name) }

func (f *folder) open(name string, create bool, do func(*engine.Engine)) {
	f.t.Helper()
	s, err := pebblestore.Open(f.path(name),
		pebblestore.Options{Tables: f.Tables.All(), Names: f.Names, Now: f.Now, Create: create, CacheBytes: 32 << 20})
	if err != nil {
		f.t.Fatal(err)
	}
	e, err := engine.Open(f.t.Context(), engine.Options{Store: s, Tables: f.Tables, Now: f.Now})
	if err != nil {
		f.t.Fatal(err)
	}
	do(e)
	if err := s.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) backup(to string) *transfer.Manifest {
	f.t.Helper()
	m, err := transfer.Backup(f.t.Context(), f.Folders, f.path("store"), f.path(to))
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// names lists what is in the test's folder.
func (f *folder) names() string {
	list, err := os.ReadDir(f.base)
	if err != nil {
		f.t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestBackup_Restore(t *testing.T) {
	f := newFolder(t)
	m := f.backup("deep/backup")
	if got, err := transfer.ReadManifest(f.path("deep/backup")); err != nil || *got != *m ||
		m.From != f.path("store") || m.Installation == "" {
		t.Errorf("manifest: %+v, %v", got, err)
	}
	r, err := transfer.Restore(t.Context(), f.Folders, f.path("deep/backup"), f.path("again"), false)
	if err != nil || r.Aside != "" || r.Meta.Charging || r.Meta.Installation != m.Installation {
		t.Fatalf("%+v, %v", r, err)
	}
	f.open("again", false, func(e *engine.Engine) {
		if a, err := e.Account(t.Context(), "a1"); err != nil || a.Email != "a@example.com" {
			t.Errorf("%+v, %v", a, err)
		}
	})
	// No file of the restored store is one of the backup.
	err = filepath.WalkDir(f.path("again"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		x, err := os.Stat(path)
		if err != nil {
			return err
		}
		if y, err := os.Stat(filepath.Join(f.path("deep/backup"), d.Name())); err == nil && os.SameFile(x, y) {
			t.Errorf("%s is shared with the backup", d.Name())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if got := f.names(); got != "again deep store" {
		t.Errorf("left: %s", got)
	}
}

// TestRestore_NothingIsTouched: a restore that cannot be done leaves everything as it was.
func TestRestore_NothingIsTouched(t *testing.T) {
	f := newFolder(t)
	f.backup("backup")
	before := f.names()
	restore := func(from, to string, replace bool, is error, want string) {
		t.Helper()
		_, err := transfer.Restore(t.Context(), f.Folders, f.path(from), f.path(to), replace)
		if err == nil || (is != nil && !errors.Is(err, is)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s to %s: %v, want %q", from, to, err, want)
		}
		if got := f.names(); got != before {
			t.Errorf("%s to %s: left %s, was %s", from, to, got, before)
		}
	}
	restore("backup", "store", false, transfer.ErrExists, "--replace")
	restore("store", "new", false, transfer.ErrNoBackup, "BACKUP.json")
	restore("backup", "backup", true, store.ErrInvalid, "is the backup itself")
	restore("backup", "backup/new", false, store.ErrInvalid, "must not contain each other")
	f.open("store", false, func(*engine.Engine) { restore("backup", "store", true, store.ErrLocked, "in use") })
	f.open("backup", false, func(*engine.Engine) { restore("backup", "new", false, store.ErrLocked, "in use") })

	// A backup that has lost a file does not open.
	lost, err := filepath.Glob(f.path("backup/*.sst"))
	if err != nil || len(lost) == 0 {
		t.Fatal(lost, err)
	}
	for _, name := range lost {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	restore("backup", "store", true, nil, "")
	f.open("store", false, func(e *engine.Engine) {
		if _, err := e.Account(t.Context(), "a1"); err != nil {
			t.Error(err)
		}
	})
}

// TestRestore_Damaged: a backup with a damaged block is no store to live on.
func TestRestore_Damaged(t *testing.T) {
	f := newFolder(t)
	f.backup("backup")
	tables, err := filepath.Glob(f.path("backup/*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[10] ^= 0xff
		if err := os.Remove(name); err != nil { // it may be a link to the store's own
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := f.names()
	_, err = transfer.Restore(t.Context(), f.Folders, f.path("backup"), f.path("new"), false)
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "nothing was restored") { // before it was opened
		t.Errorf("restored: %v", err)
	}
	if got := f.names(); got != before {
		t.Errorf("left %s, was %s", got, before)
	}
}

func TestRestore_Replace(t *testing.T) {
	f := newFolder(t)
	f.backup("backup")
	f.open("store", false, func(e *engine.Engine) {
		if _, err := account.Create(t.Context(), e.Records, "late", billing.Account{Email: "l@example.com"}); err != nil {
			t.Fatal(err)
		}
	})
	r, err := transfer.Restore(t.Context(), f.Folders, f.path("backup"), f.path("store"), true)
	if err != nil || filepath.Base(r.Aside) != "store.before-restore-20240131T090000.000Z" {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, is := range map[string]error{"store": store.ErrNotFound, filepath.Base(r.Aside): nil} {
		f.open(name, false, func(e *engine.Engine) {
			if _, err := e.Account(t.Context(), "late"); !errors.Is(err, is) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestRestore_Killed: beside the leftovers of a killed restore no store is made anew, and the next
// restore removes them. Of two restores to one folder the second is refused.
func TestRestore_Killed(t *testing.T) {
	f := newFolder(t)
	f.backup("backup")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(f.path("store"), f.path("aside"))) // killed between the two renames
	must(os.MkdirAll(f.path("store.restoring/store"), 0o700))
	_, err := pebblestore.Open(f.path("store"), pebblestore.Options{Create: true})
	if !errors.Is(err, store.ErrMissing) || !strings.Contains(err.Error(), "a restore to it") {
		t.Fatalf("a store was made anew: %v", err)
	}
	release, err := pebblestore.LockFolder(f.path("store.restoring"))
	must(err)
	if _, err := transfer.Restore(t.Context(), f.Folders, f.path("backup"), f.path("store"), false); err == nil ||
		!strings.Contains(err.Error(), "is running") {
		t.Errorf("two restores: %v", err)
	}
	must(release())
	_, err = transfer.Restore(t.Context(), f.Folders, f.path("backup"), f.path("store"), false)
	must(err)
	if got := f.names(); got != "aside backup store" {
		t.Errorf("left: %s", got)
	}
	f.open("store", false, func(*engine.Engine) {})
}

func TestBackup_Refused(t *testing.T) {
	f := newFolder(t)
	for _, dir := range []string{"others.unfinished/theirs", "killed.unfinished/store", "under way.unfinished"} {
		if err := os.MkdirAll(f.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	release, err := pebblestore.LockFolder(f.path("under way.unfinished"))
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{"store": "must not contain each other", "others": "which is not from a backup",
		"under way": "a backup to " + f.path("under way") + " is running"} {
		if _, err := transfer.Backup(t.Context(), f.Folders, f.path("store"), f.path(to)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", to, err, want)
		}
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	for _, to := range []string{"killed", "under way"} { // by now
		if _, err := transfer.Backup(t.Context(), f.Folders, f.path("store"), f.path(to)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f.path(to + ".unfinished")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the leftover is there: %v", to, err)
		}
	}
	if _, err := transfer.Backup(t.Context(), f.Folders, f.path("none"), f.path("b")); !errors.Is(err, store.ErrMissing) {
		t.Errorf("no store: %v", err)
	}
}
