package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/pebbletest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// A camera keeps what a kill, and what a power cut would leave of a disk before each write operation.
type camera struct {
	disk  pebbletest.CrashDisk
	rng   *rand.Rand
	mu    sync.Mutex // the other goroutines of a store wait for a picture
	on    bool
	shots []pebbletest.CrashDisk
	err   error
}

// MaybeError implements errorfs.Injector.
func (c *camera) MaybeError(op errorfs.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.on && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		left, err := killed(c.disk)
		c.err = errors.Join(c.err, err)
		c.shots = append(c.shots, left, c.disk.Crash(vfs.CrashCloneCfg{UnsyncedDataPercent: 25 * c.rng.IntN(5), RNG: c.rng}))
	}
	return nil
}

// killed returns a disk as a killed process leaves it, with all that it has written and removed.
func killed(disk pebbletest.CrashDisk) (pebbletest.CrashDisk, error) {
	left := pebbletest.NewCrashDisk()
	_, err := vfs.Clone(disk, left, "/", "/", vfs.CloneSync)
	return left, err
}

func (c *camera) String() string { return "camera" }

// logsFirst removes the flushed logs before the next log is made, as an unlucky scheduler does.
type logsFirst struct {
	vfs.FS
	direct vfs.FS // of a planted bug: the store's file system does not see that logs are removed
	mu     sync.Mutex
	gone   *sync.Cond
	logs   []string
}

func logsOf(files vfs.FS) []string {
	list, _ := files.List("d/store")
	return slices.DeleteFunc(list, func(name string) bool { return !strings.HasSuffix(name, ".log") })
}

func (f *logsFirst) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.gone.Broadcast()
	f.logs = slices.DeleteFunc(f.logs, func(log string) bool { return log == f.PathBase(name) })
	if strings.HasSuffix(name, ".log") && f.direct != nil {
		return f.direct.Remove(name)
	}
	return f.FS.Remove(name)
}

func (f *logsFirst) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f.mu.Lock()
	for strings.HasSuffix(name, ".log") && len(f.logs) > 0 {
		f.gone.Wait()
	}
	f.mu.Unlock()
	return f.FS.Create(name, category)
}

// killedStore is a store on a disk, of which a process has left what is there.
type killedStore struct {
	disk pebbletest.CrashDisk
	has  int64 // versions of slot 0
	log  bool  // an open flushes its logs before it makes the next
}

// A filming opens killed stores, and takes pictures of the disk meanwhile.
type filming struct {
	*testing.T
	rng     *rand.Rand
	planted bool // an open removes logs at once
}

func (f *filming) options(files vfs.FS) Options {
	return Options{Tables: crashTables(), Revision: 1, FS: files, Create: true, tune: tiny,
		Fatal: func(err error) { f.Errorf("the disk has failed: %v", err) }}
}

// film opens the store, does the work, and closes it. It returns the disk before each operation of the
// open, or of the work.
func (f *filming) film(k killedStore, work func(*Store) error) ([]pebbletest.CrashDisk, error) {
	c := &camera{disk: k.disk, rng: f.rng, on: work == nil}
	o := f.options(errorfs.Wrap(k.disk, c))
	if k.log {
		o.tune = func(po *pebble.Options) {
			tiny(po)
			first := &logsFirst{FS: po.FS, logs: logsOf(k.disk)}
			if first.gone = sync.NewCond(&first.mu); f.planted {
				first.direct = o.FS
			}
			po.FS = first
		}
	}
	s, err := Open("d/store", o)
	if err != nil {
		return nil, err
	}
	turn := func(on bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.on = on
	}
	if turn(work != nil); work != nil {
		err = work(s)
	}
	turn(false)
	return c.shots, errors.Join(err, c.err, audit(f.Context(), s, [crashSlots]int64{k.has}), s.Close())
}

// stores returns stores as processes leave them that were killed or ended.
func (f *filming) stores() map[string]killedStore {
	f.Helper()
	made := pebbletest.NewCrashDisk()
	commits := func(from, to int64) func(*Store) error {
		return func(s *Store) (err error) {
			for v := from; v <= to && err == nil; v++ {
				err = s.Commit(context.Background(), mark{0, v}.writes(2000)...)
			}
			return err
		}
	}
	serving, err := f.film(killedStore{disk: made}, commits(1, 20))
	if err != nil {
		f.Fatal(err)
	}
	older := pebbletest.NewCrashDisk()
	o := f.options(older)
	o.Revision, o.Tables[0].Indexes = 0, o.Tables[0].Indexes[1:]
	s, err := Open("d/store", o)
	if err == nil {
		err = commits(1, 5)(s)
	}
	raised, rerr := killed(older)
	copied, cerr := killed(made)
	if err := errors.Join(err, rerr, cerr, s.Close()); err != nil {
		f.Fatal(err)
	}
	during, err := f.film(killedStore{disk: copied, has: 20}, func(s *Store) error {
		return s.Checkpoint(context.Background(), "d/copy")
	})
	if err == nil {
		err = copied.RemoveAll("d/store")
	}
	if err == nil {
		err = copied.Rename("d/copy", "d/store")
	}
	if err != nil {
		f.Fatal(err)
	}
	list := map[string]killedStore{
		"none":               {disk: pebbletest.NewCrashDisk()},
		"closed":             {disk: made, has: 20},
		"killed":             {disk: serving[len(serving)-2], has: 18, log: true},
		"of an older schema": {disk: raised, has: 5, log: true},
		"checkpoint":         {disk: copied, has: 20},
	}
	for i, disk := range during {
		list[fmt.Sprintf("killed at %d of %d of a checkpoint", i, len(during))] = killedStore{disk: disk, has: 20}
	}
	return list
}

