package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/store"
)

var errCut = errors.New("the connection is cut")

// A cutStore loses the reply of its n-th commit once it is armed, and the first read after it.
type cutStore struct {
	store.Store
	at, commits int
	late        bool   // the commit lands after the next successful read
	between     func() // what others do once the commit has landed

	fail    bool
	pending []store.Write
}

func (c *cutStore) Commit(ctx context.Context, writes ...store.Write) error {
	if c.at == 0 {
		return c.Store.Commit(ctx, writes...)
	}
	if c.commits++; c.commits != c.at {
		return c.Store.Commit(ctx, writes...)
	}
	if c.late {
		c.pending = writes
		return store.ErrUnknown
	}
	if err := c.Store.Commit(ctx, writes...); err != nil {
		return err
	}
	c.fail = true
	if c.between != nil {
		c.between()
	}
	return store.ErrUnknown
}

func (c *cutStore) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if c.fail {
		c.fail = false
		return nil, errCut
	}
	it, err := c.Store.Get(ctx, table, key)
	if err == nil && len(c.pending) > 0 && strings.HasPrefix(key.PK, "ACC#") {
		late := c.pending
		c.pending = nil
		_ = c.Store.Commit(ctx, late...) // it may be too late for it
	}
	return it, err
}

// TestRequest_ALostReplySettlesOnePeriod: several periods of a subscription are due, and a person asks
// for one. Whichever commit of the request loses its reply, and whatever others do meanwhile, the
// request settles one period at most, and says that it is done only if it is.
func TestRequest_ALostReplySettlesOnePeriod(t *testing.T) {
	ctx := t.Context()
	requests := []struct {
		name   string
		parked bool
		do     func(*process, billing.Name) error
		done   func(*world, billing.Name) int // periods settled by such requests
	}{
		{"skip", true, func(p *process, n billing.Name) error {
			_, err := p.SkipParked(ctx, n)
			return err
		}, func(w *world, n billing.Name) int { return w.count(n, "skipped") }},
		{"receipt", false, func(p *process, n billing.Name) error {
			_, err := p.CreateReceipt(ctx, n, engine.ManualPayment{Period: new(int), Note: "cash"})
			return err
		}, func(w *world, n billing.Name) int { return len(w.dues(n)) }},
		{"receipt of a parked period", true, func(p *process, n billing.Name) error {
			_, err := p.CreateReceipt(ctx, n, engine.ManualPayment{Period: new(p.w.sub(n).Period), Note: "cash"})
			return err
		}, func(w *world, n billing.Name) int { return len(w.dues(n)) }},
		{"receipt with a key, twice", false, func(p *process, n billing.Name) error {
			m := engine.ManualPayment{Note: "cash"}
			_, err := p.CreateReceipt(p.w.keyed(ctx, "wire 7"), n, m)
			if err == nil {
				_, err = p.CreateReceipt(p.w.keyed(ctx, "wire 7"), n, m)
			}
			return err
		}, func(w *world, n billing.Name) int { return len(w.dues(n)) }},
		{"charge", true, func(p *process, n billing.Name) error {
			_, _, err := p.ChargeParked(ctx, n)
			return err
		}, func(w *world, n billing.Name) int { return len(w.dues(n)) }},
	}
	others := map[string]func(*world, billing.Name) (settled int){
		"nothing": func(*world, billing.Name) int { return 0 },
		"a receipt": func(w *world, n billing.Name) int {
			before := len(w.dues(n))
			_, err := w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(w.sub(n).Period), Note: "another's"})
			if err != nil && !errors.Is(err, billing.ErrState) {
				t.Error(err)
			}
			return len(w.dues(n)) - before
		},
		"a price": func(w *world, n billing.Name) int {
			_, err := w.start().UpdateSubscription(ctx, n, billing.Change{Amount: new(usd(1999))})
			mustNot(t, err)
			return 0
		},
	}
	for _, r := range requests {
		for other, between := range others {
			for _, late := range []bool{false, true} {
				hits := 0
				for at := 1; ; at++ {
					name := fmt.Sprintf("%s, commit %d late %v, meanwhile %s", r.name, at, late, other)
					cut := &cutStore{late: late}
					w, n := overdue(t, r.parked, cut)
					apart := 0
					if !late {
						cut.between = func() { apart = between(w, n) }
					}
					before := r.done(w, n)
					p := cut.process(w)
					cut.at = at
					err := r.do(p, n)
					if cut.commits < at {
						break
					}
					hits++
					settled := r.done(w, n) - before
					if r.name != "skip" {
						settled -= apart
					}
					switch {
					case settled > 1:
						t.Errorf("%s: settled %d periods: %v", name, settled, err)
					case err == nil && settled == 0:
						t.Errorf("%s: is done, and no period is settled: %s", name, w.describe(n))
					case err != nil && !errors.Is(err, billing.ErrState) && !errors.Is(err, store.ErrOvertaken) &&
						!errors.Is(err, errCut):
						t.Errorf("%s: %v", name, err)
					}
				}
				if hits == 0 {
					t.Errorf("%s: no commit was cut", r.name)
				}
			}
		}
	}
}

