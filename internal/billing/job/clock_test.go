package job_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/test/shop"
)

// TestClock_LeapsDuringARun checks that a run stops when the clock leaps, and that the next run
// continues.
func TestClock_LeapsDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 200)
		var ahead atomic.Int64
		e := s.Engine(s.Mem, s.Box)
		e.Witnesses = []billing.Witness{{Name: "the bank", Ask: func(context.Context) error { return nil },
			Ahead: func() (time.Duration, time.Time) { return time.Duration(ahead.Load()), time.Now() }}}
		time.AfterFunc(time.Second, func() { ahead.Store(int64(-time.Hour)) })
		_, err := job.Payments(t.Context(), e, job.Options{Workers: 4})
		if !errors.Is(err, billing.ErrClock) {
			t.Errorf("the run: %v", err)
		}
		if n := len(s.Charged()); n == 0 || n > 100 {
			t.Errorf("%d were charged", n)
		}
		ahead.Store(0)
		_, err = job.Payments(t.Context(), e, job.Options{Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		s.WantAllCharged(200)
	})
}
