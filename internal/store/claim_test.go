package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// TestClaims: a name is one owner's at a time, and a release is of its own claim alone.
func TestClaims(t *testing.T) {
	var c store.Claims
	_, release, err := c.Claim(t.Context(), "run", "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"b", "a", ""} {
		_, _, err := c.Claim(t.Context(), "run", by)
		if e, ok := errors.AsType[*store.ClaimedError](err); !ok || *e != (store.ClaimedError{Name: "run", By: "a"}) {
			t.Errorf("Claim by %q = %v", by, err)
		}
	}
	release()
	if _, _, err := c.Claim(t.Context(), "run", ""); err != nil { // it asks, and claims nothing
		t.Error(err)
	}
	if _, _, err := c.Claim(t.Context(), "run", "b"); err != nil {
		t.Error(err)
	}
	release() // again: the claim is another one's
	if _, _, err := c.Claim(t.Context(), "run", "c"); err == nil {
		t.Error("a second release ended another one's claim")
	}
	var wins atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := c.Claim(t.Context(), "other", "x"); err == nil {
				wins.Add(1)
			}
		})
	}
	if all.Wait(); wins.Load() != 1 {
		t.Errorf("%d of 8 at once have claimed the name", wins.Load())
	}
}
