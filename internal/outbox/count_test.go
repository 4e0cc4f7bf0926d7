package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

var totalKey = store.Key{PK: "TOTAL", SK: "TOTAL"}

// tally adds whole numbers to one item.
func tally(s store.Store) outbox.Tally {
	return func(ctx context.Context, sums []string) ([]store.Write, error) {
		it, err := s.Get(ctx, table.Name, totalKey)
		still := store.AttributeEquals(schema.Version, it.Get(schema.Version))
		if errors.Is(err, store.ErrNotFound) {
			it, still, err = store.NewItem(), store.Absent(), nil
			table.SetKey(&it, totalKey)
		}
		it = it.Clone()
		for _, text := range sums {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, err
			}
			it.Set(schema.Amount, store.Int(it.Int(schema.Amount)+n))
		}
		it.Set(schema.Version, store.Int(it.Int(schema.Version)+1))
		return []store.Write{store.Put(table.Name, it, still)}, err
	}
}

func total(t *testing.T, s store.Store) (sum, commits int64) {
	t.Helper()
	it, err := s.Get(t.Context(), table.Name, totalKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return it.Int(schema.Amount), it.Int(schema.Version)
}

// summed is an effect that adds n.
func summed(id string, n int) outbox.Effect {
	e := effect(id)
	e.Sums = strconv.Itoa(n)
	return e
}

// TestCounting_ABatchIsOneWrite: rows are counted in batches, whatever becomes of their delivery, and
// those that only count are deleted undelivered.
func TestCounting_ABatchIsOneWrite(t *testing.T) {
	for _, lease := range []time.Duration{0, time.Hour} {
		t.Run(lease.String(), func(t *testing.T) {
			c := &clock{t: start}
			s := open(t, c)
			to := &receiver{fail: func(e outbox.Effect) error {
				switch e.ID {
				case "mail 1":
					return errors.New("not now")
				case "mail 2":
					return outbox.ErrPermanent
				}
				return nil
			}}
			const mails, sums = 150, 50
			for i := range mails {
				put(t, s, summed(fmt.Sprintf("mail %d", i), 1))
			}
			for i := range sums {
				e := summed(fmt.Sprintf("sum %d", i), 1000)
				e.Kind, e.Data = outbox.KindSum, nil
				put(t, s, e)
			}
			put(t, s, effect("without"))
			o := outbox.New(s, table, c.now, to, nil).Claiming(lease).Counting(tally(s))
			wantPending(t, o, mails+1, 0, 0)
			if got, want := drain(t, o), (outbox.Report{Delivered: mails - 1, Failed: 1, Dead: 1}); got != want {
				t.Errorf("report %+v, want %+v", got, want)
			}
			sum, commits := total(t, s)
			if sum != mails+1000*sums || commits > 10 {
				t.Errorf("sum %d in %d commits", sum, commits)
			}
			c.move(24 * time.Hour)
			to.fail = nil
			if err := o.Replay(t.Context(), "mail 2"); err != nil {
				t.Fatal(err)
			}
			drain(t, o)
			if again, _ := total(t, s); again != sum || len(to.got) != mails+1 {
				t.Errorf("later: sum %d, then %d; %d delivered", sum, again, len(to.got))
			}
			wantPending(t, o, 0, 0, 0)
			for e, err := range o.Uncounted(t.Context()) {
				t.Errorf("left: %s, %v", e.ID, err)
			}
		})
	}
}

// TestCounting_ExactlyOnce: several drains at once, whose commits conflict, are lost or lose their
// answers, add each row once.
func TestCounting_ExactlyOnce(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := &clock{t: start}
		s, lease := open(t, c), time.Duration(seed%2)*time.Hour
		want := int64(0)
		for i := range 1 + rng.IntN(120) {
			n := 1 + rng.IntN(9)
			e := summed(fmt.Sprintf("row %d", i), n)
			if rng.IntN(3) == 0 {
				e.Kind = outbox.KindSum
			}
			put(t, s, e)
			want += int64(n)
		}
		to := &receiver{}
		var drains sync.WaitGroup
		for range 3 {
			var mu sync.Mutex
			faults := rand.New(rand.NewPCG(rng.Uint64(), 2))
			faulty := storetest.NewFaulty(s)
			faulty.Hook = func(op storetest.Operation, now storetest.Phase) error {
				mu.Lock()
				defer mu.Unlock()
				if op.Commit == 0 || faults.IntN(5) > 0 {
					return nil
				}
				if now == storetest.Before && faults.IntN(2) == 0 {
					return store.ErrConflict
				}
				return store.ErrUnknown
			}
			drains.Go(func() {
				for range 4 {
					if _, err := outbox.New(faulty, table, c.now, to, nil).Claiming(lease).Counting(tally(faulty)).
						Drain(t.Context(), 2); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			})
		}
		drains.Wait()
		c.move(24 * time.Hour)
		drain(t, outbox.New(s, table, c.now, to, nil).Claiming(lease).Counting(tally(s)))
		if got, _ := total(t, s); got != want {
			t.Errorf("seed %d, lease %s: sum %d, want %d", seed, lease, got, want)
		}
		wantPending(t, outbox.New(s, table, c.now, to, nil), 0, 0, 0)
	}
}

// TestCounting_OneRowOfManySums: rows with more sums than fit into one commit are counted in several.
func TestCounting_OneRowOfManySums(t *testing.T) {
	c := &clock{t: start}
	s, to := open(t, c), &receiver{}
	for i := range 60 {
		put(t, s, summed(fmt.Sprintf("row %d", i), i))
	}
	apart := func(ctx context.Context, sums []string) (writes []store.Write, err error) {
		for _, text := range sums {
			for _, part := range []string{"a", "b"} {
				it := store.NewItem()
				table.SetKey(&it, store.Key{PK: "TOTAL#" + part, SK: text})
				writes = append(writes, store.Put(table.Name, it, store.Absent()))
			}
		}
		return writes, nil
	}
	o := outbox.New(s, table, c.now, to, nil).Counting(apart)
	if got, want := drain(t, o), (outbox.Report{Delivered: 60}); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
	for _, part := range []string{"a", "b"} {
		n := 0
		for _, err := range s.Query(t.Context(), store.Query{Table: table.Name, Partition: "TOTAL#" + part}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 60 {
			t.Errorf("%d of %s", n, part)
		}
	}
}

// TestCounting_AClaimThatIsOld: a counted row whose claim has half run out is left to the next drain.
func TestCounting_AClaimThatIsOld(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	slow := &receiver{fail: func(outbox.Effect) error { c.move(20 * time.Minute); return nil }}
	for i := range 5 {
		put(t, s, summed(strconv.Itoa(i), 1))
	}
	o := outbox.New(s, table, c.now, slow, nil).Claiming(time.Hour).Counting(tally(s))
	if r, err := o.Drain(t.Context(), 1); err != nil || r.Delivered != 2 {
		t.Errorf("%+v, %v; want two deliveries", r, err)
	}
	c.move(time.Hour)
	slow.fail = nil
	drain(t, o)
	if n := len(slow.all); n != 5 || len(slices.Compact(slow.ids())) != 5 {
		t.Errorf("%d deliveries of %v", n, slow.ids())
	}
	if sum, _ := total(t, s); sum != 5 {
		t.Errorf("sum %d, want 5", sum)
	}
}

// noNumbers cannot give a number, and neither can the next drain.
type noNumbers struct{}

func (noNumbers) Mine(context.Context) (bool, error) { return true, nil }

func (noNumbers) Give(context.Context, []store.Key) ([]store.Write, error) {
	return nil, errors.New("the counter cannot be read")
}

// TestCounting_FailsDuringADelivery: if rows cannot be counted, the deliveries under way are not cut off. Each drain
// would begin them again, and the customer would get the same mail from each.
func TestCounting_FailsDuringADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &clock{t: start})
		paid := summed("paid", 1)
		paid.Numbered = []store.Key{{PK: "A", SK: "REC"}}
		put(t, s, paid)
		put(t, s, effect("reminder"))
		var got []string
		to := deliverFunc(func(ctx context.Context, e outbox.Effect) error {
			time.Sleep(time.Second) // until the rest of the drain has ended
			got = append(got, e.ID)
			return ctx.Err()
		})
		o := outbox.New(s, table, (&clock{t: start}).now, to, nil).Counting(tally(s)).Numbering(noNumbers{})
		for range 2 {
			if _, err := o.Drain(t.Context(), 1); err == nil || err.Error() != "the counter cannot be read" {
				t.Errorf("the drain: %v", err)
			}
		}
		if !slices.Equal(got, []string{"reminder"}) {
			t.Errorf("delivered %q", got)
		}
	})
}
