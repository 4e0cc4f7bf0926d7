package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/stripefake"
)

const pollSecret = "a secret of 32 characters, or more"

// post posts a body that is signed with the secret, with the API key, and returns the status and
// the answer.
func (c *serveCLI) post(url, body, secretText, apiKey string) string {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Stripe-Signature", event.Sign([]byte(body), secret.New(secretText), c.clock.Now()))
	r.Header.Set("Authorization", "Bearer "+apiKey)
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprint(a.StatusCode, " ", string(text))
}

// sold makes a purchase of the shop, which nobody has paid.
func (c *serveCLI) sold(key string) (purchase, intent string) {
	c.t.Helper()
	sold := c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "legacy", "--key", key,
		"--amount", "999", "--currency", "EUR")
	intent, _, _ = strings.Cut(sold["client_secret"].(string), "_secret_")
	return sold["purchase"].(map[string]any)["id"].(string), intent
}

func (c *serveCLI) pay(intent string) {
	c.t.Helper()
	c.askAt("acct_shop", "POST", "/v1/payment_intents/"+intent+"/confirm", "payment_method=pm_card_visa&return_url=http://shop.example")
}

// TestPoll_To: a poller without the store finds what is missing, and the server applies what Stripe says.
func TestPoll_To(t *testing.T) {
	far, c := newFolder(t), newServeCLI(t) // far is another machine
	c.env["DUESDAY_POLL_SECRET"] = strings.ReplaceAll(pollSecret, " ", "-")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	v, stop := c.serve("--on-fulfil", c.job(), "--no-poll")
	if err := c.fake.SetFaults(stripefake.Faults{WebhookDrops: 1}); err != nil {
		t.Fatal(err)
	}
	purchase, intent := c.sold("1")
	c.pay(intent)
	far.clock, far.env["DUESDAY_STORE"] = c.clock, "pebble:/nowhere"
	for _, name := range []string{"DUESDAY_STRIPE_API_BASE", "DUESDAY_STRIPE_KEY", "DUESDAY_POLL_SECRET"} {
		far.env[name] = c.env[name]
	}
	far.env["DUESDAY_API_KEY"] = c.apiKey("read")
	found := far.object(exitDone, "poll", "--to", v.APIBase, "--once")
	equal(t, "found", []any{found["missing"], found["failed"]}, []any{found["sent"], 0})
	if n := found["sent"].(float64); n < 2 {
		t.Errorf("%v were sent", n)
	}
	equal(t, "fulfilled", c.await(1), map[string]int{"fulfil " + purchase: 1})
	again := far.object(exitDone, "poll", "--to", v.APIBase+"/", "--once", "--all")
	equal(t, "again", again["missing"], 0)
	for _, e := range c.list("event", "list", "--account", "acct_shop") {
		if v := c.object(exitDone, "event", "show", e.(map[string]any)["id"].(string)); v["source"] != "poll" {
			t.Errorf("event %v", v)
		}
	}
	polled := c.object(exitDone, "connect", "show", "acct_shop")
	equal(t, "verified", polled["verified_through"], again["verified_through"])
	c.until("the server compares the objects", func() bool {
		return c.object(exitDone, "connect", "show", "acct_shop")["swept"] != nil
	})

	// The first thin event has the next round read them all; the round says that it has.
	shop := func() map[string]any {
		return c.object(exitDone, "connect", "show", "acct_shop")
	}
	if err := errors.Join(c.fake.SetFaults(stripefake.Faults{}), c.fake.SetEvents(stripefake.ThinEvents)); err != nil {
		t.Fatal(err)
	}
	c.sold("thin")
	c.until("a thin event is noted", func() bool { return shop()["thin"] == true && shop()["checked"] == nil })
	if err := errors.Join(c.fake.SetFaults(stripefake.Faults{WebhookDrops: 1}), c.fake.SetEvents("")); err != nil {
		t.Fatal(err)
	}
	far.object(exitDone, "poll", "--to", v.APIBase, "--once", "--all")
	if shop()["checked"] == nil {
		t.Errorf("not checked: %v", shop())
	}

	far.env["DUESDAY_POLL_SECRET"] = strings.Repeat("another-secret-", 3)
	far.clock.Set(far.clock.Now().Add(time.Second))
	c.sold("2")
	r := far.run("poll", "--to", v.APIBase, "--once", "--all")
	equal(t, "another secret", r.code, exitPerson)
	contains(t, r.out, "does not match this body and any of this endpoint's signing secrets")
	far.env["DUESDAY_API_KEY"] = "another-key-of-the-API"
	r = far.run("poll", "--to", v.APIBase, "--once")
	equal(t, "another key", r.code, exitFailed)
	contains(t, r.errors, "/v1/merchants", "status 401")
	equal(t, "stopped", stop().code, exitDone)
}

