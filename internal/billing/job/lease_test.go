package job_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/shop"
	"github.com/duesday/duesday/internal/test/storetest"
)

// TestWorkersShareByLease checks that three workers at once charge everything once, that each
// worker charges a part, and that no lease is left.
func TestWorkersShareByLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 8, 240)
		var paid [3]int
		var wg sync.WaitGroup
		for i := range paid {
			e := s.Engine(s.Mem, s.Box)
			wg.Go(func() {
				r, err := job.Payments(t.Context(), e, job.Options{Workers: 4})
				if err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
				paid[i] = r.Counts[engine.OutcomePaid]
			})
		}
		wg.Wait()
		if paid[0]+paid[1]+paid[2] != 240 || slices.Min(paid[:]) == 0 {
			t.Errorf("the workers charged %v, want 240 in all and some by each", paid)
		}
		s.WantAllCharged(240)
		if held := s.Leases(); len(held) > 0 {
			t.Errorf("leases left: %v", held)
		}
	})
}

// TestOneShardIsOneWorkersAtATime checks that a second worker waits for the lease of the only
// partition, and then finds nothing left to do.
func TestOneShardIsOneWorkersAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 40)
		var wg sync.WaitGroup
		var paid [2]int
		for i := range paid {
			e := s.Engine(s.Mem, s.Box)
			wg.Go(func() {
				r, err := job.Payments(t.Context(), e, job.Options{Workers: 2})
				if err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
				paid[i] = r.Counts[engine.OutcomePaid]
			})
		}
		wg.Wait()
		if max(paid[0], paid[1]) != 40 || paid[0]+paid[1] != 40 {
			t.Errorf("the workers charged %v, want all by one", paid)
		}
		s.WantAllCharged(40)
	})
}

// TestAKilledWorkersShareIsTakenOver checks that another worker finishes a killed worker's share
// after the lease has expired, and not before.
func TestAKilledWorkersShareIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 4, 80)
		doomed := storetest.NewFaulty(s.Mem)
		e := s.Engine(doomed, s.Box)
		doomed.Hook = storetest.CrashAt(doomed.Commits()+60, storetest.After)
		if _, err := job.Payments(t.Context(), e, job.Options{Workers: 4}); !errors.Is(err, storetest.ErrCrash) {
			t.Fatalf("the doomed run: %v", err)
		}
		if len(s.Leases()) == 0 {
			t.Fatal("the dead worker held no lease")
		}
		before := time.Now()
		r, err := job.Payments(t.Context(), s.Engine(s.Mem, s.Box), job.Options{Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took < engine.DefaultLease-10*time.Second || took > 2*engine.DefaultLease {
			t.Errorf("it took %s, want the rest of the dead worker's lease of %s", took, engine.DefaultLease)
		}
		if r.Counts[engine.OutcomePaid] == 0 {
			t.Error("nothing was left to take over")
		}
		s.WantAllCharged(80)
	})
}

// TestASleeperHarmsNothing checks that a worker that is suspended for longer than its lease starts
// no rows after it wakes, because other workers have done its share.
func TestASleeperHarmsNothing(t *testing.T) {
	for _, at := range []string{"before a commit", "before a confirm"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := shop.New(t, 4, 80)
				asleep := make(chan struct{})
				sleepy := storetest.NewFaulty(s.Mem)
				p := &sleepyProcessor{Charger: s.Box, asleep: asleep}
				e := s.Engine(sleepy, p)
				var once sync.Once
				sleepy.Hook = func(op storetest.Operation, phase storetest.Phase) error {
					if at == "before a commit" && op.Commit > 30 && phase == storetest.Before {
						once.Do(func() { close(asleep) })
					}
					select {
					case <-asleep:
						time.Sleep(p.sleep()) // the whole process is suspended at once
					default:
					}
					return nil
				}
				if at == "before a confirm" {
					p.at = 20
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := job.Payments(t.Context(), e, job.Options{Workers: 2}); err != nil {
						t.Errorf("the sleeper: %v", err)
					}
				})
				<-asleep
				if _, err := job.Payments(t.Context(), s.Engine(s.Mem, s.Box), job.Options{Workers: 4}); err != nil {
					t.Error(err)
				}
				if p.sleep() <= 0 {
					t.Error("the other one waited for the sleeper")
				}
				s.WantAllCharged(80)
				opened := p.count()
				wg.Wait()
				if now := p.count(); now > opened+2 { // each worker may have been about to start one row
					t.Errorf("the sleeper opened %d intents after it woke", now-opened)
				}
				s.WantAllCharged(80)
			})
		})
	}
}

// A sleepyProcessor is suspended together with its process.
type sleepyProcessor struct {
	processor.Charger
	asleep chan struct{}
	at     int // number of the confirm before which the process is suspended

	mu       sync.Mutex
	confirms int
	opens    int
	wakes    time.Time
}

// sleep returns how long the process remains suspended.
func (p *sleepyProcessor) sleep() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wakes.IsZero() {
		p.wakes = time.Now().Add(30 * time.Minute)
	}
	return time.Until(p.wakes)
}

func (p *sleepyProcessor) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opens
}

func (p *sleepyProcessor) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	p.mu.Lock()
	p.opens++
	p.mu.Unlock()
	return p.Charger.Open(ctx, r)
}

func (p *sleepyProcessor) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	p.mu.Lock()
	p.confirms++
	now := p.confirms == p.at
	p.mu.Unlock()
	if now {
		close(p.asleep)
	}
	select {
	case <-p.asleep:
		time.Sleep(p.sleep())
	default:
	}
	return p.Charger.Confirm(ctx, r)
}
