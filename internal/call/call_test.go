package call_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

func put(sk string) store.Write {
	return store.Put(schema.New("").RecurringPayments.Name, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S("ACC#1")}, store.Attribute{Name: schema.SK, Value: store.S(sk)}))
}

// TestCommit: the first commit of a call stores its key's row, later ones do not, and another call with
// the key writes nothing.
func TestCommit(t *testing.T) {
	s, err := memstore.Open(schema.New("").All(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(key, caller string) (context.Context, *call.Call) {
		c := &call.Call{Actor: "key shop", Key: key, Caller: caller, Hash: "h", Object: "accounts/1",
			Table: schema.New("").RecurringPayments.Name, Now: time.Now}
		return call.With(t.Context(), c), c
	}
	ctx, first := asked("k", "")
	for _, sk := range []string{"a", "b"} {
		if err := call.Commit(ctx, s, put(sk)); err != nil || !first.Stored() {
			t.Fatal(sk, err)
		}
	}
	ctx, second := asked("k", "")
	err = call.Commit(ctx, s, put("c"))
	repeated, ok := errors.AsType[*call.RepeatedError](err)
	if !ok || repeated.Row.Object != "accounts/1" || second.Stored() || store.Retryable(err) {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, put("c").Table, store.Key{PK: "ACC#1", SK: "c"}); !errors.Is(err, store.ErrNotFound) {
		t.Fatal("the second call has written:", err)
	}
	ctx, other := asked("k", "another merchant")
	if err := call.Commit(ctx, s, put("d")); err != nil || !other.Stored() {
		t.Fatal(err)
	}
}
