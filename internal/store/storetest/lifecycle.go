package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

func testLifecycle(t *testing.T, open Opener) {
	key := store.Key{PK: "a", SK: "1"}
	play(t, open,
		scenario{"closed", func(r *rig) {
			r.put(item("a", "1"))
			rows := r.Query(r.Context(), store.Query{Table: ledger, Partition: "a"})
			items := r.Scan(r.Context(), store.Scan{Table: ledger})
			if err := r.Close(); err != nil {
				r.Fatalf("Close: %v", err)
			}
			if it, err := r.Get(r.Context(), ledger, key); !errors.Is(err, store.ErrClosed) || it != nil {
				r.Errorf("Get = %v, %v; want ErrClosed", it, err)
			}
			r.refuse(store.ErrClosed, store.Put(ledger, item("a", "2")))
			r.refuseRead(store.ErrClosed, rows) // made before, iterated over after
			r.refuseRead(store.ErrClosed, items)
			r.refuseRead(store.ErrClosed, r.Query(r.Context(), store.Query{Table: ledger, Index: byState, Partition: "a"}))
			r.refuseRead(store.ErrClosed, r.Scan(r.Context(), store.Scan{Table: ledger}))
			if err := r.Close(); !errors.Is(err, store.ErrClosed) {
				r.Errorf("second Close = %v, want ErrClosed", err)
			}
		}},
		scenario{"closed during an iteration", func(r *rig) {
			r.fill(r.manyItems())
			n := 0
			for it, err := range r.Query(r.Context(), store.Query{Table: ledger, Partition: "a"}) {
				switch {
				case err != nil && !errors.Is(err, store.ErrClosed):
					r.Fatalf("the iteration yields %v", err)
				case err == nil && it.Str("pk") != "a":
					r.Fatalf("the iteration yields %s", show(it))
				case n == 1:
					if err := r.Close(); err != nil {
						r.Fatalf("Close: %v", err)
					}
				}
				n++
			}
		}},
		scenario{"cancelled", func(r *rig) {
			r.put(item("a", "1"))
			ctx, cancel := context.WithCancel(r.Context())
			rows := r.Query(ctx, store.Query{Table: ledger, Partition: "a"})
			cancel()
			r.unchanged(func() {
				if err := r.Commit(ctx, store.Put(ledger, item("a", "2"))); !errors.Is(err, context.Canceled) {
					r.Errorf("Commit = %v, want context.Canceled", err)
				}
			})
			if it, err := r.Get(ctx, ledger, key); !errors.Is(err, context.Canceled) || it != nil {
				r.Errorf("Get = %v, %v; want context.Canceled", it, err)
			}
			r.refuseRead(context.Canceled, rows)
			r.refuseRead(context.Canceled, r.Query(ctx, store.Query{Table: ledger, Index: byOwner, Partition: "a"}))
			r.refuseRead(context.Canceled, r.Scan(ctx, store.Scan{Table: ledger}))
			r.want(ledger, item("a", "1"))
		}},
		scenario{"cancelled with a cause", func(r *rig) {
			ctx, cancel := context.WithCancelCause(r.Context())
			cancel(errors.New("the cause"))
			if err := r.Commit(ctx, store.Put(ledger, item("a", "1"))); !errors.Is(err, context.Canceled) {
				r.Errorf("Commit = %v, want ctx.Err()", err)
			}
			r.wantNone(ledger, key)
		}},
	)
}
