package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/browsertest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// A browserAction is an action of a page. {S} is a subscription of its own, {A} is the account of it, and {E} is the endpoint.
type browserAction struct {
	name   string
	before []string // command
	fails  bool     // a message to the endpoint, before that
	taken  bool     // Stripe runs the subscription {T} of the customer {C}
	path   string   // of the page, or "" for the subscription's
	via    []string // links from there to the page
	fields map[string]string
	show   []string // command whose JSON then has the text want, or nil for the page after the action
	want   string
}

var showSubscription, showAccount = []string{"subscription", "show", "{S}"}, []string{"account", "show", "{A}"}

// browserActions has each action of the pages.
var browserActions = []browserAction{
	{name: "pause", show: showSubscription, want: `"status":"paused"`},
	{name: "resume", before: []string{"subscription", "pause", "{S}"}, show: showSubscription, want: `"status":"active"`},
	{name: "cancel", show: showSubscription, want: `"status":"canceled"`},
	{name: "cancel", fields: map[string]string{"at_period_end": "yes"}, show: showSubscription, want: `"cancel_at_period_end":true`},
	{name: "skip", fields: map[string]string{"until": "03162026"}, show: showSubscription, want: `"due_date":"2026-04-15"`},
	{name: "charge", show: showSubscription, want: `"paid_periods":1`},
	{name: "change", fields: map[string]string{"sku": "gold", "amount": "20", "payment_day": "20"}, show: showSubscription, want: `"sku":"gold"`},
	{name: "upgrade", before: []string{"run", "payments"}, fields: map[string]string{"sku": "gold", "amount": "20.00"},
		show: showSubscription, want: `"paid_periods":2`},
	{name: "receipts", fields: map[string]string{"amount": "12.99", "note": `"><script>alert(1)</script>`}, show: []string{"receipt", "list", "{A}"},
		want: `"kind":"external"`},
	{name: "refund", before: []string{"run", "payments"}, path: "/accounts/{A}", via: []string{`main td a[href*="/receipts/"]`},
		fields: map[string]string{"amount": "2.99", "reason": "duplicate"}, show: []string{"receipt", "list", "{A}"}, want: `"refunded":299`},
	{name: "edit", path: "/accounts/{A}", fields: map[string]string{"name": "Anna", "time_zone": "Europe/Berlin"}, show: showAccount, want: `"name":"Anna"`},
	{name: "card-link", path: "/accounts/{A}", want: "Send it to the customer"},
	{name: "portal-link", before: []string{"settings", "set", "public-url=https://pay.example.com", "seller=Gym", "seller-address=Berlin", "portal=on"},
		path: "/accounts/{A}", want: "https://pay.example.com"},
	{name: "replay", path: "/events?status=quarantined", via: []string{`main td a[href*="/events/"]`}, want: "quarantined"}, // until its account is registered
	{name: "resume", before: []string{"endpoint", "update", "{E}", "--pause"}, path: "/endpoints/{E}", show: []string{"endpoint", "list"}, want: `"id":"{E}","url"`},
	{name: "replay", fails: true, path: "/deliveries?state=failed&endpoint={E}", via: []string{`main td a[href*="/deliveries/"]`}, want: "waiting\ncreated at"},
	{name: "replay", fails: true, path: "/endpoints/{E}", show: []string{"delivery", "list", "--state", "failed"}, want: "[]"},
	{name: "payments", path: "/runs", show: []string{"run", "list"}, want: `"kind":"payments"`},
	{name: "reminders", path: "/runs", fields: map[string]string{"date": "03162026"}, show: []string{"run", "list"}, want: `"kind":"reminders"`},
	{name: "start", taken: true, path: "/takeovers/{T}", show: []string{"subscription", "show", "{C}/{T}"}, want: `"stage":"ending"`},
	{name: "undo_takeover", taken: true, before: []string{"takeover", "start", "--where", "subscription={T}"}, path: "/accounts/{C}/subscriptions/{T}",
		show: []string{"subscription", "show", "{C}/{T}"}, want: `"stage":"undone"`},
	{name: "charging-off", path: "/installation", fields: map[string]string{"reason": "holiday"}, want: "off holiday"},
	{name: "charging-on", before: []string{"charging", "off", "--reason", "holiday"}, path: "/installation", want: "Turn charging off"},
}

