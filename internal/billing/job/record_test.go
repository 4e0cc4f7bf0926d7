package job_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/shop"
)

// TestRunRecord_Progress checks that another process can read a run's progress, and then its final
// counts.
func TestRunRecord_Progress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 60)
		other := s.Engine(s.Mem, s.Box)
		var wg sync.WaitGroup
		wg.Go(func() {
			r, err := job.Payments(t.Context(), s.Engine(s.Mem, &slow{Sandbox: s.Box, takes: time.Second}),
				job.Options{Workers: 2})
			if err != nil || r.Counts[engine.OutcomePaid] != 60 {
				t.Errorf("%+v, %v", r, err)
			}
		})
		time.Sleep(10 * time.Second)
		runs, err := job.Latest(t.Context(), other, billing.Payments, 1)
		if err != nil {
			t.Fatal(err)
		}
		if r := runs[0]; r.State != job.Running || r.Rows < 10 || r.Rows > 30 || r.Counts["paid"] != r.Rows {
			t.Errorf("after ten seconds: %+v", r)
		}
		seen := 0
		r, err := job.Follow(t.Context(), other, billing.Payments, runs[0].ID, func(*job.Report) { seen++ })
		if err != nil || r.State != job.Completed || r.Rows != 60 || seen < 10 {
			t.Errorf("%+v, %v; it was seen %d times", r, err, seen)
		}
		if err := r.Err(); err != nil || r.Due() != 60 || fmt.Sprint(slices.Collect(r.Amounts.All())) != "[599.40 USD]" || r.NeedsPerson() {
			t.Errorf("the report: %+v, %v", r, err)
		}
		wg.Wait()
		if _, err := job.Find(t.Context(), other, "", "2024-01-01#no"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a run that is not there: %v", err)
		}
	})
}

// requests records when requests that charge begin.
type requestTimes struct {
	processor.Charger
	takes time.Duration

	mu    sync.Mutex
	begun []time.Time
}

func (p *requestTimes) note() {
	p.mu.Lock()
	p.begun = append(p.begun, time.Now())
	p.mu.Unlock()
	time.Sleep(p.takes)
}

func (p *requestTimes) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	p.note()
	return p.Charger.Open(ctx, r)
}

func (p *requestTimes) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	p.note()
	return p.Charger.Confirm(ctx, r)
}

// TestChargingOff_StopsALiveRun checks a run during which another process switches charging off.
// Within a second, the run stops sending requests that charge. It settles the payments in progress,
// ends, and reports the reason. After charging is on again, the next run charges the rest.
func TestChargingOff_StopsALiveRun(t *testing.T) {
	for i := range 10 {
		shared := i%2 == 0                                              // true for leases, false for claims
		after := 10*time.Second + time.Duration(i)*200*time.Millisecond // at different points of a row
		synctest.Test(t, func(t *testing.T) {
			s := shop.New(t, 1, 60)
			var st store.Store = s.Mem
			if !shared {
				st = &claiming{Store: s.Mem, claims: new(store.Claims)}
			}
			p := &requestTimes{Charger: s.Box, takes: 800 * time.Millisecond}
			var ended time.Time
			var wg sync.WaitGroup
			wg.Go(func() {
				r, err := job.Payments(t.Context(), s.Engine(st, p), job.Options{Workers: 4})
				ended = time.Now()
				if !errors.Is(err, charging.ErrOff) || r == nil || !r.Off || !r.NeedsPerson() {
					t.Errorf("the run: %+v, %v", r, err)
				}
			})
			time.Sleep(after)
			other := s.Engine(st, s.Box)
			if err := other.SetCharging(t.Context(), false, "stop"); err != nil {
				t.Fatal(err)
			}
			off := time.Now()
			wg.Wait()
			if took := ended.Sub(off) - p.takes; took > 500*time.Millisecond { // a request in progress may finish
				t.Errorf("the run ended %s after charging off and its last request", took)
			}
			for _, at := range p.begun {
				if at.After(off.Add(500 * time.Millisecond)) {
					t.Errorf("a request began %s after charging off", at.Sub(off))
				}
			}
			paid := len(s.Charged())
			runs, err := job.Latest(t.Context(), other, "", 1)
			if err != nil || runs[0].State != job.Ended || !runs[0].Off || runs[0].Counts["paid"] != paid || paid == 0 {
				t.Errorf("%d were charged; the record: %+v, %v", paid, runs, err)
			}
			if err := runs[0].Err(); !errors.Is(err, charging.ErrOff) || !runs[0].Off {
				t.Errorf("its report: %+v, %v", runs[0], err)
			}
			if err := other.SetCharging(t.Context(), true, ""); err != nil {
				t.Fatal(err)
			}
			if r, err := job.Payments(t.Context(), other, job.Options{Workers: 4}); err != nil ||
				r.Counts[engine.OutcomePaid] != 60-paid {
				t.Errorf("then: %+v, %v; want %d paid", r, err, 60-paid)
			}
			s.WantAllCharged(60)
		})
	}
}

