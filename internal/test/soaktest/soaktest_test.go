package soaktest_test

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/test/soaktest"
)

// clear removes what the caller of go test has set.
func clear(t *testing.T) {
	soaktest.Long(t)
	for _, name := range []string{"DUESDAY_CHECK", "DUESDAY_SOAK", "DUESDAY_SOAK_MINUTES", "DUESDAY_SEED", "DUESDAY_SEEDS"} {
		t.Setenv(name, "")
	}
}

func TestSeeds(t *testing.T) {
	clear(t)
	want := func(when string, seeds ...uint64) {
		t.Helper()
		if got := slices.Collect(soaktest.Seeds(t, 2, 4)); !slices.Equal(got, seeds) {
			t.Errorf("%s: got %v, want %v", when, got, seeds)
		}
	}
	want("usually", 1, 2)
	t.Setenv("DUESDAY_SOAK", "1")
	want("in a soak", 1, 2, 3, 4)
	t.Setenv("DUESDAY_SEED", "17")
	want("one seed", 17)
	t.Setenv("DUESDAY_SEEDS", "3")
	want("three from one", 17, 18, 19)
}

func TestCases(t *testing.T) {
	few, usual := soaktest.Cases(t, 1, 2, 3), 2
	if testing.Short() {
		usual = 1
	}
	t.Setenv("DUESDAY_SOAK", "1")
	if all := soaktest.Cases(t, 1, 2, 3); !soaktest.On() || all != 3 || few != usual && few != 3 {
		t.Errorf("%d cases, %d in a soak", few, all)
	}
}

func TestShare(t *testing.T) {
	clear(t)
	for _, variable := range []string{"", "DUESDAY_CHECK", "DUESDAY_SOAK"} {
		if variable != "" {
			t.Setenv(variable, "1")
		}
		if got, checked := soaktest.Share(3, 7), soaktest.Checked(); checked != (variable != "") || (got == 7) != checked {
			t.Errorf("%q: %d cases, checked %t", variable, got, checked)
		}
	}
}

// TestProgramme_EndsInTime also holds that subtests share the time of their test.
func TestProgramme_EndsInTime(t *testing.T) {
	clear(t)
	if !soaktest.Start(t).Next() {
		t.Error("without a soak a programme ended")
	}
	t.Setenv("DUESDAY_SOAK", "1")
	t.Setenv("DUESDAY_SOAK_MINUTES", "0.5")
	synctest.Test(t, func(t *testing.T) {
		p := soaktest.Start(t)
		begun := time.Now()
		for p.Next() {
			<-time.After(time.Second)
		}
		if took := time.Since(begun); took < 29*time.Second || took > 31*time.Second || p.Whole() {
			t.Errorf("ended after %v, whole %v; want after 30 s, and not whole", took, p.Whole())
		}
	})
	t.Run("subtest", func(t *testing.T) {
		if soaktest.Start(t).Next() {
			t.Error("a subtest goes on when the time of its test is over")
		}
	})
}

func TestDivide(t *testing.T) {
	clear(t)
	t.Setenv("DUESDAY_SOAK", "1")
	t.Setenv("DUESDAY_SOAK_MINUTES", "1")
	soaktest.Divide(t, 3*runtime.GOMAXPROCS(0))
	for _, name := range []string{"first", "last"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := soaktest.Start(t)
				begun := time.Now()
				for p.Next() {
					<-time.After(time.Second)
				}
				if took := time.Since(begun); took < 19*time.Second || took > 21*time.Second {
					t.Errorf("ended after %v, want a third of a minute", took)
				}
			})
		})
	}
}
