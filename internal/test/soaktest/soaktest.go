// Package soaktest reads the environment variables that set how long the long tests run. It is the only
// reader of these variables:
//
//	DUESDAY_CHECK=1         every programme plays the share of make check, not the smaller one of go test
//	DUESDAY_SOAK=1          every programme plays all its cases, not a share of them
//	DUESDAY_SOAK_MINUTES=n  with it: a top-level test begins no case after n minutes (default no
//	                        end); a subtest begins none after its part of them
//	DUESDAY_SEED=n          a random programme plays this seed alone
//	DUESDAY_SEEDS=n         a random programme plays n seeds
//
// A programme logs how many cases it played. go test -short leaves programmes out, or plays a few
// of their cases. The package does not know the cases.
package soaktest

import (
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// On reports whether the programmes play all their cases.
func On() bool { return os.Getenv("DUESDAY_SOAK") != "" }

// Checked reports whether the programmes play at least the share of make check.
func Checked() bool { return On() || os.Getenv("DUESDAY_CHECK") != "" }

// Share returns how many cases a programme plays: in go test ./..., or in make check.
func Share(test, check int) int {
	if Checked() {
		return check
	}
	return test
}

// deadlines has a *atomic.Bool for each top-level test with a time limit: whether it is over. parts
// has the number of equal parts of its time, by Divide.
var deadlines, parts sync.Map

// Divide says that each of so many subtests has an equal part of the test's time, from its own
// start, where so many run in parallel as go test allows. Else the first ones take it all.
func Divide(t testing.TB, subtests int) { parts.Store(t.Name(), float64(subtests)) }

// A Programme counts the cases of a test and ends it in time. It is safe for concurrent use.
type Programme struct {
	cases atomic.Int64
	over  *atomic.Bool // nil: no end
	ended atomic.Bool  // cases were left out
}

// Start begins the programme of a test. Subtests share the deadline of their top-level test, but
// for the parts of Divide. The number of cases is logged at the end of the test. With -short the
// test is skipped.
func Start(t testing.TB) *Programme {
	t.Helper()
	Long(t)
	p := new(Programme)
	if minutes := number(t, "DUESDAY_SOAK_MINUTES"); On() && minutes > 0 {
		root, _, _ := strings.Cut(t.Name(), "/")
		over, known := any(new(atomic.Bool)), false
		if n, divided := parts.Load(root); divided {
			minutes *= min(1, float64(runtime.GOMAXPROCS(0))/n.(float64))
		} else {
			over, known = deadlines.LoadOrStore(root, over)
		}
		p.over = over.(*atomic.Bool)
		if !known {
			time.AfterFunc(time.Duration(minutes*float64(time.Minute)), func() { p.over.Store(true) })
		}
	}
	t.Cleanup(func() {
		end := "all that were planned"
		if p.ended.Load() {
			end = "and then the time was over"
		}
		t.Logf("soak: %s: %d cases, %s", t.Name(), p.cases.Load(), end)
	})
	return p
}

// Long skips a test of many seconds under -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long programme: go test without -short plays it")
	}
}

// Cases returns how many cases of a test are played: few under -short, usual without it, or all in
// a soak. A smaller number than all is logged.
func Cases(t testing.TB, few, usual, all int) int {
	t.Helper()
	n := usual
	switch {
	case On():
		n = all
	case testing.Short():
		n = few
	}
	if n < all {
		t.Logf("%d of %d; -short has %d, this share %d, DUESDAY_SOAK=1 all", n, all, few, usual)
	}
	return n
}

// Next counts a case that is about to begin. It returns false if the time is over.
func (p *Programme) Next() bool {
	if p.over != nil && p.over.Load() {
		p.ended.Store(true)
		return false
	}
	p.cases.Add(1)
	return true
}

// Whole reports whether no case was left out so far.
func (p *Programme) Whole() bool { return !p.ended.Load() }

// Seeds returns the seeds of a random programme, from 1 on: usual of them, or all in a soak. It
// ends when the time is over.
func Seeds(t testing.TB, usual, all int) iter.Seq[uint64] {
	first, n := uint64(1), usual
	if On() {
		n = all
	}
	if seed := os.Getenv("DUESDAY_SEED"); seed != "" {
		first, n = Seed(t), 1
	}
	if given := number(t, "DUESDAY_SEEDS"); given > 0 {
		n = int(given)
	}
	p := Start(t)
	return func(yield func(uint64) bool) {
		for i := range n {
			if !p.Next() || !yield(first+uint64(i)) {
				return
			}
		}
	}
}

// Seed returns DUESDAY_SEED, or a random seed, and logs it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(rand.Uint32())
	if text := os.Getenv("DUESDAY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("DUESDAY_SEED: %v", err)
		}
	}
	t.Logf("DUESDAY_SEED=%d", seed)
	return seed
}

func number(t testing.TB, variable string) float64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%s: want a number above 0", variable, text)
	}
	return n
}