// A queueing processor delays requests before it sends them, as the Stripe request budget does.
type queueing struct {
	processor.Charger
	sent atomic.Int64
}

func (p *queueing) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	time.Sleep(time.Minute)
	if err := processor.PassGate(ctx); err != nil {
		return processor.Intent{}, fmt.Errorf("%w: nothing was sent: %w", processor.ErrNotExecuted, err)
	}
	p.sent.Add(1)
	return p.Charger.Confirm(ctx, r)
}

// TestChargingOff_WhileARequestWaits checks that a request still waiting to be sent is not sent
// after charging is off.
func TestChargingOff_WhileARequestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 60)
		p := &queueing{Charger: s.Box}
		var wg sync.WaitGroup
		wg.Go(func() {
			r, err := job.Payments(t.Context(), s.Engine(s.Mem, p), job.Options{Workers: 4})
			if !errors.Is(err, charging.ErrOff) || r == nil || !r.Off || r.Due() != 0 {
				t.Errorf("the run: %+v, %v", r, err)
			}
		})
		time.Sleep(30 * time.Second)
		other := s.Engine(s.Mem, s.Box)
		if err := other.SetCharging(t.Context(), false, "stop"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if n := p.sent.Load(); n != 0 {
			t.Errorf("%d were sent", n)
		}
		if err := other.SetCharging(t.Context(), true, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := job.Payments(t.Context(), other, job.Options{Workers: 4}); err != nil {
			t.Error(err)
		}
		s.WantAllCharged(60)
	})
}

// A stuck processor never answers.
type stuck struct{ processor.Charger }

func (p stuck) Confirm(ctx context.Context, _ processor.ConfirmRequest) (processor.Intent, error) {
	<-ctx.Done()
	return processor.Intent{}, ctx.Err()
}

// TestRun_StopHasABound checks that a stopped run interrupts a row whose request gets no answer,
// and that the next run resumes the row.
func TestRun_StopHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 60)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := job.Payments(ctx, s.Engine(s.Mem, stuck{s.Box}), job.Options{Workers: 4})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the run: %v", err)
			}
		})
		time.Sleep(time.Minute)
		stop()
		stopped := time.Now()
		wg.Wait()
		if took := time.Since(stopped); took > 11*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		if _, err := job.Payments(t.Context(), s.Engine(s.Mem, s.Box), job.Options{Workers: 4}); err != nil {
			t.Error(err)
		}
		s.WantAllCharged(60)
	})
}

// A claiming store has claims that can be lost, as when the process that keeps them ends.
type claiming struct {
	store.Store

	mu     sync.Mutex
	claims *store.Claims
	lost   chan struct{}
}

