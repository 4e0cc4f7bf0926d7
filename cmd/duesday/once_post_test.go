package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A onePost is a POST with an idempotency key.
type onePost struct {
	kind, path, body, key string
	other                 string // another valid body, or "" if there is none

	mu      sync.Mutex
	acked   time.Time       // when the first success was read; zero: none was
	objects map[string]bool // that successes named
	last    *reply          // the last success
	firsts  int             // successes that were not repeats
}

// post sends a POST one to four times, to either node, sometimes at once.
func (c *customer) post(kind, path, body, other string) *onePost {
	p := &onePost{kind: kind, path: path, body: body, other: other, objects: map[string]bool{}}
	p.key = fmt.Sprintf("%s/%s %d", kind, c.id, c.posts)
	c.posts++
	c.mu.Lock()
	c.all = append(c.all, p)
	c.mu.Unlock()
	c.posted.Add(1)
	var together sync.WaitGroup
	for range 1 + c.random.IntN(4) {
		n := c.up(c.random.IntN(2))
		if c.random.IntN(3) == 0 {
			together.Go(func() { c.sendOnce(n, p) })
		} else {
			c.sendOnce(n, p)
		}
	}
	together.Wait()
	return p
}

// sendOnce sends the POST, and holds the answer to those before it.
func (s *once) sendOnce(n *node, p *onePost) {
	begun := time.Now()
	s.note(p, begun, s.send(n, http.MethodPost, p.path, p.key, p.body))
}

func (s *once) note(p *onePost, begun time.Time, a *reply) {
	if a == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := !p.acked.IsZero() && p.acked.Before(begun)
	switch {
	case a.status < 300:
		if p.acked.IsZero() {
			p.acked = time.Now()
		}
		if p.last = a; !a.replayed {
			p.firsts++
		}
		if o := p.object(a.body); o != "" {
			p.objects[o] = true
		}
		if p.firsts > 1 || len(p.objects) > 1 || before && !a.replayed {
			s.t.Errorf("%s: answered %d times as the first, with the objects %v; after an answer: %t", p.key, p.firsts, p.objects, before)
		}
	case a.wait:
	case before || a.code == "idempotency_key":
		s.t.Errorf("%s: %d %v after an answer (%t)", p.key, a.status, a.body, before)
	}
}

// object returns what identifies the object in a success.
func (p *onePost) object(body map[string]any) string {
	switch p.kind {
	case "charge", "period":
		for _, r := range jsonList(body["results"]) {
			return fmt.Sprint("period ", r.(map[string]any)["period"])
		}
		return ""
	case "receipt":
		return fmt.Sprint("period ", body["period"])
	case "card_link", "replay":
		return ""
	case "purchase":
		return fmt.Sprint(body["purchase"].(map[string]any)["id"])
	}
	return fmt.Sprint(body["account"], "/", body["id"])
}

func jsonList(v any) []any {
	list, _ := v.([]any)
	return list
}

// A customer is one story of requests, each after the one before.
type customer struct {
	*once
	random *rand.Rand
	id     string
	posts  int
	plans  int

	shop     bool // it may sell
	merchant string
	bought   []string // purchases
	renames  int
}

// live signs the customer up, with three weeks due, and then does anything.
func (c *customer) live(posts int) {
	at := "/v1/accounts/" + c.id
	c.post("account", "/v1/accounts", fmt.Sprintf(`{"id":%q,"email":"%[1]s@example.com"}`, c.id),
		fmt.Sprintf(`{"id":%q,"email":"other@example.com"}`, c.id))
	methods := []string{"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_sandbox_timeout", "pm_sandbox_flaky", "pm_card_chargeDeclined"}
	method := methods[c.random.IntN(len(methods))]
	if strings.HasSuffix(c.id, "-0") { // in any share something can be charged
		method = methods[0]
	}
	c.post("method", at+"/payment_methods", fmt.Sprintf(`{"payment_method":%q}`, method), `{"payment_method":"pm_other"}`)
	c.post("card_link", at+"/card_links", `{}`, `{"subscription":"s0"}`)
	for i := range 1 + c.random.IntN(2) {
		first := c.clock.Now().AddDate(0, 0, -21)
		form := `{"id":"s%d","sku":"gym","amount":%d,"currency":"EUR","interval":"weekly","payment_day":%d,` +
			`"next_payment_date":"%s","payment_method":%q}`
		day := (int(first.Weekday())+6)%7 + 1
		c.post("subscription", at+"/subscriptions", fmt.Sprintf(form, i, 1299, day, first.Format(time.DateOnly), method),
			fmt.Sprintf(form, i, 1300, day, first.Format(time.DateOnly), method))
		for range 4 + c.random.IntN(8) {
			if int(c.posted.Load()) >= posts {
				return
			}
			c.act(at + "/subscriptions/s" + fmt.Sprint(i))
		}
	}
}

