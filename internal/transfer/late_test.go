package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/transfer"
)

// Processes that wake when the copy has gone on without them.

// asleep runs a copy that falls asleep, with all of its goroutines, before its n-th commit,
// while meanwhile is done.
func (w *world) asleep(n int64, meanwhile func()) (*transfer.Report, error) {
	var points atomicInt
	var sleep sync.RWMutex
	at := at(n, storetest.Before, &points, func() error {
		sleep.Lock()
		defer sleep.Unlock()
		meanwhile()
		return nil
	})
	return w.copy(func(side int, op storetest.Operation, phase storetest.Phase) error {
		if phase == storetest.Before {
			sleep.RLock()
			defer func() { _ = at(side, op, phase) }()
			defer sleep.RUnlock()
		}
		return nil
	}).Run(w.t.Context())
}

// elsewhere returns a copy whose destination is lost.
func (w *world) elsewhere() *transfer.Copy {
	c := w.copy(nil)
	c.To = newWorld(w.t, w.shared).to
	return c
}

// TestCancel_WhileCopying: a copier falls asleep before any one of its commits, and its copy
// is canceled, once. When the copier wakes it makes nothing live, and leaves nothing on the
// source that would keep it from charging.
func TestCancel_WhileCopying(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for n := int64(2); n <= commits(t, shared); n++ { // before the first there is nothing to cancel
			w := newWorld(t, shared)
			r, err := w.asleep(n, func() {
				if err := w.copy(nil).Cancel(t.Context()); err != nil {
					t.Error(err)
				}
			})
			if err == nil {
				t.Fatalf("shared %v, canceled before commit %d: %+v", shared, n, r)
			}
			if able := w.able(); !slices.Equal(able, []string{"source"}) {
				t.Fatalf("shared %v, canceled before commit %d: able to charge: %v", shared, n, able)
			}
			w.unmarked()
			w.settle(w.from)
		}
	}
}

// TestCancel_LostWhileCopying: as above, but who cancels cannot see the destination. Either it
// is refused and the copy becomes live, or the source charges as if there had been no copy.
func TestCancel_LostWhileCopying(t *testing.T) {
	for _, shared := range []bool{false, true} {
		canceled := 0
		for n := int64(2); n <= commits(t, shared); n++ {
			w := newWorld(t, shared)
			var refused error
			r, err := w.asleep(n, func() { refused = w.elsewhere().Cancel(t.Context()) })
			live, able := w.to, "destination"
			if refused == nil {
				canceled++
				live, able = w.from, "source"
				w.unmarked()
			}
			if (err == nil && r.Live) != (refused != nil) {
				t.Fatalf("shared %v, commit %d: %+v, %v; canceled: %v", shared, n, r, err, refused)
			}
			if got := w.able(); !slices.Equal(got, []string{able}) {
				t.Fatalf("shared %v, commit %d: able to charge: %v; canceled: %v", shared, n, got, refused)
			}
			w.settle(live)
		}
		if canceled < 5 {
			t.Errorf("shared %v: canceled only %d times", shared, canceled)
		}
	}
}

// unmarked holds that the source has no mark.
func (w *world) unmarked() {
	w.t.Helper()
	for key, it := range everything(w.t, w.from) {
		if it.Has(schema.Moved) {
			w.t.Errorf("%s of the source is marked", key)
		}
	}
}

// TestCancel_RepairsMarks: marks that stand in a source that is not moved are taken off by a
// cancellation, with its destination canceled or lost; without a mark there is nothing to do.
func TestCancel_RepairsMarks(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t, true)
		w.interrupt(3)
		if err := w.copy(nil).Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		for key, it := range everything(t, w.from) {
			if strings.Contains(key, "/SUB#s1#") {
				mark, _, _ := w.from.Mark(it, "some copy")
				if err := w.from.Store.Commit(t.Context(), mark); err != nil {
					t.Fatal(err)
				}
			}
		}
		again := func() *transfer.Copy {
			if lost {
				return w.elsewhere()
			}
			return w.copy(nil)
		}
		if err := again().Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.unmarked()
		if err := again().Cancel(t.Context()); lost != errors.Is(err, transfer.ErrRefused) {
			t.Errorf("lost %v, nothing left to cancel: %v", lost, err)
		}
		w.settle(w.from)
	}
}

