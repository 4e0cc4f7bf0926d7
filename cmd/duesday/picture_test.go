package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/test/browsertest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

const (
	picturesDir = "../../docs/pages/"
	maxPicture  = 150 << 10 // bytes
)

// TestPictures takes the README's pictures of the pages, from a demo that ends on the day of the test's clock. With
// -update it writes them to docs/pages. Else it holds that the pages are still there, and that the README shows each
// picture with a text for those who do not see it.
func TestPictures(t *testing.T) {
	soaktest.Long(t)
	c := newCLI(t)
	c.must("demo", "--accounts", "200", "--months", "3")
	c.env["DUESDAY_STORE"], c.env["DUESDAY_PROCESSOR"] = "pebble:./duesday-demo/data", "sandbox:./duesday-demo/sandbox.jsonl"
	v, _ := c.serveBy(c.clock.Now, "--pages", "127.0.0.1:0", "--customer", "127.0.0.1:0", "--mail", "mail")
	c.must("settings", "set", "merchant-name=Ada's Gym", "postal-address=12 Bridge Street, Birmingham", "public-url="+v.CustomerBase,
		"seller=Ada's Gym Ltd", "seller-address=12 Bridge Street, Birmingham", "reply-to=help@gym.example", "portal=on", "portal-cancel=on")
	dir := t.TempDir()
	if *update {
		dir = picturesDir
	}
	take := func(b *browsertest.Browser, height int, name, path string, texts ...string) {
		t.Helper()
		if status := b.Visit(path); status != 200 {
			t.Errorf("%s: status %d", path, status)
		}
		contains(t, b.Text("main"), texts...)
		b.Screenshot(filepath.Join(dir, name), height)
	}
	b := browsertest.New(t, v.PagesBase, false)
	b.Visit("/sign-in")
	b.Type("#key", c.object(exitDone, "key", "create", "ada", "--scope", "admin")["key"].(string))
	b.Enter()
	const subscription = "/accounts/1001/subscriptions/1"
	enter := func(amount string) {
		b.Type("main [name=amount]", amount)
		b.Open("main form button.main")
		b.Open("main form button.main")
	}
	b.Visit(subscription + "/change")
	enter("39.90")
	b.Open(`main a[href*="/receipts/"]`)
	b.Open(`main a[href$="/refund"]`)
	enter("4.90")
	take(b, 990, "today.png", "/", "What needs a person", "past due", "203.72 EUR", "Collected, declined and recovered, EUR")
	take(b, 900, "account.png", "/accounts/1001", "Subscriptions")
	take(b, 900, "subscription.png", subscription, "refunded 4.90 EUR", "34.90 EUR → 39.90 EUR")
	b = browsertest.New(t, v.CustomerBase, false)
	b.Visit(strings.TrimPrefix(c.object(exitDone, "account", "portal-link", "1001")["url"].(string), v.CustomerBase))
	b.Open("button")
	take(b, 900, "customer.png", "/account", "Receipts")
	readme := readPage(t, "README.md")
	for _, name := range []string{"today.png", "account.png", "subscription.png", "customer.png"} {
		file, err := os.Stat(picturesDir + name)
		if err != nil || file.Size() > maxPicture {
			t.Errorf("%s: %v, or more than %d bytes; run make pictures", name, err, maxPicture)
		}
		if !regexp.MustCompile(`!\[[^\]]{20,}\]\(docs/pages/` + name + `\)`).MatchString(readme) {
			t.Errorf("README.md does not show %s with its text", name)
		}
	}
}
