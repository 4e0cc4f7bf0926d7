package job_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/shop"
	"github.com/duesday/duesday/internal/test/storetest"
)

// slow is a processor that answers slowly, and records when it was asked to open each intent.
type slow struct {
	*sandbox.Sandbox
	takes time.Duration

	mu    sync.Mutex
	opens []time.Time
}

func (p *slow) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	p.mu.Lock()
	p.opens = append(p.opens, time.Now())
	p.mu.Unlock()
	time.Sleep(p.takes)
	return p.Sandbox.Open(ctx, r)
}

// between returns the number of intents that were opened after from and before to.
func (p *slow) between(from, to time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.opens {
		if at.After(from) && at.Before(to) {
			n++
		}
	}
	return n
}

func lease(s *shop.Shop, partition, owner string, until time.Time) {
	s.Helper()
	if err := s.Mem.Commit(s.Context(), store.Put(s.Tables.RecurringPayments.Name, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S("LEASE#payments")},
		store.Attribute{Name: schema.SK, Value: store.S(partition)},
		store.Attribute{Name: schema.Owner, Value: store.S(owner)},
		store.Attribute{Name: schema.Until, Value: store.S(until.UTC().Format("2006-01-02T15:04:05.000Z"))}))); err != nil {
		s.Fatal(err)
	}
}

// TestALongShareStaysWithItsWorker checks that a worker renews its lease for as long as it works.
func TestALongShareStaysWithItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 60)
		var wg sync.WaitGroup
		begun := time.Now()
		wg.Go(func() {
			r, err := job.Payments(t.Context(), s.Engine(s.Mem, &slow{Sandbox: s.Box, takes: 10 * time.Second}),
				job.Options{Workers: 1})
			if err != nil || r.Counts[engine.OutcomePaid] != 60 {
				t.Errorf("the owner: %+v, %v; want all 60 paid by it", r, err)
			}
		})
		time.Sleep(time.Second)
		r, err := job.Payments(t.Context(), s.Engine(s.Mem, s.Box), job.Options{Workers: 1})
		if err != nil || r.Due() != 0 {
			t.Errorf("the other: %+v, %v; want nothing left for it", r, err)
		}
		if time.Since(begun) < 2*engine.DefaultLease {
			t.Error("the share was too short to try a lease")
		}
		wg.Wait()
		s.WantAllCharged(60)
	})
}

// TestAShareThatIsTakenAwayIsLeft checks a worker that finds at renewal that another worker holds
// its lease. The worker starts no more rows, waits for the lease, and then handles the rows that
// are left.
func TestAShareThatIsTakenAwayIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 60)
		p := &slow{Sandbox: s.Box, takes: 5 * time.Second}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := job.Payments(t.Context(), s.Engine(s.Mem, p), job.Options{Workers: 2}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(20 * time.Second)
		taken := time.Now()
		until := taken.Add(engine.DefaultLease)
		lease(s, s.Due.String(), "somebody else", until)
		wg.Wait()
		if n := p.between(taken.Add(engine.DefaultLease/4+time.Second), until); n > 0 {
			t.Errorf("%d were begun under another's lease", n)
		}
		if p.between(until, until.Add(time.Hour)) == 0 {
			t.Error("nothing was left to do when it had run out")
		}
		s.WantAllCharged(60)
	})
}

// TestALeaseOfAClockThatIsAhead checks that a worker ignores a lease written by a clock that is
// ahead.
func TestALeaseOfAClockThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 5)
		lease(s, s.Due.String(), "ahead", time.Now().Add(10*time.Hour))
		begun := time.Now()
		if _, err := job.Payments(t.Context(), s.Engine(s.Mem, s.Box), job.Options{Workers: 2}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		s.WantAllCharged(5)
	})
}

// TestASleeperAloneDoesItsWork checks a worker that is suspended for longer than its lease while no
// other worker exists. It returns to the rows that it skipped. The run is complete only when no row
// is left.
func TestASleeperAloneDoesItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 400)
		sleepy := storetest.NewFaulty(s.Mem)
		e := s.Engine(sleepy, s.Box)
		var once sync.Once
		var wakes time.Time
		asleep := make(chan struct{})
		sleepy.Hook = func(op storetest.Operation, phase storetest.Phase) error {
			if op.Commit > 60 && phase == storetest.Before {
				once.Do(func() { wakes = time.Now().Add(5 * time.Minute); close(asleep) })
			}
			select {
			case <-asleep:
				time.Sleep(time.Until(wakes))
			default:
			}
			return nil
		}
		r, err := job.Payments(t.Context(), e, job.Options{Workers: 4})
		if err != nil || r.Counts[engine.OutcomePaid] != 400 {
			t.Errorf("%+v, %v; want 400 paid", r, err)
		}
		s.WantAllCharged(400)
	})
}

