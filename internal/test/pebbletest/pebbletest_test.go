package pebbletest

import (
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCrashDisk: a power cut while logs are being reused ends. With MemFS's own ReuseForWrite
// it hangs within a second.
func TestCrashDisk(t *testing.T) {
	t.Parallel()
	d := NewCrashDisk()
	f, err := d.Create("a", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20_000 {
			d.Crash(vfs.CrashCloneCfg{})
		}
	}()
	for from, to := "a", "b"; ; from, to = to, from {
		select {
		case <-done:
			return
		default:
			runtime.Gosched()
		}
		f, err := d.ReuseForWrite(from, to, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
