package pages_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/pages"
)

// A newStore answers like the API of a store before its first charge: by path, the rows or fields of an object.
type newStore map[string]any

func (s newStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, known := s[strings.TrimPrefix(r.URL.Path, "/v1/")]
	switch rows, many := x.([]any); {
	case many:
		x = map[string]any{"data": rows}
	case !known:
		x = map[string]any{"data": []any{}}
	}
	_ = json.NewEncoder(w).Encode(x)
}

// TestFirstSteps: each step is open or done by what the store says, and an open one has its command. The steps are there
// until the first charge.
func TestFirstSteps(t *testing.T) {
	const settings, account = "duesday settings set daily=06:10 time-zone=Europe/Berlin", "duesday account create 1001 --email you@example.com"
	const run = "duesday run payments"
	withAccount := func(more ...any) map[string]any {
		a := map[string]any{"id": "ada's", "time_zone": "Asia/Tokyo"}
		for i := 0; i < len(more); i += 2 {
			a[more[i].(string)] = more[i+1]
		}
		return a
	}
	subscription := map[string]any{"id": "1", "account": "ada's", "due_date": "2026-03-16", "paid_periods": 0}
	paid := map[string]any{"id": "2", "account": "ada's", "paid_periods": 1}
	day := func(collected, outside int) map[string]any {
		return map[string]any{"days": []any{map[string]any{"collected": 0, "outside": 0}, map[string]any{"collected": collected, "outside": outside}}}
	}
	set := map[string]any{"daily": []string{"06:10", "18:00"}, "time_zone": "UTC"}
	stripe := func(check, state string) map[string]any {
		return map[string]any{"checks": []any{map[string]any{"check": check, "state": state, "found": "Stripe refuses the key", "next": "restart serve"}}}
	}
	for what, tt := range map[string]struct {
		stripe   string
		store    newStore
		done     []string
		commands []string // of the open steps; nil: there are no steps
	}{
		"empty": {"", newStore{"settings": map[string]any{}}, []string{"Processor"}, []string{settings, account,
			"duesday subscription create 1001/1 --sku gym --amount 12.99 --currency EUR --payment-day 15 --email you@example.com --payment-method pm_card_visa", run}},
		"empty, at Stripe": {"the fake", newStore{"settings": map[string]any{}}, []string{"Processor"}, []string{settings, account, "duesday account card-link 1001",
			"duesday subscription create 1001/1 --sku gym --amount 12.99 --currency EUR --payment-day 15 --email you@example.com", run}},
		"Stripe refuses the key": {"the fake", newStore{"settings": set, "status": stripe("stripe", "wrong")}, []string{"Schedule"}, []string{account,
			"duesday account card-link 1001",
			"duesday subscription create 1001/1 --sku gym --amount 12.99 --currency EUR --payment-day 15 --email you@example.com", run}},
		"account, in Tokyo": {"the fake", newStore{"settings": set, "accounts": []any{withAccount()}}, []string{"Processor", "Schedule", "First account"},
			[]string{`duesday account card-link 'ada'\''s'`, `duesday subscription create 'ada'\''s'/1 --sku gym --amount 12.99 --currency EUR --payment-day 16`, run}},
		"account, in a zone that is not known": {"the fake", newStore{"settings": set, "accounts": []any{withAccount("time_zone", "Atlantis/Main")}},
			[]string{"Processor", "Schedule", "First account"},
			[]string{`duesday account card-link 'ada'\''s'`, `duesday subscription create 'ada'\''s'/1 --sku gym --amount 12.99 --currency EUR --payment-day 15`, run}},
		"link": {"the fake", newStore{"settings": set, "accounts": []any{withAccount("customer", "cus_1")}, "subscriptions": []any{subscription}},
			[]string{"Processor", "Schedule", "First account", "Card", "First subscription"}, []string{run}},
		"declined": {"the fake", newStore{"settings": set, "accounts": []any{withAccount("payment_method", "pm_1")}, "subscriptions": []any{subscription},
			"overview": map[string]any{"run": map[string]any{"id": "r", "due": 1, "paid": 0}}},
			[]string{"Processor", "Schedule", "First account", "Card", "First subscription"}, []string{run}},
		"a run has charged":        {"", newStore{"overview": map[string]any{"run": map[string]any{"paid": 1}}}, nil, nil},
		"a person has charged":     {"", newStore{"subscriptions": []any{subscription, paid}}, nil, nil},
		"charged weeks ago":        {"", newStore{"overview": day(1299, 0), "subscriptions": []any{subscription}}, nil, nil},
		"paid by wire":             {"", newStore{"overview": day(0, 1299)}, nil, nil},
		"follows merchants only":   {"the fake", newStore{"status": stripe("accounts", "ok")}, nil, nil},
		"merchants and an account": {"", newStore{"settings": set, "status": stripe("accounts", "ok"), "accounts": []any{withAccount()}, "subscriptions": []any{subscription}}, []string{"Processor", "Schedule", "First account", "First subscription"}, []string{run}},
	} {
		h := pages.New(pages.Options{API: tt.store, Keys: keys{scope: key.Admin}, Stripe: tt.stripe, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return time.Date(2026, 3, 15, 23, 30, 0, 0, time.UTC) }})
		lists := map[string]bool{"/": true, "/accounts": tt.store["accounts"] == nil, "/subscriptions": tt.store["subscriptions"] == nil, "/runs": true,
			"/endpoints": false, "/accounts?email=a": false}
		for path, wanted := range lists {
			w := ask(h, "GET", path, nil, nil)
			text := strings.NewReplacer("&#39;", "'", "&#34;", `"`).Replace(w.Body.String())
			_, steps, there := strings.Cut(text, ">To the first charge</h2>")
			steps, _, _ = strings.Cut(steps, "</section>")
			if w.Code != http.StatusOK || there != (wanted && tt.commands != nil) {
				t.Errorf("%s: %s: %d, with steps: %t\n%s", what, path, w.Code, there, text)
			}
			if !there {
				continue
			}
			var done, commands []string
			for _, m := range regexp.MustCompile(`<h3>([A-Za-z ]+) <span class="state done">`).FindAllStringSubmatch(steps, -1) {
				done = append(done, m[1])
			}
			for _, m := range regexp.MustCompile(`<code class="copy">([^<]*)</code>`).FindAllStringSubmatch(steps, -1) {
				commands = append(commands, m[1])
			}
			if !slices.Equal(done, tt.done) || !slices.Equal(commands, tt.commands) {
				t.Errorf("%s: %s: done: %q\ncommands: %q\nwant %q", what, path, done, commands, tt.commands)
			}
		}
	}
}