func seen(w *world, n billing.Name) string {
	return fmt.Sprintf("%s, ends with its period: %v", w.describe(n), w.sub(n).CancelAtEnd)
}

// overdue has a subscription with several periods due, parked or not yet met by a run. The store's
// connection of the process made by cut is the one to be cut.
func overdue(t *testing.T, parked bool, cut *cutStore) (*world, billing.Name) {
	t.Helper()
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.set("2024-08-15T09:00")
	if parked {
		w.start().run(w.today())
		if s := w.sub(n); s.Status != billing.ParkedState || s.Period != 3 {
			t.Fatalf("is not parked: %s", w.describe(n))
		}
	}
	return w, n
}

// process starts the process whose connection is cut.
func (c *cutStore) process(w *world) *process {
	plant := w.plant
	defer func() { w.plant = plant }()
	w.plant.store = func(_ *world, s store.Store) store.Store {
		c.Store = s
		return c
	}
	return w.start()
}

// count returns how many periods of the subscription ended so.
func (w *world) count(n billing.Name, ending string) int {
	return len(slices.DeleteFunc(w.endings(n), func(e string) bool { return !strings.HasSuffix(e, " "+ending) }))
}

// TestRequest_ALostReplyIsNoSecondRequest: a request has landed, its reply is lost, and somebody
// asks for the opposite before the subscription is read again. The opposite stays. If nobody does,
// the request is done.
func TestRequest_ALostReplyIsNoSecondRequest(t *testing.T) {
	ctx := t.Context()
	pause := func(p *process, n billing.Name) (*billing.Subscription, error) { return p.Pause(ctx, n) }
	resume := func(p *process, n billing.Name) (*billing.Subscription, error) { return p.Resume(ctx, n) }
	atEnd := func(p *process, n billing.Name) (*billing.Subscription, error) { return p.Cancel(ctx, n, true) }
	cancel := func(p *process, n billing.Name) (*billing.Subscription, error) { return p.Cancel(ctx, n, false) }
	type request = func(*process, billing.Name) (*billing.Subscription, error)
	for _, r := range []struct {
		name                string
		first, do, opposite request
	}{
		{"pause", nil, pause, resume},
		{"resume", pause, resume, pause},
		{"cancel at the end", nil, atEnd, resume},
		{"resume before the end", atEnd, resume, atEnd},
		{"cancel", nil, cancel, nil},
	} {
		for _, opposed := range []bool{false, true} {
			if opposed && r.opposite == nil {
				continue
			}
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-31"))
			if r.first != nil {
				_, err := r.first(w.start(), n)
				mustNot(t, err)
			}
			w.goTo(date("2024-01-25"))
			want := ""
			cut := new(cutStore)
			p := cut.process(w)
			cut.at = 1
			cut.between = func() {
				if opposed {
					_, err := r.opposite(w.start(), n)
					mustNot(t, err)
				}
				want = seen(w, n)
			}
			_, err := r.do(p, n)
			if opposed && !errors.Is(err, store.ErrOvertaken) || !opposed && err != nil {
				t.Errorf("%s, opposed %v: error %v", r.name, opposed, err)
			}
			if got := seen(w, n); got != want || want == "" {
				t.Errorf("%s, opposed %v:\n%s, want\n%s", r.name, opposed, got, want)
			}
		}
	}
}
