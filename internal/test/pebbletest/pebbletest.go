// Package pebbletest provides a simulated disk whose power tests can cut. It does not open Pebble stores.
package pebbletest

import "github.com/cockroachdb/pebble/v2/vfs"

// A CrashDisk is Pebble's crashable file system in memory, without its deadlock. MemFS's
// ReuseForWrite holds the read lock that CrashClone excludes, and takes it once more in Rename: a
// CrashClone that begins between the two waits for the first, and the second waits for CrashClone.
type CrashDisk struct{ *vfs.MemFS }

// NewCrashDisk returns an empty disk.
func NewCrashDisk() CrashDisk { return CrashDisk{vfs.NewCrashableMem()} }

// ReuseForWrite implements vfs.FS in two steps that take the lock one after the other.
func (d CrashDisk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return d.OpenReadWrite(newname, category)
}

// Crash returns what a power cut leaves of the disk.
func (d CrashDisk) Crash(cfg vfs.CrashCloneCfg) CrashDisk { return CrashDisk{d.CrashClone(cfg)} }
