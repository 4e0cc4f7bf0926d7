package folder_test

import (
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/folder"
)

// TestPuts: the holder is signalled for what any process of the folder puts, and a client for its
// own puts. A commit that was refused, a deletion and an update signal nothing. A new holder is
// signalled at once, because the others' earlier commits reached another process.
func TestPuts(t *testing.T) {
	dir := t.TempDir()
	holder, client, other := open(t, dir, options(tables, nil)), open(t, dir, options(tables, nil)), open(t, dir, options(tables, nil))
	told := func(what string, s *folder.Store, want int) {
		t.Helper()
		puts := s.Puts("t")
		if len(puts) != want {
			t.Errorf("%s: %d signals, want %d", what, len(puts), want)
		}
		for len(puts) > 0 {
			<-puts
		}
	}
	for _, s := range []*folder.Store{holder, client, other} {
		told("before a commit", s, 0)
	}
	commit := func(s *folder.Store, fails bool, writes ...store.Write) {
		t.Helper()
		if err := s.Commit(t.Context(), writes...); (err != nil) != fails {
			t.Fatal(err)
		}
	}
	commit(holder, false, store.Put("t", itemAt("a")))
	told("the holder's own", holder, 1)
	told("the holder's, at a client", client, 0)
	commit(client, false, store.Put("t", itemAt("b")))
	commit(client, false, store.Put("t", itemAt("c")))
	told("a client's, at the holder", holder, 1)
	told("a client's own", client, 1)
	told("a client's, at another client", other, 0)
	commit(client, true, store.Put("t", itemAt("c"), store.Absent()))
	commit(client, false, store.Delete("t", store.Key{PK: "c"}))
	commit(client, false, store.Update("t", store.Key{PK: "b"}, []store.Attribute{{Name: "sk", Value: store.S("x")}}, nil))
	told("nothing put, at the holder", holder, 0)
	told("nothing put, at the client", client, 0)
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), "t", store.Key{PK: "a"}); err != nil || !client.Holds() {
		t.Fatal("the client has not taken the folder over", err)
	}
	told("a new holder", client, 1)
	commit(other, false, store.Put("t", itemAt("d")))
	told("a client's, at the new holder", client, 1)
	for _, s := range []*folder.Store{client, other} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
