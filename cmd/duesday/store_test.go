package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// onDynamo returns the URL of a store on DynamoDB Local that nobody has made yet, and the
// prefix of its tables.
func onDynamo(t *testing.T) (store, prefix string) {
	t.Helper()
	prefix = dynamotest.Prefix(t)
	query := url.Values{"prefix": {prefix}, "endpoint": {dynamotest.Endpoint(t)}, "region": {dynamotest.Region}}
	return "dynamodb:?" + query.Encode(), prefix
}

func TestStore_OnDynamoDB(t *testing.T) {
	c := newCLI(t)
	at, prefix := onDynamo(t)
	all := schema.New(prefix).All()
	o := c.object(exitFailed, "store", "describe", "--store", at)
	equal(t, "nothing there", []any{o["ok"], o["meta"], len(o["differences"].([]any))}, []any{false, nil, len(all)})

	// A mistyped name is no new store.
	for _, line := range [][]string{{"import", c.file("typo.csv", movingBook)},
		{"account", "create", "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58", "--email", "a@example.com"}, {"charging", "off", "--reason", "x"}} {
		r := c.run(append(line, "--store", at)...)
		equal(t, line[0], r.code, exitFailed)
		contains(t, r.errors, "there is no store at dynamodb:", "create one with duesday store create")
		if found, err := dynamotable.Look(t.Context(), dynamotest.Client(t), all[:1]); err != nil || !found[0].Missing {
			t.Fatalf("%s has made tables: %v", line[0], err)
		}
	}
	out := c.must("store", "create", "--store", at, "--shards", "4")
	contains(t, out, prefix+"recurring-payments: creating\n", prefix+"recurring-payments: TTL on, attribute TTL\n",
		prefix+"outbox: active\n", "created dynamodb:", "shards per date", "4")
	o = c.object(exitDone, "store", "create", "--store", at) // takes the shards as they are
	equal(t, "again", members(o, "made", "shards"), []any{false, 4})
	equal(t, "tables", len(o["tables"].([]any)), len(all))
	r := c.run("store", "create", "--store", at, "--shards", "5")
	equal(t, "other shards", r.code, exitFailed)
	contains(t, r.errors, "4 shards per date, not 5")

	c.must("charging", "off", "--reason", "on holiday", "--store", at)
	o = c.object(exitDone, "store", "describe", "--store", at)
	equal(t, "meta", members(o["meta"].(map[string]any), "shards", "charging", "reason", "created_at"),
		[]any{4, false, "on holiday", "2026-03-15T10:30:00.000Z"})
	first := o["tables"].([]any)[0].(map[string]any)
	equal(t, "table", members(first, "table", "missing", "status", "partition_key", "sort_key", "billing_mode",
		"ttl_attribute", "ttl_status", "deletion_protection"),
		[]any{prefix + "recurring-payments", false, "ACTIVE", "PK", "SK", "on demand", "TTL", "ENABLED", false})
	equal(t, "index", first["indexes"].([]any)[0],
		map[string]any{"index": "GSI-1", "partition_key": "NextReminderDate", "sort_key": "LastReminderDate",
			"projection": "INCLUDE Email NextPaymentDate SKU", "status": "ACTIVE"})
	contains(t, c.must("store", "describe", "--store", at), "GSI-2", "NextPaymentDate/LastPaymentDate", "off: on holiday")

	r = c.run("store", "drop", "--store", at)
	equal(t, "unconfirmed", r.code, exitUsage)
	contains(t, r.errors, prefix+"recurring-payments, "+prefix+"outbox", "add --confirm "+prefix)
	equal(t, "misconfirmed", c.run("store", "drop", "--store", at, "--confirm", "duesday-").code, exitUsage)
	equal(t, "dropped", len(c.object(exitDone, "store", "drop", "--store", at, "--confirm", prefix)["dropped"].([]any)),
		len(all))
	c.object(exitFailed, "store", "describe", "--store", at)
}

// TestStore_HalfMade: a table without the rest, and without what the store says of itself.
func TestStore_HalfMade(t *testing.T) {
	c := newCLI(t)
	at, prefix := onDynamo(t)
	table := schema.New(prefix).RecurringPayments
	if _, err := dynamotest.Client(t).CreateTable(t.Context(),
		dynamotable.Input(table, dynamotable.Settings{})); err != nil {
		t.Fatal(err)
	}
	r := c.run("store", "describe", "--store", at)
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.out, "The store contains no information about itself yet.", "table "+table.Name+": TTL attribute: expected TTL, got off\n",
		"table "+prefix+"outbox: table: expected one, got none\n",
		"To create what is missing, run: duesday store create --store 'dynamodb:")
	equal(t, "completed", c.object(exitDone, "store", "create", "--store", at)["made"], true)
	equal(t, "described", c.object(exitDone, "store", "describe", "--store", at)["ok"], true)
}

