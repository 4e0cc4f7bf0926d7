package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/store"
)

// A refusing store refuses the commits with a period of the account, with the error.
type refusing struct {
	store.Store
	account string
	err     error
	written int
}

func (r *refusing) Commit(_ context.Context, writes ...store.Write) error {
	for _, w := range writes {
		if strings.HasPrefix(w.Item.Str("SK"), r.account+"/") {
			return r.err
		}
	}
	r.written += len(writes)
	return nil
}

// TestRecordUnpaid_Failing: what can never be written is dropped, and does not keep the rest from the list. What may be written
// later stays.
func TestRecordUnpaid_Failing(t *testing.T) {
	for _, tt := range []struct {
		err           error
		written, left int
	}{{errors.New("too large"), 60, 0}, {store.ErrThrottled, 40, 60}} {
		all := map[string]*Unpaid{}
		for i := range 100 {
			p := &Unpaid{Name: billing.Name{Account: fmt.Sprintf("a%02d", i), ID: "s"}, Outcome: engine.OutcomeRetry}
			all[p.Place()] = p
		}
		r := &refusing{account: "a50", err: tt.err}
		err := recordUnpaid(t.Context(), &billing.Records{Store: r}, "r", time.Now(), all)
		if !errors.Is(err, tt.err) || r.written != tt.written || len(all) != tt.left {
			t.Errorf("%v: %v, %d written and %d left; want %d and %d", tt.err, err, r.written, len(all), tt.written, tt.left)
		}
	}
}

// TestSum_Shared: of two processes that share the day's work, the one that counted what waits tells it, also if the other one
// began later. A run that had ended before them does not.
func TestSum_Shared(t *testing.T) {
	at := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	run := func(begin, end, pending, paid int) *Report {
		r := &Report{State: Completed}
		r.Started, r.Ended = at.Add(time.Duration(begin)*time.Minute), at.Add(time.Duration(end)*time.Minute)
		r.Counts = map[engine.Outcome]int{engine.OutcomePending: pending, engine.OutcomePaid: paid}
		return r
	}
	sum, err := Sum([]*Report{run(61, 70, 0, 5), run(60, 69, 3, 2), run(0, 9, 8, 1)})
	if err != nil || sum.Counts[engine.OutcomePending] != 3 || sum.Counts[engine.OutcomePaid] != 8 {
		t.Errorf("%v, %v", sum.Counts, err)
	}
}
