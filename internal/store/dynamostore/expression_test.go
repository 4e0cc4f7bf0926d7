package dynamostore

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

// TestExpressions_UseWhatTheyDeclare: DynamoDB refuses a placeholder that no text uses,
// one that is not declared, and texts of more than 4 KB.
func TestExpressions_UseWhatTheyDeclare(t *testing.T) {
	placeholder := func(r rune) bool {
		return !(r == '#' || r == ':' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r == '_')
	}
	conditions := rapid.OneOf(
		rapid.Just(store.Absent()),
		rapid.Map(rapid.SampledFrom([]string{"a", "b", "id", "ttl"}), store.AttributeAbsent),
		rapid.Map(rapid.SampledFrom([]string{"a", "b", "id", "ttl"}),
			func(n string) store.Condition { return store.AttributeEquals(n, store.Int(1)) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		table := store.Table{Name: "t", PartitionKey: "id", TTL: rapid.SampledFrom([]string{"", "ttl"}).Draw(t, "ttl")}
		w := store.Write{Op: rapid.SampledFrom([]store.Op{store.OpPut, store.OpUpdate, store.OpDelete,
			store.OpCheck}).Draw(t, "op"), Table: "t"}
		w.If = rapid.SliceOfN(conditions, 0, store.MaxConditions).Draw(t, "conditions")
		w.Set = rapid.SampledFrom([]store.Item{nil, store.NewItem(store.Attribute{Name: "a",
			Value: store.Int(2)})}).Draw(t, "set")
		w.Remove = rapid.SampledFrom([][]string{nil, {"b"}, {"b", "c"}}).Draw(t, "remove")
		var e expression
		var texts []string
		if c := e.condition(&w, &table, 1); c != nil {
			texts = append(texts, *c)
		}
		if w.Op == store.OpUpdate {
			texts = append(texts, *e.update(&w, rapid.SampledFrom([][]byte{nil, []byte("token")}).Draw(t, "token")))
		}
		used := map[string]bool{}
		for _, text := range texts {
			if len(text) > 4<<10 {
				t.Fatalf("a text of %d bytes", len(text))
			}
			for _, word := range strings.FieldsFunc(text, placeholder) {
				if word[0] == '#' || word[0] == ':' {
					used[word] = true
				}
			}
		}
		declared := append(slices.Collect(maps.Keys(e.names)), slices.Collect(maps.Keys(e.values))...)
		for _, p := range declared {
			if !used[p] {
				t.Fatalf("%s is declared and not used in %q", p, texts)
			}
		}
		if len(used) != len(declared) {
			t.Fatalf("%d are used, %d declared: %q", len(used), len(declared), texts)
		}
	})
}

// TestExpressions_Largest writes the largest update there may be.
func TestExpressions_Largest(t *testing.T) {
	w := store.Write{Op: store.OpUpdate, Table: "t"}
	for i := range store.MaxUpdateAttributes {
		w.Set.Set(strings.Repeat("n", i+1), store.Int(1))
	}
	for i := range store.MaxConditions {
		w.If = append(w.If, store.AttributeAbsent(strings.Repeat("m", i+1)))
	}
	var e expression
	condition := e.condition(&w, &store.Table{Name: "t", PartitionKey: "id", TTL: "ttl"}, 1)
	update := e.update(&w, []byte("token"))
	if len(*condition) > 4<<10 || len(*update) > 4<<10 {
		t.Errorf("a condition of %d and an update of %d bytes, at most 4096", len(*condition), len(*update))
	}
}
