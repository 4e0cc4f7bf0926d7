package takeover_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/takeover"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/tracking"
)

// other begins a second process on the store, with the same clock.
func (w *world) other() *world {
	w.Helper()
	o := &world{TB: w.TB, fake: w.fake, server: w.server, tables: w.tables, inner: w.inner, lease: w.lease, done: map[tracking.Action]int{}}
	o.at.Store(w.at.Load())
	o.start(nil)
	w.Cleanup(func() { o.proc.Close() })
	return o
}

// TestTakeover_SharedStore: two processes on DynamoDB take over the same subscriptions, undo the same one and run
// the payments, all at the same time. One of them may fail because of the other, and a repetition then succeeds.
// Each customer pays for each period once.
func TestTakeover_SharedStore(t *testing.T) {
	a := newFake(t)
	a.tables, a.lease = schema.New(dynamotest.Prefix(t)), time.Minute
	client := dynamotest.Client(t)
	_, err := dynamotable.Create(t.Context(), client, a.tables.All(), dynamotable.Settings{}, nil)
	a.must(err)
	db, err := dynamostore.Open(t.Context(), dynamostore.Options{Tables: a.tables.All(), Now: a.now, Client: client})
	a.must(err)
	t.Cleanup(func() { a.must(db.Close()) })
	a.inner = db
	a.start(nil)
	all := a.members(len(kinds))
	b, began := a.other(), a.now()
	all[0].undone = true
	for _, m := range all {
		if s, err := a.proc.Subscription(t.Context(), m.id); err == nil && s.PeriodEnd.Before(began.Add(takeover.Ahead+6*time.Hour)) {
			m.soon = true
		}
	}
	together := func(do func(ctx context.Context, w *world) error) {
		t.Helper()
		var both sync.WaitGroup
		errs := [2]error{}
		for i, w := range []*world{a, b} {
			both.Go(func() { errs[i] = do(t.Context(), w) })
		}
		both.Wait()
		for i, w := range []*world{a, b} {
			if errs[i] != nil {
				t.Log(errs[i])
				a.must(do(t.Context(), w))
			}
		}
	}
	together(func(ctx context.Context, w *world) error {
		_, err := w.take(ctx, takeover.Filter{})
		return err
	})
	together(func(ctx context.Context, w *world) error {
		return undoes(ctx, w, billing.Name{Account: all[0].customer, ID: all[0].id})
	})
	var paid [2]int // by each process
	for range 12 {
		a.idle(3)
		b.at.Store(a.at.Load())
		together(func(ctx context.Context, w *world) error {
			r, err := job.Payments(ctx, w.engine, job.Options{Workers: 2})
			if r != nil && w == a {
				paid[0] += r.Counts[engine.OutcomePaid]
			} else if r != nil {
				paid[1] += r.Counts[engine.OutcomePaid]
			}
			return err
		})
	}
	a.follow()
	if r := a.verify(); !r.OK {
		t.Errorf("%+v", r.Problems)
	}
	taken := a.paid(all, began)
	if t.Logf("%d taken over; charges by each process %v", taken, paid); taken == 0 || len(b.left) > 0 { // paid looks at those of a
		t.Errorf("%d taken over; b unsubscribed %v", taken, b.left)
	}
}
