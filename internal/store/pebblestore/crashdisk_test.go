package pebblestore

import (
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A crashDisk is Pebble's crashable file system in memory, without its deadlock. MemFS's
// ReuseForWrite holds the read lock that CrashClone excludes, and takes it once more in
// Rename: a CrashClone that begins between the two waits for the first, and the second waits
// for CrashClone.
type crashDisk struct{ *vfs.MemFS }

func newCrashDisk() crashDisk { return crashDisk{vfs.NewCrashableMem()} }

// ReuseForWrite implements vfs.FS in two steps that take the lock one after the other.
func (d crashDisk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return d.OpenReadWrite(newname, category)
}

// crash is what a power cut leaves of the disk.
func (d crashDisk) crash(cfg vfs.CrashCloneCfg) crashDisk { return crashDisk{d.CrashClone(cfg)} }

// TestCrashDisk: a power cut while logs are being reused ends. With MemFS's own ReuseForWrite
// it hangs within a second.
func TestCrashDisk(t *testing.T) {
	t.Parallel()
	d := newCrashDisk()
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
			d.crash(vfs.CrashCloneCfg{})
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
