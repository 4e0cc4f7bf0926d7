package numbering_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/meta"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/recipient"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/storetest"
)

// A world is a store with payments, and a clock.
type world struct {
	t      *testing.T
	store  store.Store
	tables schema.Tables
	shared bool // other processes may use the store
	mu     sync.Mutex
	at     time.Time // guarded by mu
	paid   int
	made   []store.Key       // the receipts
	got    map[string]string // guarded by mu: by the effect's ID, what its receipt had for a number at delivery
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) move(to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = to
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

var price, _ = money.Parse("12.99", usd)

var usd, _ = money.ParseCurrency("USD")

var start = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, open func(*world)) *world {
	t.Helper()
	w := &world{t: t, at: start, got: map[string]string{}}
	open(w)
	r := w.records(w.store)
	w.must(meta.Open(t.Context(), r, meta.Options{Making: billing.MakeNew}))
	return w
}

func (w *world) records(s store.Store) *billing.Records {
	r := billing.NewRecords(s, w.tables, w.now, nil)
	r.Shared = w.shared
	return r
}

func inMemory(w *world) {
	w.tables = schema.New(schema.DefaultPrefix)
	s, err := memstore.Open(w.tables.All(), w.now)
	w.must(err)
	w.store = s
}

func onPebble(w *world) {
	w.tables = schema.New(schema.DefaultPrefix)
	s, err := pebblestore.Open(w.t.TempDir(), pebblestore.Options{Tables: w.tables.All(), Names: schema.Names(), Now: w.now,
		Create: true, CacheBytes: 8 << 20})
	w.must(err)
	w.t.Cleanup(func() { _ = s.Close() })
	w.store = s
}

func onDynamo(w *world) {
	endpoint := dynamotest.Endpoint(w.t)
	w.tables = schema.New(dynamotest.Prefix(w.t))
	_, err := dynamotable.Create(w.t.Context(), dynamotest.Client(w.t), w.tables.All(), dynamotable.Settings{}, nil)
	w.must(err)
	s, err := dynamostore.Open(w.t.Context(), dynamostore.Options{Tables: w.tables.All(), Now: w.now, Client: dynamotest.ClientAt(endpoint)})
	w.must(err)
	w.t.Cleanup(func() { _ = s.Close() })
	w.store = s
}

// pay commits n payments. Every third account has no address, and every fifth payment is also an overpayment.
func (w *world) pay(n int) {
	w.t.Helper()
	r := w.records(w.store)
	for range n {
		i := w.paid
		w.paid++
		name := billing.Name{Account: fmt.Sprint("a", i), ID: "s", SKU: "gym"}
		receipts := []*billing.Receipt{{Name: name, SKU: "gym", Kind: billing.Charged, Period: i, Due: civil.Of(w.now()),
			Processed: w.now(), Amount: price, Charge: fmt.Sprint("ch", i), Expires: w.now().AddDate(0, 6, 0)}}
		if i%5 == 4 {
			over := *receipts[0]
			over.Kind = billing.Overpayment
			receipts = append(receipts, &over)
		}
		var sums []report.Sum
		var keys []store.Key
		var writes []store.Write
		for _, rec := range receipts {
			it := rec.Item()
			sums, keys = append(sums, report.OfReceipt(rec)...), append(keys, billing.KeyOf(it))
			writes = append(writes, store.Put(w.tables.RecurringPayments.Name, it, store.Absent()))
		}
		if i%3 != 2 {
			writes = append(writes, outbox.Write(w.tables.Outbox.Name, outbox.Effect{ID: fmt.Sprint("mail", i), Kind: outbox.KindReceipt,
				Due: w.now(), Created: w.now(), Data: map[string]string{outbox.DataReceipt: receipts[0].Number("")}}))
		}
		w.must(w.store.Commit(w.t.Context(), report.Carry(r, writes, sums, keys, name.Account)...))
		w.made = append(w.made, keys...)
	}
}

// Deliver implements outbox.Deliverer. It notes the number that the receipt has.
func (w *world) Deliver(ctx context.Context, e outbox.Effect) error {
	it, err := w.store.Get(ctx, w.tables.RecurringPayments.Name, e.Numbered[0])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got[e.ID] = it.Str(schema.Number)
	return billing.IgnoreNotFound(err)
}

// process is the outbox of one process, with its own numberer.
func (w *world) process(s store.Store, lease time.Duration) *outbox.Outbox {
	r := w.records(s)
	return outbox.New(s, w.tables.Outbox, w.now, w, nil).Claiming(lease).Counting(report.Tally(r)).Numbering(numbering.New(r, lease > 0))
}

