package election_test

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

	"github.com/duesday/duesday/internal/election"
)

var (
	errLocked  = errors.New("locked")
	errOther   = errors.New("another version")
	errRoom    = errors.New("makes room")
	errLost    = errors.New("lost")
	errClosed  = errors.New("closed")
	errUnknown = errors.New("unknown")
)

type session = election.Session[int]

// A world says how the next tries end.
type world struct {
	hold    error // nil: this process becomes the holder
	connect func(context.Context) error
	n       int // sessions so far
	ended   int
}

func (w *world) next(holder string) *session {
	w.n++
	return &session{Shared: w.n, Holder: holder, End: func() error { w.ended++; return nil }}
}

func (w *world) election() *election.Election[int] {
	return election.New(election.Options[int]{
		Hold: func() (*session, error) {
			if w.hold != nil {
				return nil, w.hold
			}
			return w.next(""), nil
		},
		Connect: func(ctx context.Context) (*session, error) {
			if err := w.connect(ctx); err != nil {
				return nil, err
			}
			return w.next("somebody"), nil
		},
		Locked: errLocked, Refusals: []error{errOther}, HandsOver: errRoom, Lost: []error{errLost}, Closed: errClosed})
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
		"refused":      {always(errOther), errOther, 0, ""},
		"unserved":     {always(election.ErrUnserved), errLocked, time.Second, "locked"},
		"unreachable":  {always(errors.New("connection refused")), errLocked, 9 * time.Second, "does not answer"},
		"makes room":   {always(errRoom), errLocked, time.Minute, "does not answer"},
		"stands still": {silent, errLocked, 4 * time.Second, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{hold: errLocked, connect: c.connect}
				e, began := w.election(), time.Now()
				var all sync.WaitGroup
				for range 20 { // those who wait for one election fail with it
					all.Go(func() {
						_, err := e.Session(t.Context())
						if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
							t.Errorf("Session = %v, want %v", err, c.want)
						}
					})
				}
				all.Wait()
				if took := time.Since(began); took < c.least || took > c.least+time.Second {
					t.Errorf("it took %s, want %s", took, c.least)
				}
				w.hold = nil
				if x, err := e.Session(t.Context()); err != nil || x.Holder != "" || !e.Holds() {
					t.Errorf("Session = %+v, %v once the lock is free", x, err)
				}
			})
		})
	}
}

// TestDo: work is done again at the next holder, unless its outcome is unknown.
func TestDo(t *testing.T) {
	w := &world{hold: errLocked, connect: func(context.Context) error { return nil }}
	e := w.election()
	var seen []int
	x, err := e.Do(t.Context(), errUnknown, func(n int) error {
		if seen = append(seen, n); n < 3 {
			return errLost
		}
		return nil
	})
	if err != nil || x.Shared != 3 || !slices.Equal(seen, []int{1, 2, 3}) || w.ended != 2 {
		t.Errorf("Do = %v, %v after %v; %d have ended", x, err, seen, w.ended)
	}
	lost := errors.Join(errLost, errUnknown)
	x, err = e.Do(t.Context(), errUnknown, func(int) error { return lost })
	if !errors.Is(err, errUnknown) || x.Shared != 3 {
		t.Errorf("Do = %v, %v; want the unknown outcome", x, err)
	}
	if _, err = e.Do(t.Context(), nil, func(n int) error {
		if n == 4 {
			return lost
		}
		return nil
	}); err != nil {
		t.Errorf("Do = %v of work that changes nothing", err)
	}
	if err := e.Close(); err != nil || w.ended != w.n {
		t.Errorf("Close = %v; %d of %d have ended", err, w.ended, w.n)
	}
	if _, err := e.Session(t.Context()); !errors.Is(err, errClosed) || !errors.Is(e.Close(), errClosed) {
		t.Errorf("Session = %v after Close", err)
	}
}

// TestEnd: a holder that makes room leaves the lock to the other process for a while, and goes on as
// its client.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := &world{connect: func(context.Context) error {
			if time.Since(began) < 1500*time.Millisecond {
				return election.ErrUnserved // for now
			}
			return nil
		}}
		e := w.election()
		x, err := e.Session(t.Context())
		if err != nil || !e.Holds() {
			t.Fatal(err)
		}
		if err := errors.Join(e.End(x), e.End(x)); err != nil || w.ended != 1 || e.Holds() {
			t.Errorf("End = %v, %d times", err, w.ended)
		}
		if x, err = e.Session(t.Context()); err != nil || x.Holder != "somebody" {
			t.Errorf("Session = %+v, %v", x, err)
		}
		if took := time.Since(began); took < 1500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

// TestIterate: a list goes on at the next holder from where it was, up to what is wanted.
func TestIterate(t *testing.T) {
	w := &world{hold: errLocked, connect: func(context.Context) error { return nil }}
	e, at := w.election(), 0
	list := func(int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for from := at; yield(at, nil); {
				if at == from+2 { // the holder is gone after three
					yield(0, errLost)
					return
				}
			}
		}
	}
	var got []int
	election.Iterate(func(work func(int) error) error {
		_, err := e.Do(t.Context(), nil, work)
		return err
	}, func(v int, err error) bool {
		got = append(got, v)
		return err == nil
	}, list, func(v int) bool { at = v + 1; return at < 8 })
	if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) || w.n < 3 {
		t.Errorf("%v of %d sessions", got, w.n)
	}
}