// play opens a store, and so what each crash meanwhile leaves, deeper and deeper: of the deeper
// crashes one random one each, or all in a soak. It returns the first error.
func (f *filming) play(name string, k killedStore, depth int, programme *soaktest.Programme) error {
	if !programme.Next() {
		return nil
	}
	shots, err := f.film(k, nil)
	if err != nil || depth == 0 {
		return err
	}
	if depth == 1 || depth == 2 && !soaktest.On() {
		shots = []pebbletest.CrashDisk{shots[f.rng.IntN(len(shots))]}
	}
	for i, disk := range shots {
		name := fmt.Sprintf("%s, killed at %d of %d", name, i, len(shots))
		bare, err := killed(disk)
		if err != nil {
			return err
		}
		if err := f.play(name, killedStore{disk: disk, has: k.has}, depth-1, programme); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if depth == 3 && k.has > 0 {
			if err := f.without(bare); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// without returns an error if a store opens of which somebody has deleted the logs.
func (f *filming) without(disk pebbletest.CrashDisk) error {
	for _, name := range logsOf(disk) {
		if err := disk.Remove("d/store/" + name); err != nil {
			return err
		}
	}
	s, err := Open("d/store", f.options(disk))
	if err == nil {
		return errors.Join(errors.New("a store without its logs was opened"), s.Close())
	}
	if !errors.Is(err, store.ErrDamaged) {
		return err
	}
	return nil
}

// TestKilledOpen: a process that is killed, or loses power, at any moment at which it opens a store,
// raises it or makes a checkpoint, leaves a store that opens and has everything; also when the next
// processes are killed as they open it. A log that somebody deletes then is missed.
func TestKilledOpen(t *testing.T) {
	f, programme := &filming{T: t, rng: rand.New(rand.NewPCG(soaktest.Seed(t), 26))}, soaktest.Start(t)
	for name, k := range f.stores() {
		depth := 3
		if strings.HasSuffix(name, "of a checkpoint") && !soaktest.On() {
			depth = 0
		}
		if err := f.play(name, k, depth, programme); err != nil {
			t.Error(err)
		}
	}
}

// TestPlantedLogsFirstIsCaught: a store whose old logs are removed before it has the next is found.
func TestPlantedLogsFirstIsCaught(t *testing.T) {
	f := &filming{T: t, rng: rand.New(rand.NewPCG(1, 26)), planted: true}
	programme := soaktest.Start(t)
	if err := f.play("killed", f.stores()["killed"], 3, programme); !errors.Is(err, store.ErrDamaged) && (err != nil || programme.Whole()) {
		t.Errorf("got %v", err)
	}
}

// TestOlderKilledOpen: a store of which an older program removed the logs as it was opening it, and
// was killed before it made the next, opens and has everything. One of which somebody has deleted
// the logs does not.
func TestOlderKilledOpen(t *testing.T) {
	f := &filming{T: t, rng: rand.New(rand.NewPCG(1, 26)), planted: true}
	last := killedStore{disk: pebbletest.NewCrashDisk(), log: true}
	_, err := f.film(last, func(s *Store) error {
		m, err := readMeta(s.db, false)
		if err != nil {
			return err
		}
		m.Format = keepsLogs - 1
		return errors.Join(m.write(s.db), s.db.Flush(), s.Commit(t.Context(), mark{0, 1}.writes(2000)...))
	})
	if err != nil {
		t.Fatal(err)
	}
	last.has = 1
	bare, err := killed(last.disk)
	if err == nil {
		err = f.without(bare)
	}
	shots, ferr := f.film(last, nil)
	if err := errors.Join(err, ferr); err != nil {
		t.Fatal(err)
	}
	none := 0
	for i, disk := range shots {
		if len(logsOf(disk)) == 0 {
			none++
		}
		if _, err := f.film(killedStore{disk: disk, has: 1}, nil); err != nil {
			t.Errorf("killed at %d of %d: %v", i, len(shots), err)
		}
	}
	if none == 0 {
		t.Error("no kill has left a store without a log")
	}
}