// TestCopy_TakesWhatWasUnderWay: a process that was opened before the fence creates an account
// and a subscription, and sleeps in the very last call of it. It wakes before any commit of
// the copy but the last: what it was told is there is there.
func TestCopy_TakesWhatWasUnderWay(t *testing.T) {
	total, mended := commits(t, true), 0
	for n := int64(3); n < total; n++ { // the second fences the source
		w := newWorld(t, true)
		wake, created := w.create("late")
		r, err := w.asleep(n, func() {
			close(wake)
			if err := <-created; err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatalf("created before commit %d: %v", n, err)
		}
		if r.Different > 0 {
			mended++
		}
		if !r.Live {
			w.finish()
		}
		if _, err := w.open(w.to, w.box).Subscription(t.Context(),
			billing.Name{Account: "late", ID: "late", SKU: "gold"}); err != nil {
			t.Errorf("created before commit %d of %d: %v", n, total, err)
		}
		w.alike()
	}
	if mended == 0 {
		t.Error("no comparison has met it")
	}
}

// create begins to create a subscription and its account on the source, up to its last call.
func (w *world) create(id string) (wake chan struct{}, created chan error) {
	w.t.Helper()
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		w.t.Fatal(err)
	}
	amount, err := money.Parse("5.00", usd)
	if err != nil {
		w.t.Fatal(err)
	}
	create := func(w *world, n int64) (*sleeper, chan error) {
		s := newSleeper(w.from.Store, w.box, 0)
		o := w.options(w.from, w.box)
		o.Store = sleepingStore{s}
		e, err := engine.Open(w.t.Context(), o)
		if err != nil {
			w.t.Fatal(err)
		}
		s.calls.Store(0)
		s.n = n
		done := make(chan error, 1)
		go func() {
			_, err := e.CreateSubscription(context.Background(),
				billing.NewSubscription{Account: id, Email: "a@example.com", ID: id, SKU: "gold",
					Amount: amount, PaymentDay: 31, Method: "pm_card_visa", NextPayment: w.today()})
			done <- err
		}()
		return s, done
	}
	counted, done := create(newWorld(w.t, w.shared), -1)
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	s, created := create(w, counted.calls.Load())
	<-s.asleep
	return s.awake, created
}

// TestCopy_DifferencesLeftWhenFinal: what cannot be mended once the source is final keeps the
// copy from becoming live, until the next one has mended it.
func TestCopy_DifferencesLeftWhenFinal(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := newWorld(t, shared)
		c := w.copy(nil)
		c.From.Store = &changing{Store: w.from.Store, side: w.from}
		r, err := c.Run(t.Context())
		if err != nil || r.Live || r.Different != 1 || !strings.Contains(fmt.Sprint(r.Differences),
			"ACC#a0/ACC differs in Note") {
			t.Fatalf("%+v, %v", r, err)
		}
		if able := w.able(); len(able) > 0 {
			t.Errorf("able to charge: %v", able)
		}
		if r := w.finish(); r.Before || r.Different > 0 {
			t.Errorf("%+v", r)
		}
		w.alike()
		w.settle(w.to)
	}
}

// A changing source changes whenever one begins to read it, once it is final.
type changing struct {
	store.Store
	side move.Side
	n    atomicInt
}

func (s *changing) Scan(ctx context.Context, q store.Scan) iter.Seq2[store.Item, error] {
	st, err := s.side.State(ctx)
	if err == nil && st.Final {
		err = s.Store.Commit(ctx, store.Update(s.side.Tables.RecurringPayments.Name, store.Key{PK: "ACC#a0", SK: "ACC"},
			store.NewItem(store.Attribute{Name: "Note", Value: store.Int(s.n.Add(1))}), nil))
	}
	if err != nil {
		return func(yield func(store.Item, error) bool) { yield(nil, err) }
	}
	return s.Store.Scan(ctx, q)
}

// TestZombieCopier_AfterALostCancellation: a copier falls asleep when it has compared. Its copy
// is given up at the source, which charges; then the copy is taken up again, under the same id,
// up to any of its commits. The sleeper wakes, finds the source fenced for its copy, and what
// it had compared out of date.
func TestZombieCopier_AfterALostCancellation(t *testing.T) {
	total := commits(t, true)
	for n := int64(1); n <= total; n++ {
		w := newWorld(t, true)
		_, err := w.asleep(total-2, func() { // before the source is final
			if err := w.elsewhere().Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := job.Payments(t.Context(), w.open(w.from, w.box), job.Options{Workers: 1}); err != nil {
				t.Error(err)
			}
			w.pass(25 * time.Hour)
			if _, err := w.copy(crashAt(n, storetest.After, new(atomicInt))).Run(t.Context()); err != nil &&
				!errors.Is(err, storetest.ErrCrash) {
				t.Error(err)
			}
		})
		if err != nil && !errors.Is(err, transfer.ErrOvertaken) {
			t.Errorf("taken up again to commit %d: %v", n, err)
		}
		w.finish()
		w.alike()
		w.settle(w.to)
		if t.Failed() {
			t.Fatalf("taken up again to commit %d", n)
		}
	}
}

