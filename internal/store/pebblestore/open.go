package pebblestore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/socket"
	"github.com/duesday/duesday/internal/store"
)

// Open opens the store in the folder dir, which one process holds at a time.
//
// It raises an older store, see raise. It returns ErrDamaged if files are damaged or missing,
// ErrMissing if there is no store and Create is not set, and ErrLocked if the store is in use. It
// returns ErrFormat if this program cannot read the store, or if its tables differ from those in o.
func Open(dir string, o Options) (*Store, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: the store's folder must not be empty", store.ErrInvalid)
	}
	o = o.withDefaults()
	schema, err := store.NewSchema(o.Tables...)
	if err != nil {
		return nil, err
	}
	path := dir
	if o.FS == vfs.Default {
		if path, err = PlaceOf(dir); err == nil && !o.ReadOnly {
			err = socket.CheckFolder(path, socket.Everybody)
		}
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", dir, err)
		}
	}
	if err := prepareFolder(path, dir, &o); err != nil {
		return nil, err
	}
	l, err := acquireLock(path, dir, &o)
	if err != nil {
		return nil, err
	}
	s, err := openLocked(path, dir, schema, l, &o)
	if err != nil {
		return nil, errors.Join(err, l.release())
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.CacheBytes = cmp.Or(o.CacheBytes, DefaultCacheBytes)
	o.FS = cmp.Or(o.FS, vfs.Default)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func openLocked(path, dir string, schema store.Schema, l *lock, o *Options) (*Store, error) {
	failure := newFailure(o.Fatal)
	log := pebbleLog{o.Logger, failure, dir}
	disk := &failStopFS{FS: o.FS, failure: failure}
	if o.ReadOnly {
		disk.FS = unlockedFS{o.FS}
	}
	po := pebbleOptions(o, disk, log)
	if err := checkRecords(o.FS, path); err != nil && (!errors.Is(err, errNoLog) || !wasKilled(path, o, *po)) {
		return nil, &damagedError{dir, err}
	}
	po.EventListener = log.events()
	po.Lock, po.ReadOnly = l.file, o.ReadOnly
	compactions := newScheduler()
	po.Experimental.CompactionScheduler = compactions
	db, err := openDatabase(path, po, failure)
	if err != nil {
		return nil, damagedAtOpen(dir, fmt.Errorf("open store %s: %w", dir, err))
	}
	disk.removeLogs()
	layouts, err := register(db, path, disk, o)
	if err != nil {
		return nil, errors.Join(damaged(dir, fmt.Errorf("store %s: %w", dir, err)), db.Close())
	}
	s := &Store{
		schema: schema, layouts: layouts, now: o.Now, log: o.Logger, dir: dir, reader: o.ReadOnly,
		failure: failure, lock: l, db: db, disk: disk, sync: pebble.Sync,
	}
	disk.armed.Store(!o.ReadOnly)
	s.start()
	compactions.open()
	return s, nil
}

// An unlockedFS has Pebble make no lock: a reader makes no file.
type unlockedFS struct{ vfs.FS }

// Lock implements vfs.FS.
func (unlockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// openDatabase ends the process if Pebble panics, as after a failed sync of a marker file: a
// second try in this process could take lost pages for synced ones.
func openDatabase(path string, po *pebble.Options, failure *failure) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			failure.fail(err)
		}
	}()
	return pebble.Open(path, po)
}

// Restoring is the end of the name of the folder beside a store's in which a restore makes its copy.
// While it is there, no new store is made: a restore killed between moving the old store aside and
// giving the copy its name has left none.
const Restoring = ".restoring"

// prepareFolder makes the folder, or returns ErrMissing if it has no store. It returns ErrDamaged if
// the folder has data without the files that make it a store: nobody may fill it anew.
func prepareFolder(path, dir string, o *Options) error {
	is, err := isStore(dir, o.FS)
	switch restoring := path + Restoring; {
	case err != nil:
		return fmt.Errorf("open store %s: %w", dir, err)
	case !o.Create && !is:
		return fmt.Errorf("%w: %s", store.ErrMissing, dir)
	case !is:
		if _, err := o.FS.Stat(restoring); err == nil {
			return fmt.Errorf("%w: %s: a restore to it is running or was interrupted; run it again, or remove %s",
				store.ErrMissing, dir, restoring)
		}
	}
	if o.Create {
		return makeFolder(o.FS, dir)
	}
	return nil
}

// makeFolder makes dir and its parents, readable by the owner alone, and syncs them, so that a
// power cut cannot take the name of the folder away.
func makeFolder(files vfs.FS, dir string) error {
	parent := files.PathDir(dir)
	if _, err := files.Stat(dir); !errors.Is(err, fs.ErrNotExist) || parent == dir {
		return err
	}
	if err := makeFolder(files, parent); err != nil {
		return err
	}
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncFolder(files, parent)
}

func syncFolder(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
