package pebblestore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

func TestMissingStore(t *testing.T) {
	root := t.TempDir()
	empty := filepath.Join(root, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(root, "none", "at", "all"), empty} {
		if _, err := Open(dir, Options{Tables: crashTables()}); !errors.Is(err, store.ErrMissing) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("Open(%q) without Create: %v, want ErrMissing with the folder's name", dir, err)
		}
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
		t.Errorf("Open without Create has left %v, %v", entries, err)
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) != 0 {
		t.Errorf("Open without Create has left %v, %v", entries, err)
	}
}

func TestFolderIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := openTest(t, dir, Options{Create: true}).Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", info.Mode(), err)
	}
}

// reopen opens a store in memory with other options; it says what went wrong.
func reopen(t *testing.T, fs vfs.FS, o Options) (*Store, error) {
	t.Helper()
	o.FS, o.tune = fs, small
	s, err := Open("store", o)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
		})
	}
	return s, err
}

func TestDeclarationsMustAgree(t *testing.T) {
	fs := vfs.NewMem()
	if err := openTest(t, "store", Options{Tables: crashTables(), FS: fs, Create: true}).Close(); err != nil {
		t.Fatal(err)
	}
	changed := func(change func(*store.Table)) []store.Table {
		tables := crashTables()
		change(&tables[0])
		return tables
	}
	for what, tables := range map[string][]store.Table{
		"partition key":  changed(func(t *store.Table) { t.PartitionKey = "pk" }),
		"sort key":       changed(func(t *store.Table) { t.SortKey = "" }),
		"TTL":            changed(func(t *store.Table) { t.TTL = "" }),
		"index dropped":  changed(func(t *store.Table) { t.Indexes = t.Indexes[:1] }),
		"index key":      changed(func(t *store.Table) { t.Indexes[0].SortKey = "" }),
		"indexes turned": changed(func(t *store.Table) { t.Indexes[0], t.Indexes[1] = t.Indexes[1], t.Indexes[0] }),
		"projection":     changed(func(t *store.Table) { t.Indexes[0].Include = []string{"version", "more"} }),
		"projects all":   changed(func(t *store.Table) { t.Indexes[0].All = true }),
	} {
		if _, err := reopen(t, fs, Options{Tables: tables}); !errors.Is(err, store.ErrFormat) ||
			!strings.Contains(err.Error(), "table slots") {
			t.Errorf("%s: %v, want ErrFormat that names the table", what, err)
		}
	}
	// What does not change how rows lie may change.
	more := append(crashTables(), store.Table{Name: "new", PartitionKey: "id"})
	more[0], more[1] = more[1], more[0]
	for _, tables := range [][]store.Table{more, crashTables()[1:], crashTables()} {
		s, err := reopen(t, fs, Options{Tables: tables})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNamesMustAgree(t *testing.T) {
	fs := vfs.NewMem()
	table := []store.Table{{Name: "t", PartitionKey: "id"}}
	put := func(s *store.Item) store.Write { return store.Put("t", *s) }
	item := store.NewItem(store.Attribute{Name: "a", Value: store.Int(1)}, store.Attribute{Name: "b", Value: store.Int(2)},
		store.Attribute{Name: "c", Value: store.Int(3)}, store.Attribute{Name: "id", Value: store.S("1")})
	// Each opens what the ones before have written; an older program comes last.
	for i, names := range [][]string{nil, {"a"}, {"a", "b", "id"}, {"a"}, nil} {
		s, err := reopen(t, fs, Options{Tables: table, Names: names, Create: true})
		if err != nil {
			t.Fatalf("names %q: %v", names, err)
		}
		if i > 0 {
			if got, err := s.Get(t.Context(), "t", store.Key{PK: "1"}); err != nil || !got.Equal(item) {
				t.Errorf("names %q: Get shows %v, %v", names, got, err)
			}
		}
		if err := s.Commit(t.Context(), put(&item)); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	// So does a program that numbers them in another order: the store keeps its own list.
	for _, names := range [][]string{{"b"}, {"a", "c"}, {"c", "a", "x", "y"}} {
		s, err := reopen(t, fs, Options{Tables: table, Names: names})
		if err != nil {
			t.Fatalf("names %q: %v", names, err)
		}
		if got, err := s.Get(t.Context(), "t", store.Key{PK: "1"}); err != nil || !got.Equal(item) {
			t.Errorf("names %q: Get shows %v, %v", names, got, err)
		}
		if err := errors.Join(s.Commit(t.Context(), put(&item)), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	for meta, want := range map[string]string{
		`{"Format":7,"Names":7,"Tables":"moved elsewhere"}`: "the store has format 7, but this version of Duesday reads formats up to 6",
		`{"Format":7,"Program":"v9.1"}`:                     "use Duesday v9.1",
		`{"Format":0}`:                                      "damaged",
		`nonsense`:                                          "damaged",
	} {
		fs := vfs.NewMem()
		s := openTest(t, "store", Options{FS: fs, Create: true})
		if err := s.db.Set(metaKey, []byte(meta), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := reopen(t, fs, Options{Create: true}); !errors.Is(err, store.ErrFormat) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("meta %s: %v, want ErrFormat that says %q", meta, err, want)
		}
		// The refusal has let go of the lock, and has changed nothing.
		db, err := pebble.Open("store", &pebble.Options{FS: fs, FormatMajorVersion: formatMajorVersion})
		if err != nil {
			t.Fatal(err)
		}
		got, closer, err := db.Get(metaKey)
		if err != nil || !bytes.Equal(got, []byte(meta)) {
			t.Errorf("meta %s is %s, %v after the refusal", meta, got, err)
		}
		if err := errors.Join(closer.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	db, err := pebble.Open("store", &pebble.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("k"), []byte("v"), pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := reopen(t, fs, Options{Create: true}); !errors.Is(err, store.ErrFormat) {
		t.Errorf("Open of another program's database: %v, want ErrFormat", err)
	}
}