func TestPoll_ToFlags(t *testing.T) {
	c := newCLI(t)
	env := map[string]string{"DUESDAY_STRIPE_KEY": rehearsal.StripeFakeKey, "DUESDAY_API_KEY": "dd_0123456789abcdef",
		"DUESDAY_POLL_SECRET": strings.ReplaceAll(pollSecret, " ", "-"), "DUESDAY_STRIPE_WEBHOOK_SECRETS": "whsec_" + strings.Repeat("a", 40)}
	const to = "http://127.0.0.1:1"
	for _, tt := range []struct{ to, name, value, want string }{
		{"ftp://here", "", "", "--to must be an address"},
		{"http://pay.example", "", "", "must be an address such as https://pay.example, or http on this machine"},
		{"https://a:b@pay.example", "", "", "must be an address"},
		{to, "DUESDAY_POLL_SECRET", "", "--to needs an API key with scope read in DUESDAY_API_KEY, and the server's poll secret in DUESDAY_POLL_SECRET"},
		{to, "DUESDAY_API_KEY", "", "--to needs an API key"},
		{to, "DUESDAY_POLL_SECRET", "short", "DUESDAY_POLL_SECRET must be at least 32"},
		{to, "DUESDAY_POLL_SECRET", pollSecret, "DUESDAY_POLL_SECRET must be at least 32"}, // spaces
		{to, "DUESDAY_POLL_SECRET", "dd_" + strings.Repeat("a", 40), "DUESDAY_POLL_SECRET is an API key"},
		{to, "DUESDAY_API_KEY", env["DUESDAY_POLL_SECRET"], "DUESDAY_POLL_SECRET is an API key"},
		{to, "DUESDAY_POLL_SECRET", env["DUESDAY_STRIPE_WEBHOOK_SECRETS"], "DUESDAY_POLL_SECRET is one of Stripe's secrets"},
		{to, "DUESDAY_POLL_SECRET_FILE", "f", "DUESDAY_POLL_SECRET and DUESDAY_POLL_SECRET_FILE are both set"},
	} {
		maps.Copy(c.env, env)
		if delete(c.env, "DUESDAY_POLL_SECRET_FILE"); tt.name != "" {
			c.env[tt.name] = tt.value
		}
		r := c.run("poll", "--once", "--to", tt.to)
		if r.code != exitUsage || !strings.Contains(r.errors, tt.want) || tt.value != "" && strings.Contains(r.errors, tt.value+"x") {
			t.Errorf("%+v: exit %d, %s", tt, r.code, r.errors)
		}
		if tt.name != "" && tt.to == to { // serve has the same check
			if r = c.run("serve", "--listen", "127.0.0.1:0", "--api=", "--pages="); strings.HasPrefix(tt.want, "DUESDAY_POLL") && (r.code != exitUsage ||
				!strings.Contains(r.errors, tt.want)) {
				t.Errorf("serve, %+v: exit %d, %s", tt, r.code, r.errors)
			}
		}
	}
	r := c.run("poll", "--once", "--sweep", "--to", to)
	equal(t, "--sweep", r.code, exitUsage)
}

// TestServe_NobodyTellsOfMoney: with the API key, the secret of pollers and Stripe's older routes,
// a purchase that nobody has paid stays unpaid.
func TestServe_NobodyTellsOfMoney(t *testing.T) {
	c := newServeCLI(t)
	given := strings.ReplaceAll(pollSecret, " ", "-")
	c.env["DUESDAY_POLL_SECRET"] = given
	v, stop := c.serve("--on-fulfil", c.job(), "--poll-every", "24h")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	unpaid, intent := c.sold("1")
	c.flush()
	object := fmt.Sprintf(`{"id":%q,"object":"payment_intent","status":"succeeded","amount":99900,"amount_received":99900,`+
		`"currency":"eur","created":1767225590,"metadata":{"duesday_purchase":%q}}`, intent, unpaid)
	forged := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"object":"event","type":"payment_intent.succeeded","created":%d,"livemode":false,`+
			`"api_version":"2026-08-26.dahlia","account":"acct_shop","data":{"object":%s}}`, id, c.clock.Now().Unix(), object)
	}
	told := c.list("event", "list", "--account", "acct_shop")[0].(map[string]any)["id"].(string)
	hook, apiKey := v.APIBase+server.ConnectPath, c.apiKey("admin")
	for _, tt := range []struct{ url, body, key, want string }{
		{v.APIBase + "/internal/objects", `{"account":"acct_shop","object":` + object + `}`, apiKey, "404"},
		{hook, forged("evt_forged1"), apiKey, "400"},
		{hook, forged("evt_forged1"), "whsec_" + apiKey, "400"},
		{hook, forged("evt_forged1"), shopSecret, "400"},                        // Stripe does not come here
		{v.Base + server.ConnectPath, forged("evt_forged1"), hookSecret, "400"}, // of the other endpoint
		{v.Base + server.ConnectPath, forged("evt_forged1"), given, "400"},      // pollers do not come there
		{v.Base + "/v1/merchants", "", apiKey, "404"},
		{v.Base + "/metrics", "", apiKey, "404"},
		{v.Base + httpapi.PollPath, "{}", given, "404"},
		{hook, forged("evt_forged1"), given, "400"}, // Stripe has no such event
		{hook, forged(told), given, "200"},          // Stripe has another one of that id
		{v.APIBase + httpapi.PollPath, `{"stripe_account":"acct_shop","verified_through":"` +
			c.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`, given, "422"},
		{v.APIBase + httpapi.PollPath, `{"stripe_account":"acct_shop","verified_through":"` +
			c.clock.Now().Add(-time.Hour).UTC().Format(time.RFC3339) + `"}`, apiKey, "400"},
	} {
		got := c.post(tt.url, tt.body, tt.key, apiKey)
		if t.Logf("POST %s, signed with %s…: %s", strings.TrimPrefix(tt.url, v.APIBase), tt.key[:8], got); !strings.HasPrefix(got, tt.want) {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	paid, intent := c.sold("2")
	c.pay(intent)
	equal(t, "fulfilled is what was paid", c.await(1), map[string]int{"fulfil " + paid: 1})
	shown := c.object(exitDone, "purchase", "show", unpaid)["purchase"].(map[string]any)
	equal(t, "the other one", shown["fulfilled"], false)
	if c.run("event", "show", "evt_forged1").code == exitDone {
		t.Error("a forged event is stored")
	}
	equal(t, "stopped", stop().code, exitDone)
}
