package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// audit repeats every POST in calm, and holds the store to what was answered.
func (s *once) audit() {
	var clients sync.WaitGroup
	next := make(chan *onePost)
	for range 8 {
		clients.Go(func() {
			for p := range next {
				s.auditPost(p)
			}
		})
	}
	for _, p := range s.all {
		next <- p
	}
	close(next)
	clients.Wait()
	if s.mute.Load() {
		return
	}
	paid := s.auditLedger()
	s.auditLists()
	s.auditSales()
	s.auditDeliveries(paid)
	s.auditLedger()
}

// auditPost repeats the POST, tries its key for something else, and looks for its object.
func (s *once) auditPost(p *onePost) {
	acked := !p.acked.IsZero()
	begun := time.Now()
	s.note(p, begun, s.insist(http.MethodPost, p.path, p.key, p.body))
	if p.acked.IsZero() {
		return // it is refused, and stored nothing
	}
	if p.other != "" {
		s.must(http.MethodPost, p.path, p.key, p.other, http.StatusUnprocessableEntity)
	}
	if p.kind != "purchase" { // which has its keys in a space of its merchant's
		s.must(http.MethodPost, "/v1/accounts", p.key, `{"id":"borrowed","email":"borrowed@example.com"}`, http.StatusUnprocessableEntity)
	}
	list, object := p.places()
	if object != "" {
		s.must(http.MethodGet, object, "", "", http.StatusOK)
	}
	if list == "" {
		return
	}
	found := jsonList(s.must(http.MethodGet, list+"idempotency_key="+url.QueryEscape(p.key), "", "", http.StatusOK).body["data"])
	want := p.last.body["requested"] != true // else a run records it when it knows the intent's state
	if p.kind == "charge" || p.kind == "period" {
		want = p.last.body["receipt"] != nil
	}
	if want && len(found) != 1 || len(found) > 1 {
		s.t.Errorf("%s, acknowledged before the end: %t: the list has %v", p.key, acked, found)
	}
}

// places returns the list that the POST's key selects from, and the path of its object.
func (p *onePost) places() (list, object string) {
	part := strings.Split(p.path, "/")
	switch p.kind {
	case "account":
		return "/v1/accounts?", "/v1/accounts/" + p.last.body["id"].(string)
	case "method", "card_link":
		return "", "/v1/accounts/" + part[3]
	case "subscription":
		return p.path + "?", p.path + "/" + p.last.body["id"].(string)
	case "charge", "period", "receipt":
		return "/v1/receipts?account=" + part[3] + "&", ""
	case "refund":
		return "/v1/refunds?account=" + p.last.body["account"].(string) + "&", ""
	case "run", "key", "endpoint":
		return p.path + "?", ""
	case "rotate", "replay", "merchant", "retry":
		return "", ""
	case "purchase":
		purchase := p.last.body["purchase"].(map[string]any)
		return fmt.Sprintf("/v1/purchases?merchant=%s&", purchase["merchant"]), fmt.Sprint("/v1/purchases/", purchase["id"])
	}
	return strings.Join(part[:5], "/") + "?", strings.Join(part[:6], "/")
}

// auditLedger returns the periods that were charged, each once.
func (s *once) auditLedger() map[string]bool {
	paid, given := map[string]bool{}, map[string]bool{}
	note := func(all map[string]bool, what string) {
		if all[what] {
			s.t.Errorf("%s was charged or given back twice", what)
		}
		all[what] = true
	}
	for e := range s.stripe.Ledger() { // amounts of an account's refunds differ
		switch period := fmt.Sprint(e.Metadata["duesday_account"], "/", e.Metadata["duesday_subscription"], "/", e.Metadata["duesday_period"]); {
		case e.Account != stripefake.DefaultAccount:
		case e.Type == "charge":
			note(paid, period)
		default:
			note(given, fmt.Sprint(e.Charge, " ", e.Amount))
		}
	}
	text, err := os.ReadFile(s.ledger)
	if err != nil && s.ledger != "" {
		s.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var v struct {
			Account, Subscription, Outcome, Of, Amount string
			Period                                     int
		}
		if err := json.Unmarshal(line, &v); err != nil {
			s.t.Fatal(err)
		}
		switch {
		case v.Of != "":
			note(given, fmt.Sprint(v.Of, " ", v.Amount))
		case v.Outcome == "succeeded":
			note(paid, fmt.Sprintf("%s/%s/%d", v.Account, v.Subscription, v.Period))
		}
	}
	if len(paid) == 0 {
		s.t.Error("nothing was charged")
	}
	return paid
}

