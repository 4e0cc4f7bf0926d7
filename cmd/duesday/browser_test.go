package main

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/test/browsertest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// servePages runs duesday serve with the pages until the test ends, and returns the base of the pages.
func (c *cli) servePages(args ...string) string {
	c.t.Helper()
	v, _ := c.serveBy(c.clock.Now, append([]string{"--pages", "127.0.0.1:0", "--mail", "mail"}, args...)...)
	return v.PagesBase
}

// An operator is a person with a session in a browser.
type operator struct {
	*browsertest.Browser
	t     *testing.T
	forms map[string]bool // kinds of pages that walk has found with a form that changes something
}

// operator signs somebody in: with the link of duesday open in a browser without script, and else with an API key.
func (c *cli) operator(base, scope string, noScript bool) *operator {
	c.t.Helper()
	o := &operator{browsertest.New(c.t, base, noScript), c.t, map[string]bool{}}
	if noScript {
		link, err := url.Parse(c.object(exitDone, "open", "--at", base)["url"].(string))
		if err != nil {
			c.t.Fatal(err)
		}
		o.Visit(link.RequestURI())
		o.Open("button.main")
	} else {
		o.Visit("/sign-in")
		o.Type("#key", c.object(exitDone, "key", "create", "browser", "--scope", scope)["key"].(string))
		o.Enter()
	}
	if o.Path() != "/" {
		c.t.Fatalf("signing in leads to %s", o.Path())
	}
	return o
}

// links returns the paths of the links to pages of the same origin.
func (o *operator) links() (all []string) {
	o.t.Helper()
	for _, x := range o.Run(`return [...document.querySelectorAll("a[href]:not([download])")]
  .filter(a => a.origin === location.origin && !a.getAttribute("href").startsWith("#")).map(a => a.pathname + a.search)`).([]any) {
		all = append(all, x.(string))
	}
	return all
}

// shape returns the path without the ids and the values in it.
func shape(path string) string {
	path, query, _ := strings.Cut(path, "?")
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i := range parts {
		if i%2 == 1 && parts[0] != "installation" || i > 0 && parts[0] == "payments" {
			parts[i] = "*"
		}
	}
	q, _ := url.ParseQuery(query)
	return "/" + strings.Join(parts, "/") + strings.Join(slices.Sorted(maps.Keys(q)), "&")
}

// looks are how a page is looked at. Each page has the first and the last one, and in a soak all.
var looks = []struct{ dark, phone bool }{{false, false}, {false, true}, {true, false}, {true, true}}

// inspect opens the page, and returns what is wrong with it.
func (o *operator) inspect(path string) (wrong []string) {
	o.t.Helper()
	if status := o.Visit(path); status != 200 {
		wrong = append(wrong, fmt.Sprint("status ", status))
	}
	wrong = append(append(wrong, o.Troubles()...), o.Unreached()...)
	for i, look := range looks {
		if !soaktest.On() && i%3 > 0 {
			continue
		}
		o.Look(look.dark, look.phone)
		for _, barrier := range o.Barriers() {
			wrong = append(wrong, fmt.Sprintf("dark %t, phone %t: %s", look.dark, look.phone, barrier))
		}
		if wide := o.Overflow(); wide != "" {
			wrong = append(wrong, fmt.Sprintf("dark %t, phone %t: scrolls sideways: %s", look.dark, look.phone, wide))
		}
	}
	o.Look(false, false)
	return append(wrong, o.Troubles()...)
}

// walk inspects the pages and each kind of page that links lead to from there, and returns the paths by their shapes.
// It reports everything that is wrong.
func (o *operator) walk(paths ...string) map[string]string {
	o.t.Helper()
	seen := map[string]string{}
	for given := len(paths); len(paths) > 0; given-- {
		path := paths[0]
		paths = paths[1:]
		if seen[shape(path)] != "" && given <= 0 {
			continue
		}
		seen[shape(path)] = path
		if wrong := o.inspect(path); len(wrong) > 0 {
			o.t.Errorf("%s:\n  %s", path, strings.Join(wrong, "\n  "))
		}
		paths = append(paths, o.links()...)
		if o.Run(`return document.querySelector("main form[method=post]") !== null`).(bool) {
			o.forms[shape(path)] = true
		}
	}
	return seen
}

