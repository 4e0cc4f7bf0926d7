package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestConnectImport: the command and the route import what runs in a Stripe account, a dry run stores nothing, and
// serve follows it from then on.
func TestConnectImport(t *testing.T) {
	c := newServeCLI(t)
	at := func(method, path, form string) map[string]any { return c.askAt("acct_shop", method, path, form) }
	price := at("POST", "/v1/prices", "unit_amount=900&currency=usd&recurring[interval]=month&product_data[name]=Course")["id"]
	subscribe := func(items string) string {
		buyer := at("POST", "/v1/customers", "email=bob@example.com&payment_method=pm_card_visa&invoice_settings[default_payment_method]=pm_card_visa")["id"]
		return at("POST", "/v1/subscriptions", fmt.Sprintf("customer=%v&items[0][price]=%v%s", buyer, price, items))["id"].(string)
	}
	first := subscribe("")
	several := subscribe(fmt.Sprint("&items[1][price]=", price))
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	plan := c.must("connect", "import", "acct_shop", "--dry-run", "--fulfil-active")
	for _, want := range []string{first, "import, fulfil", several, "it has several items", "nothing was written"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan does not say %q:\n%s", want, plan)
		}
	}
	equal(t, "purchases", len(c.list("purchase", "list", "--account", shopAccount)), 0)
	done := c.must("connect", "import", "acct_shop")
	if strings.Contains(done, first) || !strings.Contains(done, several) {
		t.Errorf("the import says\n%s", done)
	}
	again := c.object(exitDone, "connect", "import", "acct_shop", "--payments-since", "2026-01-01")
	equal(t, "again", members(again, "imported", "known", "skipped", "payments", "other_payments", "changed"),
		[]any{0.0, 1.0, 1.0, 0.0, 1.0, 0.0})
	row := again["subscriptions"].([]any)[1].(map[string]any)
	equal(t, "row", members(row, "subscription", "stripe_status", "action"), []any{first, "active", "known"})
	purchases := c.list("purchase", "list", "--account", shopAccount)
	equal(t, "purchases", len(purchases), 1)
	id := purchases[0].(map[string]any)["id"].(string)
	equal(t, "fulfilled", purchases[0].(map[string]any)["fulfilled"], true)
	equal(t, "not registered", c.run("connect", "import", "acct_none").code, exitFailed)

	v, _ := c.serve("--on-fulfil", c.job(), "--on-unsubscribe", c.job(), "--no-poll")
	key := c.object(exitDone, "key", "create", "boss", "--scope", "admin")["key"].(string)
	ask := func(account, form string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.APIBase+"/v1/merchants/"+account+"/import", strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Idempotency-Key", account+form)
		r.Header.Set("Content-Type", "application/json")
		status, text, _ := c.send(r)
		if status == http.StatusOK && !strings.Contains(text, `"known":1`) {
			t.Errorf("got %s", text)
		}
		return status
	}
	equal(t, "another account", ask("acct_none", `{}`), http.StatusNotFound)
	equal(t, "imported again", ask("acct_shop", `{}`), http.StatusOK)
	equal(t, "fulfilled", ask("acct_shop", `{"fulfil_active":true}`), http.StatusOK)
	equal(t, "fulfilled", ask("acct_shop", `{"fulfil_active":true}`), http.StatusOK)
	equal(t, "jobs", c.await(1), map[string]int{"fulfil " + id: 1})
	at("DELETE", "/v1/subscriptions/"+first, "")
	equal(t, "jobs", c.await(1), map[string]int{"unsubscribe " + id: 1})
}
