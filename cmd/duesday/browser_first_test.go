package main

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/test/soaktest"
)

// firstStep returns the command of the first open step to the first charge, or "" if the page has no steps.
func (o *operator) firstStep() string {
	o.t.Helper()
	command, _ := o.Run(`return document.querySelector("section[aria-labelledby=first] code.copy")?.textContent`).(string)
	return command
}

// TestBrowser_FirstCharge: an operator with a new store and the fake Stripe does what today's page says, and nothing else,
// until the first charge was made. The steps are on the empty lists too, and then they are gone.
func TestBrowser_FirstCharge(t *testing.T) {
	soaktest.Long(t)
	c := newServeCLI(t)
	o := c.operator(c.servePages("--no-poll"), "admin", false)
	contains(t, o.Text("main"), "To the first charge", "Cards are charged at the fake Stripe at "+c.base)
	for _, path := range []string{"/", "/accounts", "/subscriptions", "/runs"} {
		if wrong := o.inspect(path); len(wrong) > 0 {
			t.Errorf("%s:\n  %s", path, strings.Join(wrong, "\n  "))
		}
		if o.firstStep() == "" {
			t.Errorf("%s is empty, and does not say what to do", path)
		}
	}
	var done []string
	for o.Visit("/"); o.firstStep() != ""; o.Visit("/") {
		command := o.firstStep()
		words := strings.Fields(command)[1:]
		if len(done) > 0 && done[len(done)-1] == command {
			t.Fatalf("after %q, the page still says that: %s", done, o.Text("main"))
		}
		if done = append(done, command); words[1] != "card-link" {
			if r := c.run(words...); r.code != exitDone { // a subscription without a card has a warning
				t.Fatal(r)
			}
			continue
		}
		o.Open(`section[aria-labelledby=first] a[href$="/card-link"]`) // the page does this step as well
		o.Open("main form button.main")
		o.Open("main form button.main")
		if wrong := o.Troubles(); len(wrong) > 0 {
			t.Error(wrong)
		}
		o.Open(`main a[rel="noreferrer"]`)
		contains(t, o.Text("main"), "Visa ending in 4242")
		o.Open("button") // leads to the shop, which does not exist
		o.Visit("/")
		o.Troubles()
		if text := o.Text("main"); !strings.Contains(text, "The first account has a payment method") { // the scheduled run has taken it
			contains(t, text, "There is a link for a card")
		}
	}
	equal(t, "steps", len(done), 5)
	contains(t, strings.Join(done, "; "), "settings set", "account create", "card-link", "subscription create", "run payments")
	equal(t, "charged", c.charged(), map[string]int{"1001/1/0": 1})
	if wrong := o.inspect("/"); len(wrong) > 0 {
		t.Error(wrong)
	}
	if text := o.Text("main"); strings.Contains(text, "To the first charge") || !strings.Contains(text, "12.99 EUR") {
		t.Errorf("after the first charge: %s", text)
	}
}
