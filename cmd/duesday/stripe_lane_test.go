package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/stripefake"
)

// thanks is where customers come back to from Stripe's pages. Nobody is there.
const thanks = "https://shop.example/thanks"

// A stripeCLI runs command lines whose processor is a fake of Stripe, over HTTP.
type stripeCLI struct {
	*cli
	fake *stripefake.Fake
	base string
	key  string
}

// newStripeCLI serves a fake that has the clock of the command lines.
func newStripeCLI(t *testing.T, o stripefake.Options) *stripeCLI {
	t.Helper()
	c := &stripeCLI{cli: newCLI(t), key: rehearsal.StripeFakeKey}
	o.Now = c.clock.Now
	if o.Keys != nil {
		c.key = o.Keys[0].Secret
	}
	c.fake = stripefake.New(o)
	server := httptest.NewServer(c.fake)
	c.base = server.URL
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
		if err := c.fake.Close(); err != nil {
			t.Error(err)
		}
	})
	c.env["DUESDAY_PROCESSOR"] = "stripe:?rate=1000&return_url=" + url.QueryEscape(thanks)
	c.env["DUESDAY_STRIPE_API_BASE"], c.env["DUESDAY_STRIPE_KEY"] = c.base, c.key
	return c
}

// ask sends a request of somebody's who is not Duesday, perhaps at a connected account, and returns the object.
func (c *stripeCLI) ask(method, path, params string, at ...string) map[string]any {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(params))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if account := strings.Join(at, ""); account != "" {
		r.Header.Set("Stripe-Account", account)
	}
	status, text, _ := c.send(r)
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil || status != http.StatusOK {
		c.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return o
}

// send follows redirects within the fake, and returns where the last one leads out of it.
func (c *stripeCLI) send(r *http.Request) (status int, text, leaves string) {
	c.t.Helper()
	client := &http.Client{CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		if next.URL.Host != r.URL.Host {
			leaves = next.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	res, err := client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(body), leaves
}

// visit opens a page as a browser does, and presses the button that says so.
func (c *stripeCLI) visit(link, button string, fields url.Values) (text, leaves string) {
	c.t.Helper()
	get, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, link, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	status, page, _ := c.send(get)
	pressed := regexp.MustCompile(`<button name="(\w+)" value="(\w+)">` + button + `</button>`).FindStringSubmatch(page)
	if status != http.StatusOK || pressed == nil || !strings.Contains(page, `<form method="post">`) {
		c.t.Fatalf("%s: %d, and no button %q on it:\n%s", link, status, button, page)
	}
	for name, values := range fields {
		if !strings.Contains(page, `name="`+name+`" value="`+values[0]+`"`) {
			c.t.Fatalf("%s has no choice %s=%s:\n%s", link, name, values[0], page)
		}
	}
	form := url.Values{pressed[1]: pressed[2:3]}
	maps.Copy(form, fields)
	post, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, link, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, text, leaves = c.send(post)
	return text, leaves
}

// giveCard chooses a card on the page of the link.
func (c *stripeCLI) giveCard(link, card string) {
	c.t.Helper()
	if text, leaves := c.visit(link, "Save this card", url.Values{"card": {card}}); leaves != thanks {
		c.t.Fatalf("the page leads to %q:\n%s", leaves, text)
	}
}

// mailsTo returns the mails of the kind to the address, and their files.
func (c *stripeCLI) mailsTo(kind, to string) (texts, files []string) {
	c.t.Helper()
	names, err := filepath.Glob(c.path("duesday-mail/*/") + kind + "-*.eml")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range names {
		if text := c.read(name); strings.Contains(text, "To: "+to) || strings.Contains(text, "To: <"+to+">") {
			text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "=\n", "") // lines that mail folds
			texts, files = append(texts, text), append(files, name)
		}
	}
	return texts, files
}

// newMail returns the one mail of the kind to the address, and takes it away.
func (c *stripeCLI) newMail(kind, to string) string {
	c.t.Helper()
	texts, files := c.mailsTo(kind, to)
	if len(texts) != 1 {
		c.t.Fatalf("%d mails of %s to %s, want 1: %q", len(texts), kind, to, texts)
	}
	if err := os.Remove(files[0]); err != nil {
		c.t.Fatal(err)
	}
	return texts[0]
}

// linkIn returns the line of the mail that is a link to the fake, with line ends that mail has.
func (c *stripeCLI) linkIn(mail string) string {
	c.t.Helper()
	plain := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(mail, "\r\n", "\n"), "=\n", ""), "=3D", "=")
	for line := range strings.Lines(plain) {
		if strings.HasPrefix(line, c.base+"/") {
			return strings.TrimSpace(line)
		}
	}
	c.t.Fatalf("no link to %s in:\n%s", c.base, mail)
	return ""
}

