package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/duesday/duesday/internal/store/dynamotest"
)

// TestOtherHands_LookFirst: a table that other tools have filled is as it was after every command that
// makes stores, and no other table is made.
func TestOtherHands_LookFirst(t *testing.T) {
	at, prefix := onDynamo(t)
	c := newCLI(t)
	theirs := &sdk{t, dynamotest.Client(t), prefix + "theirs"}
	theirs.published()
	theirs.subscription(1, "2026-06-28", "2026-06-21")
	at += "&recurring_table=" + theirs.table
	book := c.file("book.csv", "account,email,subscription,sku,amount,currency,payment_day,payment_method\n"+
		"9,nine@example.com,1,gold,5.00,USD,1,pm_card_visa\n")
	refused := func(args ...string) {
		t.Helper()
		r := c.run(append(args, "--store", at)...)
		if r.code != exitFailed {
			t.Errorf("%v: exit %d", args, r.code)
		}
		contains(t, r.errors, "and no META item", "store adopt takes over a table")
		tables, err := theirs.client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range tables.TableNames {
			if strings.HasPrefix(name, prefix) && name != theirs.table {
				t.Errorf("%v has made %s", args, name)
			}
		}
		ttl, err := theirs.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &theirs.table})
		if err != nil || ttl.TimeToLiveDescription.AttributeName != nil {
			t.Errorf("%v: TTL %+v, %v", args, ttl, err)
		}
	}
	refused("store", "create")
	refused("import", book)
	refused("account", "create", "9", "--email", "nine@example.com")
	equal(t, "items", len(theirs.all()), 1)

	at = strings.Split(at, "&recurring_table=")[0]
	r := c.run("import", book, "--store", at)
	equal(t, "import", r.code, exitDone)
	contains(t, r.out, "shards per date  1  (of the new store; store create --shards makes more")
	equal(t, "again", strings.Contains(c.must("import", book, "--store", at), "shards"), false)
}
