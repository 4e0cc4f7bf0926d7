package pebblestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if held, err := flock(dir); !errors.Is(err, errFlocked) {
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
