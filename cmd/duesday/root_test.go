package main

import (
	"context"
	"strings"
	"testing"
)

func TestRoot_WrongUsage(t *testing.T) {
	c := newCLI(t)
	for _, x := range []struct{ line, want string }{
		{"bogus", `unknown command "bogus"`},
		{"account", "duesday account needs a subcommand: attach, card-link, create, erase, export, list, portal-link, show, update"},
		{"account bogus", `unknown command "bogus" for "duesday account"`},
		{"run payments extra", `takes no argument`},
		{"run payments --bogus", "unknown flag: --bogus"},
		{"run payments --date 2026-02-30", "2026-02-30"},
		{"run payments --workers 0", "1 to 1024"},
		{"due payments", "--date DATE or --until DATE"},
		{"due payments --date 2026-01-01 --until 2026-01-01", "set either"},
		{"subscription show 1", "ACCOUNT/SUBSCRIPTION"},
		{"subscription show", "ACCOUNT/SUBSCRIPTION is missing"},
		{"subscription show 1/1 2/2", "too many arguments"},
		{"subscription update 1/1", "nothing to change"},
		{"subscription create 1/1 --sku a", "amount"},
		{"subscription create 1/1 --sku a --amount 1 --currency XAU --payment-day 1 --payment-method pm", "precious metal"},
		{"subscription create 1/1 --sku a --amount 1.5 --currency JPY --payment-day 1 --payment-method pm", "without decimals"},
		{"subscription create 1/1 --sku a --amount 1 --currency USD --payment-day 32 --payment-method pm", "1 to 31"},
		{"subscription create 1/1 --sku a --amount 1 --currency USD --payment-day 1 --payment-method pm --interval daily",
			"--interval"},
		{"subscription list --status gone", "past_due"},
		{"account create a#b --email a@example.com", "must not contain"},
		{"account create 1 --email a", "ada@example.com"},
		{"account create 1 --email a@example.com --time-zone Mars", "--time-zone"},
		{"receipt list", "ACCOUNT is missing"},
		{"receipt list 1 --account 2", "two accounts"},
		{"export receipts --format xml", "csv, jsonl"},
		{"import", "FILE is missing"},
		{"import x --currency XXX", "--currency"},
		{"demo --months 0", "months"},
		{"run payments --date 1969-12-31", "1970-01-01 or later"},
		{"run payments --date 2036-03-16", "2036-03-15 or earlier"},
		{"run reminders --dry-run --date 9999-12-31", "2036-03-15 or earlier"},
		{"due payments --date 0001-01-01", "1970-01-01 or later"},
		{"due payments --until 1969-12-31", "1970-01-01 or later"},
		{"due reminders --until 9999-12-31", "2036-03-15 or earlier"},
		{"subscription create 1/1 --start-date 1969-12-31", "1970-01-01 or later"},
		{"subscription create 1/1 --next-payment-date 1969-12-31", "1970-01-01 or later"},
		{"account update 1", "nothing to change"},
		{"account update 1 --time-zone Mars", "--time-zone"},
		{"account update 1 --time-zone=", "--time-zone"},
		{"outbox", "duesday outbox needs a subcommand: drop, list, release, replay, send"},
		{"outbox replay", "ID is missing"},
		{"verify --catch-up 3", "unknown flag: --catch-up"},
		{"verify --processor paypal:live", "stripe or sandbox:FILE"},
		{"verify --store foo:bar", "pebble:DIR"},
		{"verify --store data", `did you mean "pebble:data"`},
		{"verify --log-level loud", "debug, info, warn or error"},
	} {
		r := c.run(strings.Fields(x.line)...)
		if r.code != exitUsage || r.out != "" || !strings.HasPrefix(r.errors, "duesday: ") {
			t.Errorf("duesday %s: exit %d, out %q, errors %q", x.line, r.code, r.out, r.errors)
		}
		contains(t, r.errors, x.want, "--help\n")
	}
}

