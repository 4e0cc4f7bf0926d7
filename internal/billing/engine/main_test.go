package engine_test

import (
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: each of ten thousand small worlds is garbage at once, and
// with Go's default a third of the CPU time goes to the collector.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	debug.SetMemoryLimit(512 << 20)
	m.Run()
}
