package folder_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/folder"
)

// TestClaim: claims end with their process, and all of them with the holder. Then everybody may
// claim again, and one of them wins.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	var all [4]*folder.Store
	for i := range all {
		all[i] = open(t, dir, options(tables, nil))
	}
	claim := func(s *folder.Store, by string) (lost <-chan struct{}, other string) {
		lost, _, err := s.Claim(t.Context(), "run", by)
		if e, ok := errors.AsType[*store.ClaimedError](err); ok {
			return nil, e.By
		}
		if err != nil {
			t.Fatal(err)
		}
		return lost, ""
	}
	shut := func(s *folder.Store) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	claim(all[1], "1")
	if _, other := claim(all[0], "0"); other != "1" {
		t.Errorf("the holder finds it claimed by %q", other)
	}
	shut(all[1])
	for { // the holder sees the end of the connection a moment later
		if _, other := claim(all[2], "2"); other == "" {
			break
		} else if other != "1" {
			t.Fatalf("claimed by %q", other)
		}
	}
	lost, other := claim(all[2], "")
	if other != "2" || lost != nil {
		t.Errorf("asked: claimed by %q", other)
	}
	shut(all[0]) // the holder
	var wins atomic.Int64
	var both sync.WaitGroup
	for i, s := range all[2:] {
		both.Go(func() {
			if lost, other := claim(s, string(rune('a'+i))); other == "" {
				wins.Add(1)
				if lost == nil { // the holder's own claim too: it may hand the folder over
					t.Errorf("holder %t: no way to learn of a loss", s.Holds())
				}
			}
		})
	}
	both.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d of 2 have claimed the name at the new holder", wins.Load())
	}
	shut(all[2])
	shut(all[3])
}