// tabTo presses Tab until the element has the focus.
func (o *operator) tabTo(selector string) {
	o.t.Helper()
	for range 100 {
		o.Press(browsertest.Tab)
		if o.Run(`return document.activeElement.matches(arguments[0])`, selector).(bool) {
			return
		}
	}
	o.t.Fatalf("Tab does not reach %s on %s", selector, o.Path())
}

// press opens the page of the link or button, by the keyboard alone or with a mouse.
func (o *operator) press(keyboard bool, selector string) {
	o.t.Helper()
	if !keyboard {
		o.Open(selector)
		return
	}
	o.tabTo(selector)
	o.Enter()
}

// fill fills in the field of the form.
func (o *operator) fill(keyboard bool, field, value string) {
	o.t.Helper()
	selector := `main [name="` + field + `"]`
	check := o.Run(`return document.querySelector(arguments[0]).type === "checkbox"`, selector).(bool)
	switch {
	case check && !keyboard:
		o.Click(selector)
	case !keyboard:
		o.Type(selector, value)
	case check:
		o.tabTo(selector)
		o.Press(browsertest.Space)
	default:
		o.tabTo(selector)
		o.Press(value)
	}
}

// act does the action, from the link on the page at the path to the confirmation.
func (o *operator) act(keyboard bool, path string, a browserAction) {
	o.t.Helper()
	o.Visit(path)
	for _, link := range a.via {
		o.press(keyboard, link)
	}
	want := o.Path() + "?done=" + a.name
	o.press(keyboard, `main a[href$="/`+a.name+`"]`)
	for _, field := range slices.Sorted(maps.Keys(a.fields)) {
		o.fill(keyboard, field, a.fields[field])
	}
	o.press(keyboard, "main form button.main") // shows what will change
	contains(o.t, o.Text("main"), "The same as a command: duesday ")
	o.press(keyboard, "main form button.main")
	if strings.HasSuffix(a.name, "-link") { // the page shows a link, and no other page opens
		want = strings.Replace(want, "?done=", "/", 1)
	}
	if wrong := o.Troubles(); len(wrong) > 0 || o.Path() != want {
		o.t.Errorf("%s leads to %s: %q %s", path+": "+a.name, o.Path(), wrong, o.Text("main"))
	}
}

// TestBrowser_Actions: operators do each action with a mouse, with a keyboard alone, and without script. The page shows
// the command that does the same.
func TestBrowser_Actions(t *testing.T) {
	soaktest.Long(t)
	c := newServeCLI(t)
	c.must("store", "create")
	endpoint := c.object(exitDone, "endpoint", "create", "https://127.0.0.1/hook")["id"].(string) // an address that serve refuses
	v, _ := c.serveBy(c.clock.Now, "--pages", "127.0.0.1:0", "--mail", "mail", "--no-poll")
	base := v.PagesBase
	c.to.Store(&v.Base)
	c.askAt("acct_shop", "POST", "/v1/payment_intents", "amount=100&currency=usd&payment_method=pm_card_visa&confirm=true&return_url=http://shop.example")
	c.until("an event is quarantined", func() bool { return len(c.list("event", "list", "--waiting")) > 0 })
	withScript, without := c.operator(base, "admin", false), c.operator(base, "admin", true)
	if !soaktest.Checked() {
		t.Log("make check does each action in each way; here, the keyboard does the first one, and the others take turns")
	}
	for w, way := range []struct {
		name     string
		keyboard bool
		*operator
	}{{"mouse", false, withScript}, {"keyboard", true, withScript}, {"no-script", false, without}} {
		for i, a := range browserActions {
			if mine := i%2 == w/2 || way.keyboard; !soaktest.Checked() && (!mine || way.keyboard && i > 0) {
				continue
			}
			account := fmt.Sprint(way.name, i)
			customer, sub := "", ""
			if a.taken {
				customer, sub = c.subscribeAtStripe()
			}
			named := strings.NewReplacer("{A}", account, "{S}", account+"/1", "{E}", endpoint, "{C}", customer, "{T}", sub)
			command := func(words []string) []string { return strings.Fields(named.Replace(strings.Join(words, " "))) }
			c.create(account+"/1", "pm_card_visa")
			if a.fails {
				c.failsMessages(endpoint, account+"/2")
			}
			if a.before != nil {
				c.must(command(a.before)...)
			}
			way.act(way.keyboard, named.Replace(cmp.Or(a.path, "/accounts/{A}/subscriptions/1")), a)
			shown := way.Text("main")
			if a.show != nil {
				text, err := json.Marshal(c.json(exitDone, command(a.show)...))
				if err != nil {
					t.Fatal(err)
				}
				shown = string(text)
			}
			contains(t, shown, named.Replace(a.want))
			if strings.HasPrefix(a.name, "charging-") {
				c.must("charging", "on")
			}
		}
	}
}

