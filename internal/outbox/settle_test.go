package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

// TestClaiming_LostClaim: a drain whose claim was overtaken, or has an unknown outcome, delivers
// nothing; the effect is delivered later, once.
func TestClaiming_LostClaim(t *testing.T) {
	for name, lost := range map[string]error{"overtaken": store.ErrConflict, "unknown": store.ErrUnknown} {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			t.Run(fmt.Sprintf("%s, phase %d", name, phase), func(t *testing.T) {
				c := &clock{t: start}
				s, to := open(t, c), &receiver{}
				put(t, s, effect("x"))
				faulty := storetest.NewFaulty(s)
				faulty.Hook = func(op storetest.Operation, now storetest.Phase) error {
					if op.Commit == 1 && now == phase {
						return lost
					}
					return nil
				}
				o := outbox.New(faulty, table, c.now, to, nil).Claiming(time.Minute)
				if got := drain(t, o); got != (outbox.Report{}) || len(to.all) != 0 {
					t.Errorf("report %+v, %d deliveries; want none", got, len(to.all))
				}
				c.move(time.Minute)
				if got, want := drain(t, o), (outbox.Report{Delivered: 1}); got != want || to.got["x"] != 1 {
					t.Errorf("later: report %+v, want %+v", got, want)
				}
			})
		}
	}
}

// TestDrain_CommitsOnce: without claims a delivery costs one commit.
func TestDrain_CommitsOnce(t *testing.T) {
	c := &clock{t: start}
	s := storetest.NewFaulty(open(t, c))
	put(t, s, effect("x"))
	for _, lease := range []time.Duration{0, time.Minute} {
		before := s.Commits()
		drain(t, outbox.New(s, table, c.now, &receiver{}, nil).Claiming(lease))
		if n, want := s.Commits()-before, map[time.Duration]int{0: 1, time.Minute: 2}[lease]; n != want {
			t.Errorf("a delivery with a lease of %s took %d commits, want %d", lease, n, want)
		}
		put(t, s, effect("x"))
	}
}

// TestDead_TriesAndPlace: the only try of a permanent failure counts, and only dead letters are
// marked as dead.
func TestDead_TriesAndPlace(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	o := outbox.New(s, table, c.now, deliverFunc(func(context.Context, outbox.Effect) error {
		return fmt.Errorf("no such address: %w", outbox.ErrPermanent)
	}), nil)
	put(t, s, effect("gone"))
	drain(t, o)
	put(t, s, effect("waits"))
	got := map[string]outbox.Effect{}
	for e, err := range o.Waiting(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got[e.ID] = e
	}
	if e := got["gone"]; !e.Dead || e.Tries != 1 {
		t.Errorf("the dead letter is %+v, want it dead after 1 try", e)
	}
	if e := got["waits"]; e.Dead || e.Tries != 0 || e.Queue != outbox.Mail {
		t.Errorf("the live effect is %+v, want it not dead after 0 tries", e)
	}
}

// TestWrite_LeavesOutTries: a row without failed deliveries has neither tries nor an error.
func TestWrite_LeavesOutTries(t *testing.T) {
	it := outbox.Write(table.Name, effect("x")).Item
	if it.Has(schema.Tries) || it.Has(schema.LastError) {
		t.Errorf("the row is %v, want no tries and no error", it)
	}
}

// TestDead_KeepsReadableData: an attribute that is no text does not hide the ones after it.
func TestDead_KeepsReadableData(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	w := outbox.Write(table.Name, effect("x"))
	w.Item.Set(schema.Data, store.M(store.NewItem(
		store.Attribute{Name: "a", Value: store.Int(1)}, store.Attribute{Name: "b", Value: store.S("text")},
		store.Attribute{Name: "c", Value: store.Int(2)}, store.Attribute{Name: "d", Value: store.S("more")})))
	if err := s.Commit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	o := outbox.New(s, table, c.now, &receiver{}, nil)
	drain(t, o)
	if got := dead(t, o); len(got) != 1 || got[0].Data["b"] != "text" || got[0].Data["d"] != "more" ||
		len(got[0].Data) != 2 {
		t.Errorf("the dead letters are %+v, want one with b and d", got)
	}
}

// TestClaiming_OldClaimSettlesNothing: a delivery that fails, or is unwanted, or is given up after
// its claim has run out leaves the row to the drain that has claimed it since.
func TestClaiming_OldClaimSettlesNothing(t *testing.T) {
	for name, late := range map[string]error{"delivered": nil, "failed": errors.New("not now"), "given up": outbox.ErrPermanent} {
		t.Run(name, func(t *testing.T) {
			c := &clock{t: start}
			s := open(t, c)
			put(t, s, effect("x"))
			delivering, settled := make(chan struct{}), make(chan struct{})
			var both sync.WaitGroup
			now := outbox.New(s, table, c.now, deliverFunc(func(context.Context, outbox.Effect) error {
				close(delivering)
				<-settled
				return errors.New("later")
			}), nil).Claiming(time.Minute)
			old := outbox.New(s, table, c.now, deliverFunc(func(context.Context, outbox.Effect) error {
				c.move(time.Minute)
				both.Go(func() {
					if r, err := now.Drain(t.Context(), 1); err != nil || r != (outbox.Report{Failed: 1}) {
						t.Errorf("the present claim: %+v, %v", r, err)
					}
				})
				<-delivering
				return late
			}), nil).Claiming(time.Minute)
			_ = drain(t, old)
			wantPending(t, old, 0, 1, 0)
			close(settled)
			both.Wait()
			wantPending(t, old, 0, 1, 0)
			for e, err := range old.Waiting(t.Context()) {
				if err != nil || e.Tries != 1 || e.Error != "later" {
					t.Errorf("it has become %+v, %v", e, err)
				}
			}
		})
	}
}

// TestClaiming_OneClaimHolds: of two drains that have read a row before either claims it, the later
// one delivers nothing. A delivery that fails gives its claim back with the row.
func TestClaiming_OneClaimHolds(t *testing.T) {
	c := &clock{t: start}
	s, to := open(t, c), &receiver{}
	put(t, s, effect("x"))
	died := storetest.NewFaulty(s)
	died.Hook = storetest.CrashAt(1, storetest.After)
	later := storetest.NewFaulty(s)
	later.Hook = func(op storetest.Operation, now storetest.Phase) error {
		if op.Commit == 1 && now == storetest.Before {
			if _, err := outbox.New(died, table, c.now, to, nil).Claiming(time.Minute).Drain(t.Context(), 1); !errors.Is(err, storetest.ErrCrash) {
				t.Errorf("the first claim: %v", err)
			}
		}
		return nil
	}
	if r := drain(t, outbox.New(later, table, c.now, to, nil).Claiming(time.Minute)); r != (outbox.Report{}) || len(to.all) > 0 {
		t.Errorf("report %+v, %d deliveries; want none", r, len(to.all))
	}
	c.move(time.Minute)
	to.fail = func(outbox.Effect) error { return errors.New("not now") }
	o := outbox.New(s, table, c.now, to, nil).Claiming(time.Hour)
	if r := drain(t, o); r != (outbox.Report{Failed: 1}) {
		t.Errorf("report %+v, want one failure", r)
	}
	c.move(5 * time.Second) // the first retry
	to.fail = nil
	if r := drain(t, o); r != (outbox.Report{Delivered: 1}) {
		t.Errorf("report %+v, want the retry to be delivered", r)
	}
}
