package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// hostileText leaves an attribute and an element, runs script in several ways, and then turns the direction of what
// follows.
const hostileText = `"><script>window.harmed=1</script><img src=x onerror="window.harmed=1">{{7*7}}</dd>` + "\u202e\u2067abc\u200f"

// harm returns what hostile texts have done to the page.
func (o *operator) harm() (all []string) {
	o.t.Helper()
	for _, x := range o.Run(`const wrong = [];
if (window.harmed) wrong.push("a script ran");
if (document.querySelectorAll("img, script:not([src])").length > 0) wrong.push("a text became an element");
if (document.querySelectorAll("main").length !== 1 || document.querySelector("main").parentElement !== document.body) wrong.push("the page is broken");
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const node = texts.currentNode;
  if (/[\u202a-\u202e\u2066-\u2069]/.test(node.data) && !node.parentElement.closest("[dir=auto], bdi, code, title")) {
    wrong.push("a text turns its neighbours: " + node.parentElement.outerHTML.slice(0, 150));
  }
}
return wrong;`).([]any) {
		all = append(all, x.(string))
	}
	return all
}

// TestBrowser_Hostile: names, products, notes and addresses that look like HTML, turn the direction of text, or have
// 10,000 characters are shown as texts. No page runs them, is broken by them or scrolls sideways.
func TestBrowser_Hostile(t *testing.T) {
	soaktest.Long(t)
	c := newCLI(t)
	c.must("store", "create")
	v, _ := c.serveBy(c.clock.Now, "--pages", "127.0.0.1:0", "--mail", "mail")
	shop := &apiCLI{cli: c, base: v.APIBase, key: c.object(exitDone, "key", "create", "shop", "--scope", "admin")["key"].(string)}
	post := func(path string, body map[string]any) {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if status, _, got := shop.call(http.MethodPost, path, fmt.Sprint(path, body["id"]), string(text)); status >= 300 {
			t.Errorf("%s: %d %v", path, status, got)
		}
	}
	post("/v1/accounts", map[string]any{"id": "a", "email": "a@example.com", "name": hostileText, "company": hostileText})
	post("/v1/accounts/a/subscriptions", map[string]any{"id": "s", "sku": "gym", "amount": 1299, "currency": "EUR", "next_payment_date": today,
		"payment_day": 15, "payment_method": "pm_card_visa", "address": hostileText})
	post("/v1/accounts/a/subscriptions/s/receipts", map[string]any{"amount": 1299, "currency": "EUR", "note": hostileText})
	if r := c.run("charging", "off", "--reason", hostileText); r.code != exitDone {
		t.Error(r.errors)
	}
	if r := c.run("settings", "set", "product.gym="+hostileText); r.code != exitDone {
		t.Error(r.errors)
	}
	post("/v1/accounts", map[string]any{"id": "long", "email": "b@example.com", "name": "Anna"})
	long := strings.Repeat("W", 10_000)
	c.commit(store.Update("duesday-recurring-payments", billing.AccountKey("long"),
		store.NewItem(store.Attribute{Name: schema.Name, Value: store.S(long)}), nil))
	o := c.operator(v.PagesBase, "admin", false)
	const subscription = "/accounts/a/subscriptions/s"
	for _, path := range []string{"/", "/installation", "/accounts", "/subscriptions", "/accounts/a", subscription, subscription + "/periods/0",
		subscription + "/charge", subscription + "/receipts", "/accounts/long", "/accounts/long/edit",
		"/accounts?email=" + url.QueryEscape(hostileText), "/accounts?email=" + long[:5000], "/sign-in?next=" + url.QueryEscape(hostileText)} {
		o.Look(false, true)
		status := o.Visit(path)
		wrong := append(o.Troubles(), o.harm()...)
		if wide := o.Overflow(); wide != "" {
			wrong = append(wrong, "scrolls sideways: "+wide)
		}
		if status != http.StatusOK || len(wrong) > 0 {
			t.Errorf("%.100s: status %d\n  %s", path, status, strings.Join(wrong, "\n  "))
		}
	}
	for _, path := range []string{"/installation", "/accounts/a", subscription} {
		o.Visit(path)
		contains(t, o.Text("main"), strings.TrimRight(hostileText, "\u200f"))
	}
	o.Run(`document.querySelector("main").append(document.createElement("img")); document.body.append("\u202e"); window.harmed = true`)
	if planted := o.harm(); len(planted) != 3 {
		t.Errorf("of three planted harms, these are found: %q", planted)
	}
	for i, text := range []string{hostileText, long} {
		o.Visit(subscription + "/receipts")
		o.Run(`document.querySelector("main [name=note]").value = arguments[0]`, text)
		o.Type("main [name=amount]", "12.99")
		o.Open("main form button.main")
		if wrong := o.harm(); len(wrong) > 0 || o.Overflow() != "" {
			t.Errorf("form %d: %s %s", i, wrong, o.Overflow())
		}
	}
}
