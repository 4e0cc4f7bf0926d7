package main

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
)

// older makes the store one of a Duesday that had no settings.
func (c *cli) older() {
	c.t.Helper()
	c.commit(store.Delete(schema.New(schema.DefaultPrefix).RecurringPayments.Name, settings.Key))
}

// commit writes into the store beside Duesday.
func (c *cli) commit(w ...store.Write) {
	c.t.Helper()
	p := newProgram(func(string) string { return "" }, nil, nil, nil, c.clock.Now)
	p.Dir = c.dir
	p.Config = config.Config{Store: config.DefaultStore}
	err := p.With(c.t.Context(), session.Need{Read: true},
		func(s *session.Session) error { return s.Store.Commit(c.t.Context(), w...) })
	if err != nil {
		c.t.Fatal(err)
	}
}

// refused runs a command that is invalid usage, and returns its message.
func (c *cli) refused(args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	if r.code != exitUsage || r.out != "" {
		c.t.Errorf("duesday %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.code, exitUsage, r.errors, r.out)
	}
	return r.errors
}

func TestSettings_ShowAndSet(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	equal(t, "defaults", members(c.object(exitDone, "settings", "show"), "version", "retry_days",
		"receipt_months", "catch_up", "action_days", "time_zone", "daily", "merchant_name"),
		[]any{1, []int{1, 3, 5, 7}, 6, 3, 14, "UTC", nil, nil})
	c.must("settings", "set", "retry-days=2, 4")
	equal(t, "set", c.must("settings", "set", "daily=06:10,18:10", "time-zone=Europe/Berlin", "sender=Ada <ada@example.com>"),
		"the settings are at version 3\n  sender     - -> Ada <ada@example.com>\n  daily      - -> 06:10,18:10\n"+
			"  time-zone  UTC -> Europe/Berlin\n")
	for _, r := range []struct{ args, want string }{
		{"catch-up=5 daily=7", `daily: must be at most 24 ascending times such as 06:10,18:10 (got "7")`},
		{"catch-up=5 catch-up=6", "catch-up is set twice"},
		{"catch-up=5 alarm", "settings must be NAME=VALUE, such as retry-days=1,3,5,7 (got alarm)"},
		{"catch-up=5 months=1", `"months": is not a setting; the settings are receipt-months, retry-days,`},
		{"", "NAME=VALUE is missing"},
	} {
		contains(t, c.refused(append([]string{"settings", "set"}, strings.Fields(r.args)...)...), r.want)
	}
	shown := c.object(exitDone, "settings", "set", "retry-days=", "daily=")
	equal(t, "all or nothing", members(shown, "version", "catch_up", "retry_days", "daily", "time_zone"),
		[]any{4, 3, []int{1, 3, 5, 7}, nil, "Europe/Berlin"})
	contains(t, c.must("settings", "show"), "time-zone            Europe/Berlin")
	var history []any
	for _, h := range c.list("settings", "show", "--history") {
		history = append(history, members(h.(map[string]any), "version", "setting", "before", "after"))
	}
	equal(t, "history", history, []any{[]any{2, "retry-days", "1,3,5,7", "2,4"}, []any{3, "daily", nil, "06:10,18:10"},
		[]any{3, "sender", nil, "Ada <ada@example.com>"}, []any{3, "time-zone", "UTC", "Europe/Berlin"},
		[]any{4, "daily", "06:10,18:10", ""}, []any{4, "retry-days", "2,4", "1,3,5,7"}})
}

// TestSettings_OfAnOlderStore: the first run stores the defaults, which other commands only read.
func TestSettings_OfAnOlderStore(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	c.older()
	version := func() any { return decode(t, c.run("settings", "show", "--json").out).(map[string]any)["version"] }
	c.must("run", "payments", "--dry-run")
	c.must("verify")
	c.must("account", "update", "1", "--email", "b@example.com")
	equal(t, "these write none", version(), 0)
	for _, job := range []func() result{func() result { return c.run("run", "payments") }, func() result {
		_, stop := c.serveBy(c.clock.Now)
		return stop()
	}} {
		r := job()
		equal(t, "exit", r.code, exitDone)
		contains(t, r.errors, "this store had no settings, so it now has the defaults")
		equal(t, "stored", version(), 1)
		c.older()
	}
	c.must("settings", "set", "merchant-name=Ada's Gym")
	equal(t, "set", members(c.object(exitDone, "settings", "show"), "version", "merchant_name"), []any{1, "Ada's Gym"})
}

// TestSettings_GoWithTheStore holds for a copy, and for a backup.
func TestSettings_GoWithTheStore(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	c.must("settings", "set", "retry-days=2")
	c.must("store", "backup", "--to", "backup")
	contains(t, c.must("store", "restore", "--from", "backup", "--store", "pebble:./restored"), "revoked after the backup are valid again; check them with duesday key list --store pebble:./restored")
	c.must("store", "copy", "--from", "pebble:./duesday-data", "--to", "pebble:./copied")
	for _, at := range []string{"pebble:./restored", "pebble:./copied"} {
		equal(t, at, members(c.object(exitDone, "settings", "show", "--store", at), "version", "retry_days"),
			[]any{2, []int{2}})
		equal(t, at, len(c.list("settings", "show", "--history", "--store", at)), 1)
	}
	if r := c.run("settings", "set", "catch-up=4"); r.code != exitFailed || !strings.Contains(r.errors, "moved to") {
		t.Errorf("of the source: exit %d, %s", r.code, r.errors)
	}
}

func TestSettings_WrongInTheStore(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	c.commit(store.Update(schema.New(schema.DefaultPrefix).RecurringPayments.Name, settings.Key,
		store.NewItem(store.Attribute{Name: schema.Data,
			Value: store.M(store.NewItem(store.Attribute{Name: "catch-up", Value: store.S("many")}))}), nil))
	const want = `catch-up: must be 1 to 24 (got "many")`
	if r := c.run("run", "payments"); r.code == exitDone || !strings.Contains(r.errors, want) ||
		!strings.Contains(r.errors, "to correct them, run duesday settings set") {
		t.Errorf("run: exit %d, %s", r.code, r.errors)
	}
	if r := c.run("settings", "show"); r.code == exitDone || !strings.Contains(r.errors, want) {
		t.Errorf("show: exit %d, %s", r.code, r.errors)
	}
	problems := c.object(exitFailed, "verify")["problems"].([]any)
	equal(t, "verify", problems[0].(map[string]any)["kind"], "unreadable settings")
	c.must("settings", "set", "catch-up=")
	c.must("run", "payments")
}

// TestSettings_Everywhere: the help and the object of settings show have each of them.
func TestSettings_Everywhere(t *testing.T) {
	c := newCLI(t)
	c.must("account", "create", "1", "--email", "ada@example.com")
	c.must("settings", "set", "merchant-name=Gym", "postal-address=1 Road", "sender=a@example.com", "reply-to=b@example.com",
		"daily=06:10", "alarm-at=09:00", "operator=c@example.com", "ended-by=unpaid", "pay-to=DE89", "tax-rates=DE:19",
		"seller=Gym Ltd", "seller-address=1 Road", "seller-country=GB", "seller-tax-id=GB1", "public-url=https://pay.example.com")
	help, shown := c.must("settings", "--help"), c.object(exitDone, "settings", "show")
	for _, name := range settings.Names() {
		contains(t, help, "\n  "+name+" ")
		if shown[strings.ReplaceAll(name, "-", "_")] == nil {
			t.Errorf("settings show has no %s: %v", name, shown)
		}
	}
}