func TestRoot_ErrorsAsJSON(t *testing.T) {
	c := newCLI(t)
	for line, code := range map[string]int{
		"--json run payments --bogus": exitUsage, "run payments --bogus --json": exitUsage, "account list --json": exitFailed,
		"bogus --json": exitUsage, "subscription create 1/1 --json": exitUsage,
	} {
		r := c.run(strings.Fields(line)...)
		o, ok := decode(t, r.errors).(map[string]any)
		if r.code != code || r.out != "" || !ok || o["error"] == "" {
			t.Errorf("duesday %s: exit %d, out %q, errors %q", line, r.code, r.out, r.errors)
		}
	}
}

func TestRoot_NeverShowsACardNumber(t *testing.T) {
	c := newCLI(t)
	const card = "4242424242424242"
	for _, line := range []string{
		"subscription show " + card + "/1", card, "run payments " + card, "run payments --date " + card, "import " + card,
		"account create " + card + " --email a@example.com", "--store " + card + " verify", "charging off --reason " + card,
		"subscription create 1/1 --sku a --amount 1 --currency USD --payment-day 1 --payment-method " + card +
			" --email a@example.com",
		"subscription list --status " + card, "--processor " + card + " verify", "account show " + card,
	} {
		r := c.run(strings.Fields(line)...)
		if r.code == exitDone || strings.Contains(r.out+r.errors, card) {
			t.Errorf("duesday %s: exit %d, %s%s", line, r.code, r.out, r.errors)
		}
	}
}

func TestRoot_MissingStoreSaysWhatToDo(t *testing.T) {
	c := newCLI(t)
	for _, line := range []string{"account list", "account show 1", "account update 1 --email a@example.com",
		"subscription list", "verify",
		"run payments", "run reminders", "due payments --date 2026-01-01", "receipt list 1", "export accounts", "reconcile",
		"subscription pause 1/1", "receipt create 1/1", "outbox list", "outbox replay 1", "outbox send"} {
		r := c.run(strings.Fields(line)...)
		if r.code != exitFailed {
			t.Errorf("duesday %s: exit %d", line, r.code)
		}
		contains(t, r.errors, "duesday: there is no store at pebble:./duesday-data yet", "duesday store create", "--store",
			"restore its backup")
		if strings.Contains(r.errors, "import") {
			t.Errorf("duesday %s advises an import: %s", line, r.errors)
		}
	}
}

func TestRoot_EnvironmentAndFlagsAnywhere(t *testing.T) {
	c := newCLI(t)
	c.env["DUESDAY_STORE"], c.env["DUESDAY_PROCESSOR"] = "pebble:./env", "sandbox:./sub/env.jsonl"
	c.must("account", "create", "1", "--email", "a@example.com")
	equal(t, "by environment", len(c.list("account", "list")), 1)
	c.must("account", "create", "2", "--email", "b@example.com", "--store", "pebble:./flag")
	c.must("--store", "pebble:./flag", "account", "create", "3", "--email", "c@example.com")
	equal(t, "by flag", len(c.list("--store=pebble:./flag", "account", "list")), 2)
	c.must("verify")
	c.read("sub/env.jsonl")
}

func TestRoot_HelpAndCompletion(t *testing.T) {
	c := newCLI(t)
	contains(t, c.must(), "Billing", "demo", "import", "verify")
	contains(t, c.must("help", "run"), "payments", "reminders", "Exits 3")
	contains(t, c.must("run", "payments", "--help"), "--date DATE", "--workers", "--dry-run")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		contains(t, c.must("completion", shell), "duesday")
	}
	contains(t, c.must("version"), "duesday ", "go1.")
	if v := c.object(exitDone, "version"); v["go"] == "" || v["version"] == "" {
		t.Errorf("version: %v", v)
	}
}

func TestRoot_Interrupted(t *testing.T) {
	c := newCLI(t)
	c.must("account", "create", "1", "--email", "a@example.com")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errors strings.Builder
	code := run(ctx, []string{"run", "payments"}, func(string) string { return "" }, strings.NewReader(""), &out, &errors)
	if code != exitFailed || !strings.Contains(errors.String(), "interrupted") {
		t.Errorf("exit %d, %s", code, errors.String())
	}
}
