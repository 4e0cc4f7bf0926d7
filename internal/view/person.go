package view

import (
	"encoding/json"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// Export returns everything that the store has of a person. The member stored has each item as it is stored.
func Export(d *person.Data) Object {
	receipts := make([]Object, len(d.Receipts))
	for i, r := range d.Receipts {
		receipts[i] = Receipt(r, d.Installation)
	}
	return Object{"account", Account(d.Account), "subscriptions", List(d.Subscriptions, Subscription), "periods", List(d.Periods, Period),
		"receipts", receipts, "refunds", List(d.Reversals, Reversal), "history", List(d.History, History),
		"mail", List(d.Mail, func(e outbox.Effect) Object {
			return Object{"id", e.ID, "kind", e.Kind, "created_at?", e.Created, "due_at?", e.Due, "data", e.Data, "error?", e.Error, "dead?", e.Dead}
		}),
		"requests", List(d.Requests, func(r person.Request) Object {
			return Object{"object", r.Object, "actor?", r.Actor, "created_at?", r.Created, "note?", r.Note}
		}),
		"purchases", List(d.Purchases, Purchase),
		"events", List(d.Events, func(e *tracking.Event) Object { return Object{"event", Event(e), "body?", string(e.Body)} }),
		"stored", List(d.Items, func(it person.Item) Object {
			return Object{"table", it.Table, "item", attributes(it.Item)}
		})}
}

// attributes returns an item or a map as it is stored. Binary values are in base64.
func attributes(it store.Item) map[string]any {
	all := make(map[string]any, len(it))
	for _, a := range it {
		all[a.Name] = stored(a.Value)
	}
	return all
}

func stored(v store.Value) any {
	switch v.Kind() {
	case store.KindString:
		return v.Str()
	case store.KindNumber:
		return json.Number(v.Num())
	case store.KindBool:
		return v.Bool()
	case store.KindBinary:
		return v.Bytes()
	case store.KindMap:
		return attributes(v.Map())
	}
	list := []any{}
	for _, e := range append(v.List(), v.Elements()...) {
		list = append(list, stored(e))
	}
	return list
}
