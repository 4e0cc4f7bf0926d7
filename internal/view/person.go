package view

import (
	"encoding/json"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// Export returns everything that the store has of a person. The member stored has each item as it
// is stored.
func Export(d *person.Data) Object {
	receipts := make([]Object, len(d.Receipts))
	for i, r := range d.Receipts {
		receipts[i] = Receipt(r, d.Installation)
	}
	return Object{"account", Account(d.Account), "subscriptions", List(d.Subscriptions, Subscription), "periods", List(d.Periods, Period),
		"receipts", receipts, "refunds", List(d.Reversals, Reversal), "history", List(d.History, History),
		"mail", List(d.Mail, func(m *maillog.Mail) Object {
			return Object{"id", m.ID, "kind", m.Kind, "created_at?", m.Created, "due_at?", m.Due, "data", m.Data, "error?", m.Error, "dead?", m.Dead,
				"state", m.State, "ended_at?", m.Ended, "answer?", m.Answer}
		}),
		"requests", List(d.Requests, func(r person.Request) Object {
			return Object{"object", r.Object, "actor?", r.Actor, "created_at?", r.Created, "note?", r.Note}
		}),
		"purchases", List(d.Purchases, Purchase),
		"events", List(d.Events, func(e *tracking.Event) Object { return Object{"event", Event(e), "body?", string(e.Body)} }),
		"stored", List(d.Items, func(it person.Item) Object {
			return Object{"table", it.Table.Name, "item", attributes(it.Item)}
		})}
}

// Erasure returns what was erased, or what would be with dry, and what keeps data about the person.
func Erasure(x *person.Erasure, dry bool) Object {
	out := []Object{{"what", "backups", "detail", "a restored backup has the data until store restore or reconcile erases it again"},
		{"what", "deliveries", "detail", "receivers of webhooks and mail have what was sent to them"},
		{"what", "exports", "detail", "files that were exported or imported before"}}
	for _, c := range x.Customers {
		at, id, _ := strings.Cut(c, "/")
		out = append(out, Object{"what", "customer", "id", id, "stripe_account?", at, "detail",
			"delete the customer at Stripe, in the Dashboard or with DELETE /v1/customers/" + id})
	}
	return Object{"account", x.Account.ID, "erased_on?", x.Account.Erased(), "dry_run?", dry, "changed", x.Changed,
		"invoices", List(x.Invoices, func(r *billing.Receipt) Object {
			return Object{"number?", r.InSeries, "processed_at", r.Processed, "expires_at?", r.Expires}
		}), "not_reached", out}
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