func TestStore_SomebodyElsesTable(t *testing.T) {
	c := newCLI(t)
	at, prefix := onDynamo(t)
	table := schema.New(prefix).Outbox
	table.PartitionKey = "id"
	if _, err := dynamotest.Client(t).CreateTable(t.Context(),
		dynamotable.Input(table, dynamotable.Settings{})); err != nil {
		t.Fatal(err)
	}
	r := c.run("store", "create", "--store", at)
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.errors, "table "+table.Name+": partition key: expected PK, got id")
	r = c.run("store", "describe", "--store", at)
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.out, "partition key: expected PK, got id", "missing")
	equal(t, "drop", c.run("store", "drop", "--store", at, "--confirm", prefix).code, exitFailed)
}

func TestStore_SettingsOfTables(t *testing.T) {
	c := newCLI(t)
	at, prefix := onDynamo(t)
	out := c.must("store", "create", "--store", at, "--provisioned", "--read-units", "7", "--deletion-protection")
	contains(t, out, "provisioned: 7 read and 5 write units", "deletion protection on")
	first := c.object(exitDone, "store", "describe", "--store", at)["tables"].([]any)[0].(map[string]any)
	equal(t, "table", members(first, "billing_mode", "read_units", "write_units", "deletion_protection"),
		[]any{"provisioned", 7, 5, true})
	r := c.run("store", "drop", "--store", at, "--confirm", prefix)
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.errors, "deletion protection is on for "+prefix+"recurring-payments", "nothing was dropped")
}

// TestStore_DropKeepsAdopted: a table under a name of its own stays.
func TestStore_DropKeepsAdopted(t *testing.T) {
	c := newCLI(t)
	at, prefix := onDynamo(t)
	at += "&recurring_table=" + prefix + "theirs"
	c.must("store", "create", "--store", at)
	o := c.object(exitDone, "store", "drop", "--store", at, "--confirm", prefix)
	equal(t, "kept", o["kept"], []string{prefix + "theirs"})
	o = c.object(exitFailed, "store", "describe", "--store", at)
	equal(t, "there", o["tables"].([]any)[0].(map[string]any)["missing"], false)
}

func TestStore_InAFolder(t *testing.T) {
	c := newCLI(t)
	r := c.run("store", "describe")
	equal(t, "nothing there", r.code, exitFailed)
	contains(t, r.errors, "there is no store at pebble:./duesday-data")
	o := c.object(exitDone, "store", "create", "--shards", "3")
	equal(t, "created", members(o, "made", "shards", "tables"), []any{true, 3, nil})
	equal(t, "again", members(c.object(exitDone, "store", "create"), "made", "shards", "installation"),
		[]any{false, 3, o["installation"]})
	r = c.run("store", "create", "--shards", "1")
	equal(t, "other shards", r.code, exitFailed)
	contains(t, r.errors, "3 shards per date, not 1")
	d := c.object(exitDone, "store", "describe")
	equal(t, "described", []any{d["ok"], d["tables"], d["folder"].(map[string]any)["path"],
		d["meta"].(map[string]any)["shards"]},
		[]any{true, nil, "./duesday-data", 3})
	contains(t, c.must("store", "describe"), "folder", "./duesday-data", "charging", "on", fmt.Sprint(o["installation"]))
}

func TestStore_WrongUsage(t *testing.T) {
	c := newCLI(t)
	for _, x := range []struct{ line, want string }{
		{"store create --store mem:", "ends with its process"},
		{"store describe --store mem:", "ends with its process"},
		{"store drop --store mem:", "ends with its process"},
		{"store drop --confirm duesday-", "delete its folder: ./duesday-data"},
		{"store create --provisioned", "--provisioned is only for a dynamodb: store"},
		{"store create --read-units 5", "--read-units is only for a dynamodb: store"},
		{"store create --deletion-protection", "--deletion-protection is only for a dynamodb: store"},
		{"store create --shards 0", "--shards must be 1 to 100 (got 0)"},
		{"store create --shards 101", "--shards must be 1 to 100 (got 101)"},
		{"store create --store dynamodb: --read-units 4", "--read-units needs --provisioned"},
		{"store create --store dynamodb: --provisioned --read-units 0", "--read-units must be 1 or more (got 0)"},
		{"store create --store dynamodb: --provisioned --write-units 0", "--write-units must be 1 or more (got 0)"},
		{"store create extra", "takes no argument"},
		{"store drop --store dynamodb:", "duesday-recurring-payments, duesday-outbox"},
		{"store create --store dynamodb:?bucket=1", `unknown parameter "bucket"`},
		{"store create --store dynamodb:?recurring_table=duesday-outbox",
			`table name "duesday-outbox" is used twice`},
		{"store describe --store dynamodb:?recurring_table=duesday-outbox", "is used twice"},
		{"store drop --confirm duesday- --store dynamodb:?recurring_table=duesday-outbox", "is used twice"},
		{"store adopt --store dynamodb:?recurring_table=duesday-outbox", "is used twice"},
		{"store copy --from mem: --to pebble:x", "ends with its process"},
		{"store copy --from dynamodb:?recurring_table=duesday-outbox --to pebble:x", "is used twice"},
		{"run payments --store dynamodb:?recurring_table=duesday-outbox", "is used twice"},
	} {
		r := c.run(strings.Fields(x.line)...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("duesday %s: exit %d, out %q, errors %q", x.line, r.code, r.out, r.errors)
		}
		contains(t, r.errors, x.want)
	}
}
