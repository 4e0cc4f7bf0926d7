package engine_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/pebbletest"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
)

// disk is a world on a Pebble store whose machine loses its power: what is not synced is
// lost, or half of it, by chance.
type disk struct {
	t    *testing.T
	w    *world
	rng  *rand.Rand
	fs   pebbletest.CrashDisk
	open *pebblestore.Store
}

func newDisk(t *testing.T, seed uint64) *disk {
	d := &disk{t: t, w: newWorld("2024-01-30T09:00", planted{}), rng: seeded(seed), fs: pebbletest.NewCrashDisk()}
	d.start()
	return d
}

// start opens the store as it is on the disk now.
func (d *disk) start() {
	s, err := pebblestore.Open("duesday",
		pebblestore.Options{Tables: d.w.tables.All(), Names: schema.Names(), Now: d.w.now, Create: true,
			FS: d.fs, CacheBytes: 1 << 20, Fatal: func(err error) { d.t.Errorf("the disk has failed: %v", err) }})
	if err != nil {
		d.t.Fatal(err)
	}
	d.open = s
	d.w.spy.Store = &power{Store: s, d: d}
}

// power cuts the power in the middle of a commit: after so many more, if cut is above zero.
type power struct {
	store.Store
	d    *disk
	cut  int
	dead bool
	left pebbletest.CrashDisk // what is on the disk after the cut
}

func (p *power) Commit(ctx context.Context, writes ...store.Write) error {
	if p.dead {
		return storetest.ErrCrash
	}
	if p.cut--; p.cut != 0 {
		return p.Store.Commit(ctx, writes...)
	}
	p.dead = true
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: 25 * p.d.rng.IntN(5), RNG: rand.New(rand.NewPCG(p.d.rng.Uint64(), 0))}
	late := p.d.rng.IntN(3) // before, while, or after it lands
	if late == 0 {
		p.left = p.d.fs.Crash(cfg)
		return storetest.ErrCrash
	}
	if late == 2 {
		_ = p.Store.Commit(ctx, writes...)
		p.left = p.d.fs.Crash(cfg)
		return storetest.ErrCrash
	}
	committed := make(chan struct{})
	go func() {
		_ = p.Store.Commit(ctx, writes...)
		close(committed)
	}()
	p.left = p.d.fs.Crash(cfg)
	<-committed
	return storetest.ErrCrash
}

func (p *power) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if p.dead {
		return nil, storetest.ErrCrash
	}
	return p.Store.Get(ctx, table, key)
}

func (p *power) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	if p.dead {
		return func(yield func(store.Item, error) bool) { yield(nil, storetest.ErrCrash) }
	}
	return p.Store.Query(ctx, q)
}

// crash works until the power is cut in the n-th commit, and starts again from what the
// disk has kept. What had been acknowledged must be there. It reports whether it came to it.
func (d *disk) crash(n int, work func(p *process)) bool {
	pw := d.w.spy.Store.(*power)
	p := d.w.start()
	pw.cut = n
	p.faults.mu.Lock()
	p.faults.hit = true // what it meets is no violation
	p.faults.mu.Unlock()
	work(p)
	if pw.cut = 0; !pw.dead {
		return false
	}
	if err := d.open.Close(); err != nil {
		d.t.Fatal(err)
	}
	d.fs = pw.left
	d.start()
	d.w.spy.compare(d.t)
	return true
}

// compare reads the store anew, and holds it to what had been acknowledged.
func (s *spy) compare(t *testing.T) {
	is := newSpy(s.w, nil)
	for _, table := range s.w.tables.All() {
		for it, err := range s.Scan(context.Background(), store.Scan{Table: table.Name}) {
			if err != nil {
				t.Fatal(err)
			}
			put := store.Put(table.Name, it)
			is.see(&put, nil)
		}
	}
	for name, it := range s.subs {
		if now := is.subs[name]; now == nil || now.Int(schema.Version) < it.Int(schema.Version) {
			t.Errorf("%s: version %d was acknowledged and is lost", name, it.Int(schema.Version))
		}
	}
	for id := range s.receipts {
		if len(is.receipts[id]) == 0 {
			t.Errorf("the receipt of %s was acknowledged and is lost", id)
		}
	}
	for id := range s.notices {
		if is.notices[id].rows == 0 {
			t.Errorf("effect %s was acknowledged and is lost", id)
		}
	}
	s.subs, s.receipts, s.ended, s.notices = is.subs, is.receipts, is.ended, is.notices
	for name, it := range is.subs {
		if open := it.Get(schema.OpenPeriod).Map(); open != nil {
			s.bound[open.Str(schema.Ref)] = fmt.Sprintf("%s/%d", name, open.Int(schema.Period))
		}
	}
}

// TestPowerCuts runs import, reminders, payments and requests on a Pebble store whose power
// is cut in the middle of random commits, and audits what has become of it.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	usual, seeds, cuts := 12, 0, 0
	if engine.Raced {
		usual = 4
	}
	for seed := range soaktest.Seeds(t, usual, 3000) {
		seeds++
		cuts += powerCuts(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d seeds, %d power cuts", seeds, cuts)
	if cuts < 10*seeds {
		t.Errorf("only %d power cuts", cuts)
	}
}

func powerCuts(t *testing.T, seed uint64) (cuts int) {
	d := newDisk(t, seed)
	ctx := context.Background()
	var batch []billing.NewSubscription
	for i, m := range []string{"pm_card_visa", "pm_sandbox_flaky", "pm_sandbox_timeout", "pm_card_visa_chargeDeclined",
		"pm_card_visa_chargeDeclinedLostCard", "pm_card_visa"} {
		n := one("2024-01-31", method(m))
		n.Account, n.ID = fmt.Sprintf("a%d", i), fmt.Sprintf("s%d", i)
		batch = append(batch, n)
	}
	cut := func(n int, work func(p *process)) {
		if d.crash(n, work) {
			cuts++
		}
	}
	cut(1, func(p *process) { _, _ = bulk.Create(ctx, p.Records, batch) })
	if _, err := bulk.Create(ctx, d.w.start().Records, batch); err != nil {
		t.Fatal(err)
	}
	for day := range 45 {
		cut(1+d.rng.IntN(6), func(p *process) { p.remind() })
		cut(1+d.rng.IntN(14), func(p *process) { p.run(civil.Date{}) })
		d.w.pass(time.Second)
		if name := (billing.Name{Account: "a5", ID: "s5", SKU: "gold"}); day%3 == 0 {
			cut(1+d.rng.IntN(3), func(p *process) { _, _ = p.Pause(ctx, name) })
			cut(1+d.rng.IntN(2), func(p *process) { _, _ = p.Resume(ctx, name) })
		}
		d.w.tomorrow()
	}
	p := d.w.start()
	for range 10 {
		p.run(civil.Date{})
		d.w.tomorrow()
	}
	d.w.remindAgain = true
	d.w.report(t)
	if err := d.open.Close(); err != nil {
		t.Error(err)
	}
	return cuts
}
