package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// An ear records the types of the messages that it receives, and refuses those with a wrong signature.
type ear struct {
	*httptest.Server
	mu    sync.Mutex
	key   []byte
	wrong int
	types []string
	ids   map[string]string // type and body by id
}

func newEar(t *testing.T) *ear {
	e := &ear{ids: map[string]string{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		h := hmac.New(sha256.New, e.key)
		io.WriteString(h, r.Header.Get("webhook-id")+"."+r.Header.Get("webhook-timestamp")+"."+string(body))
		if "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)) != r.Header.Get("webhook-signature") {
			e.wrong++
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var m struct{ Type string }
		_ = json.Unmarshal(body, &m)
		e.types, e.ids[r.Header.Get("webhook-id")] = append(e.types, m.Type), string(body)
	}))
	t.Cleanup(e.Close)
	return e
}

// heard reports whether so many messages of the type came, each once.
func (e *ear) heard(kind string, n int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := 0
	for _, body := range e.ids {
		if strings.Contains(body, `"type":"`+kind+`"`) {
			all++
		}
	}
	return all == n
}

// TestDelivery: a running serve sends signed messages about what commands and runs do, and sends again what
// a replay asks for. Without --allow-private it sends nothing to this host, and says why.
func TestDelivery(t *testing.T) {
	c, e := newCLI(t), newEar(t)
	c.clock.Set(time.Now())
	c.must("store", "create")
	made := c.object(exitDone, "endpoint", "create", e.URL, "--types", "subscription.*,period.paid")
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(made["secret"].(string), "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	e.key = key
	id := made["id"].(string)
	if list := c.must("endpoint", "list"); strings.Contains(list, "whsec_") || !strings.Contains(list, id) {
		t.Error(list)
	}
	c.create("1/1", "pm_card_visa")

	_, stop := c.serveBy(time.Now)
	c.until("serve refuses the address", func() bool {
		return strings.Contains(c.must("delivery", "list"), "private_address")
	})
	if r := stop(); !strings.Contains(r.errors, "--allow-private") {
		t.Error(r.errors)
	}

	_, stop = c.serveBy(time.Now, "--allow-private")
	c.must("delivery", "replay", "--message", c.list("delivery", "list")[0].(map[string]any)["id"].(string))
	c.until("the subscription's creation", func() bool { return e.heard("subscription.created", 1) })
	c.must("subscription", "pause", "1/1")
	c.until("its pause", func() bool { return e.heard("subscription.paused", 1) })
	c.until("all are recorded", func() bool { return len(c.list("delivery", "list", "--state", "delivered")) == 2 })
	if got := c.object(exitDone, "delivery", "replay", "--from", "2020-01-01"); got["replayed"] != 2.0 {
		t.Error(got)
	}
	c.until("both again", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.types) >= 4 && len(e.ids) == 2 // at least once each
	})
	stop()
	if e.wrong > 0 {
		t.Error(e.wrong, "wrong signatures")
	}

	c.refusedWith(exitFailed, "there is no endpoint ep_x", "endpoint", "delete", "ep_x")
	c.refusedWith(exitUsage, "--message, --from or --state", "delivery", "replay")
	c.refusedWith(exitUsage, "nothing changes", "endpoint", "update", id)
	c.refusedWith(exitUsage, "http or https", "endpoint", "create", "ftp://example.com")
	c.refusedWith(exitUsage, "types: entry 1", "endpoint", "update", id, "--types", "period.unknown")
	c.must("endpoint", "update", id, "--pause")
	c.refusedWith(exitFailed, "is paused", "delivery", "replay", "--endpoint", id, "--from", "2020-01-01")
	c.must("endpoint", "update", id, "--resume", "--types", "run.finished")
	c.must("endpoint", "rotate", id)
	c.refusedWith(exitFailed, "was replaced already", "endpoint", "rotate", id)
	c.must("endpoint", "rotate", id, "--now")
	c.must("endpoint", "delete", id)
	if list := c.list("endpoint", "list"); len(list) != 0 {
		t.Error(list)
	}
	c.must("verify")
}

// listens gives the endpoint's secret to the ear, whose address it has.
func (c *cli) listens(e *ear, types string) {
	c.t.Helper()
	made := c.object(exitDone, "endpoint", "create", e.URL, "--types", types)
	var err error
	if e.key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(made["secret"].(string), "whsec_")); err != nil {
		c.t.Fatal(err)
	}
}

// TestDelivery_Purchases: an endpoint hears once that a purchase is fulfilled, and once that it is unsubscribed,
// after the commands have succeeded.
func TestDelivery_Purchases(t *testing.T) {
	c, e := newServeCLI(t), newEar(t)
	c.must("store", "create")
	c.listens(e, "purchase.*")
	c.serve("--on-fulfil", c.job(), "--on-unsubscribe", c.job(), "--no-poll", "--allow-private")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	price := c.askAt("acct_shop", "POST", "/v1/prices",
		"unit_amount=900&currency=usd&recurring[interval]=month&product_data[name]=Gym")["id"].(string)
	sold := c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "subscription", "--key", "1", "--price", price,
		"--email", "ann@example.com", "--payment-method", "pm_card_visa")
	id := sold["purchase"].(map[string]any)["id"].(string)
	c.await(1)
	c.until("the fulfilment is told", func() bool { return e.heard("purchase.fulfilled", 1) })
	for name := range c.object(exitDone, "purchase", "show", id)["purchase"].(map[string]any)["subscriptions"].(map[string]any) {
		c.askAt("acct_shop", "DELETE", "/v1/subscriptions/"+name, "")
	}
	c.flush()
	c.await(1)
	c.until("the end is told", func() bool { return e.heard("purchase.unsubscribed", 1) })
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, body := range e.ids {
		contains(t, body, `"data":{"merchant":"`+shopAccount+`","purchase":"`+id+`"}`)
	}
	equal(t, "messages, and wrong signatures", []int{len(e.types), e.wrong}, []int{2, 0})
}

// refusedWith runs a command that fails with the code and the text.
func (c *cli) refusedWith(code int, text string, args ...string) {
	c.t.Helper()
	if r := c.run(args...); r.code != code || !strings.Contains(r.errors, text) {
		c.t.Errorf("duesday %s: exit %d, %s", strings.Join(args, " "), r.code, r.errors)
	}
}
