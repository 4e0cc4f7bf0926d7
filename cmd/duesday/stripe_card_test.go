package main

import (
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// subscribe makes a subscription that is due today and is charged what its account has.
func (c *stripeCLI) subscribe(name string) {
	c.t.Helper()
	r := c.run("subscription", "create", name, "--sku", "gym", "--amount", "12.99", "--currency", "USD", "--payment-day",
		"15", "--next-payment-date", today)
	if r.code != exitDone {
		c.t.Fatal(r)
	}
}

// cardLink makes a link for the account or subscription.
func (c *stripeCLI) cardLink(name string) string {
	c.t.Helper()
	v := c.object(exitDone, "account", "card-link", name)
	link, _ := v["url"].(string)
	if !strings.HasPrefix(link, c.base+"/checkout/") || v["expires_at"] == nil {
		c.t.Fatalf("card-link: %v", v)
	}
	return link
}

// TestStripeCards: a customer gives a card by a link, is charged with it, is declined, gives
// another one by the link in the mail, and is charged with that.
func TestStripeCards(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("account", "create", "1", "--email", "a@example.com")
	c.subscribe("1/1")
	contains(t, c.must("account", "card-link", "1"), c.base+"/checkout/", "works until ", "duesday run payments")
	first := c.cardLink("1")
	c.giveCard(first, "pm_card_chargeCustomerFail")
	declined := c.object(exitDone, "run", "payments")
	equal(t, "declined", members(declined, "due", "retry", "cards_taken_over"), []any{1, 1, 1})
	v := c.object(exitDone, "account", "show", "1", "--card")
	equal(t, "card", members(v["card"].(map[string]any), "brand", "last4", "last_month"), []any{"visa", "0341", "2030-12"})
	mail := c.newMail("declined", "a@example.com")
	contains(t, mail, "was declined", "please update them here:", "The link works until")
	if link := c.linkIn(mail); link == first || !strings.HasPrefix(link, c.base+"/checkout/") {
		t.Errorf("the mail leads to %s", link)
	}

	// A card that is refused on the page is not taken, and the page stays.
	text, leaves := c.visit(c.linkIn(mail), "Save this card", map[string][]string{"card": {"pm_card_visa_chargeDeclined"}})
	contains(t, text, `role="alert"`, "declined")
	equal(t, "leaves", leaves, "")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "nothing new", members(c.object(exitDone, "run", "payments"), "paid", "cards_taken_over"), []any{0, nil})
	// One that the bank asks about once is.
	link := c.linkIn(mail)
	text, _ = c.visit(link, "Save this card", map[string][]string{"card": {"pm_card_authenticationRequiredOnSetup"}})
	contains(t, text, "Is this you?")
	setups := c.ask("GET", "/v1/setup_intents?limit=100", "")["data"].([]any)
	for _, x := range setups {
		if next, _ := x.(map[string]any)["next_action"].(map[string]any); next != nil {
			_, leaves = c.visit(next["redirect_to_url"].(map[string]any)["url"].(string), "Complete authentication", nil)
			equal(t, "back", leaves, thanks)
		}
	}
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "paid", members(c.object(exitDone, "run", "payments"), "paid", "cards_taken_over"), []any{1, 1})
	contains(t, c.must("account", "show", "1", "--card"), "Visa ending in 3155, valid until 2030-12")
	c.newMail("receipt", "a@example.com")
	equal(t, "charged", c.charged(), map[string]int{"1/1/0": 1})
	c.clean(1)
}

// TestStripeCards_PastDue: who is past_due by a card of the subscription's own gives that
// subscription another one, and is charged from the next period on.
func TestStripeCards_PastDue(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("import", c.file("book.csv",
		header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclinedLostCard\n1,a@example.com,2,gym,8,USD,15,"+
			"pm_card_visa\n"))
	equal(t, "run", members(c.object(exitPerson, "run", "payments"), "paid", "failed"), []any{1, 1})
	equal(t, "status", c.show("1/1")["status"], "past_due")
	mail := c.newMail("failed", "a@example.com")
	contains(t, mail, "add a new payment method", "here:")
	c.giveCard(c.linkIn(mail), "pm_card_mastercard")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "next", members(c.object(exitDone, "run", "payments"), "due", "cards_taken_over"), []any{0, 1})
	v := c.show("1/1")
	equal(t, "active", members(v, "status", "due_date"), []any{"active", "2026-04-15"})
	if method, _ := v["payment_method"].(string); !strings.HasPrefix(method, "pm_") ||
		method == c.show("1/2")["payment_method"] {
		t.Errorf("method %v", v)
	}
	c.clock.Set(c.clock.Now().AddDate(0, 1, 0))
	equal(t, "April", members(c.object(exitDone, "run", "payments"), "paid", "failed"), []any{2, 0})
	equal(t, "charged", c.charged(), map[string]int{"1/1/1": 1, "1/2/0": 1, "1/2/1": 1})
	c.clean(3)
}

