package pebblestore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

// A gateFS holds back the syncs of logs while its gate is shut.
type gateFS struct {
	vfs.FS
	mu      sync.Mutex
	open    chan struct{} // closed while the gate is open
	arrived chan struct{} // takes one word from each sync that is held back
}

func newGateFS() *gateFS {
	g := &gateFS{FS: vfs.NewCrashableMem(), open: make(chan struct{}), arrived: make(chan struct{}, 100)}
	close(g.open)
	return g
}

// shut shuts the gate and returns what opens it.
func (g *gateFS) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := make(chan struct{})
	g.open = c
	return func() { close(c) }
}

func (g *gateFS) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
	default:
		g.arrived <- struct{}{}
		<-open
	}
}

func (g *gateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, category)
	return g.wrap(name, f), err
}

func (g *gateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.ReuseForWrite(oldname, newname, category)
	return g.wrap(newname, f), err
}

func (g *gateFS) Unwrap() vfs.FS { return g.FS }

func (g *gateFS) wrap(name string, f vfs.File) vfs.File {
	if f == nil || !strings.HasSuffix(name, ".log") {
		return f
	}
	return gateFile{f, g}
}

type gateFile struct {
	vfs.File
	gate *gateFS
}

func (f gateFile) Sync() error {
	f.gate.pass()
	return f.File.Sync()
}

func (f gateFile) SyncData() error {
	f.gate.pass()
	return f.File.SyncData()
}

func (f gateFile) SyncTo(length int64) (bool, error) {
	f.gate.pass()
	return f.File.SyncTo(length)
}

// Between a commit's arrival in the database and its sync no reader sees it, and no
// other commit is told of it.
func TestUnsyncedIsInvisible(t *testing.T) {
	fs := newGateFS()
	s := openTest(t, "store", Options{Tables: crashTables(), FS: fs, Create: true})
	defer s.Close()
	if err := s.Commit(t.Context(), mark{0, 1}.writes(1)...); err != nil {
		t.Fatal(err)
	}

	open := fs.shut()
	first, rival := make(chan error, 1), make(chan error, 1)
	go func() { first <- s.Commit(t.Context(), mark{0, 2}.writes(1)...) }()
	<-fs.arrived // applied, and its sync has begun
	go func() { rival <- s.Commit(t.Context(), mark{0, 2}.writes(1)...) }()

	if it, err := s.Get(t.Context(), "slots", mark{slot: 0}.slotKey()); err != nil || it.Int("version") != 1 {
		t.Errorf("Get shows %v, %v before the sync, want version 1", it, err)
	}
	if _, err := s.Get(t.Context(), "marks", mark{0, 2}.markKey()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of a new item before the sync: %v", err)
	}
	if got := states(t, s); !slices.Equal(got, []string{"paid"}) {
		t.Errorf("the index shows %q before the sync", got)
	}
	for it, err := range s.Scan(t.Context(), store.Scan{Table: "marks"}) {
		if err != nil || it.Str("id") != "0/1" {
			t.Errorf("Scan shows %v, %v before the sync", it, err)
		}
	}
	// The hazard is real: the database itself shows what is not durable.
	// Its sync may begin a moment before it is shown.
	l := s.layouts["marks"]
	for end := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		_, closer, err := s.db.Get(l.key(mark{0, 2}.markKey()))
		if err == nil {
			_ = closer.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("Pebble does not show the unsynced batch (%v): this test shows nothing", err)
		}
	}
	select {
	case err := <-first:
		t.Errorf("Commit returned %v before the sync", err)
	case err := <-rival:
		t.Errorf("the rival was told %v before the sync", err)
	default:
	}

	open()
	if err := <-first; err != nil {
		t.Errorf("Commit: %v", err)
	}
	if err := <-rival; !errors.Is(err, store.ErrConflict) {
		t.Errorf("the rival was told %v, want a conflict", err)
	}
	if it, err := s.Get(t.Context(), "slots", mark{slot: 0}.slotKey()); err != nil || it.Int("version") != 2 {
		t.Errorf("Get shows %v, %v after the commit", it, err)
	}
	if got := states(t, s); !slices.Equal(got, []string{"open"}) {
		t.Errorf("the index shows %q after the commit", got)
	}
}

