package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

var errBroken = errors.New("the store is broken")

// A broken store fails the queries of a partition.
type broken struct {
	store.Store
	partition string
}

func (b broken) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	if q.Partition != b.partition {
		return b.Store.Query(ctx, q)
	}
	return func(yield func(store.Item, error) bool) { yield(nil, errBroken) }
}

// TestQueues: a queue has its own effects; a dead letter has its date, and a replayed one has not; a
// caller may stop early, and gets an error of the store once.
func TestQueues(t *testing.T) {
	now := func() time.Time { return time.Unix(1000, 0) }
	table := schema.New("").Outbox
	s, err := memstore.Open([]store.Table{table}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []Queue{Mail, Actions} {
		for i := range 2 {
			e := Effect{Queue: q, ID: fmt.Sprint(q, i), Kind: "k", Created: now(), Due: now()}
			if err := s.Commit(t.Context(), Write(table.Name, e)); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := New(s, table, now, nil, func(context.Context, Effect) (bool, error) { return true, ErrPermanent })
	ids := func(all iter.Seq2[Effect, error]) (list []string) {
		for e, err := range all {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, e.ID)
		}
		return list
	}
	if got := ids(o.On(Actions).Waiting(t.Context())); len(got) != 2 || got[0][:3] != string(Actions) {
		t.Errorf("the queue of actions has %v", got)
	}
	for range o.Waiting(t.Context()) {
		break
	}
	if r, err := o.Drain(t.Context(), 1); err != nil || r.Dead != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for range o.Waiting(t.Context()) {
		break
	}
	raw := func(partition string) (it store.Item) {
		for it = range s.Query(t.Context(), store.Query{Table: table.Name, Partition: partition}) {
		}
		return it
	}
	if !raw(Mail.dead()).Has(schema.DeadDate) {
		t.Error("a dead letter has no date")
	}
	id := ids(o.Dead(t.Context()))[0]
	if err := o.Replay(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if it := raw(Mail.keyOf(id, now()).PK); it == nil || it.Has(schema.DeadDate) {
		t.Errorf("the replayed letter is %v", it)
	}
	for _, partition := range []string{Mail.shard(0), Mail.dead()} {
		b := New(broken{s, partition}, table, now, nil, nil)
		if _, err := b.Backlog(t.Context(), 0); !errors.Is(err, errBroken) {
			t.Errorf("Backlog: %v", err)
		}
		errs := 0
		for _, err := range b.Waiting(t.Context()) {
			if err != nil && !errors.Is(err, errBroken) || err == nil && errs > 0 {
				t.Errorf("Waiting: %v after %d errors", err, errs)
			} else if err != nil {
				errs++
			}
		}
		if errs != 1 {
			t.Errorf("%s: %d errors, want one", partition, errs)
		}
	}
}

// TestClaiming_KeepsTheEffect: an effect that was claimed, and failed, has all that it had.
func TestClaiming_KeepsTheEffect(t *testing.T) {
	now := func() time.Time { return time.Unix(1000, 0) }
	table := schema.New("").Outbox
	s, err := memstore.Open([]store.Table{table}, now)
	if err != nil {
		t.Fatal(err)
	}
	e := Effect{ID: "a", Kind: "k", Created: now(), Due: now(), Data: map[string]string{"x": "y"}}
	if err := s.Commit(t.Context(), Write(table.Name, e)); err != nil {
		t.Fatal(err)
	}
	o := New(s, table, now, nil, func(context.Context, Effect) (bool, error) { return false, errBroken })
	o = o.Claiming(time.Minute)
	if r, err := o.Drain(t.Context(), 1); err != nil || r.Failed != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for got, err := range o.Waiting(t.Context()) {
		if err != nil || got.Kind != "k" || got.Data["x"] != "y" || got.Tries != 1 {
			t.Errorf("it has become %+v, %v", got, err)
		}
	}
}

// TestAnyDue: a row that is due is seen in whichever shard it is. One that is due later, a dead
// letter and a row of another queue are not.
func TestAnyDue(t *testing.T) {
	at := time.Unix(1000, 0)
	now := func() time.Time { return at }
	table := schema.New("").Outbox
	s, err := memstore.Open([]store.Table{table}, now)
	if err != nil {
		t.Fatal(err)
	}
	anyDue := func(want bool, what string) {
		t.Helper()
		if got, err := New(s, table, now, nil, nil).AnyDue(t.Context()); err != nil || got != want {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	put := func(e Effect) {
		t.Helper()
		e.Kind, e.Created = "k", at
		if err := s.Commit(t.Context(), Write(table.Name, e)); err != nil {
			t.Fatal(err)
		}
	}
	anyDue(false, "an empty queue")
	put(Effect{ID: "job", Queue: Actions, Due: at})
	put(Effect{ID: "later", Due: at.Add(time.Minute)})
	dead := Write(table.Name, Effect{ID: "dead", Kind: "k", Created: at, Due: at})
	table.SetKey(&dead.Item, store.Key{PK: Mail.dead(), SK: stamp(at) + "#dead"})
	if err := s.Commit(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	anyDue(false, "another queue's, a later row and a dead letter")
	at = at.Add(time.Minute)
	anyDue(true, "the later row, by then")
	if err := s.Commit(t.Context(), store.Delete(table.Name, Mail.keyOf("later", at))); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := 0; len(seen) < shards; i++ {
		id := strconv.Itoa(i)
		key := Mail.keyOf(id, at)
		if seen[key.PK] {
			continue
		}
		seen[key.PK] = true
		put(Effect{ID: id, Due: at})
		anyDue(true, key.PK)
		if err := s.Commit(t.Context(), store.Delete(table.Name, key)); err != nil {
			t.Fatal(err)
		}
		anyDue(false, key.PK+" when it is delivered")
	}
	if _, err := New(broken{s, Mail.shard(3)}, table, now, nil, nil).AnyDue(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("a shard that cannot be read: %v", err)
	}
}
