package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/storetest"
)

// TestCrash: whichever commit of fan-out, attempts and replay a process dies at, each message is delivered
// at least once, under one id and with one body, and ends once.
func TestCrash(t *testing.T) {
	for point := 1; ; point++ {
		died := crashAt(newWorld(t), (point+1)/2, []storetest.Phase{storetest.After, storetest.Before}[point%2], nil)
		if !died {
			if point < 20 {
				t.Error("only", point, "points")
			}
			return
		}
	}
}

// TestCrash_LostReplies: the same with answers that are lost.
func TestCrash_LostReplies(t *testing.T) {
	for n := 1; n <= 12; n++ {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			crashAt(newWorld(t), 0, phase, storetest.LoseReply(n, phase))
		}
	}
}

// TestCrash_DynamoDB: the same on DynamoDB, where another process may send at the same time.
func TestCrash_DynamoDB(t *testing.T) {
	client := dynamotest.Client(t)
	for point, step := 1, 1; ; point += step {
		if testing.Short() {
			step = 5
		}
		w := newWorld(t)
		w.tables = schema.New(dynamotest.Prefix(t))
		_, err := dynamotable.Create(t.Context(), client, w.tables.All(), dynamotable.Settings{}, nil)
		if err == nil {
			w.store, err = dynamostore.Open(t.Context(), dynamostore.Options{Tables: w.tables.All(), Now: w.clock, Client: client})
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Service = w.service(w.store)
		died := crashAt(w, (point+1)/2, []storetest.Phase{storetest.After, storetest.Before}[point%2], nil)
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
		if !died {
			if point < 20 {
				t.Error("only", point, "points")
			}
			return
		}
	}
}

// crashAt plays the scene with a process that dies, or with the hook, and then with a whole one.
func crashAt(w *world, commit int, phase storetest.Phase, hook storetest.Hook) (died bool) {
	t := w.T
	bodies := map[string]string{}
	r := newReceiver(t, func(w http.ResponseWriter, n int) {
		if n == 2 { // one failure
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	second := newReceiver(t, nil)
	w.create(r.URL)
	w.create(second.URL, "period.paid")
	w.cause("a", "period.paid", "receipt.created")
	w.cause("b", "period.paid")
	faulty := storetest.NewFaulty(w.store)
	if faulty.Hook = hook; hook == nil {
		faulty.Hook = storetest.CrashAt(commit, phase)
	}
	for _, s := range []store.Store{faulty, w.store} {
		x := w.service(s).NewSender(w.clock, true)
		for range 3 {
			_, err := x.Drain(w.Context())
			x.running.Wait()
			_, again := x.Drain(w.Context())
			died = died || errors.Is(errors.Join(err, again), storetest.ErrCrash)
			x.running.Wait()
			w.pass(6 * time.Second)
		}
		if _, _, err := x.Replay(w.Context(), Filter{State: Delivered}); err != nil {
			died = died || errors.Is(err, storetest.ErrCrash)
		}
		_, err := x.Drain(w.Context())
		died = died || errors.Is(err, storetest.ErrCrash)
		x.Close(context.WithoutCancel(w.Context()))
	}
	w.drain(w.sender())
	for range 3 { // a crash under load can leave a claim, or a second failure's wait
		if w.states()[Waiting] > 0 {
			w.pass(time.Hour)
			w.drain(w.sender())
		}
	}
	got := map[string]int{}
	for _, each := range append(r.requests(), second.requests()...) {
		if was, seen := bodies[each.id()]; seen && was != each.body {
			t.Errorf("%d %v: %s has two bodies", commit, phase, each.id())
		}
		bodies[each.id()] = each.body
		got[each.id()]++
	}
	if len(got) != 5 || w.states()[Delivered] != 5 || w.states()[Waiting] != 0 {
		t.Errorf("commit %d, phase %v: got %v, %v", commit, phase, got, w.states())
	}
	return died
}

// TestCrash_FindsBugs: the check sees a fan-out in two commits.
func TestCrash_FindsBugs(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	w.create(r.URL)
	w.cause("a", "period.paid")
	split := &splitter{Store: w.store}
	x := w.service(split).NewSender(w.clock, true)
	if _, err := x.Drain(w.Context()); err == nil {
		t.Error("the planted process has not died")
	}
	x.Close(context.WithoutCancel(w.Context()))
	w.drain(w.sender())
	if len(r.requests()) != 0 {
		t.Error("nothing was lost")
	}
}

// A splitter commits the first write by itself, and dies before the others.
type splitter struct{ store.Store }

func (s *splitter) Commit(ctx context.Context, writes ...store.Write) error {
	if err := s.Store.Commit(ctx, writes[0]); err != nil {
		return err
	}
	return storetest.ErrCrash
}

// TestTwoSenders: two processes that drain a shared store at once send each message at least once, and end
// each once.
func TestTwoSenders(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	w.create(r.URL)
	for i := range 40 {
		w.cause(fmt.Sprint(i), "period.paid")
	}
	a, b := w.sender(), New(w.o).NewSender(w.clock, true)
	defer b.Close(context.WithoutCancel(t.Context()))
	for range 20 {
		for _, x := range rand.Perm(2) {
			if _, err := []*Sender{a, b}[x].Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		a.running.Wait()
		b.running.Wait()
	}
	if n := len(r.requests()); n != 40 || w.states()[Delivered] != 40 {
		t.Error(n, w.states()) // the claims keep repetitions away
	}
}
