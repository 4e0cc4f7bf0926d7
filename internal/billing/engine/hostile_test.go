package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/adoption"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// A hostile simulation is one beside which other tools write to the table, as the published model's own
// patterns do it, and whose clock jumps.

// spoilt is a PaymentAmount that cannot be read, and the day on which its tool corrects it.
type spoilt struct {
	amount store.Value
	until  civil.Date
}

func newHostile(seed uint64) *simulation {
	s := newSimulation(seed, planted{})
	s.hostile = true
	methods := map[string]string{}
	for i := range 1 + s.rng.IntN(4) { // under keys in the form of the model's text
		account, id := fmt.Sprint("t", i), fmt.Sprint("k", i)
		due := fmt.Sprintf("2023-12-%02d", 1+s.rng.IntN(28))
		s.w.write(foreign(account, id, "SK", "SUB#"+id+"#SKU999", "NextPaymentDate", due, "PaymentDay",
			strconv.Itoa(date(due).Day()), "NextReminderDate", store.Value{}))
		s.names = append(s.names, billing.Name{Account: account, ID: id, SKU: "999"})
		methods[account] = s.method()
	}
	s.did["text key"] = len(methods)
	if _, err := adoption.Adopt(context.Background(), s.w.start().Records, adoption.Options{Methods: methods}); err != nil {
		s.w.violate("adoption: %v", err)
	}
	return s
}

// rawOf returns the subscription's item, under a key of either form.
func (w *world) rawOf(n billing.Name) store.Item {
	for _, form := range []string{"#SKU#", "#SKU"} {
		it, err := w.spy.Store.Get(context.Background(), w.tables.RecurringPayments.Name,
			store.Key{PK: "ACC#" + n.Account, SK: "SUB#" + n.ID + form + n.SKU})
		if err == nil {
			return it
		}
	}
	panic("no item of " + n.String())
}

// byTool sets one attribute of the subscription, and nothing else of it, as the update of another
// tool does.
func (w *world) byTool(n billing.Name, name string, v store.Value) {
	it := w.rawOf(n).Clone()
	it.Set(name, v)
	w.write(it)
}

// hands lets another tool write.
func (s *simulation) hands() {
	s.mend(s.w.today())
	last := date("2023-11-20").AddDays(s.days - 90) // what was moved must come to its day
	if s.rng.IntN(3) > 0 || s.w.today().After(last) {
		return
	}
	n := pick(s.rng, s.names...)
	if _, bad := s.spoilt[n]; bad {
		return
	}
	it := s.w.rawOf(n)
	if !it.Has(schema.Version) {
		return // it is the tool's alone, and must be right in itself
	}
	d, err := civil.Parse(billing.IndexDate(it.Str(schema.NextPaymentDate)))
	soon := err == nil && d.Before(s.w.today().AddDays(45)) // a run meets the row before the end
	switch s.rng.IntN(3) {
	case 0:
		if soon {
			s.w.byTool(n, schema.NextPaymentDate, store.S(d.AddDays(1+s.rng.IntN(40)).String()))
			s.did["moved date"]++
		}
	case 1:
		day := 1 + s.rng.IntN(28)
		if s.w.sub(n).Interval.Unit == civil.Week {
			day = 1 + s.rng.IntN(7)
		}
		if soon {
			s.w.byTool(n, schema.PaymentDay, store.S(strconv.Itoa(day)))
			s.did["changed day"]++
		}
	case 2:
		s.spoilt[n] = spoilt{it.Get(schema.PaymentAmount), s.w.today().AddDays(1 + s.rng.IntN(9))}
		s.w.byTool(n, schema.PaymentAmount, store.S("twelve"))
		s.did["unreadable amount"]++
	}
}

// mend has the amounts corrected whose day has come.
func (s *simulation) mend(today civil.Date) {
	for _, n := range slices.SortedFunc(maps.Keys(s.spoilt),
		func(a, b billing.Name) int { return cmp.Compare(a.String(), b.String()) }) {
		if x := s.spoilt[n]; !x.until.After(today) {
			s.w.byTool(n, schema.PaymentAmount, x.amount)
			delete(s.spoilt, n)
		}
	}
}

