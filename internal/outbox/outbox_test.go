package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
)

var start = time.Date(2023, 5, 18, 14, 15, 39, 247e6, time.UTC)

// A clock is moved by the test.
type clock struct {
	mu sync.Mutex
	t  time.Time // guarded by mu
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// A receiver keeps what it got; fail, when set, decides which delivery fails.
type receiver struct {
	fail func(e outbox.Effect) error

	mu  sync.Mutex
	got map[string]int  // guarded by mu: deliveries that succeeded, by id
	all []outbox.Effect // guarded by mu: every call
}

func (r *receiver) Deliver(_ context.Context, e outbox.Effect) error {
	r.mu.Lock()
	r.all = append(r.all, e)
	r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(e); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got == nil {
		r.got = make(map[string]int)
	}
	r.got[e.ID]++
	return nil
}

func (r *receiver) ids() []string { return slices.Sorted(maps.Keys(r.got)) }

var table = schema.New("t-").Outbox

func open(t *testing.T, c *clock) *memstore.Store {
	t.Helper()
	s, err := memstore.Open([]store.Table{table}, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func effect(id string) outbox.Effect {
	return outbox.Effect{ID: id, Kind: outbox.KindReceipt, Due: start, Created: start,
		Data: map[string]string{outbox.DataEmail: "a@example.com", outbox.DataCharge: ""}}
}

func put(t *testing.T, s store.Store, effects ...outbox.Effect) {
	t.Helper()
	for _, e := range effects {
		if err := s.Commit(t.Context(), outbox.Write(table.Name, e)); err != nil {
			t.Fatal(err)
		}
	}
}

func drain(t *testing.T, o *outbox.Outbox) outbox.Report {
	t.Helper()
	r, err := o.Drain(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantPending(t *testing.T, o *outbox.Outbox, due, later, dead int) {
	t.Helper()
	b, err := o.Backlog(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := [3]int{b.Due, b.Later, b.Dead}, [3]int{due, later, dead}; got != want {
		t.Errorf("due, later, dead = %v, want %v", got, want)
	}
}

func dead(t *testing.T, o *outbox.Outbox) []outbox.Effect {
	t.Helper()
	var all []outbox.Effect
	for e, err := range o.Dead(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestDrain_DeliversWhatIsDueAsItWasWritten(t *testing.T) {
	c := &clock{t: start}
	s, to := open(t, c), &receiver{}
	o := outbox.New(s, table, c.now, to, nil)
	want := map[string]outbox.Effect{}
	for _, id := range []string{"plain", "a#b##c#", "#", "2099-01-01T00:00:00.000Z#x", "ünï"} {
		want[id] = effect(id)
		put(t, s, want[id])
	}
	atOnce := effect("at once")
	atOnce.Due = time.Time{}
	want["at once"] = atOnce
	later := effect("later")
	later.Due = start.Add(time.Millisecond)
	put(t, s, atOnce, later)
	wantPending(t, o, 6, 1, 0)

	if got, want := drain(t, o), (outbox.Report{Delivered: 6}); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
	for _, e := range to.all {
		w := want[e.ID]
		if e.Kind != w.Kind || !e.Due.Equal(w.Due) || !e.Created.Equal(w.Created) || !maps.Equal(e.Data, w.Data) ||
			e.Tries != 0 || e.Error != "" {
			t.Errorf("delivered %+v, want %+v", e, w)
		}
	}
	wantPending(t, o, 0, 1, 0)
	c.move(time.Millisecond)
	if got, want := drain(t, o), (outbox.Report{Delivered: 1}); got != want {
		t.Errorf("a millisecond later: report %+v, want %+v", got, want)
	}
	wantPending(t, o, 0, 0, 0)
}

func TestDrain_MoreThanAPageInAShard(t *testing.T) {
	c := &clock{t: start}
	s, to := open(t, c), &receiver{}
	o := outbox.New(s, table, c.now, to, nil)
	const n = 9000 // about 560 a shard
	for i := range n {
		put(t, s, effect(fmt.Sprintf("e%d", i)))
	}
	if got := drain(t, o); got.Delivered != n {
		t.Errorf("report %+v, want %d delivered", got, n)
	}
	wantPending(t, o, 0, 0, 0)
}

func TestDrain_FailuresFollowTheSchedule(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	to := &receiver{fail: func(outbox.Effect) error { return errors.New("mailbox full") }}
	o := outbox.New(s, table, c.now, to, nil)
	put(t, s, effect("x"))
	waits := []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
		5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for i, wait := range waits {
		if wait > 0 {
			c.move(wait - time.Millisecond)
			if got := drain(t, o); got != (outbox.Report{}) {
				t.Fatalf("delivery %d came early: %+v", i+1, got)
			}
			c.move(time.Millisecond)
		}
		want := outbox.Report{Failed: 1}
		if i == len(waits)-1 {
			want = outbox.Report{Dead: 1}
		}
		if got := drain(t, o); got != want {
			t.Fatalf("delivery %d: %+v, want %+v", i+1, got, want)
		}
		if e := to.all[len(to.all)-1]; e.Tries != i || len(to.all) != i+1 {
			t.Fatalf("delivery %d: effect with %d tries", i+1, e.Tries)
		}
	}
	wantPending(t, o, 0, 0, 1)
	letters := dead(t, o)
	if len(letters) != 1 || letters[0].ID != "x" || letters[0].Tries != 10 || letters[0].Error != "mailbox full" {
		t.Fatalf("dead letters %+v", letters)
	}

	to.fail = nil
	if err := o.Replay(t.Context(), "y"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("replay of an id that is not there: %v", err)
	}
	if err := o.Replay(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	wantPending(t, o, 1, 0, 0)
	if got, want := drain(t, o), (outbox.Report{Delivered: 1}); got != want {
		t.Errorf("after replay: %+v, want %+v", got, want)
	}
	if e := to.all[len(to.all)-1]; e.ID != "x" || e.Tries != 0 || !e.Due.Equal(c.now()) || !e.Created.Equal(start) {
		t.Errorf("replayed %+v", e)
	}
	wantPending(t, o, 0, 0, 0)
}

func TestDrain_GuardDropsAndFails(t *testing.T) {
	c := &clock{t: start}
	s, to := open(t, c), &receiver{}
	o := outbox.New(s, table, c.now, to, func(_ context.Context, e outbox.Effect) (bool, error) {
		if e.ID == "unsure" {
			return true, errors.New("cannot tell")
		}
		return e.ID == "wanted", nil
	})
	put(t, s, effect("wanted"), effect("paid meanwhile"), effect("unsure"))
	if got, want := drain(t, o), (outbox.Report{Delivered: 1, Dropped: 1, Failed: 1}); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
	if got := to.ids(); !slices.Equal(got, []string{"wanted"}) {
		t.Errorf("delivered %v", got)
	}
	wantPending(t, o, 0, 1, 0)
}

func TestDrain_PoisonStopsNoOther(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	to := &receiver{fail: func(e outbox.Effect) error {
		switch e.ID {
		case "panics":
			panic("boom")
		case "never":
			return fmt.Errorf("no such kind: %w", outbox.ErrPermanent)
		case "long":
			return errors.New(strings.Repeat("é", 10_000))
		}
		return nil
	}}
	o := outbox.New(s, table, c.now, to, nil)
	put(t, s, effect("panics"), effect("never"), effect("long"), effect("good"))
	unreadable := map[string]func(it *store.Item){
		"no data":     func(it *store.Item) { it.Remove(schema.Data) },
		"other data":  func(it *store.Item) { it.Set(schema.Data, store.M(store.Item{{Name: "a", Value: store.Int(1)}})) },
		"no kind":     func(it *store.Item) { it.Remove(schema.Kind) },
		"no created":  func(it *store.Item) { it.Set(schema.CreatedDate, store.S("yesterday")) },
		"no sort key": func(it *store.Item) { it.Set(schema.SK, store.S("0")) },
		"no id":       func(it *store.Item) { it.Set(schema.SK, store.S("2023-01-01T00:00:00.000Z#")) },
	}
	for id, spoil := range unreadable {
		w := outbox.Write(table.Name, effect(id))
		spoil(&w.Item)
		if err := s.Commit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := drain(t, o), (outbox.Report{Delivered: 1, Failed: 2, Dead: 1 + len(unreadable)}); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
	wantPending(t, o, 0, 2, 1+len(unreadable))
	for _, e := range dead(t, o) {
		if e.Error == "" {
			t.Errorf("dead letter without a reason: %+v", e)
		}
	}
	// What was unreadable stays so, whole, and goes the same way again.
	if err := o.Replay(t.Context(), "no kind"); err != nil {
		t.Fatal(err)
	}
	if got, want := drain(t, o), (outbox.Report{Dead: 1}); got != want {
		t.Errorf("replayed: %+v, want %+v", got, want)
	}
}

// TestDrain_EveryType: whatever type of value another tool writes into whatever attribute of a row,
// the row is delivered or put aside, and no other one waits for it.
func TestDrain_EveryType(t *testing.T) {
	tags, err := store.Set(store.S("vip"))
	if err != nil {
		t.Fatal(err)
	}
	values := []store.Value{store.S("theirs"), store.Int(42), store.B([]byte{1}), store.Bool(true), tags, store.L(store.S("a")),
		store.M(store.NewItem(store.Attribute{Name: "a", Value: store.Int(1)})), {}}
	failed := outbox.Write(table.Name, effect("failed")).Item
	for _, name := range []string{schema.Data, schema.Kind, schema.CreatedDate, schema.Tries, schema.LastError, schema.Sums, schema.DeadDate,
		"TTL", "Tags"} {
		for i, v := range values {
			c := &clock{t: start}
			s := open(t, c)
			to := &receiver{}
			o := outbox.New(s, table, c.now, to, nil)
			put(t, s, effect("good"))
			row := failed.Clone()
			if row.Set(name, v); v.IsZero() {
				row.Remove(name)
			}
			if err := s.Commit(t.Context(), store.Put(table.Name, row)); err != nil {
				if name == "TTL" {
					continue
				}
				t.Fatal(err)
			}
			got := drain(t, o)
			expired := name == "TTL" && i == 1
			if got.Delivered+got.Dead != 2 && !expired || got.Failed > 0 || got.Delivered == 0 {
				t.Errorf("%s = %v: %+v", name, v, got)
			}
		}
	}
}

func TestDrain_CancelledLeavesTheEffectAsItWas(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	to := &receiver{fail: func(outbox.Effect) error {
		cancel()
		return ctx.Err()
	}}
	o := outbox.New(s, table, c.now, to, nil)
	put(t, s, effect("x"))
	if got, err := o.Drain(ctx, 1); !errors.Is(err, context.Canceled) || got != (outbox.Report{}) {
		t.Errorf("drain: %+v, %v", got, err)
	}
	to.fail = func(e outbox.Effect) error {
		if e.Tries != 0 {
			return errors.New("a try was counted")
		}
		return nil
	}
	if got, want := drain(t, o), (outbox.Report{Delivered: 1}); got != want {
		t.Errorf("next drain: %+v, want %+v", got, want)
	}
}

func TestDrain_DeliveredIsDeletedThoughCancelled(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	to := &receiver{fail: func(outbox.Effect) error { cancel(); return nil }}
	o := outbox.New(s, table, c.now, to, nil)
	put(t, s, effect("x"))
	if got, _ := o.Drain(ctx, 1); got.Delivered != 1 {
		t.Errorf("report %+v", got)
	}
	wantPending(t, o, 0, 0, 0)
}

func TestDrain_ClockThatStepsBack(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	// The first failure happens 5 s before the row was due: its next due time is the
	// same, and so is its key.
	to := &receiver{fail: func(outbox.Effect) error { c.move(-5 * time.Second); return errors.New("no") }}
	o := outbox.New(s, table, c.now, to, nil)
	put(t, s, effect("x"))
	if got, want := drain(t, o), (outbox.Report{Failed: 1}); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
	wantPending(t, o, 0, 1, 0)
}

func TestDrain_TwoAtOnce(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	const n = 400
	for i := range n {
		put(t, s, effect(fmt.Sprintf("e%d", i)))
	}
	to := &receiver{fail: func(e outbox.Effect) error {
		if e.Tries == 0 && strings.HasSuffix(e.ID, "7") {
			return errors.New("not the first time")
		}
		return nil
	}}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := outbox.New(s, table, c.now, to, nil).Drain(t.Context(), 4); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	c.move(time.Minute)
	o := outbox.New(s, table, c.now, to, nil)
	drain(t, o)
	if len(to.got) != n {
		t.Errorf("%d effects delivered, want %d", len(to.got), n)
	}
	wantPending(t, o, 0, 0, 0)
}

// TestClaiming_OneProcessDelivers: of two that drain the same table at the same time one delivers
// each effect; of one that died after its claim the effect is due again after the lease.
func TestClaiming_OneProcessDelivers(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	put(t, s, effect("one"), effect("two"))
	first := &receiver{}
	second := outbox.New(s, table, c.now, first, nil).Claiming(time.Minute)
	nested := outbox.New(s, table, c.now, deliverFunc(func(ctx context.Context, e outbox.Effect) error {
		_, err := second.Drain(ctx, 2) // while we deliver, the other process drains
		if err != nil {
			return err
		}
		return first.Deliver(ctx, e)
	}), nil).Claiming(time.Minute)
	drain(t, nested)
	for _, id := range []string{"one", "two"} {
		if n := first.got[id]; n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
	wantPending(t, second, 0, 0, 0)

	put(t, s, effect("three"))
	died := storetest.NewFaulty(s)
	died.Hook = storetest.CrashAt(1, storetest.After)
	_, err := outbox.New(died, table, c.now, first, nil).Claiming(time.Minute).Drain(t.Context(), 1)
	if !errors.Is(err, storetest.ErrCrash) {
		t.Fatal(err)
	}
	drain(t, second)
	if n := first.got["three"]; n != 0 {
		t.Errorf("a claimed effect was delivered %d times before its lease was over", n)
	}
	c.move(time.Minute)
	drain(t, second)
	if n := first.got["three"]; n != 1 {
		t.Errorf("after the lease it was delivered %d times", n)
	}
}

type deliverFunc func(ctx context.Context, e outbox.Effect) error

func (f deliverFunc) Deliver(ctx context.Context, e outbox.Effect) error { return f(ctx, e) }

// TestForget: dead letters that were given up before the time are deleted, and no other row.
func TestForget(t *testing.T) {
	c := &clock{t: start}
	table := schema.New(schema.DefaultPrefix).Outbox
	s, err := memstore.Open([]store.Table{table}, c.now)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{"OUT#DEAD 2023-01-01": false, "OUT#DEAD 2023-05-01": true, "OUT#DEAD ": true, "OUT#00 2023-01-01": true,
		"INB#DEAD 2023-01-01": true}
	key := func(row string) store.Key {
		pk, died, _ := strings.Cut(row, " ")
		return store.Key{PK: pk, SK: "2022-12-31T00:00:00.000Z#" + died}
	}
	for row := range rows {
		it := store.NewItem()
		table.SetKey(&it, key(row))
		if _, died, _ := strings.Cut(row, " "); died != "" {
			it.Set(schema.DeadDate, store.S(died+"T00:00:00.000Z"))
		}
		if err := s.Commit(t.Context(), store.Put(table.Name, it)); err != nil {
			t.Fatal(err)
		}
	}
	o := outbox.New(s, table, c.now, nil, nil)
	if err := o.Forget(t.Context(), time.Date(2023, 4, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	for row, stays := range rows {
		if _, err := s.Get(t.Context(), table.Name, key(row)); (err == nil) != stays {
			t.Errorf("%s: %v", row, err)
		}
	}
}
