package dynamostore

import (
	"fmt"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// TestCommit_RoomForTokens: a commit has tokens as long as everything fits in together.
func TestCommit_RoomForTokens(t *testing.T) {
	const writes = 100
	const key = "000"
	of := func(size, n int) []store.Write {
		var list []store.Write
		for i := range n {
			it := store.NewItem(store.Attribute{Name: "id", Value: store.S(fmt.Sprintf("%03d", i))})
			it.Set("blob", store.B(make([]byte, size-len("id")-len(key)-len("blob"))))
			if got, err := store.Size(it); err != nil || got != size {
				t.Fatalf("an item of %d bytes, %v; want %d", got, err, size)
			}
			list = append(list, store.Put("t", it))
		}
		return list
	}
	schema, err := store.NewSchema(store.Table{Name: "t", PartitionKey: "id"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		list []store.Write
		want bool
	}{
		{"a full commit of many items", append(of(store.MaxCommitBytes/writes, writes-1),
			of(store.MaxCommitBytes-(writes-1)*(store.MaxCommitBytes/writes), writes)[writes-1]), false},
		{"room for half the tokens", of(store.MaxCommitBytes/writes-markedBytes/2, writes), false},
		{"room for all", of(store.MaxCommitBytes/writes-markedBytes-len(key), writes), true},
		{"the largest item", of(store.MaxItemBytes, 1), false},
		{"room for one", of(store.MaxItemBytes-markedBytes, 1), true},
		{"no room for one", of(store.MaxItemBytes-markedBytes+1, 1), false},
	} {
		if err := schema.CheckCommit(t.Context(), c.list); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := (&commit{list: c.list}).fits(); got != c.want {
			t.Errorf("%s: fits = %t", c.name, got)
		}
	}
}