// redone stores the changed schedules of subscriptions that are not charged for now.
func (s *simulation) redone() {
	for _, n := range s.names {
		if sub := s.w.sub(n); sub.Redone != "" {
			s.did["changed day, stored at the end"]++
			if _, err := s.w.start().UpdateSubscription(context.Background(), n,
				billing.Change{ReminderDays: &sub.ReminderDays}); err != nil {
				s.w.violate("%s: %v", n, err)
			}
		}
	}
}

func (s *simulation) isSpoilt(err error) bool {
	_, bad := errors.AsType[*billing.IllegibleError](err)
	return bad && len(s.spoilt) > 0
}

// jump sets the clock wrong for a while: back, where nothing may be done; or, in some seeds, ahead, where
// everything is done early, and nothing after that until a person has accepted the clock.
func (s *simulation) jump() {
	w, right := s.w, s.w.clock.Load()
	switch s.rng.IntN(30) {
	case 0:
		w.pass(-time.Duration(1+s.rng.IntN(72)) * time.Hour)
		if s.refused() {
			s.did["clock back"]++
		}
		w.clock.Store(right)
	case 1:
		if s.seed%3 > 0 {
			return
		}
		w.early = true
		w.pass(time.Duration(1+s.rng.IntN(20)) * 24 * time.Hour)
		s.moment()
		s.did["clock ahead"]++
		w.clock.Store(right)
		if s.refused() {
			if err := w.start().SetCharging(context.Background(), true, ""); err != nil {
				w.violate("charging on: %v", err)
			}
		}
	}
}

// refused reports whether the clock stands before the end of a run. Then nobody may do anything.
func (s *simulation) refused() bool {
	p, ctx := s.w.start(), context.Background()
	ended, err := p.LastRunEnded(ctx)
	if err != nil || !s.w.now().Before(ended.Add(-5*time.Minute)) {
		return false
	}
	before := s.w.dealings()
	_, ran := job.Payments(ctx, p.Engine, job.Options{Workers: 1})
	_, asked := p.Pause(ctx, pick(s.rng, s.names...))
	if !errors.Is(ran, billing.ErrClock) || !errors.Is(asked, billing.ErrClock) || s.w.dealings() != before {
		s.w.violate("the clock stands before %s: run %v, request %v, %d dealings", ended, ran, asked,
			s.w.dealings()-before)
	}
	return true
}

// TestSimulation_Hostile plays seeds with crashes and lost answers, other tools' writes and jumps of the
// clock. DUESDAY_SEED=n plays that one alone, DUESDAY_SEEDS=n so many.
func TestSimulation_Hostile(t *testing.T) {
	t.Parallel()
	usual := 6
	if engine.Raced {
		usual = 2
	}
	var mu sync.Mutex
	did, seeds, failed, charges := map[string]int{}, 0, 0, 0
	inParallel(runtime.GOMAXPROCS(0), soaktest.Seeds(t, usual, 3000), func(seed uint64) {
		s := newHostile(seed)
		violations := s.play()
		mu.Lock()
		defer mu.Unlock()
		seeds++
		if len(violations) > 0 {
			if failed++; failed <= 3 {
				for _, v := range violations {
					t.Errorf("DUESDAY_SEED=%d: %s", seed, v)
				}
			}
		}
		for _, e := range s.w.ledger() {
			if e.State == processor.Succeeded {
				charges++
			}
		}
		for what, n := range s.did {
			did[what] += n
		}
	})
	t.Logf("soak: hostile: %d seeds, %d charges, %v; %d seeds with violations", seeds, charges, did, failed)
	for _, what := range []string{"crash", "lost reply to a person", "moved date", "changed day", "unreadable amount",
		"text key", "clock back", "clock ahead"} {
		if seeds > 2 && did[what] < seeds/3 {
			t.Errorf("%s befell only %d times in %d seeds", what, did[what], seeds)
		}
	}
}
