package engine_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// A linked store is the client of a holder, as package folder makes one: after a cut connection it
// has a new one. The holder cuts the connection where the store loses an answer.
type linked struct {
	o    link.Options
	held store.Store

	mu   sync.Mutex
	now  *link.Client // guarded by mu
	cuts int          // guarded by mu
}

// overLink puts a connection between the engine and its store.
func overLink(w *world, s store.Store) store.Store {
	l := &linked{o: link.Options{Version: "1", Tables: w.tables.All()}, held: s}
	w.ends = append(w.ends, l.end)
	return l
}

// A cutting store is the holder's, which cuts the connection instead of saying that an answer is lost.
type cutting struct {
	store.Store
	conn net.Conn
	l    *linked
}

func (c *cutting) Commit(ctx context.Context, writes ...store.Write) error {
	err := c.Store.Commit(ctx, writes...)
	if errors.Is(err, store.ErrUnknown) {
		c.l.mu.Lock()
		c.l.cuts++
		c.l.mu.Unlock()
		_ = c.conn.Close()
	}
	return err
}

func (l *linked) client() *link.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	for try := 0; l.now == nil; try++ { // on a machine that starves the test, no greeting may come within link.Silence
		near, far := net.Pipe()
		go func() { _ = link.Serve(context.Background(), far, &cutting{l.held, far, l}, l.o) }() // a cut is its end
		c, err := link.Connect(context.Background(), near, l.o)
		if err == nil {
			l.now = c
		} else if try == 10 || !errors.Is(err, link.ErrLost) {
			panic(err)
		}
	}
	return l.now
}

func (l *linked) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil {
		_ = l.now.Close() // it may be cut
	}
}

// again reports whether a call may be made once more: its connection was cut, and nothing was written.
func (l *linked) again(c *link.Client, err error) bool {
	if !errors.Is(err, link.ErrLost) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == c {
		l.now = nil
	}
	return !errors.Is(err, store.ErrUnknown)
}

func (l *linked) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	for {
		c := l.client()
		if it, err := c.Get(ctx, table, key); !l.again(c, err) {
			return it, err
		}
	}
}

func (l *linked) Commit(ctx context.Context, writes ...store.Write) error {
	for {
		c := l.client()
		if err := c.Commit(ctx, writes...); !l.again(c, err) {
			return err
		}
	}
}

// Query and Scan are not cut: the program's commits are.
func (l *linked) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return l.client().Query(ctx, q)
}

func (l *linked) Scan(ctx context.Context, s store.Scan) iter.Seq2[store.Item, error] {
	return l.client().Scan(ctx, s)
}

func (l *linked) Close() error { return l.held.Close() }

// TestExactlyOnce_OverTheLink plays the crash programme for a client of the process that holds the
// store. Each lost answer is a connection cut in that commit: before it is carried out, and after.
// DUESDAY_SOAK=1 plays all cases, make check one of twenty with a recovery or a request, and go test half
// of those of make check.
func TestExactlyOnce_OverTheLink(t *testing.T) {
	t.Parallel()
	g := newProgramme(t, sampling{})
	overLink := planted{store: overLink}
	rng := rand.New(rand.NewPCG(2, 2))
	share := func() bool { return soaktest.On() || rng.IntN(20) == 0 }
	each, least := soaktest.Share(2, 1), soaktest.Share(300, 500)
	for i, o := range outcomes() {
		calm := crash{outcome: o, plant: overLink}
		g.play(&calm)
		for point := 1 + i%each; point <= calm.lives[0]; point += each {
			g.put(&crash{outcome: o, plant: overLink, first: []fault{{point, false}}})
			if !share() {
				continue
			}
			once := crash{outcome: o, plant: overLink, first: []fault{{point, true}}, delay: delays[point%3]}
			g.play(&once)
			for second := 1; second <= once.lives[2]; second++ {
				g.put(&crash{outcome: o, plant: overLink, first: once.first, delay: once.delay, second: fault{second, false}})
			}
			for _, r := range requests() {
				asked := crash{outcome: o, plant: overLink, first: once.first, delay: once.delay, request: &r}
				if !soaktest.On() && rng.IntN(10) > 0 {
					continue
				}
				g.play(&asked)
				for cut := 1; cut <= asked.lives[1]; cut++ {
					g.put(&crash{outcome: o, plant: overLink, first: once.first, delay: once.delay, request: &r,
						during: fault{cut, false}, again: delays[cut%3]})
				}
			}
		}
	}
	g.end()
	t.Logf("%d cases, %d with violations", g.cases.Load(), g.bad.Load())
	if g.cases.Load() < int64(least) && g.soak.Whole() {
		t.Errorf("only %d cases: the programme has lost its teeth", g.cases.Load())
	}
}

// TestSimulation_OverTheLink plays seeds of the simulation with every process on a connection of its
// own.
func TestSimulation_OverTheLink(t *testing.T) {
	t.Parallel()
	for seed := range soaktest.Seeds(t, 1, 300) {
		s := newSimulation(seed, planted{store: overLink})
		s.days = soaktest.Cases(t, 30, 60, s.days)
		for _, v := range s.play() {
			t.Errorf("DUESDAY_SEED=%d: %s", seed, v)
		}
		s.w.end()
	}
}
