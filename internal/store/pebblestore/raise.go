package pebblestore

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// raiseBatch is the size of a commit of rebuilt rows, in bytes.
const raiseBatch = 1 << 20

// olderCopy begins the names of the folders, in that of a store, with its state before a raise.
const olderCopy = "before-"

// IsOlderCopy reports whether a folder in that of a store has its state before it was raised.
func IsOlderCopy(name string) bool { return strings.HasPrefix(name, olderCopy) }

// raise brings a store of an older format, or of an older revision of its tables, up to this
// program's: it rebuilds the indexes and TTL entries of the tables from their items. First it makes a
// checkpoint of the store, which the older program opens.
//
// The description is stored before, as being raised, and after. So older programs refuse the store
// from the first change on, and a raise that was interrupted begins again.
func raise(db *pebble.DB, path string, disk *failStopFS, m *meta, from meta, stale []*layout, o *Options) error {
	if o.FS == vfs.Default && !from.Raising {
		before := NewFolder(filepath.Join(path, olderCopy), o.Now())
		if err := checkpointAs(db, before, filepath.Join(path, olderCopy+"unfinished")); err != nil {
			return fmt.Errorf("copying the store before its upgrade to format %d: %w", m.Format, err)
		}
		o.Logger.Warn("store", "event", "upgraded to a newer format; older versions of Duesday can only open the copy",
			"format", m.Format, "copy", before)
	}
	disk.armed.Store(true) // a failed change of the log's file would leave Pebble in a panic
	begun := from
	begun.Format, begun.Program, begun.Raising = m.Format, m.Program, true
	if err := begun.write(db); err != nil {
		return err
	}
	for _, l := range stale {
		if err := l.rebuild(db); err != nil {
			return fmt.Errorf("rebuilding the indexes of table %s: %w", l.Name, err)
		}
	}
	return nil
}

// NewFolder returns prefix with the time, or with the next one for which there is nothing yet: a clock may
// show a time again.
func NewFolder(prefix string, at time.Time) string {
	for ; ; at = at.Add(time.Millisecond) {
		path := prefix + at.UTC().Format("20060102T150405.000Z")
		if _, err := os.Lstat(path); err != nil {
			return path
		}
	}
}

// checkpointAs makes a checkpoint that has its name when it is whole. The folder unfinished is that
// of a killed process, if it is there.
func checkpointAs(db *pebble.DB, name, unfinished string) error {
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := db.Checkpoint(unfinished, pebble.WithFlushedWAL()); err != nil {
		return err
	}
	if err := os.Rename(unfinished, name); err != nil {
		return err
	}
	return syncFolder(vfs.Default, filepath.Dir(name))
}

// rebuild replaces every row of the table but the items by the rows that the items have now.
func (l *layout) rebuild(db *pebble.DB) (err error) {
	if err := db.DeleteRange([]byte{l.id, kindBase + 1}, successor([]byte{l.id}), pebble.Sync); err != nil {
		return err
	}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{l.id, kindBase}, UpperBound: []byte{l.id, kindBase + 1}})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, it.Close()) }()
	b := db.NewBatch()
	for ok := it.First(); ok; ok = it.Next() {
		id, err := decodeKeyTail(it.Key()[2:])
		if err != nil {
			return err
		}
		item, err := l.decodeBase(it.Key()[2:], it.Value(), id.PK)
		if err != nil {
			return err
		}
		for _, r := range l.marks(id, item) {
			if r.key != nil {
				_ = b.Set(r.key, r.value, nil) // it fails only while the batch is being committed
			}
		}
		if b.Len() >= raiseBatch {
			if err := db.Apply(b, pebble.Sync); err != nil {
				return err
			}
			b = db.NewBatch()
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	return db.Apply(b, pebble.Sync)
}
