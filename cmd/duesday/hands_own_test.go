package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// ownRow is the kind of an item that Duesday alone writes; "": another kind.
func ownRow(table, pk, sk string) string {
	kind, _, _ := strings.Cut(pk, "#")
	sort, _, _ := strings.Cut(sk, "#")
	switch {
	case kind == "ACC" && (sort == "KEY" || sort == "REF"):
		return sort
	case kind == "ACC" || kind == "LEASE":
		return ""
	case strings.HasSuffix(table, "outbox"):
		return "outbox " + kind
	case kind == "RUN" && sort != "FLOOR":
		return "RUN"
	}
	if sort == "FLOOR" || sort == "LOOK" || sort == "CHANGE" || sort == "MADE" {
		return kind + " " + sort
	}
	return kind
}

// TestOtherHands_OwnRows: whatever type of value another tool writes into whatever attribute of an
// item that Duesday alone writes, the run pays. Only the store's description and the settings,
// which say how money moves, may stop it: the error names the item and the attribute, and nobody is
// charged.
func TestOtherHands_OwnRows(t *testing.T) {
	c := newCLI(t)
	at, prefix := onDynamo(t)
	c.env["DUESDAY_STORE"] = at
	c.must("store", "create")
	c.must("import", c.file("book.csv", "account,email,subscription,sku,amount,currency,payment_day,payment_method\n"+
		"1,one@example.com,s,gold,5.00,USD,15,pm_card_visa\n2,two@example.com,s,gold,5.00,USD,15,pm_card_chargeDeclined\n"))
	c.must("settings", "set", "time-zone=UTC")
	c.must("key", "create", "shop", "--scope", "read")
	c.run("run", "reminders")
	c.run("run", "payments")
	c.must("receipt", "refund", "1/s", "--period", "0", "--amount", "1.00")
	c.must("receipt", "create", "2/s", "--period", "0", "--key", "wire")
	c.run("run", "payments")
	theirs := &sdk{t, dynamotest.Client(t), prefix + "recurring-payments"}
	theirs.must(theirs.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &theirs.table,
		Item: map[string]types.AttributeValue{"PK": text("DOUBTS"), "SK": text("1#PER#s#SKU#gold#000000"),
			"AlteredDate": text("2026-04-20"), "CreatedDate": text("2026-03-15T10:30:00.000Z")}}))
	share, n, done := soaktest.Cases(t, 41, 23, 1), 0, map[string]bool{}
	for _, table := range []string{prefix + "recurring-payments", prefix + "outbox"} {
		theirs.table = table
		out, err := theirs.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range out.Items {
			pk, sk := it["PK"].(*types.AttributeValueMemberS).Value, it["SK"].(*types.AttributeValueMemberS).Value
			kind := ownRow(table, pk, sk)
			if kind == "" || done[kind] {
				continue
			}
			done[kind] = true
			for _, name := range append(slices.Sorted(maps.Keys(it)), "Tags") {
				for _, typ := range slices.Sorted(maps.Keys(everyType)) {
					if n++; name == "PK" || name == "SK" || name == "TTL" && typ == "N" || n%share != 0 {
						continue
					}
					theirs.table = prefix + "recurring-payments"
					account := fmt.Sprint("n", n)
					c.create(account+"/s", "pm_card_visa")
					theirs.table = table
					was, ok := theirs.set(pk, sk, name, everyType[typ])
					if !ok {
						continue
					}
					r := c.run("run", "payments")
					theirs.table = prefix + "recurring-payments"
					paid := len(theirs.sorts("ACC#"+account, "REC#")) == 1
					refused := kind == "META" && strings.Contains(r.errors, "item META META: "+name+" is no") ||
						kind == "SETTINGS" && strings.Contains(r.errors, "(item SETTINGS NOW): "+strings.ToLower(name)+": is ")
					switch kind + " " + name + " " + typ {
					case "META Charging NULL": // as if it were absent: off
						refused = strings.Contains(r.errors, "charging is off")
					case "META Format N": // that of a newer version
						refused = strings.Contains(r.errors, "this store has format 42")
					}
					if refused { // they say how money moves
						charged := paid
						r = c.run("status")
						refused = r.code == exitPerson && !charged || r.code == exitFailed
					}
					if !refused && (!paid || r.code == exitFailed) {
						t.Errorf("%s %s %s: exit %d, paid %v: %s", kind, name, typ, r.code, paid, r.errors)
					}
					theirs.table = table
					theirs.set(pk, sk, name, was)
				}
			}
		}
	}
	if len(done) < 10 {
		t.Errorf("kinds: %v", slices.Sorted(maps.Keys(done)))
	}
}
