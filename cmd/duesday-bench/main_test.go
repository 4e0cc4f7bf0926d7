package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/test/soaktest"
)

// run executes one command line and returns its output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, errors strings.Builder
	c := command(&out, &errors)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"webhooks --seconds 121":                    "--seconds must be at most 120",
		"webhooks --subscriptions 10":               "at least 1000 subscriptions",
		"webhooks --workers 0":                      "1 worker",
		"webhooks all":                              `unknown command "all"`,
		"payments --rounds 0":                       "1 round",
		"units --subscriptions 0":                   "must be 1 to 200000",
		"units --subscriptions 1000000":             "must be 1 to 200000",
		"units --item-bytes -1":                     "must be 0 to 300000",
		"units --item-bytes 500000":                 "must be 0 to 300000",
		"units --subscriptions 10 --item-bytes 100": "cannot be smaller",
		"units extra":                               `unknown command "extra"`,
		"peers --postgres /nowhere":                 "missing /nowhere/initdb",
		"peers --sync-engine /nowhere":              "missing @supabase/stripe-sync-engine in /nowhere\nmissing stripe in /nowhere",
		"sizes --workers 0":                         "1 worker",
		"day --subscriptions 1000000":               "--sizes instead",
		"day --sizes 999":                           "sizes of at least 1000",
		"day --before 98":                           "at most 100 days",
	} {
		out, err := run(t, append(strings.Fields(args), "--dir", t.TempDir())...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: got %q and error %v, want an error with %q", args, out, err, want)
		}
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	out, err := run(t, "units", "--subscriptions", "20")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a paid period", "BIND put", "SETTLE put, in a transaction", "receipt", "GSI-2",
		"a reminder", "a due row, found", "LOOK BACK get"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if again, err := run(t, "units", "--subscriptions", "20"); again != out || err != nil {
		t.Errorf("the second time, with error %v:\n%s\nnot\n%s", err, again, out)
	}
	text, err := run(t, "units", "--subscriptions", "20", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Paid struct {
			Units struct{ Write float64 }
		} `json:"paid_period"`
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil || o.Paid.Units.Write != 20.3 {
		t.Errorf("paid period: %v write units and error %v, want 20.3", o.Paid.Units.Write, err)
	}
}

// TestSizes runs each step of the product on a small book.
func TestSizes(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	out, err := run(t, "sizes", "--dir", t.TempDir(), "--sizes", "1000,2000", "--cache", "16")
	if err != nil || !strings.Contains(out, "10 charges in") || !strings.Contains(out, "20 charges in") || strings.Count(out, "full compaction") != 2 {
		t.Errorf("got %q and error %v", out, err)
	}
}

// TestDay charges whole days of two small books.
func TestDay(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	out, err := run(t, "day", "--dir", t.TempDir(), "--sizes", "1000,2000", "--before", "1", "--rounds", "2", "--seconds", "60",
		"--cache", "16", "--json")
	var books []struct {
		Subscriptions, Days int
		Ratio               struct{ Median float64 }
	}
	if err != nil || json.Unmarshal([]byte(out), &books) != nil || len(books) != 2 || books[1].Subscriptions != 2000 ||
		books[0].Days != 100 || books[1].Days != 100 || books[0].Ratio.Median != 1 || books[1].Ratio.Median <= 0 {
		t.Errorf("got %q and error %v", out, err)
	}
}

// TestRatios runs each measurement small, so that none of them rots.
func TestRatios(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	for _, name := range []string{"payments", "due"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, name, "--dir", t.TempDir(), "--subscriptions", "1000", "--seconds", "1", "--rounds", "1",
				"--cache", "16")
			if err != nil || !strings.Contains(out, "ratio") {
				t.Errorf("got %q and error %v", out, err)
			}
		})
	}
}