// failsMessages lets messages to the endpoint fail: about the subscription, which is created while the endpoint is paused.
func (c *cli) failsMessages(endpoint, subscription string) {
	c.t.Helper()
	later := func() { c.clock.Set(c.clock.Now().Add(10 * time.Second)) } // serve reads the endpoints again
	c.must("endpoint", "update", endpoint, "--pause")
	later()
	c.create(subscription, "pm_card_visa")
	c.until("a message fails", func() bool { return len(c.list("delivery", "list", "--state", "failed")) > 0 })
	c.must("endpoint", "update", endpoint, "--resume")
	later()
}

// TestBrowser_TwoOperators: two operators and a payment run charge one subscription at the same time. The processor
// charges its period once, and each operator sees what became of it.
func TestBrowser_TwoOperators(t *testing.T) {
	soaktest.Long(t)
	c := newCLI(t)
	c.must("store", "create")
	c.env["DUESDAY_PROCESSOR"] = "sandbox:./duesday-sandbox.jsonl?latency=50ms"
	v, _ := c.serveBy(c.clock.Now, "--pages", "127.0.0.1:0", "--mail", "mail")
	shop := &apiCLI{cli: c, base: v.APIBase, key: c.object(exitDone, "key", "create", "shop", "--scope", "admin")["key"].(string)}
	operators := []*operator{c.operator(v.PagesBase, "charge", false), c.operator(v.PagesBase, "admin", true)}
	for round := range soaktest.Share(2, 20) {
		name := fmt.Sprintf("%d/1", round)
		c.create(name, "pm_card_visa")
		path := fmt.Sprintf("/accounts/%d/subscriptions/1", round)
		for _, o := range operators {
			o.Visit(path + "/charge")
			o.Open("main form button.main")
		}
		var together sync.WaitGroup
		together.Go(func() {
			status, _, _ := shop.call(http.MethodPost, "/v1/runs", name, `{"kind":"payments"}`)
			equal(t, "run", status, http.StatusAccepted)
		})
		for _, o := range operators {
			together.Go(func() { o.Open("main form button.main") })
		}
		together.Wait()
		c.until("the run has ended", func() bool {
			_, _, runs := shop.call(http.MethodGet, "/v1/runs?limit=1", "", "")
			return runs["data"].([]any)[0].(map[string]any)["state"] == "completed"
		})
		for i, o := range operators {
			if text := o.Text("main"); o.Path() != path+"?done=charge" && !strings.Contains(text, "See what became of it since you opened this form") {
				t.Errorf("round %d: operator %d sees %s: %s", round, i, o.Path(), text)
			}
			o.Visit(path)
			contains(t, o.Text("main"), "paid 12.99 USD")
		}
		equal(t, name, c.object(exitDone, "subscription", "show", name)["paid_periods"], 1)
	}
	equal(t, "charges", strings.Count(c.read("duesday-sandbox.jsonl"), `"outcome":"succeeded"`), soaktest.Share(2, 20))
	c.must("verify")
}
