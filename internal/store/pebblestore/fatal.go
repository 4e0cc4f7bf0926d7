package pebblestore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

const (
	// exitDiskFailure is EX_SOFTWARE, after which a supervisor restarts the process. Only reopening
	// shows the content of the disk.
	exitDiskFailure = 70
	exitDamage      = 4 // as every command ends that meets damage
)

// A failure is the first error of the disk. Between the error and the end of the process no
// answer may be given that could be untrue.
type failure struct {
	once  sync.Once
	hook  func(error)
	begun atomic.Bool
	done  chan struct{} // closed after hook has returned, in tests alone
	err   error         // set before done is closed
}

func newFailure(hook func(error)) *failure {
	if hook == nil {
		hook = func(err error) {
			if errors.Is(err, store.ErrDamaged) {
				fmt.Fprintln(os.Stderr, "duesday:", err)
				os.Exit(exitDamage)
			}
			fmt.Fprintf(os.Stderr,
				"duesday: the store has failed and the process must end; nothing that was confirmed is lost: %v\n", err)
			os.Exit(exitDiskFailure)
		}
	}
	return &failure{hook: hook, done: make(chan struct{})}
}

func (f *failure) fail(err error) {
	f.begun.Store(true)
	f.once.Do(func() {
		f.hook(err)
		f.err = err
		close(f.done)
	})
}

// A pebbleLog is the logger of Pebble.
type pebbleLog struct {
	log     *slog.Logger
	failure *failure
	dir     string // of the store
}

var _ pebble.Logger = pebbleLog{}

func (l pebbleLog) Infof(format string, args ...any) {} // every flush and compaction

func (l pebbleLog) Errorf(format string, args ...any) {
	l.log.Error("store", "event", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Fatalf never returns. Pebble calls it after a failed write or sync of its log or manifest. If
// it returned, Pebble would go on as after a success and report a commit durable that is not.
func (l pebbleLog) Fatalf(format string, args ...any) {
	l.failure.fail(errors.New(strings.TrimSpace(fmt.Sprintf(format, args...))))
	select {}
}

// events ends the process after a failure in the background, such as a full disk during a
// flush: Pebble would otherwise try again for ever, and commits would stall.
func (l pebbleLog) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) { l.failure.fail(fmt.Errorf("in the background: %w", damaged(l.dir, err))) },
		DataCorruption:  func(pebble.DataCorruptionInfo) {}, // the reader gets an error; see damaged
		DiskSlow: func(info pebble.DiskSlowInfo) {
			l.log.Warn("store", "event", "slow disk", "path", info.Path, "duration", info.Duration)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			l.log.Warn("store", "event", "writes stalled", "reason", info.Reason)
		},
		WriteStallEnd: func() { l.log.Info("store", "event", "writes resumed") },
	}
}

// A failStopFS ends the process at the first write or sync that fails, before Pebble gets the
// error. Pebble has several answers to such an error: it calls Fatalf, panics with a mutex half
// unlocked, reports it in the background and tries again, or returns it from a commit. Only the
// first is right, for every file, so it is given in one place. (TestEveryFault found the second
// of these.)
//
// While a store is being opened, errors are returned: nothing has been acknowledged yet. So are
// those of a checkpoint, for instance of a full disk under it.
type failStopFS struct {
	vfs.FS
	failure *failure
	armed   atomic.Bool
	spared  atomic.Pointer[string] // the folder of a running checkpoint

	opening sync.Mutex
	opened  bool     // Pebble has created its log
	old     []string // logs that Pebble has removed before
}

// Remove implements vfs.FS. It keeps logs until Pebble has opened the store. Pebble removes flushed
// logs in one goroutine while another creates the next log, so a process killed in between would leave
// a store without a log, and checkRecords could not tell it from one whose log somebody has deleted.
func (f *failStopFS) Remove(name string) error {
	f.opening.Lock()
	defer f.opening.Unlock()
	if !f.opened && strings.HasSuffix(name, ".log") {
		f.old = append(f.old, name)
		return nil
	}
	return f.FS.Remove(name)
}

// removeLogs removes the logs that Remove has kept. If one cannot be removed, the next open tries
// again.
func (f *failStopFS) removeLogs() {
	f.opening.Lock()
	defer f.opening.Unlock()
	f.opened = true
	for _, name := range f.old {
		_ = f.FS.Remove(name)
	}
}

// spare returns errors in the folder, and of making it, to their caller; "" ends that.
func (f *failStopFS) spare(folder string) { f.spared.Store(&folder) }

func (f *failStopFS) isSpared(name string) bool {
	folder := f.spared.Load()
	if folder == nil || *folder == "" {
		return false
	}
	return name == *folder || name == f.PathDir(*folder) || strings.HasPrefix(name, *folder+"/")
}

var _ vfs.FS = (*failStopFS)(nil)

// check returns err, unless it stops the store: then check does not return.
func (f *failStopFS) check(op, name string, err error) error {
	if err != nil && f.armed.Load() && !f.isSpared(name) {
		f.failure.fail(fmt.Errorf("%s %s: %w", op, f.PathBase(name), err))
		select {} // the hook of a test has returned
	}
	return err
}

func (f *failStopFS) wrap(op, name string, file vfs.File, err error) (vfs.File, error) {
	if err := f.check(op, name, err); err != nil {
		return nil, err
	}
	return &failStopFile{file, f, name}, nil
}

// Create implements vfs.FS. It syncs the folder before and after it creates a marker, because a power
// cut may keep a newer name and lose an older one: the file that the marker names must be on disk
// first, and the marker itself before Pebble removes the last one.
func (f *failStopFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	marker, dir := strings.HasPrefix(f.PathBase(name), "marker."), f.PathDir(name)
	if marker {
		if err := syncFolder(f, dir); err != nil {
			return nil, err
		}
	}
	made, err := f.FS.Create(name, category)
	file, err := f.wrap("create", name, made, err)
	if err == nil && marker {
		err = syncFolder(f, dir)
	}
	return file, err
}

func (f *failStopFS) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, category, opts...)
	return f.wrap("open", name, file, err)
}

func (f *failStopFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	return f.wrap("reuse", newname, file, err)
}

func (f *failStopFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return f.wrap("open", name, file, err)
}

func (f *failStopFS) Rename(oldname, newname string) error {
	return f.check("rename", newname, f.FS.Rename(oldname, newname))
}

func (f *failStopFS) Link(oldname, newname string) error {
	return f.check("link", newname, f.FS.Link(oldname, newname))
}

func (f *failStopFS) Unwrap() vfs.FS { return f.FS }

type failStopFile struct {
	vfs.File
	fs   *failStopFS
	name string
}

func (f *failStopFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.check("write", f.name, err)
}

func (f *failStopFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.fs.check("write", f.name, err)
}

func (f *failStopFile) Sync() error { return f.fs.check("sync", f.name, f.File.Sync()) }

func (f *failStopFile) SyncData() error { return f.fs.check("sync", f.name, f.File.SyncData()) }

func (f *failStopFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.check("sync", f.name, err)
}
