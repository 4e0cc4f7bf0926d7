package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/duesday/duesday/internal/billing/outlook"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/session"
)

// overview asks the server for the overview.
func (c *cli) overview(base, key string) (o struct {
	Missing string `json:"outlook_missing"`
	Outlook struct {
		Subscriptions int `json:"subscriptions"`
		Recurring     []struct {
			Amounts map[string]int `json:"amounts"`
		} `json:"recurring"`
	} `json:"outlook"`
}) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, base+"/v1/overview", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if err := json.NewDecoder(a.Body).Decode(&o); err != nil || a.StatusCode != http.StatusOK {
		c.t.Fatalf("the overview: %d, %v", a.StatusCode, err)
	}
	return o
}

// TestOutlook: a payment run is followed by the pass, whose figures the API then has. Before any run there are none.
func TestOutlook(t *testing.T) {
	c := newCLI(t)
	for _, account := range []string{"1", "2"} {
		c.must("subscription", "create", account+"/1", "--email", "ada@example.com", "--sku", "gym", "--amount", "12.50",
			"--currency", "EUR", "--payment-day", "31", "--payment-method", "pm_card_visa")
	}
	key := c.object(exitDone, "key", "create", "shop", "--scope", "read")["key"].(string)
	v, stop := c.serveBy(c.clock.Now, "--no-poll", "--mail", "mail")
	if o := c.overview(v.APIBase, key); o.Missing != "no_pass" {
		t.Errorf("before any run: %+v", o)
	}
	stop()
	c.must("run", "payments", "--mail", "mail")
	p := newProgram(func(string) string { return "" }, nil, nil, nil, c.clock.Now) // before a serve makes the pass itself
	p.Dir, p.Config = c.dir, config.Config{Store: config.DefaultStore}
	err := p.With(t.Context(), session.Need{Read: true}, func(s *session.Session) error {
		list, err := outlook.Latest(t.Context(), s.Engine.Records, 1)
		if err == nil && len(list) != 1 {
			t.Errorf("the run was followed by %d passes", len(list))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v, _ = c.serveBy(c.clock.Now, "--no-poll", "--mail", "mail")
	o := c.overview(v.APIBase, key)
	if o.Missing != "" || o.Outlook.Subscriptions != 2 || len(o.Outlook.Recurring) != 1 || o.Outlook.Recurring[0].Amounts["EUR"] != 2500 {
		t.Errorf("after a run: %+v", o)
	}
}
