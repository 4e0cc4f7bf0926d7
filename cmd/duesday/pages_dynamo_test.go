package main

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/test/dynamotest"
)

// TestPages_OnDynamoDB: over DynamoDB Local, every kind of page that a link leads to is there, of billing and of
// sales in Stripe, and so is the customer's page.
func TestPages_OnDynamoDB(t *testing.T) {
	c := newServeCLI(t)
	c.env["DUESDAY_PROCESSOR"] = "sandbox:" + c.path("sandbox.jsonl")
	c.env["DUESDAY_STORE"] = "dynamodb:?" + url.Values{"prefix": {dynamotest.Prefix(t)}, "endpoint": {dynamotest.Endpoint(t)},
		"region": {dynamotest.Region}}.Encode()
	c.must("store", "create")
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n2,b@example.com,1,gym,9.00,EUR,15,pm_card_visa_chargeDeclined\n"))
	c.clock.Set(c.clock.Now().AddDate(0, 1, 0)) // both are due
	c.must("run", "payments", "--mail", "mail")
	c.must("endpoint", "create", "https://shop.example.com/hook")
	v, _ := c.serveBy(c.clock.Now, "--no-poll", "--pages", "127.0.0.1:0", "--customer", "127.0.0.1:0", "--mail", "mail", "--on-fulfil", c.job())
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	c.must("purchase", "create", "--account", shopAccount, "--kind", "product", "--key", "1", "--amount", "12.99", "--currency", "USD",
		"--email", "ada@example.com", "--payment-method", "pm_card_visa")
	c.await(1)
	c.must("settings", "set", "portal=on", "seller=Gym", "seller-address=Berlin", "public-url="+v.CustomerBase)

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Jar: jar}
	read := func(r *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v: %.500s", r.Request.URL, r.Status, err, text)
		}
		return string(text)
	}
	read(client.PostForm(v.PagesBase+"/sign-in", url.Values{"key": {c.object(exitDone, "key", "create", "anna", "--scope", "admin")["key"].(string)}}))
	seen := map[string]string{}
	for next := []string{"/", "/accounts/1", "/accounts/1/subscriptions/1", "/accounts/1/subscriptions/1/periods/1", "/search?q=1", "/purchases?merchant=" + shopAccount, "/payments?merchant=" + shopAccount}; len(next) > 0; next = next[1:] {
		if kind := shape(next[0]); seen[kind] == "" {
			seen[kind] = read(client.Get(v.PagesBase + next[0]))
			for _, m := range regexp.MustCompile(`href="(/[^"#]*)"`).FindAllStringSubmatch(seen[kind], -1) {
				next = append(next, html.UnescapeString(m[1]))
			}
		}
	}
	const sub = "/accounts/*/subscriptions/*"
	for kind, want := range map[string]string{"/": "12.99 USD", "/runs/*": "completed", "/accounts/*": "a@example.com", sub: "12.99 USD", sub + "/periods/*": "12.99 USD",
		"/accounts/*/receipts/*": "12.99 USD", "/purchases/*": "12.99 USD", "/payments/*/*": "12.99 USD", "/search" + "q": "1", "/mails": "receipt", "/merchants": "acct_shop",
		"/events": "", "/endpoints": "shop.example.com", "/deliveries": "", "/installation": "", sub + "/cancel": ""} {
		if text := seen[kind]; text == "" || !strings.Contains(text, want) {
			t.Errorf("%s does not have %q: %.2000s", kind, want, text)
		}
	}
	link := fmt.Sprint(c.object(exitDone, "account", "portal-link", "1")["url"])
	read(client.Get(link))
	if text := read(client.PostForm(link, url.Values{"go": {""}})); !strings.Contains(text, "12.99") || !strings.Contains(text, "Gym") {
		t.Errorf("the customer's page: %s", text)
	}
}
