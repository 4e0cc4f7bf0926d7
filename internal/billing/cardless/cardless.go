// Package cardless takes card numbers out of stored values, which other tools may have written. It
// does not write to a store.
package cardless

import (
	"strings"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// IsName reports whether the name is the model's member for a card number.
func IsName(name string) bool { return strings.EqualFold(name, schema.DefaultCard) }

// Of returns the value without its card numbers and without the model's default-card. The
// int counts the values left out. A value that is itself a card number becomes the zero Value.
func Of(v store.Value) (store.Value, int) {
	found := 0
	switch v.Kind() {
	case store.KindString, store.KindNumber, store.KindBinary:
		if secret.HasCardNumber(v.Str() + v.Num() + v.Raw()) {
			return store.Value{}, 1
		}
	case store.KindMap:
		var kept store.Item
		for _, a := range v.Map() {
			inner, n := Of(a.Value)
			isCard := a.Name == schema.PaymentMethod && secret.HasCardInMethod(a.Value.Str()+a.Value.Num())
			if isCard || IsName(a.Name) || secret.HasCardNumber(a.Name) {
				inner, n = store.Value{}, max(n, 1)
			}
			if found += n; inner.Kind() != store.KindNone {
				kept.Set(a.Name, inner)
			}
		}
		if found > 0 {
			return store.M(kept), found
		}
	case store.KindList, store.KindSet:
		var kept []store.Value
		for _, e := range append(v.List(), v.Elements()...) {
			inner, n := Of(e)
			if found += n; inner.Kind() != store.KindNone {
				kept = append(kept, inner)
			}
		}
		switch {
		case found > 0 && v.Kind() == store.KindList:
			return store.L(kept...), found
		case found > 0:
			rest, _ := store.Set(kept...) // none is the zero Value
			return rest, found
		}
	}
	return v, 0
}
