package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/pebbletest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// faultAt fails the write operation of that number, and every later one when lasting.
type faultAt struct {
	at      int64
	lasting bool
	ops     atomic.Int64
}

func (f *faultAt) String() string { return fmt.Sprintf("(fault at %d, lasting %v)", f.at, f.lasting) }

func (f *faultAt) MaybeError(op errorfs.Op) error {
	// Locking is no write, and a failed close of a file that was synced loses nothing.
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpLock || op.Kind == errorfs.OpFileClose {
		return nil
	}
	if n := f.ops.Add(1) - 1; n != f.at && (!f.lasting || n < f.at) {
		return nil
	}
	return errorfs.ErrInjected
}

// tiny has the script flush and compact.
func tiny(po *pebble.Options) {
	po.CacheSize = 1 << 20
	po.MemTableSize = 32 << 10
	po.L0CompactionThreshold = 2
}

// A script's result: how many versions of slot 0 were acknowledged, and whether the
// store came to its end.
type faulted struct {
	acknowledged int64
	fatal        bool
}

const scriptCommits = 40

// runScript opens a store on a disk with a fault and commits until that is over. It
// leaves the script behind when the failure has stopped that for ever, inside Open or
// Close: the process would be gone.
func runScript(t *testing.T, disk vfs.FS, fault *faultAt) faulted {
	failed := make(chan struct{})
	var acknowledged atomic.Int64
	o := Options{Tables: crashTables(), FS: errorfs.Wrap(disk, fault), Create: true, tune: tiny,
		Fatal: func(error) { close(failed) }}
	opened, closing, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s, err := Open("d/store", o)
		if err != nil {
			return
		}
		close(opened)
		late := 0
		for v := int64(1); v <= scriptCommits; v++ {
			err := s.Commit(context.Background(), mark{0, v}.writes(2000)...)
			if err != nil {
				break
			}
			acknowledged.Store(v)
			select {
			case <-failed:
				// One commit that had been synced when the disk failed, in the
				// background, may have its answer on the way; not two.
				if late++; late > 1 {
					t.Errorf("%v: commit %d acknowledged after the failure", fault, v)
				}
			default:
			}
		}
		select {
		case <-failed:
			if err := s.Commit(context.Background(), mark{1, 1}.writes(1)...); err == nil {
				t.Errorf("%v: a commit was acknowledged after the failure", fault)
			}
			return // such a store is abandoned, not closed
		default:
		}
		close(closing)
		_ = s.Close()
	}()
	select {
	case <-done:
	case <-failed:
		select {
		case <-opened:
			select {
			case <-done: // it was told of the failure
			case <-closing: // and waits for Pebble, which waits for the disk
			}
		default:
		}
	}
	select {
	case <-failed:
		return faulted{acknowledged.Load(), true}
	default:
		return faulted{acknowledged.Load(), false}
	}
}

// Whichever write or sync fails, what was acknowledged survives, and the folder can
// be opened again, also when the fault came while it was being made.
func TestEveryFault(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	for _, lasting := range []bool{false, true} {
		t.Run(fmt.Sprintf("lasting %t", lasting), func(t *testing.T) {
			t.Parallel()
			testEveryFault(t, lasting)
		})
	}
}

func testEveryFault(t *testing.T, lasting bool) {
	fatal, at := 0, int64(0)
	for ; ; at++ {
		disk := pebbletest.NewCrashDisk()
		fault := &faultAt{at: at, lasting: lasting}
		got := runScript(t, disk, fault)
		if got.fatal {
			fatal++
		}
		if err := auditFaulted(t, disk.Crash(vfs.CrashCloneCfg{}), got.acknowledged); err != nil {
			t.Errorf("%v: %v", fault, err)
		}
		if fault.ops.Load() <= at { // the script ended before it
			break
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d operations failed, %d of them fatally", at, fatal)
	if at < 100 || fatal < int(at)/4 {
		t.Errorf("%d operations failed, %d of them fatally: the faults do not reach the store", at, fatal)
	}
}

func auditFaulted(t *testing.T, disk vfs.FS, acknowledged int64) error {
	s, err := Open("d/store", Options{Tables: crashTables(), FS: disk, Create: true, tune: tiny,
		Fatal: func(err error) { t.Errorf("the disk has failed: %v", err) }})
	if err != nil {
		return err
	}
	return errors.Join(audit(t.Context(), s, [crashSlots]int64{acknowledged}), s.Close())
}

// A failure is final and not nice: the waiting commit is told that its outcome is
// unknown, because it is.
func TestCommitDuringFailureIsUnknown(t *testing.T) {
	fault := &faultAt{at: 1 << 40, lasting: true}
	failed := make(chan error, 1)
	s := openTest(t, "store", Options{Tables: crashTables(), FS: errorfs.Wrap(vfs.NewCrashableMem(), fault), Create: true,
		Fatal: func(err error) { failed <- err }})
	if err := s.Commit(t.Context(), mark{0, 1}.writes(1)...); err != nil {
		t.Fatal(err)
	}
	fault.ops.Store(1 << 40)
	if err := s.Commit(t.Context(), mark{0, 2}.writes(1)...); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("Commit while the disk fails: %v, want ErrUnknown", err)
	}
	if err := <-failed; err == nil {
		t.Error("the failure has no reason")
	}
	if err := s.Commit(t.Context(), mark{0, 3}.writes(1)...); !errors.Is(err, store.ErrUnknown) &&
		!errors.Is(err, store.ErrClosed) {
		t.Errorf("Commit after the failure: %v", err)
	}
	if it, err := s.Get(t.Context(), "slots", mark{slot: 0}.slotKey()); err != nil || it.Int("version") != 1 {
		t.Errorf("after the failure readers see %v, %v; want the durable version 1", it, err)
	}
}
