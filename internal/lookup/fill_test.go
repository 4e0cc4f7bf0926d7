package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

// older makes the store one of an older Duesday, with n subscriptions of as many accounts and no rows.
func (w *world) older(n int) {
	w.Helper()
	ctx := context.Background()
	e := w.engine()
	var batch []billing.NewSubscription
	for i := range n {
		batch = append(batch, w.subscription(fmt.Sprintf("a%05d", i), "s", "gold", "pm_card_visa"))
	}
	_, err := bulk.Create(ctx, e.Records, batch)
	w.must(err)
	for it, err := range w.store.Scan(ctx, store.Scan{Table: e.Table}) {
		w.must(err)
		if strings.HasPrefix(it.Str(schema.PK), lookup.Prefix) {
			w.must(w.store.Commit(ctx, store.Delete(e.Table, billing.KeyOf(it))))
		}
	}
	w.must(w.store.Commit(ctx, store.Update(e.Table, billing.MetaKey, nil, []string{schema.LookupDate})))
}

// TestFill_Killed: a fill that is killed before or after any of its commits is continued by the next
// process. Until it has ended, no list is given.
func TestFill_Killed(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t, 2)
		w.older(3)
		phase := []storetest.Phase{storetest.Before, storetest.After}[n%2]
		_, err := w.open(storetest.CrashAt((n+1)/2, phase))
		if err == nil {
			if n < 2*(3+3+3) {
				t.Fatalf("only %d commits", n/2)
			}
			return
		}
		if !errors.Is(err, storetest.ErrCrash) {
			t.Fatal(err)
		}
		reader, err := engine.Open(t.Context(), engine.Options{Store: w.store, Tables: w.tables, Now: w.now, ReadOnly: true})
		w.must(err)
		for _, err := range lookup.Subscriptions(t.Context(), reader.Records, lookup.Filter{}, "") {
			if meta, _ := reader.Meta(t.Context()); !errors.Is(err, lookup.ErrIncomplete) && meta.Looked.IsZero() {
				t.Fatalf("commit %d: a list of an unfinished fill: %v", n, err)
			}
		}
		e := w.engine()
		w.wantExact(fmt.Sprint("commit ", n))
		if got := w.list(e, lookup.Filter{Status: billing.Active}, ""); len(got) != 3 {
			t.Errorf("commit %d: %q", n, got)
		}
	}
}

// TestFill_Resumed: the next fill continues where a killed one has stored its progress.
func TestFill_Resumed(t *testing.T) {
	w := newWorld(t, 1)
	w.older(6000)
	commits, halfway := 0, errors.New("halfway")
	var mu sync.Mutex
	hook := func(op storetest.Operation, phase storetest.Phase) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == storetest.Commit && phase == storetest.Before {
			commits++
		}
		if commits > 5000 {
			return halfway
		}
		return nil
	}
	if _, err := w.open(hook); !errors.Is(err, halfway) {
		t.Fatal(err)
	}
	again := 0
	_, err := w.open(func(op storetest.Operation, phase storetest.Phase) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == storetest.Commit && phase == storetest.Before {
			again++
		}
		return nil
	})
	w.must(err)
	w.wantExact("resumed")
	if commits+again > 12_000+4096+20 {
		t.Errorf("%d commits, and %d after the interruption", commits, again)
	}
}

// TestFill_BesideWriters: two fills at the same time, and a writer that changes items before any of their
// commits, leave no row too many and none too few.
func TestFill_BesideWriters(t *testing.T) {
	w := newWorld(t, 2)
	w.older(40)
	writer, err := engine.Open(t.Context(), engine.Options{Store: w.store, Tables: w.tables, Processor: w.box, Now: w.now,
		Lease: engine.DefaultLease})
	w.must(err)
	var mu sync.Mutex
	next := 0
	hook := func(op storetest.Operation, phase storetest.Phase) error {
		if op.Kind != storetest.Commit || phase != storetest.Before {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		n := billing.Name{Account: fmt.Sprintf("a%05d", next/4%40), ID: "s"}
		email := fmt.Sprint(next, "@example.com")
		var err error
		switch next++; next % 4 {
		case 0:
			_, err = writer.Pause(t.Context(), n)
		case 1:
			_, err = account.Update(t.Context(), writer.Records, n.Account, account.Change{Email: &email})
		case 2:
			_, err = writer.Cancel(t.Context(), n, false)
		case 3:
			_, err = writer.CreateSubscription(t.Context(), w.subscription(fmt.Sprint("n", next), "s", "tin", "pm_card_visa"))
		}
		if err != nil && !errors.Is(err, billing.ErrState) {
			t.Error(err)
		}
		return nil
	}
	var fills sync.WaitGroup
	for range 2 {
		fills.Go(func() {
			if _, err := w.open(hook); err != nil {
				t.Error(err)
			}
		})
	}
	fills.Wait()
	w.wantExact("beside a writer")
	w.wantLists(w.engine())
}

// TestFill_Sweep removes the rows and the progress that older builds and killed fills have left.
func TestFill_Sweep(t *testing.T) {
	w := newWorld(t, 1)
	w.older(2)
	e := w.engine()
	for _, key := range []store.Key{{PK: "IDX#SUB#paused", SK: "gold#a00000/s"}, {PK: "IDX#SUB#active", SK: "gold#gone/s"},
		{PK: "IDX#EMAIL", SK: "x@example.com#a00000"}, {PK: "IDX#CUSTOMER#/cus_9", SK: "gone"}, {PK: "IDX#FILL", SK: "OLD"},
		{PK: "IDX#SUB#active", SK: "mangled"}} {
		w.must(w.store.Commit(t.Context(), store.Put(e.Table, billing.ItemAt(key))))
	}
	w.must(lookup.Fill(t.Context(), e.Records, true, nil))
	w.wantExact("swept")
}
