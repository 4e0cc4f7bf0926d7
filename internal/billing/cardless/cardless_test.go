package cardless

import (
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// TestOf_Keys: a member whose name is a card number is left out, at any depth.
func TestOf_Keys(t *testing.T) {
	for _, name := range []string{"4242424242424242", "4242_4242_4242_4242", "４２４２/４２４２/４２４２/４２４２"} {
		inner := store.NewItem(store.Attribute{Name: name, Value: store.S("x")}, store.Attribute{Name: "a", Value: store.S("b")})
		v, n := Of(store.L(store.M(inner)))
		if left := v.List()[0].Map(); n != 1 || left.Str("a") != "b" || left.Str(name) != "" {
			t.Errorf("%s: %d are left out of %v", name, n, left)
		}
	}
}
