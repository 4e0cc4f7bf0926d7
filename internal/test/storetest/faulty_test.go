package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
)

func open(t *testing.T) *memstore.Store {
	t.Helper()
	s, err := memstore.Open([]store.Table{{Name: "t", PartitionKey: "id"}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(id string) store.Write {
	return store.Put("t", store.NewItem(store.Attribute{Name: "id", Value: store.S(id)}), store.Absent())
}

// ids reads what is stored.
func ids(t *testing.T, s store.Store) []string {
	t.Helper()
	var found []string
	for it, err := range s.Scan(t.Context(), store.Scan{Table: "t"}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, it.Str("id"))
	}
	slices.Sort(found)
	return found
}

// drain reads an iteration and returns the number of items and the error.
func drain(rows func(yield func(store.Item, error) bool)) (n int, err error) {
	for _, e := range rows {
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		n++
	}
	return n, err
}

func TestFaulty_KeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		s, err := memstore.Open(tables, now)
		if err != nil {
			t.Fatal(err)
		}
		f := storetest.NewFaulty(s)
		f.Hook = storetest.CrashAt(-1, storetest.After) // one that never comes
		return f
	})
}

func TestFaulty_HookIsCalledAroundEveryOperation(t *testing.T) {
	f := storetest.NewFaulty(open(t))
	var calls []string
	f.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		calls = append(calls, fmt.Sprintf("%d kind=%d commit=%d writes=%d phase=%d", op.N, op.Kind, op.Commit,
			len(op.Writes), phase))
		return nil
	}
	ctx := t.Context()
	if err := f.Commit(ctx, put("a"), put("b")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(ctx, "t", store.Key{PK: "a"}); err != nil {
		t.Fatal(err)
	}
	rows := f.Query(ctx, store.Query{Table: "t", Partition: "a"}) // no operation yet
	if err := f.Commit(ctx, put("a")); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("Commit = %v, want the engine's conflict", err)
	}
	if n, err := drain(rows); n != 1 || err != nil {
		t.Fatalf("Query = %d items, %v", n, err)
	}
	for range f.Scan(ctx, store.Scan{Table: "t"}) {
		break
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, op := range []string{
		fmt.Sprintf("kind=%d commit=1 writes=2", storetest.Commit), fmt.Sprintf("kind=%d commit=0 writes=0", storetest.Get),
		fmt.Sprintf("kind=%d commit=2 writes=1", storetest.Commit), fmt.Sprintf("kind=%d commit=0 writes=0", storetest.Query),
		fmt.Sprintf("kind=%d commit=0 writes=0", storetest.Scan), fmt.Sprintf("kind=%d commit=0 writes=0", storetest.Close),
	} {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			want = append(want, fmt.Sprintf("%d %s phase=%d", i+1, op, phase))
		}
	}
	if !slices.Equal(calls, want) {
		t.Errorf("calls = %q, want %q", calls, want)
	}
	if f.Commits() != 2 {
		t.Errorf("Commits = %d; want 2", f.Commits())
	}
}

func TestFaulty_HookErrors(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		phase storetest.Phase
		rows  int      // that a scan yields before its error
		want  []string // what is stored in the end
	}{
		{storetest.Before, 0, []string{"x"}},
		{storetest.After, 2, []string{"a", "x"}},
	} {
		s := open(t)
		if err := s.Commit(t.Context(), put("x")); err != nil {
			t.Fatal(err)
		}
		f := storetest.NewFaulty(s)
		f.Hook = func(_ storetest.Operation, phase storetest.Phase) error {
			if phase == c.phase {
				return lost
			}
			return nil
		}
		if err := f.Commit(t.Context(), put("a")); !errors.Is(err, lost) {
			t.Errorf("phase %d: Commit = %v", c.phase, err)
		}
		if it, err := f.Get(t.Context(), "t", store.Key{PK: "x"}); !errors.Is(err, lost) || it != nil {
			t.Errorf("phase %d: Get = %v, %v", c.phase, it, err)
		}
		if n, err := drain(f.Scan(t.Context(), store.Scan{Table: "t"})); !errors.Is(err, lost) || n != c.rows {
			t.Errorf("phase %d: Scan = %d items, %v; want %d and the error", c.phase, n, err, c.rows)
		}
		if got := ids(t, s); !slices.Equal(got, c.want) {
			t.Errorf("phase %d: stored %q, want %q", c.phase, got, c.want)
		}
		// The error is yielded once, and not to a loop that has been left.
		n := 0
		for range f.Query(t.Context(), store.Query{Table: "t"}) { // invalid: the engine yields an error too
			n++
		}
		if n != 1 {
			t.Errorf("phase %d: Query yields %d times, want 1", c.phase, n)
		}
		for range f.Scan(t.Context(), store.Scan{Table: "t"}) {
			break
		}
	}
}

