package numbering_test

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
	pricing "github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestNumbers_Invoices: with its number, a payment becomes an invoice or a receipt, for good.
func TestNumbers_Invoices(t *testing.T) {
	w := newWorld(t, inMemory)
	table, r := w.tables.RecurringPayments.Name, w.records(w.store)
	data := store.NewItem()
	for name, text := range map[string]string{"document": "invoice", "seller": "Gym GmbH", "seller-address": "Berlin", "seller-country": "DE",
		"seller-tax-id": "DE123456789", "receipt-months": "120"} {
		data.Set(name, store.S(text))
	}
	w.must(w.store.Commit(t.Context(), store.Put(table, billing.ItemAt(settings.Key, store.Attribute{Name: schema.Version, Value: store.Int(1)},
		store.Attribute{Name: schema.Data, Value: store.M(data)}))))
	x, err := pricing.Of(price, pricing.Terms{Tax: pricing.Tax{Mode: pricing.Inclusive, Rate: pricing.Whole / 5}}, 0)
	w.must(err)
	var keys []store.Key
	for _, id := range []string{"complete", "bare"} {
		a := &billing.Account{ID: id, Name: "Ada"}
		if at := &a.Details.Address; id == "complete" {
			at.Line1, at.City, at.Country = "1 Road", "London", "GB"
		}
		rec := &billing.Receipt{Name: billing.Name{Account: id, ID: "s", SKU: "gym"}, SKU: "gym", Kind: billing.Charged, Processed: w.now(),
			Amount: price, Price: &x, Charge: "ch"}
		it := rec.Item()
		keys = append(keys, billing.KeyOf(it))
		w.must(w.store.Commit(t.Context(), report.Carry(r, []store.Write{store.Put(table, a.Item()), store.Put(table, it)}, report.OfReceipt(rec), keys[len(keys)-1:], id)...))
	}
	check := func() {
		t.Helper()
		for i, key := range keys {
			it, err := w.store.Get(t.Context(), table, key)
			w.must(err)
			if it.Str(schema.Number) == "" || it.Has(schema.InvoicedTo) != (i == 0) {
				t.Errorf("%v", it)
			}
		}
	}
	w.drain()
	check()
	a, err := r.Account(t.Context(), "bare")
	w.must(err)
	at := &a.Details.Address
	at.Line1, at.City, at.Country = "1 Road", "London", "GB"
	w.must(w.store.Commit(t.Context(), store.Put(table, a.Item())))
	w.drain()
	check()
}
