package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/stripefake"
)

// A shop rehearses three months in seconds: the fake and serve live by one fast clock, and a fake
// that was moved ahead takes its server along.
func TestStripeFake_FastClock(t *testing.T) {
	c := newCLI(t)
	first, _ := c.stripeFakeBy(time.Now, "--json", "--clock", "2026-01-20T12:00:00Z,1m/s")
	base := decode(t, first).(map[string]any)["base"].(string)
	c.env = map[string]string{config.EnvStripeAPIBase: base, config.EnvStripeKey: rehearsal.StripeFakeKey, config.EnvClock: "processor",
		"DUESDAY_PROCESSOR": "stripe:?return_url=https://gym.example/thanks"}
	run := func(args ...string) string {
		t.Helper()
		var out, errors bytes.Buffer
		p := newProgram(c.getenv(args), strings.NewReader(""), &out, &errors, time.Now)
		p.Dir = c.dir
		if code := p.run(t.Context(), args); code != exitDone {
			t.Fatalf("duesday %s: exit %d, %s", strings.Join(args, " "), code, errors.String())
		}
		return out.String()
	}
	run("store", "create")
	run("settings", "set", "daily=06:10", "time-zone=UTC")
	var book strings.Builder
	book.WriteString("account,email,subscription,sku,amount,currency,payment_day,next_payment_date\n")
	for n := range 5 {
		fmt.Fprintf(&book, "%d,a%[1]d@example.com,1,gym,39.00,GBP,1,2026-02-01\n", 1001+n)
	}
	run("import", c.file("customers.csv", book.String()))
	for n := range 5 {
		_, body := stripeAsk(t, base, "/v1/customers", "payment_method=pm_card_visa")
		run("account", "attach", fmt.Sprint(1001+n), "--customer", decode(t, body).(map[string]any)["id"].(string))
	}
	control := stripefake.Control{Base: base}
	if err := control.SetSpeed(t.Context(), stripefake.MaxSpeed); err != nil {
		t.Fatal(err)
	}
	v, stop := c.serveBy(time.Now, "--no-poll")
	if !strings.Contains(v.Clock, fmt.Sprintf(",%v/s,", stripefake.MaxSpeed*time.Second)) {
		t.Errorf("serve runs at %s, not at the fake's speed", v.Clock)
	}
	for deadline := time.Now().Add(time.Minute); len(fakeCharges(t, control)) < 15; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of 15 charges after a minute", len(fakeCharges(t, control)))
		}
	}
	if r := stop(); r.code != exitDone {
		t.Errorf("serve: exit %d, %s", r.code, r.errors)
	}
	if out := run("verify"); !strings.Contains(out, "The audit is clean") {
		t.Error(out)
	}
}

func fakeCharges(t *testing.T, control stripefake.Control) (ids []string) {
	t.Helper()
	for e, err := range control.Ledger(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.Intent)
	}
	return ids
}

func TestStripeFake_ClockFlag(t *testing.T) {
	c := newCLI(t)
	for text, want := range map[string]string{
		"processor":       "--clock must be START[,SPEED]",
		"yesterday":       "--clock: start",
		"2026-01-01,11d":  "--clock: speed",
		"2026-01-01,0s/s": "--clock: speed",
	} {
		r := c.run("stripe-fake", "--listen", "127.0.0.1:0", "--clock", text)
		if r.code != exitUsage || !strings.Contains(r.errors, want) {
			t.Errorf("--clock %s: exit %d, %s", text, r.code, r.errors)
		}
	}
}
