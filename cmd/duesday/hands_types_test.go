package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// everyType has a value of each of DynamoDB's types.
var everyType = map[string]types.AttributeValue{
	"S": text("theirs"), "N": &types.AttributeValueMemberN{Value: "42"}, "B": &types.AttributeValueMemberB{Value: []byte{1}},
	"BOOL": &types.AttributeValueMemberBOOL{Value: true}, "NULL": &types.AttributeValueMemberNULL{Value: true},
	"M":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"a": &types.AttributeValueMemberNULL{Value: true}}},
	"L":  &types.AttributeValueMemberL{Value: []types.AttributeValue{text("a")}},
	"SS": &types.AttributeValueMemberSS{Value: []string{"vip"}}, "NS": &types.AttributeValueMemberNS{Value: []string{"1"}},
	"BS": &types.AttributeValueMemberBS{Value: [][]byte{{1}}},
}

// set writes one attribute of an item, and returns what the item had there; false: DynamoDB refuses it.
func (d *sdk) set(pk, sk, name string, v types.AttributeValue) (was types.AttributeValue, ok bool) {
	d.t.Helper()
	in := &dynamodb.UpdateItemInput{TableName: &d.table, Key: map[string]types.AttributeValue{"PK": text(pk), "SK": text(sk)},
		ExpressionAttributeNames: map[string]string{"#n": name}, ReturnValues: types.ReturnValueAllOld}
	path := "#n"
	if outer, inner, ok := strings.Cut(name, "."); ok {
		path, in.ExpressionAttributeNames = "#o.#n", map[string]string{"#o": outer, "#n": inner}
	}
	expression := "REMOVE " + path
	if v != nil {
		expression, in.ExpressionAttributeValues = "SET "+path+" = :v", map[string]types.AttributeValue{":v": v}
	}
	in.UpdateExpression = &expression
	out, err := d.client.UpdateItem(d.t.Context(), in)
	if err != nil && !strings.Contains(err.Error(), "ValidationException") {
		d.t.Fatal(err)
	}
	if err != nil {
		return nil, false
	}
	return out.Attributes[name], true
}