// TestAnEarlySleeperLeavesRowsToTheirOwner checks a worker that wakes while another worker still
// handles its former share. The worker does not start the rows in its queue.
func TestAnEarlySleeperLeavesRowsToTheirOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 120)
		sleepy := storetest.NewFaulty(s.Mem)
		mine := &slow{Sandbox: s.Box}
		e := s.Engine(sleepy, mine)
		var once sync.Once
		var wakes time.Time
		asleep := make(chan struct{})
		sleepy.Hook = func(op storetest.Operation, phase storetest.Phase) error {
			if op.Commit > 20 && phase == storetest.Before {
				once.Do(func() { wakes = time.Now().Add(3 * time.Minute); close(asleep) })
			}
			select {
			case <-asleep:
				time.Sleep(time.Until(wakes))
			default:
			}
			return nil
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := job.Payments(t.Context(), e, job.Options{Workers: 2}); err != nil {
				t.Error(err)
			}
		})
		<-asleep
		var ended time.Time
		if _, err := job.Payments(t.Context(), s.Engine(s.Mem, &slow{Sandbox: s.Box, takes: 20 * time.Second}),
			job.Options{Workers: 1}); err != nil {
			t.Error(err)
		}
		ended = time.Now()
		if !ended.After(wakes.Add(time.Minute)) {
			t.Fatal("the other was done before the sleeper woke")
		}
		if n := mine.between(wakes, ended); n > 2 { // each worker may have been about to start one row
			t.Errorf("the sleeper began %d rows of another's share", n)
		}
		wg.Wait()
		s.WantAllCharged(120)
	})
}

// TestChargingOffStopsARunBetweenShares checks that an active run on a shared store notices that
// charging is off.
func TestChargingOffStopsARunBetweenShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 16, 160)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := job.Payments(t.Context(), s.Engine(s.Mem, &slow{Sandbox: s.Box, takes: time.Second}),
				job.Options{Workers: 1})
			if !errors.Is(err, charging.ErrOff) {
				t.Errorf("the run: %v", err)
			}
		})
		time.Sleep(30 * time.Second)
		if err := s.Engine(s.Mem, s.Box).SetCharging(t.Context(), false, "stop"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if n := len(s.Charged()); n == 0 || n > 80 {
			t.Errorf("%d were charged, want some and not the most", n)
		}
	})
}

// TestHiccupsAllDayLong checks that a run does not end if the store refuses requests now and then,
// even if the total exceeds the refusals that a run tolerates at one time.
func TestHiccupsAllDayLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 64, 400)
		busy := storetest.NewFaulty(s.Mem)
		e := s.Engine(busy, s.Box)
		var mu sync.Mutex
		asked, refused := 0, 0
		busy.Hook = func(op storetest.Operation, phase storetest.Phase) error {
			mu.Lock()
			defer mu.Unlock()
			if phase == storetest.Before && op.Kind == storetest.Commit && len(op.Writes) == 1 &&
				op.Writes[0].Op == store.OpPut && op.Writes[0].Item.Has(schema.Owner) {
				if asked++; asked%2 == 0 {
					refused++
					return store.ErrThrottled
				}
			}
			return nil
		}
		if _, err := job.Payments(t.Context(), e, job.Options{Workers: 4}); err != nil || refused < 40 {
			t.Errorf("%v after %d refusals", err, refused)
		}
		s.WantAllCharged(400)
	})
}

// TestAHiccupCostsNobodyTheDay checks that a run postpones partitions while the store refuses
// requests, and charges everything. It returns an error if the store continues to refuse.
func TestAHiccupCostsNobodyTheDay(t *testing.T) {
	for refusals, want := range map[int]error{3: nil, 10_000: store.ErrThrottled} {
		synctest.Test(t, func(t *testing.T) {
			s := shop.New(t, 8, 80)
			busy := storetest.NewFaulty(s.Mem)
			e := s.Engine(busy, s.Box)
			var mu sync.Mutex
			left := refusals
			busy.Hook = func(op storetest.Operation, phase storetest.Phase) error {
				mu.Lock()
				defer mu.Unlock()
				if phase == storetest.Before && op.Kind == storetest.Commit && len(op.Writes) == 1 &&
					op.Writes[0].Op == store.OpPut &&
					op.Writes[0].Item.Has(schema.Owner) && left > 0 {
					left--
					return store.ErrThrottled
				}
				return nil
			}
			if _, err := job.Payments(t.Context(), e, job.Options{Workers: 4}); !errors.Is(err, want) {
				t.Fatalf("%d refusals: %v, want %v", refusals, err, want)
			}
			if want == nil {
				s.WantAllCharged(80)
			}
		})
	}
}
