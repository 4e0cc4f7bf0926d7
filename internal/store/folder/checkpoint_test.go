package folder_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/folder"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// TestCheckpoint: a client backs the store up while it and its holder commit, and while the holder
// ends. Each copy is a whole store with every commit that was done before.
func TestCheckpoint(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "store")
	var all [3]*folder.Store
	for i := range all {
		all[i] = open(t, dir, options(tables, nil))
	}
	twenty, ended, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			switch n {
			case 20:
				close(twenty)
			case 40:
				if err := all[0].Close(); err != nil {
					t.Error(err)
				}
				close(ended)
			case 60:
				return
			}
			if err := all[min(n/40, 1)].Commit(t.Context(), store.Put("t", itemAt(fmt.Sprintf("%02d", n)))); err != nil {
				t.Errorf("commit %d: %v", n, err)
			}
		}
	}()
	for i, after := range []chan struct{}{twenty, ended, done} {
		<-after
		to := filepath.Join(base, fmt.Sprint("copy", i))
		if err := all[2].Checkpoint(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		o := options(tables, nil)
		o.Create = false
		again := open(t, to, o)
		if rows := count(t, again); rows < 20*(i+1) || rows > 60 {
			t.Errorf("copy %d has %d rows, want %d or more", i, rows, 20*(i+1))
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range all[1:] {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := all[2].Checkpoint(t.Context(), filepath.Join(base, "late")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
}

// TestCheckpoint_Refused: the holder makes no copy in a place that cannot take it, and works on.
func TestCheckpoint_Refused(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "store")
	holder, client := open(t, dir, options(tables, nil)), open(t, dir, options(tables, nil))
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(base) // a client's path is relative to the client's folder
	for _, s := range []*folder.Store{holder, client} {
		for to, want := range map[string]string{"store/inside": "must not contain each other", ".": "must not contain each other",
			"file": "file", "file/below": "file"} {
			err := s.Checkpoint(t.Context(), to)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("holder %t, %s: %v, want %q", s.Holds(), to, err, want)
			}
		}
	}
	if err := client.Checkpoint(t.Context(), "copy"); err != nil {
		t.Error(err)
	}
	if err := client.Checkpoint(t.Context(), "copy"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("onto what is there: %v", err)
	}
	if is, err := pebblestore.IsStore("copy"); !is || err != nil {
		t.Errorf("copy is a store: %t, %v", is, err)
	}
	for _, s := range []*folder.Store{client, holder} {
		if err := errors.Join(s.Commit(t.Context(), store.Put("t", itemAt("a"))), s.Close()); err != nil {
			t.Error(err)
		}
	}
}