// bookOfStatuses makes a subscription in each state, and returns the pages of the subscriptions and of the periods
// whose states differ. Each account is named after its state.
func (c *cli) bookOfStatuses() (paths []string) {
	c.t.Helper()
	var book strings.Builder
	book.WriteString(header)
	for _, row := range [][2]string{{"active", "pm_card_visa"}, {"paused", "pm_card_visa"}, {"canceled", "pm_card_visa"}, {"ending", "pm_card_visa"},
		{"past_due", "pm_card_visa_chargeDeclinedLostCard"}, {"retrying", "pm_sandbox_flaky"}, {"waiting", "pm_card_authenticationRequired"}, {"parked", ""}} {
		book.WriteString(fmt.Sprintf("%s,%[1]s@example.com,1,news,12.99,USD,15,%s\n", row[0], row[1]))
	}
	c.must("import", c.file("statuses.csv", book.String()))
	if r := c.run("run", "payments"); r.code != exitPerson {
		c.t.Fatal(r)
	}
	c.must("subscription", "pause", "paused/1")
	c.must("subscription", "cancel", "canceled/1")
	c.must("subscription", "cancel", "ending/1", "--at-period-end")
	for account, want := range map[string]string{"active": "active", "paused": "paused", "canceled": "canceled", "ending": "active", "past_due": "past_due",
		"parked": "parked", "retrying": "active", "waiting": "active"} {
		v := c.object(exitDone, "subscription", "show", account+"/1")
		equal(c.t, account, v["status"], want)
		open, _ := v["open"].(map[string]any)
		equal(c.t, account, open != nil, slices.Contains([]string{"retrying", "waiting"}, account))
		path := "/accounts/" + account + "/subscriptions/1"
		paths = append(paths, path, path+"/periods/0")
	}
	slices.Sort(paths)
	return paths
}

// TestBrowser_Pages: Chromium shows every page of the demo's book and of sales in Stripe, light and dark, in a window
// and on a phone, without a complaint. The Tab key reaches each link and button, and axe finds no serious barrier.
func TestBrowser_Pages(t *testing.T) {
	soaktest.Long(t)
	c := newServeCLI(t)
	delete(c.env, "DUESDAY_PROCESSOR")
	accounts := soaktest.Share(100, 500)
	if soaktest.On() {
		accounts = 8000 // have 10,028 subscriptions
	}
	c.must("demo", "--accounts", fmt.Sprint(accounts), "--months", "1")
	c.env["DUESDAY_STORE"], c.env["DUESDAY_PROCESSOR"] = "pebble:./duesday-demo/data", "sandbox:./duesday-demo/sandbox.jsonl"
	v, _ := c.serveBy(c.clock.Now, "--pages", "127.0.0.1:0", "--mail", "mail", "--no-poll", "--on-fulfil", c.job())
	base := v.PagesBase
	c.to.Store(&v.Base) // so that webhooks arrive
	price := c.askAt("acct_shop", "POST", "/v1/prices", "unit_amount=900&currency=usd&recurring[interval]=month&product_data[name]=Gym")["id"].(string)
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "product", "--key", "1", "--amount", "12.99", "--currency", "USD",
		"--email", "ada@example.com", "--payment-method", "pm_card_visa")
	c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "subscription", "--key", "2", "--price", price,
		"--email", "ann@example.com", "--payment-method", "pm_card_visa")
	c.await(2)
	c.flush()
	c.must("endpoint", "create", "https://shop.example.com/hook")
	statuses := c.bookOfStatuses()
	o := c.operator(base, "admin", false)
	receipt := ""
	for account := 1001; receipt == ""; account++ {
		for _, r := range c.list("receipt", "list", fmt.Sprint(account)) {
			receipt = fmt.Sprintf("/accounts/%d/receipts/%s", account, r.(map[string]any)["id"])
		}
	}
	seen := o.walk(append(statuses, "/", receipt, "/search?q=1001", "/search?q=nobody@example.com", "/sign-in", "/sign-in?link=dl_0", "/purchases?merchant="+shopAccount, "/payments?merchant="+shopAccount,
		"/subscriptions?status=past_due", "/accounts?email=nobody@example.com", "/runs?kind=none")...)
	t.Logf("%d kinds of pages: %s", len(seen), slices.Sorted(maps.Keys(seen)))
	const subscription = "/accounts/*/subscriptions/*"
	for _, kind := range []string{"/accounts", "/accounts/*", "/accounts/*/receipts/*", "/deliveries", "/endpoints", "/endpoints/*", "/events", "/events/*", "/merchants", "/merchants/*", "/payments", "/payments/*/*",
		"/purchases", "/purchases/*", "/purchases/*/subscriptions/*", "/runs", "/runs/*", "/installation", "/subscriptions", subscription, subscription + "/periods/*",
		subscription + "/cancel", subscription + "/charge", subscription + "/resume", subscription + "/skip", subscription + "/pause"} {
		if seen[kind] == "" {
			t.Errorf("no link leads to %s", kind)
		}
	}
	for kind := range o.forms {
		known := func(a browserAction) bool { return strings.HasSuffix(kind, "/"+a.name) }
		if !slices.ContainsFunc(browserActions, known) && !strings.HasPrefix(kind, "/sign-in") {
			t.Errorf("no row of browserActions does %s", kind)
		}
	}
	missing := slices.DeleteFunc(o.inspect("/no/such/page"), func(text string) bool { return strings.Contains(text, "404") })
	if len(missing) > 0 {
		t.Errorf("a page that is not there:\n  %s", strings.Join(missing, "\n  "))
	}
}
