package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// published returns the path of the published model.
func published(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../internal/book/testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSchema_ImportsBack prints the model and its CSV, imports both, and holds the stores to
// the one that the published model makes.
func TestSchema_ImportsBack(t *testing.T) {
	seed := published(t)
	c := newCLI(t)
	c.file("model.json", c.must("schema", "nosql-workbench"))
	c.file("sample.csv", c.must("schema", "nosql-workbench", "--csv", "recurring-payments"))
	exported := map[string]string{}
	for _, file := range []string{seed, "model.json", "sample.csv"} {
		store := "pebble:./" + strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		rows := 3 // the account is an item of its own
		if file == seed {
			rows = 2
		}
		o := c.object(exitDone, "import", file, "--store", store, "--overdue", "charge")
		equal(t, file, members(o, "rows", "created", "receipts", "rejected_rows"), []any{rows, 1, 1, 0})
		for _, what := range []string{"subscriptions", "receipts"} {
			exported[file] += c.must("export", what, "--store", store)
		}
		for _, a := range c.list("account", "list", "--store",
			store) { // import makes an account item's account now, whatever its CreatedDate
			exported[file] += fmt.Sprintln(members(a.(map[string]any), "id", "email", "time_zone")...)
		}
		exported[file] += c.must("subscription", "show", "123/123", "--json", "--store", store)
		number := regexp.MustCompile(`20230528-[0-9A-Z]{8}-[0-9A-Z]{8}`) // of a receipt: each store has its own
		exported[file] = number.ReplaceAllString(exported[file], "NUMBER")
		o = c.object(exitDone, "import", file, "--store", store)
		equal(t, file+" again", members(o, "created", "existing", "receipts"), []any{0, 1, 0})
	}
	contains(t, exported[seed], "123,s@s.com,123,999,12.99,USD,28,pm_card_visa,,2023-06-28,month",
		"2023-05-28T14:15:39.247Z", `"12 Bridge Street, Birmingham, B12 7ST"`)
	for file, text := range exported {
		if text != exported[seed] {
			t.Errorf("%s:\n%s\nthe published model:\n%s", file, text, exported[seed])
		}
	}
}

func TestSchema_Workbench(t *testing.T) {
	c := newCLI(t)
	model := c.must("schema", "nosql-workbench", "--prefix", "live-")
	var names []any
	for _, table := range decode(t, model).(map[string]any)["DataModel"].([]any) {
		names = append(names, table.(map[string]any)["TableName"])
	}
	equal(t, "tables", names, []any{"live-recurring-payments", "live-outbox", "live-stripe-payments-events",
		"live-stripe-payments-purchases", "live-stripe-payments-subscriptions", "live-stripe-payments-payments",
		"live-stripe-payments-registry"})
	if strings.Contains(model, "duesday-") || strings.Contains(model, "Reoccuring") ||
		strings.Contains(model, "1234123412341234") || strings.Contains(model, "REC#12023") {
		t.Errorf("the model:\n%s", model)
	}
	equal(t, "again", c.must("schema", "nosql-workbench", "--prefix", "live-", "--json"), model)
	events := c.must("schema", "nosql-workbench", "--csv", "stripe-payments-events")
	equal(t, "events", events, c.must("schema", "nosql-workbench", "--prefix", "live-", "--csv",
		"live-stripe-payments-events"))
	if header, _, _ := strings.Cut(events,
		"\n"); header != "id,type,stripe_account,timestamp,date,time,expiration,subscription" {
		t.Errorf("header %s", header)
	}
	if entries, err := os.ReadDir(c.path(".")); err != nil || len(entries) != 0 {
		t.Errorf("printing a schema left %v, %v", entries, err)
	}
}

func TestSchema_CloudFormation(t *testing.T) {
	c := newCLI(t)
	plain := decode(t, c.must("schema", "cloudformation", "--prefix", "live-")).(map[string]any)
	equal(t, "prefix", plain["Parameters"].(map[string]any)["Prefix"].(map[string]any)["Default"], "live-")
	resources := plain["Resources"].(map[string]any)
	equal(t, "resources", len(resources), 7)
	settings := func(resources map[string]any) []any {
		p := resources["StripePaymentsEvents"].(map[string]any)["Properties"].(map[string]any)
		return append(members(p, "BillingMode", "DeletionProtectionEnabled"), p["PointInTimeRecoverySpecification"])
	}
	equal(t, "plain", settings(resources),
		[]any{"PAY_PER_REQUEST", false, map[string]any{"PointInTimeRecoveryEnabled": false}})
	full := c.must("schema", "cloudformation", "--provisioned", "--deletion-protection", "--point-in-time-recovery")
	resources = decode(t, full).(map[string]any)["Resources"].(map[string]any)
	equal(t, "all flags", settings(resources),
		[]any{"PROVISIONED", true, map[string]any{"PointInTimeRecoveryEnabled": true}})
	equal(t, "with autoscaling", len(resources),
		7+4*(7+10)) // tables; a target and a policy, for reads and writes, of tables and indexes
}

func TestSchema_IAM(t *testing.T) {
	c := newCLI(t)
	all := decode(t, c.must("schema", "iam", "--account", "000000000042", "--region", "eu-west-1")).(map[string]any)
	equal(t, "policies", len(all), 4)
	for _, name := range []string{"seed", "runtime", "operator", "administration"} {
		one := c.must("schema", "iam", name, "--account", "000000000042", "--region", "eu-west-1")
		equal(t, name, decode(t, one), all[name])
		contains(t, one, "arn:aws:dynamodb:eu-west-1:000000000042:table/")
	}
	contains(t, c.must("schema", "iam", "seed"), `"arn:aws:dynamodb:*:123456789012:table/*-stripe-payments-*/index/*"`)
	contains(t, c.must("schema", "iam", "seed", "--prefix", "live-"), "table/live-stripe-payments-*")
	runtime := c.must("schema", "iam", "runtime", "--prefix", "live-", "--recurring-table", "OldPayments")
	contains(t, runtime, "table/OldPayments/index/GSI-1", "table/live-outbox")
	if strings.Count(runtime, "Scan") != 1 || // the daily pass, over the subscriptions' table alone
		strings.Contains(runtime, "ListTables") ||
		strings.Count(runtime, "Describe") != 3 || // what status looks at
		strings.Contains(runtime, "recurring-payments") {
		t.Errorf("runtime:\n%s", runtime)
	}
}

func TestSchema_WrongUse(t *testing.T) {
	c := newCLI(t)
	for line, want := range map[string]string{
		"schema":                                     "cloudformation, iam, nosql-workbench",
		"schema nosql-workbench --csv payments":      "recurring-payments, outbox, stripe-payments-events",
		"schema nosql-workbench --csv outbox --json": "cannot be combined",
		"schema nosql-workbench --prefix a/b-":       "--prefix",
		"schema cloudformation --prefix a/b-":        "letters, digits",
		"schema cloudformation --prefix=":            "--prefix must be letters",
		"schema cloudformation now":                  "takes no argument",
		"schema iam everything":                      "seed, runtime, operator, administration",
		"schema iam --account 12":                    "12 digits",
		"schema iam --region Frankfurt":              "eu-west-1",
		"schema iam runtime --recurring-table a/b":   "letters, digits",
		"schema iam runtime --prefix a/b":            "letters, digits",
		"schema iam runtime operator":                "at most 1 arg",
	} {
		r := c.run(strings.Fields(line)...)
		if r.code != exitUsage || (r.out != "" && line != "schema") {
			t.Errorf("%s: exit %d, %s", line, r.code, r.out)
		}
		contains(t, r.errors, want)
	}
}