func (c *claiming) Claim(ctx context.Context, name, by string) (<-chan struct{}, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = make(chan struct{})
	}
	_, release, err := c.claims.Claim(ctx, name, by)
	return c.lost, release, err
}

func (c *claiming) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.lost)
	c.lost, c.claims = nil, new(store.Claims)
}

// TestClaim_OneRunOfAJob checks that a second run of a job returns an error that names the active
// run. A dry run and a run of the other job are allowed.
func TestClaim_OneRunOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 4, 60)
		st := &claiming{Store: s.Mem, claims: new(store.Claims)}
		other := s.Engine(st, s.Box)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := job.Payments(t.Context(), s.Engine(st, &slow{Sandbox: s.Box, takes: time.Second}),
				job.Options{Workers: 2}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(5 * time.Second)
		_, err := job.Payments(t.Context(), other, job.Options{Workers: 2})
		busy, ok := errors.AsType[*worker.BusyError](err)
		if !ok || busy.Kind != billing.Payments || busy.Date() != s.Due || !strings.Contains(busy.Process, "@") {
			t.Fatalf("beside a run: %v", err)
		}
		if r, err := job.Payments(t.Context(), other, job.Options{Workers: 2, DryRun: true}); err != nil || r.Due() == 0 {
			t.Errorf("a dry run: %+v, %v", r, err)
		}
		if _, err := job.Reminders(t.Context(), other, job.Options{Workers: 2}); err != nil {
			t.Errorf("reminders: %v", err)
		}
		r, err := job.Follow(t.Context(), other, busy.Kind, busy.ID, func(r *job.Report) {
			if r.State != job.Running {
				t.Errorf("followed: %+v", r)
			}
		})
		if err != nil || r.State != job.Completed || r.Counts["paid"] != 60 {
			t.Errorf("%+v, %v", r, err)
		}
		wg.Wait()
		if r, err := job.Payments(t.Context(), other, job.Options{Workers: 2}); err != nil || r.Due() != 0 {
			t.Errorf("after it: %+v, %v", r, err)
		}
		if held := s.Leases(); len(held) > 0 {
			t.Errorf("leases: %v", held)
		}
		s.WantAllCharged(60)
	})
}

// TestClaim_Lost checks a run whose claim is lost because the process that keeps the claims has
// ended. The run claims its job again before it starts another row, and continues. If another run
// has claimed the job first, the run ends.
func TestClaim_Lost(t *testing.T) {
	for _, faster := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := shop.New(t, 1, 60)
			st := &claiming{Store: s.Mem, claims: new(store.Claims)}
			mine := &slow{Sandbox: s.Box, takes: time.Second}
			var wg sync.WaitGroup
			wg.Go(func() {
				r, err := job.Payments(t.Context(), s.Engine(st, mine), job.Options{Workers: 2})
				if _, busy := errors.AsType[*worker.BusyError](err); busy != faster || (err != nil) != faster || r == nil {
					t.Errorf("the run: %+v, %v; another one was faster: %t", r, err, faster)
				}
			})
			time.Sleep(10*time.Second + time.Second/2) // between two processor answers
			st.lose()
			lost := time.Now()
			if faster {
				if _, err := job.Payments(t.Context(), s.Engine(st, s.Box), job.Options{Workers: 2}); err != nil {
					t.Error(err)
				}
				if n := mine.between(lost, time.Now()); n > 0 {
					t.Errorf("the run began %d rows without its claim", n)
				}
			} else {
				time.Sleep(2 * time.Second)
				if busy, known, err := worker.Busy(t.Context(), st, billing.Payments); busy == nil || !known || err != nil {
					t.Errorf("the job is not claimed again: %v, %t, %v", busy, known, err)
				}
			}
			wg.Wait()
			if busy, _, _ := worker.Busy(t.Context(), st, billing.Payments); busy != nil {
				t.Errorf("still claimed: %v", busy)
			}
			s.WantAllCharged(60)
		})
	}
}