func states(t *testing.T, s *Store) (got []string) {
	t.Helper()
	for _, state := range []string{"open", "paid"} {
		for _, err := range s.Query(t.Context(), store.Query{Table: "slots", Index: "by-state", Partition: state}) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, state)
		}
	}
	return got
}

// A caller that gives up before its request was taken is told so; one whose request
// was taken hears the outcome. The clock, which the committer asks for every request
// that it has taken, stops it here.
func TestContextOfCommit(t *testing.T) {
	var stopped atomic.Bool
	asked, goOn := make(chan struct{}, 1), make(chan struct{})
	s := openTest(t, "store", Options{Tables: crashTables(), FS: vfs.NewMem(), Create: true, Now: func() time.Time {
		if stopped.CompareAndSwap(true, false) {
			asked <- struct{}{}
			<-goOn
		}
		return time.Unix(1000, 0)
	}})
	defer s.Close()
	s.stop() // it asks the clock too
	s.background.Wait()

	stopped.Store(true)
	takenContext, cancelTaken := context.WithCancel(t.Context())
	taken, waiting := make(chan error, 1), make(chan error, 1)
	go func() { taken <- s.Commit(takenContext, mark{0, 1}.writes(1)...) }()
	<-asked
	cancelTaken()

	waitingContext, cancelWaiting := context.WithCancel(t.Context())
	go func() { waiting <- s.Commit(waitingContext, mark{1, 1}.writes(1)...) }()
	for len(s.requests) == 0 {
		runtime.Gosched()
	}
	cancelWaiting()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("a waiting commit whose context was cancelled: %v", err)
	}
	close(goOn)
	if err := <-taken; err != nil {
		t.Errorf("a taken commit whose context was cancelled: %v", err)
	}
	if err := s.Commit(t.Context(), mark{2, 1}.writes(1)...); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), "marks", mark{1, 1}.markKey()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the commit that was given up has landed: %v", err)
	}
}

// An item expires at its second for everybody: a commit that is decided long after its
// group began goes by the clock of then.
func TestExpiryWithinAGroup(t *testing.T) {
	var now, asked atomic.Int64
	now.Store(1000)
	fs := newGateFS()
	s := openTest(t, "store", Options{Tables: crashTables(), FS: fs, Create: true, Now: func() time.Time {
		defer asked.Add(1)
		return time.Unix(now.Load(), 0)
	}})
	defer s.Close()
	s.stop() // it asks the clock too
	s.background.Wait()
	if err := s.Commit(t.Context(), store.Put("slots", session(1, 1001))); err != nil {
		t.Fatal(err)
	}
	open := fs.shut()
	group := make(chan error, 3)
	go func() { group <- s.Commit(t.Context(), mark{0, 1}.writes(1)...) }()
	<-fs.arrived // the sync under which the next group gathers
	before := asked.Load()
	go func() { group <- s.Commit(t.Context(), mark{1, 1}.writes(1)...) }()
	for asked.Load() == before {
		runtime.Gosched()
	}
	now.Store(1001)
	if _, err := s.Get(t.Context(), "slots", s.layouts["slots"].KeyOf(session(1, 0))); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of an expired item: %v", err)
	}
	before = asked.Load()
	go func() { group <- s.Commit(t.Context(), store.Put("slots", session(1, 2000), store.Absent())) }()
	for end := time.Now().Add(5 * time.Second); asked.Load() == before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Error("the clock is not asked for a request that joins a group")
			break
		}
	}
	open()
	for range cap(group) {
		if err := <-group; err != nil {
			t.Errorf("Commit: %v", err)
		}
	}
}

// The committer remembers what it has put; a caller that goes on using its item must
// not change that.
func TestPutItemIsCopied(t *testing.T) {
	s := openTest(t, "store", Options{Tables: crashTables(), FS: vfs.NewMem(), Create: true})
	defer s.Close()
	it := store.NewItem(store.Attribute{Name: "id", Value: store.S("1")}, store.Attribute{Name: "n", Value: store.Int(1)})
	if err := s.Commit(t.Context(), store.Put("marks", it)); err != nil {
		t.Fatal(err)
	}
	it.Set("n", store.Int(2))
	if err := s.Commit(t.Context(), store.Check("marks", store.Key{PK: "1"},
		store.AttributeEquals("n", store.Int(1)))); err != nil {
		t.Errorf("what was put has changed with the caller's item: %v", err)
	}
}
