package billing

import (
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An item under construction. Its methods leave out attributes with their default: bytes are time.
type item struct{ store.Item }

// itemAt returns an item with its key.
func itemAt(k store.Key, attributes ...store.Attribute) item {
	it := item{store.NewItem(attributes...)}
	it.Set(schema.PK, store.S(k.PK))
	it.Set(schema.SK, store.S(k.SK))
	return it
}

func (it *item) text(name, text string) {
	if text != "" {
		it.Set(name, store.S(text))
	}
}

func (it *item) date(name string, d civil.Date) {
	if !d.IsZero() {
		it.Set(name, store.S(d.String()))
	}
}

func (it *item) stamp(name string, t time.Time) {
	if !t.IsZero() {
		it.Set(name, store.S(Stamp(t)))
	}
}

func (it *item) count(name string, n, usual int) {
	if n != usual {
		it.Set(name, store.Int(int64(n)))
	}
}

func (it *item) flag(name string, on bool) {
	if on {
		it.Set(name, store.Bool(true))
	}
}