// TestStripeAttach: an account is charged what an existing customer has.
func TestStripeAttach(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	customer := c.ask("POST", "/v1/customers", "email=a@example.com")["id"].(string)
	card := c.ask("POST", "/v1/payment_methods/pm_card_amex/attach", "customer="+customer)["id"].(string)
	empty := c.ask("POST", "/v1/customers", "")["id"].(string)
	c.must("account", "create", "1", "--email", "a@example.com")
	c.subscribe("1/1")
	for _, bad := range []struct{ args, want string }{
		{"--customer cus_nobody", "cus_nobody"},
		{"--customer " + empty, "no default payment method and no card"},
		{"--customer " + empty + " --payment-method " + card, "does not belong to customer " + empty},
		{"--customer " + customer + " --payment-method pm_nothing", "pm_nothing"},
	} {
		r := c.run(append([]string{"account", "attach", "1"}, strings.Fields(bad.args)...)...)
		if r.code != exitFailed || r.out != "" {
			t.Errorf("%s: exit %d, %s%s", bad.args, r.code, r.out, r.errors)
		}
		contains(t, r.errors, bad.want)
	}
	equal(t, "attached", members(c.object(exitDone, "account", "attach", "1", "--customer", customer), "customer",
		"payment_method"), []any{customer, card})
	contains(t, c.must("account", "show", "1", "--card"), customer, "American Express ending in 0005, valid until 2030-12")
	equal(t, "paid", c.object(exitDone, "run", "payments")["paid"], 1)
	for e := range c.fake.Ledger() {
		in := c.ask("GET", "/v1/payment_intents/"+e.Intent, "")
		equal(t, "intent", members(in, "customer", "payment_method", "amount"), []any{customer, card, 1299})
	}
	c.clean(1)
}

// TestStripeReminder says with which card is charged, and asks for another one when that will
// have expired by then.
func TestStripeReminder(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("account", "create", "1", "--email", "a@example.com")
	for name, next := range map[string]string{"1/1": "2030-12-31",
		"1/2": "2031-01-01"} { // the card is good to the end of 2030
		r := c.run("subscription", "create", name, "--sku", "gym", "--amount", "12.99", "--currency", "USD", "--payment-day",
			next[8:], "--next-payment-date", next)
		if r.code != exitDone {
			t.Fatal(r)
		}
	}
	c.giveCard(c.cardLink("1"), "pm_card_visa")
	equal(t, "taken over", c.object(exitDone, "run", "payments")["cards_taken_over"], 1)
	c.clock.Set(time.Date(2030, 12, 30, 12, 0, 0, 0, time.UTC))
	equal(t, "reminders", c.object(exitDone, "run", "reminders")["written"], 2)
	texts, _ := c.mailsTo("reminder", "a@example.com")
	if len(texts) != 2 {
		t.Fatalf("mails: %q", texts)
	}
	for _, text := range texts {
		contains(t, text, "Card: Visa =E2=80=A2=E2=80=A2=E2=80=A2=E2=80=A2 4242", "Card expires: December 2030")
		if strings.Contains(text, "is due on 31 December 2030.") {
			contains(t, text, "You don't need")
			if strings.Contains(text, "expired") || strings.Contains(text, c.base) {
				t.Errorf("asks for a card:\n%s", text)
			}
			continue
		}
		contains(t, text, "is due on 1 January 2031.", "Your card will have expired by then.",
			"You can add a new one here:")
		c.giveCard(c.linkIn(text), "pm_card_mastercard")
	}
	soon, _ := c.mailsTo("card-expires", "a@example.com") // of 1/1: its next payment but one is too late for the card
	if len(soon) != 1 || !strings.Contains(soon[0], "due on 31 January 2031") {
		t.Errorf("mails of a card about to expire: %q", soon)
	}
	c.clock.Set(c.clock.Now().AddDate(0, 0, 3))
	equal(t, "paid", members(c.object(exitDone, "run", "payments"), "paid", "cards_taken_over"), []any{2, 1})
	contains(t, c.must("account", "show", "1", "--card"), "Mastercard ending in 4444, valid until 2034-12")
	c.clean(2)
}

// TestStripeCards_OwnMethod: a card given to the account serves a subscription whose own card was
// declined, in the run that takes it over. The answers name the subscription whose own card works.
func TestStripeCards_OwnMethod(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("account", "create", "1", "--email", "a@example.com")
	c.subscribe("1/1")
	c.subscribe("1/2")
	c.giveCard(c.cardLink("1/1"), "pm_card_chargeCustomerFail")
	c.giveCard(c.cardLink("1/2"), "pm_card_visa")
	equal(t, "own cards", members(c.object(exitDone, "run", "payments"), "paid", "retry", "cards_taken_over", "keep_own_method"),
		[]any{1, 1, 2, nil})
	c.clock.Set(c.clock.Now().Add(time.Hour))
	contains(t, c.must("account", "card-link", "1"), "1/2 keeps its own payment method and does not use the card")
	v := c.object(exitDone, "account", "card-link", "1")
	equal(t, "named", v["keep_own_method"], []any{"1/2"})
	c.giveCard(v["url"].(string), "pm_card_mastercard")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "served", members(c.object(exitDone, "run", "payments"), "paid", "retry", "cards_taken_over", "keep_own_method"),
		[]any{1, 0, 1, []any{"1/2"}})
	contains(t, c.must("account", "show", "1"), "1/2 keeps its own payment method")
	equal(t, "shown", c.object(exitDone, "account", "show", "1")["keep_own_method"], []any{"1/2"})
	equal(t, "charged", c.charged(), map[string]int{"1/1/0": 1, "1/2/0": 1})
	c.clean(2)
}
