package tracking

import (
	"fmt"
	"os"
	"testing"
)

// TestSorter checks that all entries about an object are in one file and in order, that each file
// holds a small part of the objects, and that no file has a name on disk.
func TestSorter(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var s sorter
	const objects, each = 100 * sorterFiles, 3
	for i := range objects * each {
		err := s.add(told{At: fmt.Sprint("acct_", i%2), ID: fmt.Sprint("pi_", i%objects),
			Object: Object{Kind: KindPayment, Amount: int64(i / objects), Refunds: []Refund{{ID: "re_1"}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("files %v, %v", left, err)
	}
	next := map[string]int64{}
	for part := range sorterFiles {
		here := 0
		for x, err := range s.each(part) {
			if err != nil {
				t.Fatal(err)
			}
			if here++; x.Object.Amount != next[x.ID] || len(x.Object.Refunds) != 1 {
				t.Fatalf("got %+v in file %d, after %d of it", x, part, next[x.ID])
			}
			next[x.ID]++
		}
		if here > 3*objects*each/sorterFiles {
			t.Errorf("file %d has %d of %d", part, here, objects*each)
		}
	}
	if len(next) != objects || s.n != objects*each {
		t.Errorf("%d objects, %d told", len(next), s.n)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
