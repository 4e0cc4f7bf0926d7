package pebblestore

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

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

// check does not return if err stops the store.
func (f *failStopFS) check(op, name string, err error) {
	if err != nil && f.armed.Load() && !f.isSpared(name) {
		f.failure.fail(fmt.Errorf("%s %s: %w", op, f.PathBase(name), err))
		select {} // the hook of a test has returned
	}
}

func (f *failStopFS) wrap(op, name string, file vfs.File, err error) (vfs.File, error) {
	f.check(op, name, err)
	if err != nil {
		return nil, err
	}
	return &failStopFile{file, f, name}, nil
}

func (f *failStopFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	return f.wrap("create", name, file, err)
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
	err := f.FS.Rename(oldname, newname)
	f.check("rename", newname, err)
	return err
}

func (f *failStopFS) Link(oldname, newname string) error {
	err := f.FS.Link(oldname, newname)
	f.check("link", newname, err)
	return err
}

func (f *failStopFS) Unwrap() vfs.FS { return f.FS }

type failStopFile struct {
	vfs.File
	fs   *failStopFS
	name string
}

func (f *failStopFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.fs.check("write", f.name, err)
	return n, err
}

func (f *failStopFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	f.fs.check("write", f.name, err)
	return n, err
}

func (f *failStopFile) Sync() error {
	err := f.File.Sync()
	f.fs.check("sync", f.name, err)
	return err
}

func (f *failStopFile) SyncData() error {
	err := f.File.SyncData()
	f.fs.check("sync", f.name, err)
	return err
}

func (f *failStopFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	f.fs.check("sync", f.name, err)
	return full, err
}
