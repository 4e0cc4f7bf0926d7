package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReceipt_Page: a customer opens the link in the mail, which shows the page of receipt show and of the API, before
// and after a refund.
func TestReceipt_Page(t *testing.T) {
	c := &apiCLI{cli: newCLI(t)}
	c.must("account", "create", "1001", "--email", "ada@example.com", "--name", "Ada <Lovelace>", "--locale", "de", "--city", "Berlin")
	c.must("settings", "set", "seller=Gym Ltd", "seller-address=1 Road", "public-url=http://localhost:1")
	c.must("subscription", "create", "1001/1", "--sku", "gold", "--amount", "12.99", "--currency", "EUR", "--payment-day", "15",
		"--payment-method", "pm_card_visa", "--next-payment-date", today)
	c.must("run", "payments")
	link := regexp.MustCompile(`http://localhost:1(/r/[A-Za-z0-9_-]+)`)
	var sent string
	mails, err := filepath.Glob(c.path("duesday-mail/*/receipt-*.eml"))
	if err != nil || len(mails) != 1 {
		t.Fatalf("%q, %v", mails, err)
	}
	for _, name := range mails {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.ReplaceAll(string(text), "=\r\n", "") // soft line breaks
		if found := link.FindStringSubmatch(plain); found != nil {
			sent = found[1]
		}
		contains(t, plain, "Beleg ansehen oder drucken:")
	}
	shown := c.object(exitDone, "receipt", "show", "R-2026-000001")
	equal(t, "link", shown["link"], any("http://localhost:1"+sent))
	equal(t, "by its id", c.object(exitDone, "receipt", "show", shown["id"].(string), "--account", "1001")["number"], any("R-2026-000001"))
	if r := c.run("receipt", "show", "R-2026-000002"); r.code == exitDone || !strings.Contains(r.errors, "there is no receipt R-2026-000002") {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	if r := c.run("receipt", "show", "R-2026-000001", "--account", "1002"); r.code == exitDone {
		t.Error("another account has it")
	}
	page := c.must("receipt", "show", "R-2026-000001", "--html")
	contains(t, page, "<h1>Beleg</h1>", "Ada &lt;Lovelace&gt;", "R-2026-000001", "12,99")

	v, stop := c.serveBy(c.clock.Now, "--customer", "127.0.0.1:0")
	c.base, c.key = v.APIBase, c.object(exitDone, "key", "create", "shop", "--scope", "charge")["key"].(string)
	get := func(at, path, host, accept string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Accept", accept)
		r.Header.Set("Authorization", "Bearer "+c.key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	const browser, host = "text/html,application/xhtml+xml,*/*;q=0.8", "localhost:1"
	status, text := get(v.CustomerBase, sent, host, browser)
	equal(t, "customer", []any{status, text}, []any{200, page})
	status, text = get(c.base, "/v1/receipts/R-2026-000001?account=1001", "", browser)
	equal(t, "API", []any{status, text}, []any{200, page})
	if _, text := get(c.base, "/v1/receipts/R-2026-000001?account=1001", "", "application/json, text/html"); !strings.HasPrefix(text, "{") {
		t.Error(text)
	}
	for _, x := range []struct{ at, path, host string }{{v.CustomerBase, "/v1/receipts?account=1001", host}, {v.CustomerBase, "/metrics", host},
		{v.CustomerBase, sent, "127.0.0.1"}, {v.CustomerBase, sent + "A", host}, {c.base, sent, host}, {v.Base, sent, host}} {
		if status, text := get(x.at, x.path, x.host, browser); status != http.StatusNotFound || strings.Contains(text, "12,99") {
			t.Errorf("%v: %d %s", x, status, text)
		}
	}
	status, _, _ = c.call(http.MethodPost, "/v1/receipts/R-2026-000001/refunds", "r", `{"account":"1001"}`)
	equal(t, "refund", status, http.StatusCreated)
	_, text = get(v.CustomerBase, sent, host, browser)
	contains(t, text, `<p class="stamp">Erstattet</p>`)
	stop()
	c.must("settings", "set", "receipt-links=2")
	if again := c.object(exitDone, "receipt", "show", "R-2026-000001")["link"]; again == any("http://localhost:1"+sent) || again == nil {
		t.Errorf("after the rotation: %v", again)
	}
}

// TestReceipt_NumbersOnDynamoDB: a command gives numbers although one that ended moments before had the lease on them.
// If it did not, its mail would wait for the next command, which may be that of the next day.
func TestReceipt_NumbersOnDynamoDB(t *testing.T) {
	at, _ := onDynamo(t)
	c := newCLI(t)
	c.env["DUESDAY_STORE"] = at
	c.must("store", "create", "--shards", "1")
	c.create("1/1", "pm_card_visa", "--next-payment-date", today)
	c.must("run", "payments")
	c.must("receipt", "refund", "1/1", "--period", "0")
	c.must("outbox", "send")
	for name, number := range map[string]string{"receipt-*.eml": "R-2026-000001", "refund-*.eml": "R-2026-000002"} {
		mails, err := filepath.Glob(c.path("duesday-mail/*/" + name))
		if err != nil || len(mails) != 1 {
			t.Fatalf("%s: %q, %v", name, mails, err)
		}
		contains(t, c.read(mails[0]), number)
	}
}
