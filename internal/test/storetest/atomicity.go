package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// testAtomicity puts one failing write at every place of a commit of every
// operation, in two tables and with index rows, and checks that nothing is written.
func testAtomicity(t *testing.T, open Opener) {
	indexed := []store.Attribute{text("state", "open"), text("due", "2027"), text("owner", "o")}
	note := store.NewItem(text("note", "n"))
	good := []store.Write{
		put(item("new", "1", indexed...)), put(item("a", "1", text("note", "replaced"))),
		update(at("a", "2"), store.NewItem(text("due", "2028")), []string{"owner"}),
		remove(at("a", "3")), check(at("a", "4")),
		store.Put(plain, store.NewItem(text("id", "new"), text("kind", "k"), text("name", "n"))),
		store.Delete(plain, at("p", "")),
	}
	prepare := func(r *rig) {
		for _, sk := range []string{"1", "2", "3", "4"} {
			r.put(item("a", sk, indexed...))
		}
		r.put(item("big", "1", text("blob", strings.Repeat("x", store.MaxItemBytes-100))))
		r.commit(store.Put(plain, store.NewItem(text("id", "p"), text("kind", "k"), text("name", "m"))))
	}
	for _, bad := range []struct {
		name  string
		write store.Write
		want  error
	}{
		{"put", put(item("a", "4"), store.Absent()), store.ErrConflict},
		{"update", update(at("z", "1"), note, nil), store.ErrConflict},
		{"delete", store.Delete(plain, at("z", "")), store.ErrConflict},
		{"check", check(at("z", "1")), store.ErrConflict},
		{"condition", update(at("big", "1"), note, nil, store.AttributeAbsent("blob")), store.ErrConflict},
		{"update that grows too large", update(at("big", "1"), store.NewItem(text("note", strings.Repeat("n", 200))), nil),
			store.ErrTooLarge},
		{"invalid", put(item("z", "")), store.ErrInvalid},
	} {
		t.Run("one failing "+bad.name, func(t *testing.T) {
			r := setUp(t, open)
			prepare(r)
			for i := 0; i <= len(good); i += r.rounds(1, 4) {
				writes := slices.Insert(slices.Clone(good), i, bad.write)
				if bad.name == "put" {
					// it is on the same key
					writes = slices.DeleteFunc(writes, func(w store.Write) bool { return w.Op == store.OpCheck })
				}
				r.unchanged(func() { r.refuse(bad.want, writes...) })
			}
			r.commit(good...) // and they were good
		})
	}
	play(t, open, scenario{"all or nothing means all", func(r *rig) {
		prepare(r)
		r.commit(good...)
		r.want(ledger, item("new", "1", indexed...), item("a", "1", text("note", "replaced")),
			item("a", "2", text("state", "open"), text("due", "2028")), item("a", "4", indexed...))
		r.wantNone(ledger, at("a", "3"))
		r.wantNone(plain, at("p", ""))
		r.wantSorts(store.Query{Table: plain, Index: byName, Partition: "k"}, "new")
		r.wantSorts(inIndex(byState, "open"), "4", "1", "2")
	}})
}

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

// together has the workers each do the work so many times, and fails the test with their errors.
func (r *rig) together(rounds int, work func(worker, round int) error) {
	r.Helper()
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for i := range workers {
		wg.Go(func() {
			for round := 0; round < rounds && errs[i] == nil; round++ {
				errs[i] = work(i, round)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
}

// retry calls attempt until it is done, within a bound far beyond bad luck.
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
	next := store.NewItem(number("amount", it.Int("amount")+amount), number("version", it.Int("version")+1))
	return update(key, next, nil, equals("version", it.Get("version")))
}

func testCompareAndSet(r *rig) {
	r.put(item("a", "1", number("amount", 0), number("version", 0)))
	key, all := at("a", "1"), int64(workers*r.each())
	r.together(r.each(), func(_, _ int) error {
		return retry(func() error {
			it, err := r.Get(r.Context(), ledger, key)
			if err != nil {
				return err
			}
			return r.Commit(r.Context(), add(it, key, 1))
		})
	})
	r.want(ledger, item("a", "1", number("amount", all), number("version", all)))
}

func testTransfers(r *rig) {
	const accounts, each = 4, 1000
	key := func(i int) store.Key { return at(fmt.Sprint("account", i%accounts), "1") }
	for i := range accounts {
		r.put(item(key(i).PK, "1", number("amount", each), number("version", 0)))
	}
	r.together(r.each(), func(worker, round int) error {
		from, to := key(worker+round), key(worker+2*round+1)
		if from == to {
			return nil
		}
		return retry(func() error {
			a, errA := r.Get(r.Context(), ledger, from)
			b, errB := r.Get(r.Context(), ledger, to)
			if err := errors.Join(errA, errB); err != nil {
				return err
			}
			return r.Commit(r.Context(), add(a, from, -7), add(b, to, 7))
		})
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
		pk := fmt.Sprint(round)
		var won, winner atomic.Int64
		r.together(1, func(worker, _ int) error {
			err := r.Commit(r.Context(), put(item("a", pk, number("worker", int64(worker))), store.Absent()))
			switch {
			case err == nil:
				won.Add(1)
				winner.Store(int64(worker))
			case errors.Is(err, store.ErrConflict):
				return nil
			}
			return err
		})
		if won.Load() != 1 {
			r.Fatalf("%d inserts succeeded, want 1", won.Load())
		}
		r.want(ledger, item("a", pk, number("worker", winner.Load())))
	}
}

// testExclusion has pairs of commits write one key each if the other is absent: one may succeed.
func testExclusion(r *rig) {
	r.together(r.each(), func(worker, round int) error {
		pk := fmt.Sprint("pair", worker/2, "-", round)
		mine, other := fmt.Sprint(worker%2), fmt.Sprint(1-worker%2)
		err := r.Commit(r.Context(), put(item(pk, mine), store.Absent()), check(at(pk, other), store.Absent()))
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrThrottled) {
			return nil
		}
		return err
	})
	for pair := range workers / 2 {
		for round := range r.each() {
			if rows := r.rows(in(fmt.Sprint("pair", pair, "-", round))); len(rows) > 1 {
				r.Fatalf("both commits of a pair succeeded: %v", shows(rows))
			}
		}
	}
}

// testWholeItems has readers look while writers change two attributes that always agree.
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
	queries := []store.Query{in("a"), inIndex(byState, "open"), inIndex(byOwner, "o")}
	r.together(r.each(), func(worker, round int) error {
		if worker%2 == 0 {
			n := int64(worker*r.each() + round)
			set := store.NewItem(number("amount", n), number("note", n))
			return retry(func() error { return r.Commit(r.Context(), update(at("a", "1"), set, nil)) })
		}
		if err := whole(r.Get(r.Context(), ledger, at("a", "1"))); err != nil {
			return err
		}
		for _, q := range queries {
			for it, err := range r.Query(r.Context(), q) {
				if err := whole(it, err); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
