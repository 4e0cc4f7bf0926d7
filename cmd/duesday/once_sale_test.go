package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/stripefake"
)

// onceShops is how many Stripe accounts each client's customers can connect.
const onceShops = 100

// A onceStripe is a fake of Stripe that loses replies, for purchases. A command fulfills them, except that it
// gives up the first attempt for half of them.
type onceStripe struct {
	*stripefake.Fake
	url    string
	folder string // for each purchase that was given up, a file with its ID
}

func newOnceStripe(t *testing.T, s *once) *onceStripe {
	o := stripefake.Options{Now: s.clock.Now, Faults: stripefake.Faults{LostReplies: 0.03, Seed: s.random.Uint64()}}
	for client := range 8 {
		for n := range onceShops {
			o.Connected = append(o.Connected, onceAccount(onceCustomer(client, n)))
		}
	}
	x := &onceStripe{Fake: stripefake.New(o), folder: filepath.Join(s.dir, "given-up")}
	if err := os.Mkdir(x.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(x)
	x.url = server.URL
	t.Cleanup(func() {
		server.Close()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func onceCustomer(client, n int) string { return fmt.Sprintf("a%d-%d", client, n) }

// onceAccount returns the Stripe account of the customer's shop.
func onceAccount(customer string) string { return "acct_" + strings.ReplaceAll(customer, "-", "x") }

func (x *onceStripe) env() []string {
	return []string{"DUESDAY_STRIPE_KEY=" + rehearsal.StripeFakeKey, "DUESDAY_STRIPE_API_BASE=" + x.url}
}

// givesUp reports whether the first attempt to fulfill the purchase is given up.
func givesUp(purchase string) bool { return purchase[len(purchase)-1] < '8' }

// fulfil is the command line that fulfills a purchase.
func (x *onceStripe) fulfil() string {
	return `case $DUESDAY_PURCHASE in *[0-7]) test -e ` + x.folder + `/$DUESDAY_PURCHASE || { : > ` + x.folder + `/$DUESDAY_PURCHASE; exit 100; };; esac`
}

// buy creates a purchase in the customer's shop, which the first one connects.
func (c *customer) buy() {
	if c.merchant == "" && c.shop {
		form := `{"stripe_account":%q,"id":"%s"}`
		account := onceAccount(c.id)
		made := c.post("merchant", "/v1/merchants", fmt.Sprintf(`{"stripe_account":%q}`, account), fmt.Sprintf(form, account, shopAccount))
		if made.last == nil {
			return
		}
		c.merchant = made.last.body["id"].(string)
	}
	if c.merchant == "" {
		return
	}
	form := `{"merchant":%q,"kind":"product","amount":%d,"currency":"EUR","email":"%s@example.com","payment_method":%q}`
	method := []string{"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_card_chargeDeclined"}[c.random.IntN(4)]
	if c.random.IntN(4) == 0 {
		form, method = `{"merchant":%q,"kind":"legacy","amount":%d,"currency":"EUR","email":"%s@example.com","description":%q}`, "a book"
	}
	bought := c.post("purchase", "/v1/purchases", fmt.Sprintf(form, c.merchant, 500+c.posts, c.id, method),
		fmt.Sprintf(form, c.merchant, 499, c.id, method))
	if bought.last != nil {
		c.bought = append(c.bought, bought.last.body["purchase"].(map[string]any)["id"].(string))
	}
}

// retry retries a job of the customer that was given up.
func (c *customer) retry() {
	list := c.send(c.up(c.random.IntN(2)), http.MethodGet, "/v1/jobs?limit=1000", "", "")
	if list == nil {
		return
	}
	for _, row := range jsonList(list.body["data"]) {
		job := row.(map[string]any)
		for _, id := range c.bought {
			if job["dead"] == true && job["purchase"] == id {
				c.post("retry", "/v1/jobs/"+url.PathEscape(job["id"].(string))+"/retry", `{}`, "")
				return
			}
		}
	}
}

// rename changes the account's name, unless anybody has changed the account since it was read.
func (c *customer) rename() {
	at, n := "/v1/accounts/"+c.id, c.up(c.random.IntN(2))
	read := c.send(n, http.MethodGet, at, "", "")
	if read == nil || read.status != http.StatusOK {
		return
	}
	c.renames++
	name := fmt.Sprint("name ", c.renames)
	answer := c.send(n, http.MethodPatch, at, "", fmt.Sprintf(`{"name":%q}`, name), "If-Match", fmt.Sprintf(`"%.0f"`, read.body["version"]))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case answer == nil || answer.wait: // unknown
		if c.names[c.id] == nil {
			c.names[c.id] = []string{""}
		}
		c.names[c.id] = append(c.names[c.id], name)
	case answer.status == http.StatusOK:
		c.names[c.id] = []string{name}
	}
}

// auditSales holds the purchases and Stripe's ledger to the POSTs.
func (s *once) auditSales() {
	charged, retried := map[string]int{}, map[string]bool{}
	for e := range s.stripe.Ledger() {
		if e.Type == "charge" && e.Account != stripefake.DefaultAccount {
			charged[fmt.Sprint(e.Account, "/", e.Amount)]++ // the amounts of a shop's purchases differ
		}
	}
	for sold, n := range charged {
		if n != 1 {
			s.t.Errorf("the purchase %s was charged %d times", sold, n)
		}
	}
	merchants := map[string]int{}
	for _, p := range s.all {
		switch {
		case p.acked.IsZero():
		case p.kind == "merchant":
			merchants[p.last.body["id"].(string)] += 0
		case p.kind == "purchase":
			merchants[p.last.body["purchase"].(map[string]any)["merchant"].(string)]++
		case p.kind == "retry":
			retried[p.last.body["purchase"].(string)] = true
		}
	}
	waits := map[string]bool{}
	for merchant, want := range merchants {
		rows := s.rows("/v1/purchases?limit=1000&merchant=" + merchant)
		if len(rows) != want {
			s.t.Errorf("the merchant %s has %d purchases, and %d were answered", merchant, len(rows), want)
		}
		for _, row := range rows {
			sold := fmt.Sprintf("%s/%.0f", row["stripe_account"], row["order"].(map[string]any)["amount"])
			if charged[sold] > 0 {
				waits[row["id"].(string)] = true
				delete(charged, sold)
			}
		}
	}
	for sold := range charged {
		s.t.Errorf("the purchase %s was charged, and no list has it", sold)
	}
	s.auditFulfilled(waits, retried)
}

// auditFulfilled waits until each charged purchase is fulfilled, unless its job was given up and nobody has retried it.
func (s *once) auditFulfilled(waits, retried map[string]bool) {
	over := after(3 * time.Minute)
	for ; ; time.Sleep(50 * time.Millisecond) {
		dead := map[string]bool{}
		for _, job := range s.rows("/v1/jobs?limit=1000") {
			dead[job["purchase"].(string)] = job["dead"] == true
		}
		for id := range maps.Clone(waits) {
			p, _ := s.must(http.MethodGet, "/v1/purchases/"+id, "", "", http.StatusOK).body["purchase"].(map[string]any)
			switch {
			case p["fulfilled"] == true:
				s.ear.expect("purchase.fulfilled", id)
				s.fulfilled++
			case !dead[id] || !givesUp(id) || retried[id]:
				continue
			}
			delete(waits, id)
		}
		if len(waits) == 0 {
			return
		}
		if over() {
			s.t.Errorf("purchases were charged and not fulfilled: %v", waits)
			return
		}
	}
}
