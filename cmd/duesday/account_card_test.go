package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAccountAttach(t *testing.T) {
	c := newCLI(t)
	c.must("account", "create", "1", "--email", "a@example.com")
	r := c.run("subscription", "create", "1/1", "--sku", "gym", "--amount", "12.99", "--currency", "USD", "--payment-day",
		"15")
	if r.code != exitDone {
		t.Fatal(r)
	}
	contains(t, r.errors, "account 1 has no payment method", "duesday account attach 1", "duesday account card-link 1")
	contains(t, c.must("subscription", "show", "1/1"), "its account's")
	if r = c.run("run", "payments"); r.code != exitPerson {
		t.Error(r)
	}
	contains(t, r.out, "no payment method")
	equal(t, "attach", members(c.object(exitDone, "account", "attach", "1", "--payment-method", "pm_card_visa"),
		"payment_method", "payment_method_given_at"),
		[]any{"pm_card_visa", "2026-03-15T10:30:00.000Z"})
	contains(t, c.must("run", "payments"), "paid")
	contains(t, c.must("account", "show", "1"), "pm_card_visa", "method set", "gym")
	c.create("1/2", "pm_card_mastercard")
	equal(t, "keeps its own", c.object(exitDone, "account", "attach", "1", "--payment-method", "pm_card_visa")["keep_own_method"], []any{"1/2"})

	for _, bad := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"attach", "1"}, exitUsage, "nothing to attach"},
		{[]string{"attach", "1", "--payment-method", ""}, exitUsage, "--payment-method must not be empty"},
		{[]string{"attach", "1", "--payment-method", "4242424242424242"}, exitUsage,
			"payment_method: looks like a card number (************4242)"},
		{[]string{"attach", "1", "--connected", "acct_1", "--fee", "2.555%"}, exitUsage, "--fee"},
		{[]string{"attach", "1", "--fee", "2.5%"}, exitUsage, "fee: only a connected account"},
		{[]string{"attach", "1", "--customer", "cus_1"}, exitFailed, "stores no customers"},
		{[]string{"attach", "9", "--payment-method", "pm_1"}, exitFailed, "there is no account 9"},
		{[]string{"card-link", "1"}, exitFailed, "account attach ACCOUNT --payment-method"},
		{[]string{"card-link", "1/2/3"}, exitUsage, "must be ACCOUNT/SUBSCRIPTION"},
		{[]string{"show", "1", "--card"}, exitFailed, "stores no customers"},
	} {
		r := c.run(append([]string{"account"}, bad.args...)...)
		if r.code != bad.code || strings.Contains(r.errors, "4242424242424242") {
			t.Errorf("%q: exit %d\n%s", bad.args, r.code, r.errors)
		}
		contains(t, r.errors, bad.want)
	}
}

// TestImport_WithoutMethod: the column may be left out.
func TestImport_WithoutMethod(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv",
		"account,email,subscription,sku,amount,currency,payment_day\n1,a@example.com,1,gym,12.99,USD,15\n"))
	c.must("account", "attach", "1", "--payment-method", "pm_card_visa")
	contains(t, c.must("run", "payments"), "$12.99")
}

func TestSubscriptionShow_RequiresAction(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_authenticationRequired", "--next-payment-date", today, "--payment-day", "15")
	if r := c.run("run", "payments"); r.code != exitPerson {
		t.Fatal(r)
	}
	contains(t, c.must("subscription", "show", "1/1"), "active, requires_action", "attempt 1, requires_action",
		"no link for the customer: the sandbox has no page for it")
	open := c.object(exitDone, "subscription", "show", "1/1")["open"].(map[string]any)
	equal(t, "open", members(open, "state", "link", "no_link"),
		[]any{"requires_action", nil, "the sandbox has no page for it"})
	mails, err := filepath.Glob(c.path("duesday-mail/*/action-required-*.eml"))
	if err != nil || len(mails) != 1 {
		t.Fatalf("mails: %q, %v", mails, err)
	}
	c.env["DUESDAY_PROCESSOR"] = "stripe" // and no key: the rest is shown, and why there is no link
	if _, err := os.Stat(c.path("duesday-data")); err != nil {
		t.Fatal(err)
	}
	r := c.run("subscription", "show", "1/1")
	if r.code != exitDone {
		t.Errorf("exit %d\n%s", r.code, r.errors)
	}
	contains(t, r.out, "requires_action", "no link for the customer: ")
}

// TestAccount_PortalLink: a link is for an hour, while the customer's page is on. --revoke makes another one.
func TestAccount_PortalLink(t *testing.T) {
	c := newCLI(t)
	fails := func(code int, want string, args ...string) {
		t.Helper()
		r := c.run(args...)
		if r.code != code {
			t.Errorf("%q: exit %d", args, r.code)
		}
		contains(t, r.errors, want)
	}
	c.must("account", "create", "1", "--email", "ada@example.com")
	fails(exitFailed, "portal=on", "account", "portal-link", "1")
	fails(exitUsage, "must not contain", "account", "portal-link", "1/2")
	c.must("settings", "set", "portal=on", "public-url=https://pay.example.com", "seller=Gym", "seller-address=Here")
	fails(exitFailed, "there is no account 9", "account", "portal-link", "9")
	contains(t, c.must("account", "portal-link", "1"), "https://pay.example.com/l/", "works until ")
	first := c.object(exitDone, "account", "portal-link", "1")["url"]
	revoked := c.object(exitDone, "account", "portal-link", "1", "--revoke")["url"]
	if first == revoked {
		t.Error(first)
	}
	contains(t, c.must("history", "1"), "link_epoch - -> 1")
}
