package folder

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
)

// A numbered is what is shared in a session: its number.
type numbered struct {
	shared
	n int
}

// A world says how the next tries end.
type world struct {
	hold    error // nil: this process becomes the holder
	connect func(context.Context) error
	n       int // sessions so far
	ended   int
}

func (w *world) next(holder string) *session {
	w.n++
	return &session{shared: numbered{n: w.n}, holder: holder, end: func() error { w.ended++; return nil }}
}

func (w *world) election() *election {
	return newElection(func() (*session, error) {
		if w.hold != nil {
			return nil, w.hold
		}
		return w.next(""), nil
	}, func(ctx context.Context) (*session, error) {
		if err := w.connect(ctx); err != nil {
			return nil, err
		}
		return w.next("somebody"), nil
	})
}

// TestElect_Patience: how long an election waits depends on what the holder does.
func TestElect_Patience(t *testing.T) {
	always := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	silent := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for name, c := range map[string]struct {
		connect func(context.Context) error
		want    error
		least   time.Duration // and a second at the most
		text    string
	}{
		"refused":      {always(link.ErrVersion), link.ErrVersion, 0, ""},
		"unserved":     {always(errUnserved), store.ErrLocked, time.Second, store.ErrLocked.Error()},
		"unreachable":  {always(errors.New("connection refused")), store.ErrLocked, 9 * time.Second, "does not answer"},
		"makes room":   {always(link.ErrHandOver), store.ErrLocked, time.Minute, "does not answer"},
		"stands still": {silent, store.ErrLocked, 4 * time.Second, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{hold: store.ErrLocked, connect: c.connect}
				e, began := w.election(), time.Now()
				var all sync.WaitGroup
				for range 20 { // those who wait for one election fail with it
					all.Go(func() {
						_, err := e.session(t.Context())
						if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
							t.Errorf("session = %v, want %v", err, c.want)
						}
					})
				}
				all.Wait()
				if took := time.Since(began); took < c.least || took > c.least+time.Second {
					t.Errorf("it took %s, want %s", took, c.least)
				}
				w.hold = nil
				if x, err := e.session(t.Context()); err != nil || x.holder != "" || !e.holds() {
					t.Errorf("session = %+v, %v once the lock is free", x, err)
				}
			})
		})
	}
}

// TestDo: work is done again at the next holder, unless its outcome is unknown.
func TestDo(t *testing.T) {
	w := &world{hold: store.ErrLocked, connect: func(context.Context) error { return nil }}
	e := w.election()
	var seen []int
	if err := e.do(t.Context(), func(now shared) error {
		if seen = append(seen, now.(numbered).n); len(seen) < 3 {
			return link.ErrLost
		}
		return nil
	}); err != nil || !slices.Equal(seen, []int{1, 2, 3}) || w.ended != 2 {
		t.Errorf("do = %v after %v; %d have ended", err, seen, w.ended)
	}
	tries := 0
	if err := e.do(t.Context(), func(shared) error {
		tries++
		return errors.Join(link.ErrLost, store.ErrUnknown)
	}); !errors.Is(err, store.ErrUnknown) || tries != 1 || w.ended != 3 {
		t.Errorf("do = %v after %d tries; want the unknown outcome", err, tries)
	}
	if err := e.do(t.Context(), func(now shared) error { seen = append(seen, now.(numbered).n); return nil }); err != nil || seen[3] != 4 {
		t.Errorf("do = %v in sessions %v", err, seen)
	}
	if err := e.close(); err != nil || w.ended != w.n {
		t.Errorf("close = %v; %d of %d have ended", err, w.ended, w.n)
	}
	if _, err := e.session(t.Context()); !errors.Is(err, store.ErrClosed) || !errors.Is(e.close(), store.ErrClosed) {
		t.Errorf("session = %v after Close", err)
	}
}

// TestEnd: a holder that makes room leaves the lock to the other process for a while, and goes on as
// its client.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := &world{connect: func(context.Context) error {
			if time.Since(began) < 1500*time.Millisecond {
				return errUnserved // for now
			}
			return nil
		}}
		e := w.election()
		x, err := e.session(t.Context())
		if err != nil || !e.holds() {
			t.Fatal(err)
		}
		if err := errors.Join(e.finish(x), e.finish(x)); err != nil || w.ended != 1 || e.holds() {
			t.Errorf("finish = %v, %d times", err, w.ended)
		}
		if x, err = e.session(t.Context()); err != nil || x.holder != "somebody" {
			t.Errorf("session = %+v, %v", x, err)
		}
		if took := time.Since(began); took < 1500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

// TestIterate: a list goes on at the next holder from where it was, up to what is wanted.
func TestIterate(t *testing.T) {
	w := &world{hold: store.ErrLocked, connect: func(context.Context) error { return nil }}
	e, at := w.election(), int64(0)
	list := func(shared) iter.Seq2[store.Item, error] {
		return func(yield func(store.Item, error) bool) {
			for from := at; yield(store.NewItem(store.Attribute{Name: "n", Value: store.Int(at)}), nil); {
				if at == from+2 { // the holder is gone after three
					yield(nil, link.ErrLost)
					return
				}
			}
		}
	}
	var got []int64
	e.iterate(t.Context(), func(it store.Item, err error) bool {
		got = append(got, it.Int("n"))
		return err == nil
	}, list, func(it store.Item) bool { at = it.Int("n") + 1; return at < 8 })
	if !slices.Equal(got, []int64{0, 1, 2, 3, 4, 5, 6, 7}) || w.n < 3 {
		t.Errorf("%v of %d sessions", got, w.n)
	}
}
