package pebblestore

import (
	"errors"
	"iter"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
)

func TestSuiteInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openInMemory)
}

func openInMemory(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
	s := &inMemory{t: t, failing: new(atomic.Bool)}
	s.options = Options{Tables: tables, Now: now, Create: true,
		FS: errorfs.Wrap(vfs.NewCrashableMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if s.failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				return errorfs.ErrInjected
			}
			return nil
		})),
		Fatal: func(err error) {
			if !s.failing.Load() {
				t.Errorf("the disk has failed: %v", err)
			}
		}}
	s.Store = openTest(t, "store", s.options)
	return s
}

// inMemory is a store whose disk can fail, and whose items can be damaged.
type inMemory struct {
	*Store
	t       *testing.T
	options Options
	failing *atomic.Bool
}

var _ storetest.AnswerLoser = (*inMemory)(nil)

// LoseAnswers lets the disk fail, for good: nothing is written from now on.
func (s *inMemory) LoseAnswers(bool) (restore func()) {
	s.failing.Store(true)
	return func() {}
}

// Damage cuts the item's bytes in the middle, and opens the store anew.
func (s *inMemory) Damage(table string, key store.Key) error {
	k := s.layouts[table].key(key)
	value, closer, err := s.db.Get(k)
	if err != nil {
		return err
	}
	err = errors.Join(s.db.Set(k, value[:len(value)-1], pebble.Sync), closer.Close(), s.Store.Close())
	s.Store = openTest(s.t, "store", s.options)
	return err
}

// TestUnreadable: a damaged item is ErrFormat, and others are as they were.
func TestUnreadable(t *testing.T) {
	tables := []store.Table{{Name: "t", PartitionKey: "pk", SortKey: "sk",
		Indexes: []store.Index{{Name: "x", PartitionKey: "owner"}}}}
	s := openInMemory(t, tables, time.Now).(*inMemory)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	it := func(sk string) store.Item {
		return store.NewItem(store.Attribute{Name: "pk", Value: store.S("a")},
			store.Attribute{Name: "sk", Value: store.S(sk)}, store.Attribute{Name: "version", Value: store.Int(1)})
	}
	for _, sk := range []string{"1", "2", "3"} {
		if err := s.Commit(t.Context(), store.Put("t", it(sk))); err != nil {
			t.Fatal(err)
		}
	}
	key := store.Key{PK: "a", SK: "2"}
	if err := s.Damage("t", key); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "t", key); !errors.Is(err, store.ErrFormat) || got != nil {
		t.Errorf("Get = %v, %v; want ErrFormat", got, err)
	}
	for name, rows := range map[string]iter.Seq2[store.Item, error]{
		"Query": s.Query(t.Context(), store.Query{Table: "t", Partition: "a"}),
		"Scan":  s.Scan(t.Context(), store.Scan{Table: "t"}),
	} {
		var last error
		n := 0
		for got, err := range rows {
			if n++; n == 1 && (err != nil || !got.Equal(it("1"))) || n > 2 || last != nil {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			last = err
		}
		if !errors.Is(last, store.ErrFormat) {
			t.Errorf("%s ends with %v, want ErrFormat", name, last)
		}
	}
	other := store.Put("t", it("9"))
	for _, w := range []store.Write{store.Put("t", it("2"), store.AttributeEquals("version", store.Int(1))),
		store.Put("t", it("2"), store.Absent()), store.Update("t", key, store.NewItem(), []string{"x"}),
		store.Delete("t", key), store.Check("t", key)} {
		err := s.Commit(t.Context(), other, w)
		if !errors.Is(err, store.ErrFormat) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("Commit = %v, want ErrFormat", err)
		}
	}
	for sk, want := range map[string]error{"9": store.ErrNotFound, "1": nil, "3": nil} {
		if got, err := s.Get(t.Context(), "t", store.Key{PK: "a", SK: sk}); !errors.Is(err, want) ||
			want == nil && !got.Equal(it(sk)) {
			t.Errorf("Get of %s = %v, %v; want %v", sk, got, err, want)
		}
	}
}

// Close abandons a store whose disk has failed: its process would be gone.
func (s *inMemory) Close() error {
	if s.failing.Load() {
		return store.ErrClosed
	}
	return s.Store.Close()
}

func TestSuiteOnDisk(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		dir := t.TempDir()
		return onDisk{openTest(t, dir, Options{Tables: tables, Now: now, Create: true}), dir}
	})
}

// onDisk takes its folder away when it is closed: the model opens a store for every check,
// each preallocates a log, and t.TempDir would keep them all until the test has ended.
type onDisk struct {
	*Store
	dir string
}

func (s onDisk) Close() error { return errors.Join(s.Store.Close(), os.RemoveAll(s.dir)) }