// rows returns all rows of a list.
func (s *once) rows(path string) (all []map[string]any) {
	for cursor := ""; ; {
		page := s.must(http.MethodGet, path+cursor, "", "", http.StatusOK)
		for _, row := range jsonList(page.body["data"]) {
			all = append(all, row.(map[string]any))
		}
		if page.body["has_more"] != true {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(fmt.Sprint(page.body["next_cursor"]))
	}
}

// count returns how many POSTs of the kinds succeeded.
func (s *once) count(where func(p *onePost) bool) (n int) {
	for _, p := range s.all {
		if !p.acked.IsZero() && where(p) {
			n++
		}
	}
	return n
}

// auditLists holds the lists to the POSTs that succeeded: each object is there once, and no other is.
func (s *once) auditLists() {
	for kind, x := range map[string]struct {
		path, id string
		more     []string
	}{
		"account": {"/v1/accounts?limit=1000", "id", nil}, "subscription": {"/v1/subscriptions?limit=1000&sku=gym", "", nil},
		"run": {"/v1/runs?limit=1000", "id", nil}, "key": {"/v1/keys?limit=1000", "name", []string{"storm"}},
		"endpoint": {"/v1/endpoints?limit=1000", "url", []string{s.ear.URL}}, "merchant": {"/v1/merchants?limit=1000", "stripe_account", nil},
	} {
		seen := map[string]int{}
		for _, row := range s.rows(x.path) {
			name := fmt.Sprint(row["account"], "/", row["id"])
			if x.id != "" {
				name = fmt.Sprint(row[x.id])
			}
			if !slices.Contains(x.more, name) {
				seen[name]++
			}
			if v, _ := row["version"].(float64); kind == "endpoint" && v > 2 && row["id"] != s.endpoint {
				s.t.Errorf("the endpoint %s was rotated twice: %v", name, row)
			}
		}
		for name, n := range seen {
			if n > 1 {
				s.t.Errorf("%s %s is there %d times", kind, name, n)
			}
		}
		made := map[string]bool{}
		for _, p := range s.all {
			if name := p.key; p.kind == kind && !p.acked.IsZero() {
				if kind == "merchant" { // two requests may connect one shop
					name = p.body
				}
				made[name] = true
			}
		}
		if len(seen) != len(made) {
			s.t.Errorf("there are %d of kind %s, and %d requests for them succeeded", len(seen), kind, len(made))
		}
	}
	for _, a := range s.rows("/v1/accounts?limit=1000") {
		id := a["id"].(string)
		names := s.names[id]
		if name, _ := a["name"].(string); len(names) > 0 && !slices.Contains(names, name) {
			s.t.Errorf("account %s has the name %q, not one of %q", id, name, names)
		} else if len(names) > 1 { // a change without an answer may have been cut off, which verify tells
			s.must(http.MethodPatch, "/v1/accounts/"+id, "", fmt.Sprintf(`{"name":%q}`, name), http.StatusOK)
		}
		s.auditAccount(id)
	}
}

// auditAccount holds an account's manual payments and refunds to the POSTs.
func (s *once) auditAccount(id string) {
	manual, refunds := 0, 0
	for _, r := range s.rows("/v1/receipts?limit=1000&account=" + id) {
		if s.ear.expect("receipt.created", fmt.Sprint(r["id"])); r["kind"] == "external" || r["kind"] == "overpayment" {
			manual++
		}
	}
	for _, r := range s.rows("/v1/refunds?limit=1000&account=" + id) {
		s.ear.expect("refund.created", fmt.Sprint(r["id"]))
		refunds++
	}
	requested := 0
	for _, x := range s.rows("/v1/accounts/" + id + "/subscriptions?limit=1000") {
		if s.ear.expect("subscription.created", fmt.Sprint(id, "/", x["id"])); x["requested"] == "manual" {
			requested++
		}
	}
	if want := s.count(func(p *onePost) bool { return p.kind == "receipt" && strings.HasPrefix(p.path, "/v1/accounts/"+id+"/") }); manual+requested != want {
		s.t.Errorf("account %s has %d manual payments and %d that wait, and %d were answered", id, manual, requested, want)
	}
	if want := s.count(func(p *onePost) bool { return p.kind == "refund" && p.last.body["account"] == id }); refunds != want {
		s.t.Errorf("account %s has %d refunds, and %d were answered", id, refunds, want)
	}
}

// undelivered returns what was expected and not heard yet, or the messages that wait.
func (s *once) undelivered() []string {
	all := s.ear.missing()
	if len(all) > 0 {
		return all
	}
	for _, m := range s.rows("/v1/deliveries?limit=1000&state=waiting&endpoint=" + s.endpoint) {
		all = append(all, fmt.Sprint(m["type"], " ", m["id"]))
	}
	return all
}

// auditDeliveries waits until all that was expected is heard, and holds the list of deliveries to what was heard. Payment
// runs ask the sandbox for answers that it lost.
func (s *once) auditDeliveries(paid map[string]bool) {
	for period := range paid {
		s.ear.expect("period.paid", period)
	}
	runs, over := 0, after(3*time.Minute)
	for missing := s.undelivered(); len(missing) > 0; missing = s.undelivered() {
		if over() {
			s.t.Errorf("%d deliveries are missing, such as %v", len(missing), missing[:min(5, len(missing))])
			return
		}
		if runs++; runs%20 == 0 {
			s.insist(http.MethodPost, "/v1/runs", fmt.Sprint("ask ", runs), `{"kind":"payments"}`)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, m := range s.rows("/v1/deliveries?limit=1000&endpoint=" + s.endpoint) {
		if id := fmt.Sprint(m["id"]); m["state"] != "delivered" || !s.ear.has(id) {
			s.t.Errorf("the delivery %s %s is %s, and was heard: %t", m["type"], id, m["state"], s.ear.has(id))
		}
	}
	if s.ear.wrong > 0 {
		s.t.Errorf("%d deliveries had a wrong signature", s.ear.wrong)
	}
}

// summary tells how many POSTs of each kind succeeded.
func (s *once) summary() string {
	all, done := map[string]int{}, map[string]int{}
	for _, p := range s.all {
		if all[p.kind]++; !p.acked.IsZero() {
			done[p.kind]++
		}
	}
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s %d of %d, ", kind, done[kind], all[kind])
	}
	return text.String() + fmt.Sprintf("%d fulfilled, %d deliveries", s.fulfilled, len(s.ear.bodies))
}

// A onceEar receives deliveries, and knows which must arrive.
type onceEar struct {
	*httptest.Server
	key []byte

	mu     sync.Mutex
	bodies map[string]string // by message
	heard  map[string]bool   // type and object
	wanted []string
	wrong  int
}

func newOnceEar(t *testing.T) *onceEar {
	e := &onceEar{bodies: map[string]string{}, heard: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(e.listen))
	t.Cleanup(e.Close)
	return e
}

func (e *onceEar) trust(secret string) {
	e.key, _ = base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
}

func (e *onceEar) listen(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/" { // the sender was killed, or this is for an endpoint with another secret
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	id := r.Header.Get("webhook-id")
	h := hmac.New(sha256.New, e.key)
	io.WriteString(h, id+"."+r.Header.Get("webhook-timestamp")+"."+string(body))
	before, again := e.bodies[id]
	if !slices.Contains(strings.Fields(r.Header.Get("webhook-signature")), "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil))) || again && before != string(body) {
		e.wrong++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	e.bodies[id] = string(body)
	var m struct {
		Type string
		Data struct {
			Account, Subscription, Receipt, Refund, Purchase string
			Period                                           int
		}
	}
	if json.Unmarshal(body, &m) != nil {
		e.wrong++
	}
	e.heard[m.Type+" "+fmt.Sprintf("%s/%s", m.Data.Account, m.Data.Subscription)] = true
	e.heard[m.Type+" "+fmt.Sprintf("%s/%s/%d", m.Data.Account, m.Data.Subscription, m.Data.Period)] = true
	e.heard[m.Type+" "+m.Data.Receipt] = true
	e.heard[m.Type+" "+m.Data.Refund] = true
	e.heard[m.Type+" "+m.Data.Purchase] = true
}

func (e *onceEar) expect(kind, object string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wanted = append(e.wanted, kind+" "+object)
}

func (e *onceEar) has(message string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bodies[message] != ""
}

func (e *onceEar) missing() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.wanted), func(x string) bool { return e.heard[x] })
}
