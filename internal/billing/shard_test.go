package billing

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestReshard: resharding is what a store with that number would have written, whatever
// number it had before; other items stay as they are.
func TestReshard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.IntRange(1, MaxShards)
		from, to := draw.Draw(t, "from"), draw.Draw(t, "to")
		it := store.NewItem(
			store.Attribute{Name: schema.PK, Value: store.S("ACC#" + rapid.StringMatching(`[a-z0-9]{1,9}`).Draw(t, "account"))},
			store.Attribute{Name: schema.SK, Value: store.S("SUB#s#SKU#k")},
			store.Attribute{Name: schema.NextPaymentDate, Value: store.S("2026-02-28")})
		there := Reshard(Reshard(it, from), to)
		if direct := Reshard(it, to); !there.Equal(direct) {
			t.Fatalf("by way of %d shards: %v; at once: %v", from, there, direct)
		}
		if back := Reshard(there, 1); !back.Equal(it) {
			t.Fatalf("back with one shard: %v, want %v", back, it)
		}
		other := store.NewItem(store.Attribute{Name: schema.PK, Value: store.S("META")},
			store.Attribute{Name: schema.NextPaymentDate, Value: store.S("2026-02-28")})
		if !Reshard(other, to).Equal(other) {
			t.Fatal("another item was changed")
		}
	})
}