func (w *world) drain() {
	w.t.Helper()
	o := w.process(w.store, 0)
	for range 2 {
		_, err := o.Drain(w.t.Context(), 2)
		w.must(err)
	}
	for e, err := range o.Uncounted(w.t.Context()) {
		w.t.Errorf("not counted: %s, %v", e.ID, err)
	}
}

// numbers returns the numbers of each series, and checks that there is no gap, that none is given twice, and that
// receipts and rows agree.
func (w *world) numbers() map[string]int {
	w.t.Helper()
	last, of := map[string]int{}, map[store.Key]string{}
	receipts := map[store.Key]string{}
	for it, err := range w.store.Scan(w.t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		w.must(err)
		key := billing.KeyOf(it)
		switch {
		case numbering.IsNumber(key):
			x, err := numbering.Decode(it)
			w.must(err)
			last[x.Series] = max(last[x.Series], int(x.N))
			if of[x.Of] != "" {
				w.t.Errorf("%v has the numbers %s and %s", x.Of, of[x.Of], x)
			}
			of[x.Of] = x.String()
		case strings.HasPrefix(key.SK, billing.RecPrefix) && it.Has(schema.Number):
			receipts[key] = it.Str(schema.Number)
		}
	}
	total := 0
	for _, n := range last {
		total += n
	}
	if total != len(of) {
		w.t.Errorf("%d rows, but the last numbers are %v", len(of), last)
	}
	for key, number := range of {
		if _, err := w.store.Get(w.t.Context(), w.tables.RecurringPayments.Name, key); err == nil && receipts[key] != number {
			w.t.Errorf("%v: row says %s, receipt %q", key, number, receipts[key])
		}
	}
	for key, number := range receipts {
		if of[key] != number {
			w.t.Errorf("%v: receipt says %s, row %q", key, number, of[key])
		}
	}
	return last
}

func (w *world) want(want map[string]int) {
	w.t.Helper()
	if got := w.numbers(); !maps.Equal(got, want) {
		w.t.Errorf("series %v, want %v", got, want)
	}
}

func TestNumbers_EveryReceiptHasOne(t *testing.T) {
	for name, open := range map[string]func(*world){"memory": inMemory, "pebble": onPebble, "dynamodb": onDynamo} {
		t.Run(name, func(t *testing.T) {
			if name == "dynamodb" && testing.Short() {
				t.Skip("needs DynamoDB Local")
			}
			w := newWorld(t, open)
			w.pay(100)
			w.drain()
			w.want(map[string]int{"R-2026": 120})
			for id, number := range w.got {
				if number == "" {
					t.Errorf("%s was delivered before its number", id)
				}
			}
			w.move(time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC))
			w.pay(1)
			w.drain()
			w.move(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) // the year of the day on which it is given
			w.pay(1)
			w.drain()
			w.want(map[string]int{"R-2026": 121, "R-2027": 1})
		})
	}
}

// TestNumbers_CrashAtEveryCommit kills the drain before and after each of its commits, and loses each reply.
func TestNumbers_CrashAtEveryCommit(t *testing.T) {
	for name, hook := range map[string]func(int, storetest.Phase) storetest.Hook{"crash": storetest.CrashAt, "lost": storetest.LoseReply} {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			for _, lease := range []time.Duration{0, time.Minute} {
				for n := 1; ; n++ {
					w := newWorld(t, inMemory)
					w.pay(35)
					faulty := storetest.NewFaulty(w.store)
					faulty.Hook = hook(n, phase)
					if _, err := w.process(faulty, lease).Drain(t.Context(), 1); err != nil && !errors.Is(err, storetest.ErrCrash) {
						t.Fatalf("%s %v %d: %v", name, phase, n, err)
					}
					w.numbers()
					w.move(w.now().Add(time.Hour))
					w.pay(3)
					w.drain()
					w.want(map[string]int{"R-2026": 45})
					if t.Failed() {
						t.Fatalf("%s, phase %v, lease %s, commit %d", name, phase, lease, n)
					}
					if faulty.Commits() < n {
						break
					}
				}
			}
		}
	}
}

