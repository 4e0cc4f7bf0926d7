package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

const workers = 8

// each returns how often each worker does its part.
func (r *rig) each() int { return r.rounds(50, 6) }

func testConcurrency(t *testing.T, open Opener) {
	play(t, open,
		scenario{"compare and set loses nothing", testCompareAndSet},
		scenario{"transfers keep the sum", testTransfers},
		scenario{"one of many inserts succeeds", testOneInsert},
		scenario{"commits that exclude each other", testExclusion},
		scenario{"no reader sees half an item", testWholeItems},
	)
}

// together runs the work in goroutines and fails the test with the first error.
func (r *rig) together(work func(worker int) error) {
	r.Helper()
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for i := range workers {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
}

// retry calls attempt until it is done. The bound, far beyond bad luck, ends the test of an
// engine in which no attempt ever wins.
func retry(attempt func() error) (err error) {
	for range 100_000 {
		err = attempt()
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrThrottled) {
			return err
		}
	}
	return fmt.Errorf("no success in sight: %w", err)
}

// add writes a balance, and the version that guards it, as the next ones after it.
func add(it store.Item, key store.Key, amount int64) store.Write {
	return store.Update(ledger, key, store.NewItem(number("amount", it.Int("amount")+amount),
		number("version", it.Int("version")+1)), nil,
		store.AttributeEquals("version", it.Get("version")))
}

func testCompareAndSet(r *rig) {
	r.put(item("a", "1", number("amount", 0), number("version", 0)))
	key := store.Key{PK: "a", SK: "1"}
	r.together(func(int) error {
		for range r.each() {
			err := retry(func() error {
				it, err := r.Get(r.Context(), ledger, key)
				if err != nil {
					return err
				}
				return r.Commit(r.Context(), add(it, key, 1))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	r.want(ledger, item("a", "1", number("amount", int64(workers*r.each())), number("version", int64(workers*r.each()))))
}

func testTransfers(r *rig) {
	const accounts, each = 4, 1000
	key := func(i int) store.Key { return store.Key{PK: fmt.Sprint("account", i%accounts), SK: "1"} }
	for i := range accounts {
		r.put(item(key(i).PK, "1", number("amount", each), number("version", 0)))
	}
	r.together(func(worker int) error {
		for round := range r.each() {
			from, to := key(worker+round), key(worker+2*round+1)
			if from == to {
				continue
			}
			err := retry(func() error {
				a, errA := r.Get(r.Context(), ledger, from)
				b, errB := r.Get(r.Context(), ledger, to)
				if err := errors.Join(errA, errB); err != nil {
					return err
				}
				return r.Commit(r.Context(), add(a, from, -7), add(b, to, 7))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	sum := int64(0)
	for _, it := range r.scan(store.Scan{Table: ledger}) {
		sum += it.Int("amount")
	}
	if sum != accounts*each {
		r.Fatalf("the sum is %d, want %d", sum, accounts*each)
	}
}

func testOneInsert(r *rig) {
	for round := range r.each() {
		var won atomic.Int64
		winner := int64(-1)
		r.together(func(worker int) error {
			it := item("a", fmt.Sprint(round), number("worker", int64(worker)))
			err := r.Commit(r.Context(), store.Put(ledger, it, store.Absent()))
			switch {
			case err == nil:
				if won.Add(1) == 1 {
					winner = int64(worker)
				}
				return nil
			case errors.Is(err, store.ErrConflict):
				return nil
			}
			return err
		})
		if won.Load() != 1 {
			r.Fatalf("%d inserts succeeded, want 1", won.Load())
		}
		r.want(ledger, item("a", fmt.Sprint(round), number("worker", winner)))
	}
}

// testExclusion lets pairs of commits each write one key if the other is absent: at
// most one of a pair may succeed.
func testExclusion(r *rig) {
	r.together(func(worker int) error {
		for round := range r.each() {
			pk := fmt.Sprint("pair", worker/2, "-", round)
			mine, other := fmt.Sprint(worker%2), fmt.Sprint(1-worker%2)
			err := r.Commit(r.Context(), store.Put(ledger, item(pk, mine), store.Absent()),
				store.Check(ledger, store.Key{PK: pk, SK: other}, store.Absent()))
			if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrThrottled) {
				return err
			}
		}
		return nil
	})
	for pair := range workers / 2 {
		for round := range r.each() {
			q := store.Query{Table: ledger, Partition: fmt.Sprint("pair", pair, "-", round)}
			if rows := r.rows(q); len(rows) > 1 {
				r.Fatalf("both commits of a pair succeeded: %v", shows(rows))
			}
		}
	}
}

// testWholeItems lets readers look while writers change two attributes that always
// agree, in a table and in an index.
func testWholeItems(r *rig) {
	both := func(n int64) store.Item {
		return item("a", "1", number("amount", n), number("note", n), text("state", "open"), text("due", "1"),
			text("owner", "o"))
	}
	r.put(both(0))
	whole := func(it store.Item, err error) error {
		if err == nil && it.Int("amount") != it.Int("note") {
			return fmt.Errorf("half an item: %s", show(it))
		}
		return err
	}
	queries := []store.Query{{Table: ledger, Partition: "a"}, {Table: ledger, Index: byState, Partition: "open"},
		{Table: ledger, Index: byOwner, Partition: "o"}}
	r.together(func(worker int) error {
		for round := range int64(r.each()) {
			if worker%2 == 0 {
				n := int64(worker*r.each()) + round
				set := store.NewItem(number("amount", n), number("note", n))
				if err := retry(func() error {
					return r.Commit(r.Context(), store.Update(ledger, store.Key{PK: "a", SK: "1"}, set, nil))
				}); err != nil {
					return err
				}
				continue
			}
			if err := whole(r.Get(r.Context(), ledger, store.Key{PK: "a", SK: "1"})); err != nil {
				return err
			}
			for _, q := range queries {
				for it, err := range r.Query(r.Context(), q) {
					if err := whole(it, err); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}
