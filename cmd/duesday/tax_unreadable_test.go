package main

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestUpdateMany_Unreadable: a change of many subscriptions names each item that another tool has made unreadable,
// changes the others, and exits with 3.
func TestUpdateMany_Unreadable(t *testing.T) {
	c := newCLI(t)
	for _, name := range []string{"1/1", "2/1", "3/1", "4/1"} {
		c.create(name, "pm_card_visa", "--tax-rate", "7")
	}
	bad, account := foreign("2", "2", "2026-03-15"), store.NewItem()
	bad.Set("PaymentAmount", store.S("a dozen"))
	for _, pair := range [][2]string{{schema.PK, "ACC#3"}, {schema.SK, billing.AccountSK}, {schema.ApplicationFee, "a dozen"}} {
		account.Set(pair[0], store.S(pair[1]))
	}
	c.commit(store.Put("duesday-recurring-payments", bad), store.Put("duesday-recurring-payments", account))
	item, holder := "item ACC#2 SUB#2#SKU#999: PaymentAmount is not an amount", "subscription 3/1: account 3's "+schema.ApplicationFee

	taxes := []string{"subscription", "update", "--where", "tax-rate=7", "--tax-rate", "19"}
	equal(t, "preview", members(c.object(exitPerson, taxes...), "to_change", "changed", "already"), []any{3, 0, 0})
	r := c.run(append(taxes, "--yes")...)
	equal(t, "code", r.code, exitPerson)
	contains(t, r.errors, "not changed: "+item, "not changed: "+holder)
	contains(t, r.out, "3 subscriptions changed, not changed: 2")
	for _, name := range []string{"1/1", "2/1", "4/1"} {
		equal(t, name, c.object(exitDone, "subscription", "show", name)["tax"].(map[string]any)["rate"], "19")
	}
	r = c.run(append(taxes, "--yes")...)
	contains(t, r.out, "0 subscriptions changed, changed already: 3, not changed: 2")
	equal(t, "again", len(c.object(exitPerson, append(taxes, "--yes")...)["left"].([]any)), 2)

	for _, prices := range [][]string{{"--where", "sku=news", "--amount", "15.00"}, {"--prices", c.file("prices.csv", "sku,amount\nnews,16.00\n")}} {
		r = c.run(append(append([]string{"subscription", "update"}, prices...), "--yes")...)
		equal(t, "code", r.code, exitPerson)
		contains(t, r.errors, "not changed: "+item)
		contains(t, r.out, "4 subscriptions changed, not changed: 1") // the price of 3/1 needs nothing of its account
	}
}