// TestNumbers_ManyDrains lets drains work at the same time, with and without the lease, while commits fail.
func TestNumbers_ManyDrains(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 29))
		w := newWorld(t, inMemory)
		w.pay(20 + rng.IntN(40))
		lease := time.Duration(seed%2) * time.Hour
		var drains sync.WaitGroup
		for range 3 {
			faulty, faults := storetest.NewFaulty(w.store), rand.New(rand.NewPCG(rng.Uint64(), 2))
			var mu sync.Mutex
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
			o := w.process(faulty, lease)
			drains.Go(func() {
				for range 4 {
					if _, err := o.Drain(t.Context(), 2); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			})
		}
		drains.Wait()
		w.numbers()
		w.move(w.now().Add(2 * time.Hour))
		w.drain()
		w.want(map[string]int{"R-2026": len(w.made)})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestNumbers_TwoDrainsOnDynamoDB lets two processes of a shared store drain while others are charged.
func TestNumbers_TwoDrainsOnDynamoDB(t *testing.T) {
	if testing.Short() {
		t.Skip("needs DynamoDB Local")
	}
	w := newWorld(t, onDynamo)
	w.shared = true
	w.pay(40)
	var drains sync.WaitGroup
	for range 2 {
		o := w.process(w.store, time.Minute)
		drains.Go(func() {
			for range 4 {
				if _, err := o.Drain(t.Context(), 2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	w.pay(40)
	drains.Wait()
	w.numbers()
	w.move(w.now().Add(2 * time.Minute)) // until the lease of the other process has ended
	w.drain()
	w.want(map[string]int{"R-2026": len(w.made)})
	for id, number := range w.got {
		if number == "" {
			t.Errorf("%s was delivered before its number", id)
		}
	}
}

// TestNumbers_OneProcessByLease shows that another process delivers, but does not count, rows with receipts.
func TestNumbers_OneProcessByLease(t *testing.T) {
	w := newWorld(t, inMemory)
	first, second := w.process(w.store, time.Minute), w.process(w.store, time.Minute)
	w.pay(3)
	_, err := first.Drain(t.Context(), 1)
	w.must(err)
	w.pay(3)
	reminder := outbox.Effect{ID: "reminder", Kind: outbox.KindReminder, Due: w.now(), Created: w.now(), Data: map[string]string{},
		Numbered: w.made[:1]}
	w.must(w.store.Commit(t.Context(), outbox.Write(w.tables.Outbox.Name, reminder)))
	_, err = second.Drain(t.Context(), 1)
	w.must(err)
	w.want(map[string]int{"R-2026": 3})
	if _, delivered := w.got["reminder"]; !delivered || len(w.got) != 3 {
		t.Errorf("delivered %v", slices.Sorted(maps.Keys(w.got)))
	}
	w.move(w.now().Add(2 * time.Minute)) // the first has died
	_, err = second.Drain(t.Context(), 1)
	w.must(err)
	w.want(map[string]int{"R-2026": len(w.made)})
}

func TestNumbers_ReceiptIsGone(t *testing.T) {
	w := newWorld(t, inMemory)
	w.pay(3)
	w.must(w.store.Commit(t.Context(), store.Delete(w.tables.RecurringPayments.Name, w.made[1])))
	w.drain()
	w.want(map[string]int{"R-2026": 2})
	w.move(start.AddDate(1, 0, 0)) // expiry removes receipts, not numbers
	w.want(map[string]int{"R-2026": 2})
}

// TestNumbers_ReleasedMailWaits shows that a mail that was held and released waits for the drain that gives its number.
func TestNumbers_ReleasedMailWaits(t *testing.T) {
	w := newWorld(t, inMemory)
	w.pay(2)
	o := w.process(w.store, 0)
	decide := func(o *outbox.Outbox, f outbox.Fate, want int) {
		t.Helper()
		count, err := o.Decide(t.Context(), func(outbox.Effect) (outbox.Fate, error) { return f, nil })
		if err != nil || count[f] != want {
			t.Fatalf("%v, %v", count, err)
		}
	}
	decide(o, outbox.Hold, 2)
	decide(o.On(outbox.Held), outbox.Release, 2)
	d := &recipient.Directory{Cards: &wallet.Cards{Records: w.records(w.store)}}
	for _, drained := range []bool{false, true} {
		mails := 0
		for e, err := range o.Waiting(t.Context()) {
			w.must(err)
			if e.Kind != outbox.KindReceipt {
				continue
			}
			mails++
			number, err := d.NumberOf(t.Context(), e)
			if strings.HasPrefix(number, "R-2026-00000") != drained || (err == nil) != drained {
				t.Errorf("drained %t: number %q, %v", drained, number, err)
			}
		}
		if mails != 2 {
			t.Errorf("%d mails wait", mails)
		}
		r := w.records(w.store)
		_, err := outbox.New(w.store, w.tables.Outbox, w.now, failing{}, nil).Counting(report.Tally(r)).
			Numbering(numbering.New(r, false)).Drain(t.Context(), 1)
		w.must(err)
	}
	w.want(map[string]int{"R-2026": 2})
}

// failing is a deliverer whose mails all wait.
type failing struct{}

func (failing) Deliver(context.Context, outbox.Effect) error { return errors.New("not now") }

func TestNumbers_Settings(t *testing.T) {
	w := newWorld(t, inMemory)
	set := func(prefix string) {
		t.Helper()
		_, err := settings.Change(t.Context(), w.records(w.store), func(s *settings.Settings) error { return s.Set("receipt-prefix", prefix) })
		w.must(err)
	}
	for _, prefix := range []string{"", "X1", "none", "R"} {
		set(prefix)
		w.pay(2)
		w.drain()
	}
	w.want(map[string]int{"R-2026": 4, "X1-2026": 2}) // those of the time without numbers never get one
}

// TestNumbers_CounterIsBehind restores only the counter: a new series begins, and no drain is stuck.
func TestNumbers_CounterIsBehind(t *testing.T) {
	w := newWorld(t, inMemory)
	w.pay(2)
	w.drain()
	old, err := w.store.Get(t.Context(), w.tables.RecurringPayments.Name, numbering.CounterKey)
	w.must(err)
	w.pay(2)
	w.drain()
	w.must(w.store.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, old)))
	w.pay(2)
	w.drain()
	w.want(map[string]int{"R-2026": 4, "R-2026B": 3})
	w.must(w.store.Commit(t.Context(), store.Delete(w.tables.RecurringPayments.Name, numbering.CounterKey)))
	w.pay(1)
	w.drain()
	w.want(map[string]int{"R-2026": 4, "R-2026B": 3, "R-2026C": 1})
}

// TestNumbers_CounterIsIllegible: restores and reconciliations go on, no number is given, and after the item was
// removed, a new series begins.
func TestNumbers_CounterIsIllegible(t *testing.T) {
	w := newWorld(t, inMemory)
	w.pay(2)
	w.drain()
	table, r := w.tables.RecurringPayments.Name, w.records(w.store)
	w.must(w.store.Commit(t.Context(), store.Put(table, billing.ItemAt(numbering.CounterKey, store.Attribute{Name: schema.Last, Value: store.S("4")}))))
	known, err := numbering.Begin(t.Context(), r, nil)
	if err != nil || known != "" {
		t.Errorf("restore: %q, %v", known, err)
	}
	w.must(numbering.BeginSince(t.Context(), r))
	w.pay(1)
	if _, err := w.process(w.store, 0).Drain(t.Context(), 1); !errors.Is(err, numbering.ErrCounter) {
		t.Errorf("drain: %v", err)
	}
	w.want(map[string]int{"R-2026": 2})
	w.must(w.store.Commit(t.Context(), store.Delete(table, numbering.CounterKey)))
	w.drain()
	w.want(map[string]int{"R-2026": 2, "R-2026B": 1})
}

// TestNumbers_Fenced shows that a drain of a moved store gives no number.
func TestNumbers_Fenced(t *testing.T) {
	w := newWorld(t, inMemory)
	w.pay(2)
	w.must(w.store.Commit(t.Context(), store.Update(w.tables.RecurringPayments.Name, billing.MetaKey,
		store.NewItem(store.Attribute{Name: schema.Moved, Value: store.S("elsewhere")}), nil)))
	_, _ = w.process(w.store, 0).Drain(t.Context(), 1)
	w.want(map[string]int{})
}

// TestNumbers_TwoWriters: of two commits that read the same counter for different receipts, one conflicts.
func TestNumbers_TwoWriters(t *testing.T) {
	w := newWorld(t, inMemory)
	w.pay(2)
	var commits [][]store.Write
	for _, key := range w.made {
		writes, err := numbering.New(w.records(w.store), false).Give(t.Context(), []store.Key{key})
		w.must(err)
		commits = append(commits, writes)
	}
	w.must(w.store.Commit(t.Context(), commits[0]...))
	if err := w.store.Commit(t.Context(), commits[1]...); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the second commit: %v", err)
	}
	w.want(map[string]int{"R-2026": 1})
}

// TestNumbers_NeedTheFormat: while an older build may drain a shared store, no receipt gets a number.
func TestNumbers_NeedTheFormat(t *testing.T) {
	w := newWorld(t, inMemory)
	w.shared = true
	format := func(n int64) {
		t.Helper()
		w.must(w.store.Commit(t.Context(), store.Update(w.tables.RecurringPayments.Name, billing.MetaKey,
			store.NewItem(store.Attribute{Name: schema.Format, Value: store.Int(n)}), nil)))
	}
	format(5)
	w.pay(2)
	w.drain()
	w.want(map[string]int{})
	format(6)
	w.pay(2)
	w.drain()
	w.want(map[string]int{"R-2026": 2})
}