// TestCrashAt kills a process of four commits at every commit, in both phases: what
// has landed is a prefix, and nothing works after the death.
func TestCrashAt(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for n := 1; n <= len(names)+1; n++ {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			s := open(t)
			f := storetest.NewFaulty(s)
			f.Hook = storetest.CrashAt(n, phase)
			for i, name := range names {
				err := f.Commit(t.Context(), put(name))
				if dead := i+1 >= n; errors.Is(err, storetest.ErrCrash) != dead || (!dead && err != nil) {
					t.Errorf("crash at %d: commit %d = %v", n, i+1, err)
				}
			}
			landed := min(n-1, len(names))
			if phase == storetest.After {
				landed = min(n, len(names))
			}
			if got := ids(t, s); !slices.Equal(got, names[:landed]) {
				t.Errorf("crash at %d, phase %d: stored %q, want %q", n, phase, got, names[:landed])
			}
			if n > len(names) {
				continue
			}
			_, errGet := f.Get(t.Context(), "t", store.Key{PK: "a"})
			rows, errScan := drain(f.Scan(t.Context(), store.Scan{Table: "t"}))
			_, errQuery := drain(f.Query(t.Context(), store.Query{Table: "t", Partition: "a"}))
			for _, err := range []error{errGet, errScan, errQuery, f.Close()} {
				if !errors.Is(err, storetest.ErrCrash) || rows > 0 {
					t.Errorf("after the crash: %d rows, %v; want ErrCrash", rows, err)
				}
			}
			if err := s.Commit(t.Context(), put("next process")); err != nil {
				t.Errorf("the next process finds the store unusable: %v", err)
			}
		}
	}
}

// A process that dies while a loop runs sees no reply any more, not of what was under
// way either.
func TestCrashAt_InALoop(t *testing.T) {
	s := open(t)
	if err := s.Commit(context.Background(), put("a")); err != nil {
		t.Fatal(err)
	}
	f := storetest.NewFaulty(s)
	f.Hook = storetest.CrashAt(1, storetest.After)
	var last error
	for it, err := range f.Scan(t.Context(), store.Scan{Table: "t"}) {
		if last = err; it != nil {
			if err := f.Commit(t.Context(), put("b")); !errors.Is(err, storetest.ErrCrash) {
				t.Fatal(err)
			}
		}
	}
	if !errors.Is(last, storetest.ErrCrash) {
		t.Errorf("the loop ends with %v, want ErrCrash", last)
	}
}

func TestLoseReply(t *testing.T) {
	for _, c := range []struct {
		phase storetest.Phase
		want  []string
	}{{storetest.Before, []string{"a", "c"}}, {storetest.After, []string{"a", "b", "c"}}} {
		s := open(t)
		f := storetest.NewFaulty(s)
		f.Hook = storetest.LoseReply(2, c.phase)
		for i, name := range []string{"a", "b", "c"} {
			if err := f.Commit(t.Context(), put(name)); errors.Is(err, store.ErrUnknown) != (i == 1) || (i != 1 && err != nil) {
				t.Errorf("phase %d: commit %d = %v", c.phase, i+1, err)
			}
		}
		if got := ids(t, f); !slices.Equal(got, c.want) {
			t.Errorf("phase %d: stored %q, want %q", c.phase, got, c.want)
		}
	}
}