// act posts something about the subscription or the installation.
func (c *customer) act(at string) {
	switch c.random.IntN(24) {
	case 0:
		c.plans++
		c.post("plan", at+"/plan", fmt.Sprintf(`{"sku":"gym","amount":%d,"currency":"EUR"}`, 1300+c.plans), `{"sku":"gym","amount":7,"currency":"EUR"}`)
	case 1:
		c.post("pause", at+"/pause", `{}`, "")
	case 2, 3:
		c.post("resume", at+"/resume", `{}`, "")
	case 4:
		c.post("cancel", at+"/cancel", fmt.Sprintf(`{"at_period_end":%t}`, c.random.IntN(3) > 0), "")
	case 5:
		c.post("skip", at+"/skip", fmt.Sprintf(`{"until":%q}`, c.clock.Now().AddDate(0, 0, -7).Format(time.DateOnly)), `{}`)
	case 6, 7:
		c.post("charge", at+"/charge", `{}`, `{"period":2}`)
		c.refund(at)
	case 8:
		c.post("period", fmt.Sprint(at, "/periods/", c.random.IntN(4), "/charge"), `{}`, `{"reopen":"again"}`)
	case 9, 16:
		c.post("receipt", at+"/receipts", `{"note":"by wire"}`, `{"note":"by letter"}`)
	case 10, 11, 17:
		c.refund(at)
	case 12:
		kinds := []string{"payments", "payments", "payments", "reminders", "verify", "reconcile"}
		c.post("run", "/v1/runs", fmt.Sprintf(`{"kind":%q}`, kinds[c.random.IntN(len(kinds))]), `{"kind":"payments","date":"2026-01-31"}`)
	case 13:
		c.post("key", "/v1/keys", fmt.Sprintf(`{"name":"k-%s-%d","scope":"read"}`, c.id, c.posts), `{"name":"another","scope":"read"}`)
	case 14:
		made := c.post("endpoint", "/v1/endpoints", fmt.Sprintf(`{"url":"%s/%s/%d","types":["run.late"]}`, c.ear.URL, c.id, c.posts),
			fmt.Sprintf(`{"url":"%s/other"}`, c.ear.URL))
		if made.last != nil {
			c.post("rotate", fmt.Sprint("/v1/endpoints/", made.last.body["id"], "/rotate"), `{"now":true}`, `{"now":false}`)
		}
	case 15:
		c.post("replay", "/v1/deliveries/replay", fmt.Sprintf(`{"endpoint":%q,"from":%q}`, c.endpoint,
			c.clock.Now().Add(-10*time.Second).Format("2006-01-02T15:04:05.000Z")), `{"state":"failed"}`)
	case 18, 19, 20:
		c.buy()
	case 21, 22:
		c.retry()
	case 23:
		c.rename()
	}
}

// refund gives a part of the customer's first charged receipt back.
func (c *customer) refund(at string) {
	list := c.send(c.up(c.random.IntN(2)), http.MethodGet, "/v1/receipts?account="+c.id, "", "")
	if list == nil {
		return
	}
	for _, r := range jsonList(list.body["data"]) {
		if r := r.(map[string]any); r["kind"] == "charge" && strings.HasSuffix(at, "/"+r["subscription"].(string)) {
			form := `{"account":%q,"amount":%d,"currency":"EUR"}`
			c.post("refund", fmt.Sprint("/v1/receipts/", r["id"], "/refunds"), fmt.Sprintf(form, c.id, 100+c.posts), fmt.Sprintf(form, c.id, 99))
			return
		}
	}
}
