package billingapi_test

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A posted is a POST that changes something.
type posted struct {
	name, more string // more fields of the subscription
	days       int    // that pass before it
	before     string // another POST to the subscription, before it
	path, body string
	other      string // another body, for the same key
}

// posts are all kinds of POST, as each is sent by a program.
func posts() []posted {
	const sub = subscription
	return []posted{
		{name: "account", path: "/v1/accounts", body: `{"id":"bob","email":"bob@example.com"}`, other: `{"id":"bob","email":"b@example.com"}`},
		{name: "method", path: "/v1/accounts/ada/payment_methods", body: `{"payment_method":"pm_card_mastercard"}`,
			other: `{"payment_method":"pm_card_visa"}`},
		{name: "subscription", path: "/v1/accounts/bob/subscriptions",
			body:  `{"id":"s2","sku":"gym","amount":500,"currency":"EUR","payment_day":1,"email":"bob@example.com"}`,
			other: `{"id":"s2","sku":"gym","amount":501,"currency":"EUR","payment_day":1,"email":"bob@example.com"}`},
		{name: "plan", path: sub + "/plan", body: `{"amount":1500,"currency":"EUR"}`, other: `{"amount":1600,"currency":"EUR"}`},
		{name: "pause", path: sub + "/pause", body: `{}`},
		{name: "resume", before: "/pause", days: 65, path: sub + "/resume", body: `{}`},
		{name: "cancel", path: sub + "/cancel", body: `{}`, other: `{"at_period_end":true}`},
		{name: "cancel and collect", days: 65, path: sub + "/cancel", body: `{"collect":true}`, other: `{}`},
		{name: "skip", days: 40, path: sub + "/skip", body: `{"until":"2027-03-12"}`, other: `{"until":"2027-03-11"}`},
		{name: "charge", path: sub + "/charge", body: `{}`, other: `{"period":0}`},
		{name: "charge declined", more: `,"payment_method":"pm_card_chargeDeclined"`, path: sub + "/charge", body: `{"period":0}`},
		{name: "charge to be retried", more: `,"payment_method":"pm_card_visa_chargeDeclinedInsufficientFunds"`, path: sub + "/charge", body: `{}`},
		{name: "charge period", days: 65, path: sub + "/periods/0/charge", body: `{}`, other: `{"reopen":"x"}`},
		{name: "manual payment", path: sub + "/receipts", body: `{"note":"bank 7"}`, other: `{"note":"bank 8"}`},
		{name: "refund", before: "/charge", path: "/v1/receipts/NUMBER/refunds", body: `{"account":"ada","amount":299,"currency":"EUR"}`,
			other: `{"account":"ada","amount":300,"currency":"EUR"}`},
		{name: "key", path: "/v1/keys", body: `{"name":"shop","scope":"read"}`, other: `{"name":"shop","scope":"admin"}`},
		{name: "run", path: "/v1/runs", body: `{"kind":"payments"}`, other: `{"kind":"reminders"}`},
	}
}

// intents are the processor's references, which differ from world to world.
var intents = regexp.MustCompile(`(pi|re|ch)_sandbox_\w+|rf_[0-9a-f]{32}|"version":\d+,`)

// begin prepares the world for the POST, and returns its path.
func (w *world) begin(p posted) string {
	w.Helper()
	w.signUp(cmp.Or(p.more, visa))
	if p.before != "" {
		w.must("POST", subscription+p.before, `{}`)
	}
	if w.days.Add(int64(p.days)); p.days > 0 {
		w.restart()
	}
	if !strings.Contains(p.path, "NUMBER") {
		return p.path
	}
	receipts := w.must("GET", "/v1/receipts?account=ada", "").body["data"].([]any)
	return strings.ReplaceAll(p.path, "NUMBER", receipts[0].(map[string]any)["id"].(string))
}

// state is what the store and the processor have of the customers, without times.
func (w *world) state() string {
	w.Helper()
	var text strings.Builder
	text.WriteString(fmt.Sprint("charged ", w.charged()))
	for _, path := range []string{"/v1/accounts/ada", subscription, subscription + "/periods", "/v1/refunds?account=ada"} {
		text.WriteString("\n" + w.must("GET", path, "").text)
	}
	for _, x := range w.must("GET", "/v1/receipts?account=ada", "").body["data"].([]any) {
		r := x.(map[string]any)
		text.WriteString(fmt.Sprint("\nreceipt ", r["period"], r["kind"], r["amount"]))
	}
	return intents.ReplaceAllString(text.String(), "pi")
}

// TestOnce_Repeats: a repetition, to the same process and to the next, changes nothing and is told. The same
// key with another body is refused with the object of the first request, and a key of another scope asks
// in vain.
func TestOnce_Repeats(t *testing.T) {
	for _, p := range posts() {
		t.Run(p.name, func(t *testing.T) {
			w := newWorld(t)
			path := w.begin(p)
			first := w.ask("admin", "POST", path, "k", p.body)
			if first.status >= 300 {
				t.Fatalf("%d %s", first.status, first.text)
			}
			was := w.state()
			for range 2 {
				again := w.ask("admin", "POST", path, "k", p.body)
				if again.status != 200 || again.header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("repeated: %d %v %s", again.status, again.header, again.text)
				}
				if strings.Contains(again.text, `"key"`) {
					t.Errorf("a repetition has a secret: %s", again.text)
				}
				if now := w.state(); now != was {
					t.Errorf("a repetition changed\n%s\nto\n%s", was, now)
				}
				w.restart()
			}
			if p.other == "" {
				return
			}
			other := w.ask("admin", "POST", path, "k", p.other)
			if other.status != 422 || other.body["code"] != "idempotency_key" || other.body["object"] == nil || w.state() != was {
				t.Errorf("another body: %d %s", other.status, other.text)
			}
			if a := w.ask("read", "POST", path, "k", p.body); a.status != 403 {
				t.Errorf("repeated with a key of scope read: %d %s", a.status, a.text)
			}
		})
	}
}

// TestOnce_CutOff cuts the process off after each commit of each POST, with and without the reply of that
// commit. The next process then gets the same request, and the payment run finishes what only waits: the
// customers end as without the cut, and nothing is charged twice.
func TestOnce_CutOff(t *testing.T) {
	for _, p := range posts() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			whole := newWorld(t)
			path := whole.begin(p)
			if a := whole.ask("admin", "POST", path, "k", p.body); a.status >= 300 {
				t.Fatalf("%d %s", a.status, a.text)
			}
			commits := whole.faults.done.Load()
			want := whole.state()
			for cut := int64(1); ; cut++ {
				w := newWorld(t)
				path := w.begin(p)
				w.faults.left.Store(cut)
				w.faults.lost.Store(cut%2 == 0)
				w.ask("admin", "POST", path, "k", p.body)
				dead := w.faults.dead.Load()
				w.restart()
				a := w.ask("admin", "POST", path, "k", p.body)
				if a.status >= 300 {
					t.Errorf("cut off after commit %d of %d, and repeated: %d %s", cut, commits, a.status, a.text)
				}
				if got := w.state(); got != want {
					t.Errorf("cut off after commit %d: got\n%s\nwant\n%s", cut, got, want)
				}
				if !dead {
					break
				}
			}
		})
	}
}
