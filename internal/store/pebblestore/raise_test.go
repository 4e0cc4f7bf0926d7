package pebblestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// TestRaise: a store of an older revision gets the indexes of this one, whatever it had, also after a
// raise that was interrupted anywhere. The copy made before opens in the older program, which refuses
// the store itself.
func TestRaise(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	older := crashTables()
	older[0].Indexes = []store.Index{older[0].Indexes[1], {Name: "gone", PartitionKey: "state", All: true}}
	o := Options{Tables: older, Create: true, Program: "v1"}
	item := func(i int) store.Item {
		return store.NewItem(store.Attribute{Name: "PK", Value: store.S(fmt.Sprint("p", i))},
			store.Attribute{Name: "SK", Value: store.S("s")}, store.Attribute{Name: "owner", Value: store.S("me")},
			store.Attribute{Name: "state", Value: store.S("on")}, store.Attribute{Name: "since", Value: store.S(fmt.Sprint(i))},
			store.Attribute{Name: "version", Value: store.Int(int64(i))}, store.Attribute{Name: "TTL", Value: store.Int(1 << 40)})
	}
	within := func(o Options, do func(*Store)) {
		t.Helper()
		s := openTest(t, dir, o)
		do(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	within(o, func(s *Store) {
		for i := range 9 {
			if err := s.Commit(t.Context(), store.Put("slots", item(i))); err != nil {
				t.Fatal(err)
			}
		}
		old := metaOf(t, s) // as a program of format 1 has written it
		old.Format, old.Program = 1, ""
		if err := old.write(s.db); err != nil {
			t.Fatal(err)
		}
	})
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	newer := Options{Tables: crashTables(), Revision: 1, Program: "v2", Now: func() time.Time { return at }}
	for _, killed := range []string{"before-unfinished", "before-20261123T100000.000Z"} { // by the same clock
		if err := os.Mkdir(filepath.Join(dir, killed), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	indexed := func(s *Store) {
		t.Helper()
		for _, index := range []struct{ name, partition string }{{"by-state", "on"}, {"all", "me"}} {
			n := 0
			for row, err := range s.Query(t.Context(), store.Query{Table: "slots", Index: index.name, Partition: index.partition}) {
				if err != nil || row.Has("owner") != (index.name == "all") {
					t.Errorf("%s: %v, %v", index.name, row, err)
				}
				n++
			}
			if n != 9 {
				t.Errorf("index %s has %d rows", index.name, n)
			}
		}
		if m := metaOf(t, s); m.Format != format || m.Program != "v2" || m.Revision != 1 || m.Raising {
			t.Errorf("described as %+v", m)
		}
	}
	within(newer, indexed)
	within(newer, func(s *Store) { // interrupted: half of the rows are there
		m := metaOf(t, s)
		m.Raising = true
		id := s.layouts["slots"].id
		if err := errors.Join(m.write(s.db), s.db.DeleteRange([]byte{id, 1}, []byte{id, 2}, pebble.Sync)); err != nil {
			t.Fatal(err)
		}
	})
	within(newer, indexed)
	if _, err := Open(dir, o); !errors.Is(err, store.ErrFormat) || !strings.Contains(err.Error(), "by Duesday v2") {
		t.Errorf("the older program: %v", err)
	}
	copies, err := filepath.Glob(filepath.Join(dir, "before-*"))
	if err != nil || len(copies) != 2 {
		t.Fatalf("the copies %v, %v", copies, err)
	}
	dir = copies[1]
	within(Options{Tables: older}, func(s *Store) {
		for i := range 9 {
			if it, err := s.Get(t.Context(), "slots", store.Key{PK: fmt.Sprint("p", i), SK: "s"}); err != nil || !it.Equal(item(i)) {
				t.Errorf("%v, %v", it, err)
			}
		}
	})
}

func metaOf(t *testing.T, s *Store) *meta {
	t.Helper()
	b, closer, err := s.db.Get(metaKey)
	if err != nil {
		t.Fatal(err)
	}
	m := &meta{}
	if err := errors.Join(json.Unmarshal(slices.Clone(b), m), closer.Close()); err != nil {
		t.Fatal(err)
	}
	return m
}