// charged counts the ledger's successes by account/subscription/period.
func (c *stripeCLI) charged() map[string]int {
	n := map[string]int{}
	for e := range c.fake.Ledger() {
		if e.Type == "charge" {
			m := e.Metadata
			n[m["duesday_account"]+"/"+m["duesday_subscription"]+"/"+m["duesday_period"]]++
		}
	}
	return n
}

func (c *stripeCLI) clean(receipts int) {
	c.t.Helper()
	audit := c.object(exitDone, "verify")
	equal(c.t, "audit", members(audit, "ok", "receipts", "problems"), []any{true, receipts, []any{}})
}

// show returns the subscription as JSON.
func (c *stripeCLI) show(name string) map[string]any {
	c.t.Helper()
	return c.object(exitDone, "subscription", "show", name)
}

func (c *stripeCLI) open(name string) map[string]any {
	c.t.Helper()
	open, _ := c.show(name)["open"].(map[string]any)
	return open
}

// pageOf returns where the customer can authenticate the open payment.
func (c *stripeCLI) pageOf(name string) string {
	c.t.Helper()
	link, _ := c.open(name)["link"].(string)
	if !strings.HasPrefix(link, c.base+"/redirect/authenticate/pi_") {
		c.t.Fatalf("%s has no page: %v", name, c.open(name))
	}
	return link
}

// TestStripeLane: a payment that the customer has to authenticate waits for them, with a link
// in the mail and in subscription show, and the same intent completes the period.
func TestStripeLane(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("import", c.file("book.csv",
		header+"1,a@example.com,1,news,12.99,USD,15,pm_card_authenticationRequired\n2,b@example.com,1,gym,500,JPY,15,"+
			"pm_card_visa\n"))
	equal(t, "run", members(c.object(exitPerson, "run", "payments"), "due", "paid", "pending"), []any{2, 1, 1})

	text := c.must("subscription", "show", "1/1")
	contains(t, text, "active, requires_action", "attempt 1, requires_action",
		"the customer can authenticate it at "+c.base+"/")
	open := c.open("1/1")
	link := c.pageOf("1/1")
	mail := c.newMail("action-required", "a@example.com")
	contains(t, mail, "Your bank asks you to confirm your payment of $12.99")
	equal(t, "the mail's link", c.linkIn(mail), link)

	// Another run changes nothing, and writes no second mail.
	equal(t, "again", members(c.object(exitDone, "run", "payments"), "due", "paid", "pending"), []any{1, 0, 1})
	if again, _ := c.mailsTo("action-required", "a@example.com"); len(again) > 0 {
		t.Errorf("told again: %q", again)
	}
	equal(t, "charged", c.charged(), map[string]int{"2/1/0": 1})

	// The bank says no: the next run makes a page of the same intent.
	_, leaves := c.visit(link, "Fail authentication", nil)
	contains(t, leaves, thanks, "redirect_status=failed")
	contains(t, c.must("subscription", "show", "1/1"), "no link for the customer")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "after a no", members(c.object(exitDone, "run", "payments"), "paid", "pending"), []any{0, 1})
	again := c.open("1/1")
	equal(t, "still open", members(again, "intent", "attempt", "state"), []any{open["intent"], 1, "requires_action"})
	_, leaves = c.visit(c.pageOf("1/1"), "Complete authentication", nil)
	contains(t, leaves, thanks, "redirect_status=succeeded")
	contains(t, c.must("subscription", "show", "1/1"), "already succeeded at the processor; the next payment run")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "settled", members(c.object(exitDone, "run", "payments"), "due", "paid"), []any{1, 1})
	receipt := c.list("receipt", "list", "1")[0].(map[string]any)
	equal(t, "receipt", members(receipt, "period", "amount", "charge"), []any{0, 1299, open["intent"]})
	contains(t, c.newMail("receipt", "a@example.com"), "$12.99")
	equal(t, "charged", c.charged(), map[string]int{"1/1/0": 1, "2/1/0": 1})
	c.clean(2)
}
