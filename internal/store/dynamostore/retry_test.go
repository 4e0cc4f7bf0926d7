package dynamostore

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// tries runs p.retry in a bubble, where time passes only while everybody waits.
func tries(t *testing.T, p Pace, ctx func(t *testing.T) context.Context,
	once func(n int, ctx context.Context) (verdict, error), check func(v verdict, err error, starts []time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		begin := time.Now()
		v, err := p.retry(ctx(t), func(ctx context.Context) (verdict, error) {
			starts = append(starts, time.Since(begin))
			return once(len(starts), ctx)
		})
		check(v, err, starts)
	})
}

func endless(t *testing.T) context.Context { return t.Context() }

var errBusy = errors.New("busy")

func TestRetry_WaitsDoubleUpToABound(t *testing.T) {
	p := Pace{First: 10 * time.Millisecond, Longest: 80 * time.Millisecond, Total: time.Minute}.orDefault()
	var longest time.Duration
	for range 200 {
		tries(t, p, endless, func(n int, _ context.Context) (verdict, error) {
			if n == 9 {
				return final, nil
			}
			return again, errBusy
		}, func(v verdict, err error, starts []time.Duration) {
			if v != final || err != nil || len(starts) != 9 {
				t.Fatalf("%v, %v after %d attempts", v, err, len(starts))
			}
			bound := p.First
			for i := 1; i < len(starts); i++ {
				waited := starts[i] - starts[i-1]
				if waited < 0 || waited > bound {
					t.Fatalf("wait %d is %s, want at most %s", i, waited, bound)
				}
				longest, bound = max(longest, waited), min(2*bound, p.Longest)
			}
		})
	}
	if longest < p.Longest/2 {
		t.Errorf("no wait was longer than %s: they do not grow to %s", longest, p.Longest)
	}
}

func TestRetry_EndsWithTheTotal(t *testing.T) {
	p := Pace{Total: 3 * time.Second}.orDefault()
	tries(t, p, endless, func(int, context.Context) (verdict, error) { return again, errBusy },
		func(v verdict, err error, starts []time.Duration) {
			if last := starts[len(starts)-1]; v != again || !errors.Is(err, errBusy) || len(starts) < 3 || last > p.Total {
				t.Errorf("%v, %v after %d attempts, the last at %s", v, err, len(starts), last)
			}
		})
}

func TestRetry_EndsWithTheCallersDeadline(t *testing.T) {
	deadline := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	tries(t, Pace{}.orDefault(), deadline, func(int, context.Context) (verdict, error) { return lost, errBusy },
		func(v verdict, _ error, starts []time.Duration) {
			if last := starts[len(starts)-1]; v != lost || last > time.Second {
				t.Errorf("%v, the last attempt at %s", v, last)
			}
		})
}

// TestRetry_EndsAfterASleep: the machine slept, and no timer has noticed.
func TestRetry_EndsAfterASleep(t *testing.T) {
	p := Pace{Total: time.Minute}.orDefault()
	for _, slept := range []time.Duration{0, p.Total / 2, p.Total, 10 * p.Total} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			p.wall = func() time.Time {
				now := time.Now().Round(0)
				if n > 1 {
					now = now.Add(slept)
				}
				return now
			}
			v, err := p.retry(t.Context(), func(context.Context) (verdict, error) {
				if n++; n == 4 {
					return final, nil
				}
				return lost, errBusy
			})
			want := 4
			if slept >= p.Total {
				want = 2
			}
			if n != want || (err == nil) != (want == 4) || (v == final) != (want == 4) {
				t.Errorf("%d attempts, %v after a sleep of %s, want %d", n, err, slept, want)
			}
		})
	}
}

func TestRetry_AnAttemptHasItsLimit(t *testing.T) {
	p := Pace{Attempt: 2 * time.Second}.orDefault()
	tries(t, p, endless, func(n int, ctx context.Context) (verdict, error) {
		if n == 2 {
			return final, nil
		}
		<-ctx.Done() // a service that never answers
		return lost, ctx.Err()
	}, func(v verdict, err error, starts []time.Duration) {
		if v != final || err != nil || starts[1] < p.Attempt || starts[1] > p.Attempt+p.First {
			t.Errorf("%v, %v, attempts at %v", v, err, starts)
		}
	})
}

func TestPace_Default(t *testing.T) {
	if got := (Pace{}).orDefault(); !reflect.DeepEqual(got, Pace{Attempt: 10 * time.Second, Total: 40 * time.Second,
		First: 25 * time.Millisecond, Longest: 2 * time.Second}) {
		t.Errorf("the zero Pace is %+v", got)
	}
	if got := (Pace{Total: time.Hour}).orDefault(); got.Total > 10*time.Minute {
		t.Errorf("attempts go on for %s: client tokens are forgotten after ten minutes", got.Total)
	}
}

// TestEnded has every end of a commit.
func TestEnded(t *testing.T) {
	open := t.Context()
	closed, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		unknown bool
		v       verdict
		err     error
		want    []error // all of them; none for success
		not     []error
	}{
		{"done", open, false, final, nil, nil, nil},
		{"done after a lost answer", open, true, final, nil, nil, nil},
		{"done, and the caller has left", closed, true, final, nil, nil, nil},
		{"refused", open, false, final, store.ErrInvalid, []error{store.ErrInvalid}, []error{store.ErrUnknown}},
		{"refused after a lost answer", open, true, final, store.ErrInvalid, []error{store.ErrUnknown},
			[]error{store.ErrInvalid}},
		{"busy to the end", open, false, again, store.ErrThrottled, []error{store.ErrThrottled}, []error{store.ErrUnknown}},
		{"busy to the end after a lost answer", open, true, again, store.ErrThrottled, []error{store.ErrUnknown},
			[]error{store.ErrThrottled}},
		{"lost to the end", open, true, lost, errBusy, []error{store.ErrUnknown}, nil},
		{"the caller has left while it was busy", closed, false, again, store.ErrThrottled, []error{context.Canceled},
			[]error{store.ErrUnknown, store.ErrThrottled}},
		{"the caller has left after a lost answer", closed, true, lost, errBusy,
			[]error{store.ErrUnknown, context.Canceled}, nil},
	} {
		err := (&commit{}).ended(c.ctx, c.unknown, c.v, c.err)
		if (err == nil) != (len(c.want) == 0) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", c.name, err, want)
			}
		}
		for _, not := range c.not {
			if errors.Is(err, not) {
				t.Errorf("%s: %v, which is not %v", c.name, err, not)
			}
		}
	}
}

// TestRetry_TellsWhoWaits: somebody who waits for seconds hears why; who does not, does not.
func TestRetry_TellsWhoWaits(t *testing.T) {
	for attempts, want := range map[int]bool{3: false, 12: true} {
		var told error
		p := Pace{First: 10 * time.Millisecond, Longest: 80 * time.Millisecond, Total: time.Minute,
			told: func(err error) { told = err }}.orDefault()
		tries(t, p, endless, func(n int, _ context.Context) (verdict, error) {
			if n == attempts {
				return final, nil
			}
			return again, errBusy
		}, func(verdict, error, []time.Duration) {
			if (told != nil) != want || want && !errors.Is(told, errBusy) {
				t.Errorf("after %d attempts: %v", attempts, told)
			}
		})
	}
}
