package engine_test

import (
	"flag"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
)

// TestMain collects garbage less often: each of ten thousand small worlds is garbage at once, and
// with Go's default a third of the CPU time goes to the collector. Four tests at least run at a
// time, unless -parallel says otherwise: the programmes on Stripe wait most of the time, since the
// client spaces its requests by the machine's clock.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	debug.SetMemoryLimit(512 << 20)
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	m.Run()
}
