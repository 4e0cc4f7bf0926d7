package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