// TestZombieCanceler: who cancels falls asleep before taking off any of the marks. Another one
// cancels to the end, and the copy is taken up again under the same id. The sleeper wakes, and
// the source keeps its marks. No version tells it: the subscriptions are another tool's.
func TestZombieCanceler(t *testing.T) {
	for n := int64(2); n < 2+subscriptions; n++ { // the first gives the copy up
		w := newWorld(t, true)
		for _, it := range everything(t, w.from) {
			if strings.HasPrefix(it.Str(schema.SK), "SUB#") {
				it.Remove(schema.Version)
				if err := w.from.Store.Commit(t.Context(), store.Put(w.from.Tables.RecurringPayments.Name, it)); err != nil {
					t.Fatal(err)
				}
			}
		}
		crash(t, w, commits(t, true)-3, storetest.After) // all is marked
		var points atomicInt
		zombie := w.copy(at(n, storetest.Before, &points, func() error {
			if err := w.elsewhere().Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			w.finish()
			return nil
		}))
		zombie.To = newWorld(t, true).to
		err := zombie.Cancel(t.Context())
		if points.Load() < n {
			t.Fatalf("there were %d commits: %v", points.Load(), err)
		}
		for key, it := range everything(t, w.from) {
			if strings.Contains(key, "/SUB#") && !it.Has(schema.Moved) {
				t.Errorf("asleep before commit %d (%v): %s has no mark", n, err, key)
			}
		}
		w.settle(w.to)
	}
}

// TestZombieMender: a copier that mends falls asleep with an old reading of a subscription.
// Its copy is given up at the source, which charges, and is taken up again. The sleeper wakes
// when all has been compared, right before the destination becomes live: its mend is too late.
func TestZombieMender(t *testing.T) {
	w := newWorld(t, true)
	torn := w.copy(nil)
	torn.To.Store = &tamper{Store: w.to.Store, table: w.to.Tables.RecurringPayments}
	if r, err := torn.Run(t.Context()); err != nil || r.Live {
		t.Fatalf("%+v, %v", r, err)
	}
	asleep, wake, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := w.copy(func(side int, op storetest.Operation, phase storetest.Phase) error {
			if side == 1 && phase == storetest.Before && len(op.Writes) == 2 &&
				strings.HasPrefix(op.Writes[0].Item.Str(schema.SK), "SUB#s0#") {
				close(asleep)
				<-wake
			}
			return nil
		}).Run(context.Background())
		ended <- err
	}()
	select {
	case <-asleep:
	case err := <-ended:
		t.Fatalf("it has mended nothing: %v", err)
	}
	if err := w.elsewhere().Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Payments(t.Context(), w.open(w.from, w.box), job.Options{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	w.pass(25 * time.Hour)
	for range 2 {
		var once sync.Once
		r, err := w.copy(func(side int, op storetest.Operation, phase storetest.Phase) error {
			last := op.Kind == storetest.Commit && op.Writes[len(op.Writes)-1].Set.Has(schema.Charging)
			if side == 1 && phase == storetest.Before && last {
				once.Do(func() {
					close(wake)
					if err := <-ended; !errors.Is(err, transfer.ErrOvertaken) {
						t.Errorf("the old copier: %v", err)
					}
				})
			}
			return nil
		}).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Live {
			break
		}
	}
	w.alike()
	w.settle(w.to)
}

// TestCopy_Segments: the most segments that are allowed fit into the commits that begin and
// end a copy, and one more would not.
func TestCopy_Segments(t *testing.T) {
	w := newWorld(t, true)
	if n := len(w.from.Tables.All())*(transfer.MaxSegments+1) + 2; n <= store.MaxWrites {
		t.Errorf("%d segments need %d writes: more could be allowed", transfer.MaxSegments+1, n)
	}
	c := w.copy(nil)
	c.Segments = transfer.MaxSegments
	if r, err := c.Run(t.Context()); err != nil || !r.Live {
		t.Fatalf("%+v, %v", r, err)
	}
	w.settle(w.to)
	w = newWorld(t, true)
	c = w.copy(nil)
	c.Segments = transfer.MaxSegments + 1
	if _, err := c.Run(t.Context()); !errors.Is(err, transfer.ErrRefused) {
		t.Errorf("one more: %v", err)
	}
}
