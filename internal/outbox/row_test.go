package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestSetFailure_ReplacesAndCuts: a row keeps the latest failure alone, in valid text of bounded length.
func TestSetFailure_ReplacesAndCuts(t *testing.T) {
	it := store.NewItem()
	setFailure(&it, 3, "no")
	if it.Int(schema.Tries) != 3 || it.Str(schema.LastError) != "no" {
		t.Errorf("got %v", it)
	}
	setFailure(&it, 4, strings.Repeat("x", maxReason-1)+"é")
	if got := it.Str(schema.LastError); it.Int(schema.Tries) != 4 || got != strings.Repeat("x", maxReason-1) {
		t.Errorf("%d tries, %q", it.Int(schema.Tries), got)
	}
	setFailure(&it, 0, "")
	if it.Has(schema.Tries) || it.Has(schema.LastError) {
		t.Errorf("a failure is left: %v", it)
	}
}

// TestDecode_SaysWhatIsWrong: each unreadable part of a row has its own reason, and no other.
func TestDecode_SaysWhatIsWrong(t *testing.T) {
	good := Effect{ID: "a", Kind: "k", Created: time.Unix(1, 0).UTC(), Due: time.Unix(2, 0).UTC(), Tries: 2, Error: "no",
		Data: map[string]string{"x": "y"}}
	row := Write("t", good).Item
	if e, err := Decode(row); err != nil || e.Tries != 2 || e.Error != "no" || !e.Due.Equal(good.Due) {
		t.Errorf("decode: %+v, %v", e, err)
	}
	for name, c := range map[string]struct {
		value store.Value
		want  string
	}{
		schema.SK:          {store.S("2023#a"), "its key has no due time"},
		schema.CreatedDate: {store.S("2023"), "CreatedDate is not a timestamp"},
		schema.Kind:        {store.S(""), "Kind is missing"},
		schema.Data:        {store.S("x"), "Data is not a map"},
	} {
		bad := row.Clone()
		bad.Set(name, c.value)
		if _, err := Decode(bad); err == nil || err.Error() != "unreadable effect: "+c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestKeyOf_SpreadsOverShards: the shard depends on the id.
func TestKeyOf_SpreadsOverShards(t *testing.T) {
	seen := map[string]bool{}
	for id := range 200 {
		seen[Mail.keyOf(fmt.Sprint(id), time.Unix(0, 0)).PK] = true
	}
	if len(seen) != shards {
		t.Errorf("200 ids are in %d shards, want all %d", len(seen), shards)
	}
}