// sorts returns the account's sort keys with the prefix.
func (d *sdk) sorts(pk, prefix string) (sorts []string) {
	d.t.Helper()
	condition := "PK = :p AND begins_with(SK, :s)"
	out, err := d.client.Query(d.t.Context(), &dynamodb.QueryInput{TableName: &d.table, KeyConditionExpression: &condition,
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": text(pk), ":s": text(prefix)}})
	d.must(out, err)
	for _, it := range out.Items {
		sorts = append(sorts, it["SK"].(*types.AttributeValueMemberS).Value)
	}
	return sorts
}

// The attributes that Duesday reads, by the kind of their item, and one that it does not know.
var readAttributes = map[string]string{
	"SUB": "AgendaDate AlteredDate Anchor AnchorPeriod CancelAtEnd CancelDate CardTold Collect CollectionMethod CreatedDate DueBefore Email Installments Interval Kept " +
		"LastCharge LastPaymentDate LastReminderDate Mailed Manual MethodDate Moved NextPaymentDate NextReminderDate Open Paid Parked PausedDate " +
		"PaymentAmount PaymentDay PaymentDetails PaymentDetails.Note Pending Period ReminderDays Requested RequestedDate SKU SkipUntil Status TTL Tags TimeZone ToldDate " +
		"TrialEnds Version",
	"ACC": "ApplicationFee CreatedDate Customer Email EmailBounced Fallback FanOut Locale MethodDate PaymentMethod ProcessorAccount " +
		"Tags TimeZone Version",
	"REC": "Charge Currency DueDate Email Kind Period ProcessedAmount ProcessedDate Recovered SKU Subscription TTL Tags",
	"PER": "Amount Attempts CollectUntil Currency DueDate EndedDate Generation Period Reason Ref SKU Status Subscription Tags",
}

// TestOtherHands_EveryType: whatever type of value another tool writes into whatever attribute of an
// account, subscription, receipt or record of a period, the run goes on and pays the others. An item is
// carried as it is, or named.
func TestOtherHands_EveryType(t *testing.T) {
	c := newCLI(t)
	at, prefix := onDynamo(t)
	c.env["DUESDAY_STORE"] = at
	c.must("store", "create")
	theirs := &sdk{t, dynamotest.Client(t), prefix + "recurring-payments"}
	type item struct{ account, kind, name, typ string }
	var cases []item
	book := "account,email,subscription,sku,amount,currency,payment_day,payment_method\n"
	add := func(account, method string) {
		book += account + "," + account + "@example.com,s,gold,5.00,USD,15," + method + "\n"
	}
	n, share := 0, soaktest.Cases(t, 13, 7, 1)
	for _, kind := range slices.Sorted(maps.Keys(readAttributes)) {
		for name := range strings.FieldsSeq(readAttributes[kind]) {
			for _, typ := range slices.Sorted(maps.Keys(everyType)) {
				n++
				switch {
				case (n+len(typ))%share != 0:
				case kind == "SUB" && (name == "Open" && typ == "NULL" || name == "TTL" && typ == "N"):
					// An item without its open period, or expired, is as if it were absent: that is
					// the rollback check's.
				default:
					x := item{fmt.Sprintf("c%04d", n), kind, name, typ}
					cases = append(cases, x)
					method := map[string]string{"PER": "pm_card_visa_chargeDeclinedLostCard"}[kind]
					if name == "Open" {
						method = "pm_card_visa_chargeDeclined"
					}
					add(x.account, orVisa(method))
				}
			}
		}
	}
	const healthy = 10
	for i := range healthy {
		add(fmt.Sprintf("h%d", i), "pm_card_visa")
	}
	c.must("import", c.file("book.csv", book))
	c.run("run", "payments")
	refused := map[string]bool{}
	carried := map[string]types.AttributeValue{}
	for _, x := range cases {
		sorts := theirs.sorts("ACC#"+x.account, x.kind)
		if len(sorts) != 1 {
			t.Fatalf("%+v: items %v", x, sorts)
		}
		was, ok := theirs.set("ACC#"+x.account, sorts[0], x.name, everyType[x.typ])
		refused[x.account] = !ok
		if was != nil && fmt.Sprintf("%T", was) == fmt.Sprintf("%T", everyType[x.typ]) {
			carried[x.account] = was // of the right type: it means something
		}
	}
	c.clock.Set(time.Date(2026, 4, 15, 12, 0, 0, 0, time.UTC))
	due := c.run("due", "payments", "--until", "2026-04-15").out
	run := c.object(exitPerson, "run", "payments")
	periods := run["periods"].(map[string]any)
	unreadable, others := fmt.Sprint(periods["unreadable"]), fmt.Sprint(periods)
	verify := c.run("verify", "--json").out
	status := c.run("status")
	equal(t, "status", status.code, exitPerson)
	contains(t, status.out, fmt.Sprintf("%d unreadable", len(periods["unreadable"].([]any))))
	contains(t, c.run("store", "adopt", "--dry-run").out, "unreadable")
	for i := range healthy {
		equal(t, "receipts of a healthy one", len(theirs.sorts(fmt.Sprintf("ACC#h%d", i), "REC#")), 2)
	}
	for _, x := range cases {
		of := "account:" + x.account + " "
		named := strings.Contains(unreadable, of)
		dealt := len(theirs.sorts("ACC#"+x.account, "REC#")) == 2 || strings.Contains(others, of) || x.kind == "PER"
		audited := strings.Contains(verify, x.account+`"`) || strings.Contains(verify, "ACC#"+x.account)
		offIndex := x.name == "NextPaymentDate" // no run can find it
		switch {
		case refused[x.account]:
		case named && (!audited || !strings.Contains(due, x.account+"/")):
			t.Errorf("%+v: named by the run; by verify: %v; by due: %v", x, audited, strings.Contains(due, x.account+"/"))
		case x.name == "PaymentDetails.Note" && len(theirs.sorts("ACC#"+x.account, "REC#")) != 2:
			t.Errorf("%+v: not charged", x)
		case !named && !dealt && carried[x.account] == nil && !means[x.name+" "+x.typ] && !(offIndex && audited):
			t.Errorf("%+v: neither charged nor named", x)
		case (x.kind == "REC" || x.kind == "PER") && !audited && carried[x.account] == nil && x.typ != "NULL" && x.name != "Tags" && x.name != "TTL" &&
			!means[x.name+" "+x.typ]:
			t.Errorf("%+v: not named by verify", x)
		}
		if x.name == "Tags" {
			was, _ := theirs.set("ACC#"+x.account, theirs.sorts("ACC#"+x.account, x.kind)[0], "Tags", nil)
			if !reflect.DeepEqual(was, everyType[x.typ]) {
				t.Errorf("%+v: it is now %T %+[2]v", x, was)
			}
		}
	}
}

// means has the values of a type that the attribute may have, though the item has none or another one.
var means = map[string]bool{"CancelAtEnd BOOL": true, "Amount N": true, "Generation N": true, "Kind S": true,
	"Recovered S": true, "CollectUntil S": true}

func orVisa(method string) string {
	if method == "" {
		return "pm_card_visa"
	}
	return method
}
