package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// foreign is a subscription as other tools write it from the published model.
func foreign(account, id, due string) store.Item {
	details := store.NewItem(store.Attribute{Name: "default-card", Value: store.S("1234123412341234")},
		store.Attribute{Name: "default-address", Value: store.S("12 Bridge Street, Birmingham, B12 7ST")})
	it := store.NewItem(store.Attribute{Name: "PaymentDetails", Value: store.M(details)})
	for _, pair := range [][2]string{{"PK", "ACC#" + account}, {"SK", "SUB#" + id + "#SKU#999"}, {"Email", "s@s.com"},
		{"PaymentDay", due[8:]}, {"PaymentAmount", "12.99"}, {"LastPaymentDate", "2026-02-14T14:15:39.247Z"},
		{"NextPaymentDate", due},
		{"LastReminderDate", "2026-02-07T14:15:39.247Z"}, {"SKU", "999"}, {"CreatedDate", "2023-05-18T09:41:25.856Z"}} {
		it.Set(pair[0], store.S(pair[1]))
	}
	return it
}

func TestStoreAdopt_InAFolder(t *testing.T) {
	c := newCLI(t)
	s, err := storeurl.Place{Scheme: "pebble", Folder: c.path("duesday-data")}.Open(t.Context(),
		storeurl.Options{Tables: schema.New(schema.DefaultPrefix).All(), Names: schema.Names(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	bad := foreign("2", "bad", "2026-03-15")
	bad.Set("PaymentAmount", store.S("a dozen"))
	for _, it := range []store.Item{foreign("1", "1", "2026-03-15"), foreign("2", "1", "2025-12-15"), bad} {
		if err := s.Commit(t.Context(), store.Put("duesday-recurring-payments", it)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	methods := c.file("methods.csv", "payment_method, account\npm_card_visa,1\npm_card_visa,9\n\npm_card_visa,1\n")
	o := c.object(exitPerson, "store", "adopt", "--methods", methods, "--dry-run")
	equal(t, "dry run", members(o, "dry_run", "items", "accounts_made"), []any{true, 3, 2})
	equal(t, "no account yet", c.run("account", "show", "1").code, exitFailed)
	o = c.object(exitPerson, "store", "adopt", "--methods", methods)
	equal(t, "counts", members(o, "table", "subscriptions", "accounts_made", "due_subscriptions", "in_arrears",
		"card_numbers", "oldest_payment_date"),
		[]any{"duesday-recurring-payments", 2, 2, 2, 1, 3, "2025-12-15"})
	equal(t, "findings", o["findings"], []any{
		map[string]any{"kind": "unreadable", "count": 1,
			"first": []any{map[string]any{"item": "ACC#2 SUB#bad#SKU#999",
				"reason": "PaymentAmount is not an amount in the subscription's currency"}}},
		map[string]any{"kind": "without a payment method", "count": 1,
			"first": []any{map[string]any{"item": "ACC#2 SUB#1#SKU#999",
				"reason": "neither the subscription nor the account has a payment method"}}},
		map[string]any{"kind": "account not in the table", "count": 1,
			"first": []any{map[string]any{"item": "9", "reason": "has nothing in the table"}}}})
	r := c.run("store", "adopt")
	equal(t, "again", r.code, exitPerson)
	contains(t, r.out, "table duesday-recurring-payments is adopted", "in arrears: will be parked", "unreadable",
		"ACC#2 SUB#bad#SKU#999", "Next: duesday verify")
	equal(t, "account", c.object(exitDone, "account", "show", "1")["payment_method"], "pm_card_visa")
	contains(t, c.must("account", "list"), "METHOD", "pm_card_visa")
}

func TestStoreAdopt_MethodFiles(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	lines := func(n int) string { return strings.Repeat("a/b,pm\n", n) }
	for _, x := range []struct{ content, want string }{
		{"", "line 1: the header must be account,payment_method"},
		{"account,payment_method\n", "line 1: no account in the file"},
		{"account,payment_method,note\n1,pm,x\n", `line 1: the header must be account,payment_method (got "account,payment_method,note")`},
		{"account,account\n1,pm\n", `line 1: the header must be account,payment_method (got "account,account")`},
		{"account,payment_method,payment_method\n1,pm\n", `(got "account,payment_method,payment_method")`},
		{"account,account,payment_method\n1,pm\n", `(got "account,account,payment_method")`},
		{"account\n1\n", "line 1: the header must be"},
		{"account,payment_method\n1,pm_a\n2,pm_b,x\n", "line 3: must have 2 fields"},
		{"account,payment_method\n1,pm_a\n\n1,pm_b\n", "line 4: account 1 has a different payment_method on line 2"},
		{"account,payment_method\na#b,pm_a\n", "line 2: account: must not contain"},
		{"account,payment_method\n1,\n", "line 2: payment_method: must be the processor"},
		{"account,payment_method\n1,4111 1111 1111 1111\n", "line 2: payment_method: looks like a card number"},
		{"account,payment_method\n1,\"pm\n", "line 2: "},
		{"account,payment_method\n" + lines(30), "and 10 more"},
		{`{"account":"1","payment_method":"pm"}` + "\n" + `{"account":"1","token":"pm"}`, "line 2: "},
		{`{"account":"1"}`, `line 1: must have both "account" and "payment_method"`},
		{`{"account":"1","payment_method":"pm"} {}`, "line 1: must be one JSON object per line"},
		{`[{"account":"1","payment_method":"pm"}]`, "line 1: "},
	} {
		r := c.run("store", "adopt", "--methods", c.file("methods", x.content))
		if r.code != exitFailed || r.out != "" || secret.HasCardNumber(r.errors) {
			t.Errorf("%q: exit %d, out %q", x.content, r.code, r.out)
		}
		contains(t, r.errors, x.want)
	}
	o := c.object(exitDone, "store", "adopt", "--methods",
		c.file("methods.jsonl", "\xEF\xBB\xBF"+`{"payment_method":"pm","account":"1"}`+"\n\n"))
	equal(t, "unknown account", len(o["findings"].([]any)), 1)
	contains(t, c.run("store", "adopt", "--methods", "none").errors, "--methods", "none")
	contains(t, c.run("store", "adopt", "--store", "pebble:nowhere", "--dry-run").errors,
		"there is no store at pebble:nowhere")
}

// sdk is a table made by plain calls of the SDK, as the published model has it.
type sdk struct {
	t      *testing.T
	client *dynamodb.Client
	table  string
}

func (d *sdk) must(_ any, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// include is a projection of these attributes.
func include(names ...string) *types.Projection {
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: names}
}

// published makes the table as the model has it.
func (d *sdk) published() {
	d.create(include("SK", "PK", "SKU", "Email", "NextPaymentDate"),
		include("PK", "SK", "Email", "PaymentDay", "PaymentAmount", "SKU", "PaymentDetails"))
}

// create makes the table; the indexes project what is said.
func (d *sdk) create(first, second *types.Projection) {
	str := func(names ...string) (list []types.AttributeDefinition) {
		for _, name := range names {
			list = append(list, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
		}
		return list
	}
	keys := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash},
			{AttributeName: &sort, KeyType: types.KeyTypeRange}}
	}
	one, two, units := "GSI-1", "GSI-2", int64(5)
	throughput := &types.ProvisionedThroughput{ReadCapacityUnits: &units, WriteCapacityUnits: &units}
	d.must(d.client.CreateTable(d.t.Context(),
		&dynamodb.CreateTableInput{TableName: &d.table, KeySchema: keys("PK", "SK"), ProvisionedThroughput: throughput,
			AttributeDefinitions: str("PK", "SK", "NextReminderDate", "LastReminderDate", "NextPaymentDate", "LastPaymentDate"),
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
				{IndexName: &one, KeySchema: keys("NextReminderDate", "LastReminderDate"), ProvisionedThroughput: throughput,
					Projection: first},
				{IndexName: &two, KeySchema: keys("NextPaymentDate", "LastPaymentDate"), ProvisionedThroughput: throughput,
					Projection: second}}}))
	d.t.Cleanup(func() {
		d.must(d.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &d.table}))
	})
}

func (d *sdk) expire() {
	on, name := true, "TTL"
	d.must(d.client.UpdateTimeToLive(d.t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &d.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &name, Enabled: &on}}))
}

func (d *sdk) put(pairs map[string]types.AttributeValue) {
	d.must(d.client.PutItem(d.t.Context(), &dynamodb.PutItemInput{TableName: &d.table, Item: pairs}))
}

// all returns every item in words.
func (d *sdk) all() (items []string) {
	out, err := d.client.Scan(d.t.Context(), &dynamodb.ScanInput{TableName: &d.table})
	d.must(out, err)
	var words func(v types.AttributeValue) string
	words = func(v types.AttributeValue) string {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			return v.Value
		case *types.AttributeValueMemberN:
			return v.Value
		case *types.AttributeValueMemberM:
			var s strings.Builder
			for name, inner := range v.Value {
				s.WriteString("{" + name + ": " + words(inner) + "}")
			}
			return s.String()
		}
		return fmt.Sprintf("%T", v)
	}
	for _, it := range out.Items {
		items = append(items, words(&types.AttributeValueMemberM{Value: it}))
	}
	return items
}

// The subscriptions that have what Duesday's own never have: null, a set, no address.
const (
	withNull      = 11
	withInnerNull = 12
	withSet       = 13
	withoutEmail  = 14
)

// subscription is what another tool writes; some have a second card number in an attribute of
// that tool's, and some numbers instead of strings.
func (d *sdk) subscription(i int, due, reminder string) {
	it := map[string]types.AttributeValue{"PK": text(fmt.Sprint("ACC#", i)), "SK": text("SUB#1#SKU#999"),
		"Email":      text(fmt.Sprintf("%d@s.com", i)),
		"PaymentDay": text(due[8:]), "PaymentAmount": text("12.99"), "LastPaymentDate": text("2023-05-18T14:15:39.24Z"),
		"NextPaymentDate":  text(due),
		"LastReminderDate": text("2023-05-21T14:15:39Z"), "NextReminderDate": text(reminder), "SKU": text("999"),
		"CreatedDate":    text("2023-05-18T09:41:25.856Z"),
		"PaymentDetails": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"default-card": text("1234123412341234"), "default-address": text("12 Bridge Street")}}}
	if i%5 == 0 {
		it["PaymentAmount"], it["PaymentDay"] = &types.AttributeValueMemberN{Value: "12.99"},
			&types.AttributeValueMemberN{Value: due[8:]}
		it["crm"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"card": text("4111-1111-1111-1111"),
			"id": text("C-1")}}
	}
	null := &types.AttributeValueMemberNULL{Value: true}
	switch i {
	case withNull:
		it["note"] = null
	case withInnerNull:
		it["PaymentDetails"].(*types.AttributeValueMemberM).Value["default-address"] = null
	case withSet:
		it["tags"] = &types.AttributeValueMemberSS{Value: []string{"vip"}}
	case withoutEmail:
		it["Email"] = null
	}
	d.put(it)
}

// TestStoreAdopt_OnDynamoDB takes over a table that plain SDK calls have made from the published
// model, under the model's own name, with its sample data and fifty items of other tools. A row
// that Duesday cannot write back whole is named by every run, and the others are charged.
func TestStoreAdopt_OnDynamoDB(t *testing.T) {
	at, _ := onDynamo(t) // before the folder is changed, from where DynamoDB Local is found
	c := newCLI(t)
	d := &sdk{t, dynamotest.Client(t), "ReoccuringPayments"}
	at += "&recurring_table=" + url.QueryEscape(d.table)
	r := c.run("store", "adopt", "--store", at)
	equal(t, "no table", r.code, exitFailed)
	contains(t, r.errors, "there is no table ReoccuringPayments to adopt")
	d.published()
	r = c.run("store", "adopt", "--dry-run", "--store", at)
	equal(t, "no TTL, as the published model has it", r.code, exitDone)
	contains(t, r.errors, "TTL is off for table ReoccuringPayments")
	d.expire()

	c.clock.Set(time.Date(2023, 6, 21, 9, 0, 0, 0, time.UTC))
	d.subscription(123, "2023-06-28", "2023-06-21")
	d.put(map[string]types.AttributeValue{"PK": text("ACC#123"), "SK": text("REC#12023-05-28T14:15:39.24#SKU#999"),
		"Email": text("123@s.com"), "SKU": text("999"),
		"ProcessedDate": text("2023-05-28T14:15:39.247Z"), "ProcessedAmount": text("12.99"),
		"TTL": &types.AttributeValueMemberN{Value: "1700318200"}})
	var methods strings.Builder
	methods.WriteString("account,payment_method\n123,pm_card_visa\n")
	for i := range 50 {
		due, reminder := "2023-06-28", "2023-06-21"
		if i%10 == 9 { // forgotten long ago
			due, reminder = "2022-05-28", "2022-05-21"
		}
		d.subscription(i, due, reminder)
		if i != 7 {
			fmt.Fprintf(&methods, "%d,pm_card_visa\n", i)
		}
	}
	before := d.all()
	args := []string{"store", "adopt", "--store", at, "--methods", c.file("methods.csv", methods.String())}
	c.object(exitPerson, append(args, "--dry-run")...)
	equal(t, "after the dry run", len(d.all()), len(before))
	o := c.object(exitPerson, args...)
	equal(t, "report", members(o, "table", "accounts", "subscriptions", "receipts", "accounts_made", "due_subscriptions",
		"in_arrears", "card_numbers", "oldest_payment_date", "oldest_reminder_date"),
		[]any{"ReoccuringPayments", 51, 51, 1, 51, 5, 5, 61, "2022-05-28", "2022-05-21"})
	equal(t, "again", members(c.object(exitPerson, args...), "accounts_made", "accounts_changed"), []any{0, 0})
	equal(t, "audit", members(c.object(exitDone, "verify", "--store", at), "ok", "subscriptions", "imported"),
		[]any{true, 51, 1})
	equal(t, "receipts", c.list("receipt", "list", "123", "--store", at)[0].(map[string]any)["kind"], "imported")

	ran := func(job string, code int, whole map[string]int) {
		r := c.run("run", job, "--store", at, "--json")
		equal(t, job, r.code, code) // a set, or a null in a map, that another tool wrote stops nothing
		o := decode(t, r.out).(map[string]any)
		for name, n := range whole {
			equal(t, job+" "+name, o[name], n)
		}
	}
	ran("reminders", exitDone, map[string]int{"written": 46, "failed": 0})
	c.clock.Set(time.Date(2023, 6, 28, 9, 0, 0, 0, time.UTC))
	ran("payments", exitPerson, map[string]int{"paid": 45 + 5*3, "parked": 5, "pending": 1, "retry": 0, "failed": 0})
	equal(t, "audit after it", members(c.object(exitDone, "verify", "--store", at), "ok", "charges", "parked"),
		[]any{true, 60, 6})
	for _, it := range d.all() {
		if secret.HasCardNumber(it) || strings.Contains(it, "default-card") {
			t.Errorf("a card number is left: %.60s", secret.MaskCards(it))
		}
	}
}

// TestStoreAdopt_OtherTables: a wider projection is fine, for the other commands too; a narrower
// one is named.
func TestStoreAdopt_OtherTables(t *testing.T) {
	at, prefix := onDynamo(t)
	c := newCLI(t)
	all := &types.Projection{ProjectionType: types.ProjectionTypeAll}
	wide := &sdk{t, dynamotest.Client(t), prefix + "wide"}
	wide.create(all, all)
	wide.expire()
	wideAt := at + "&recurring_table=" + wide.table
	equal(t, "dry run", c.object(exitDone, "store", "adopt", "--store", wideAt, "--dry-run")["items"], 0)
	found, err := dynamotable.Look(t.Context(), wide.client, schema.New(prefix).All())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if !d.Missing {
			t.Errorf("the dry run has made table %s", d.Table.Name)
		}
	}
	c.object(exitDone, "store", "adopt", "--store", wideAt)
	c.object(exitDone, "store", "create", "--store", wideAt)
	o := c.object(exitDone, "store", "describe", "--store", wideAt)
	equal(t, "described", []any{o["ok"], len(o["differences"].([]any))}, []any{true, 2})
	for _, d := range o["differences"].([]any) {
		equal(t, "difference", members(d.(map[string]any), "harmless", "mends"), []any{true, false})
	}
	contains(t, c.must("store", "describe", "--store", wideAt),
		"index GSI-2 projection: expected INCLUDE Email PaymentAmount PaymentDay PaymentDetails SKU, got ALL, which does no "+
			"harm\n")

	for name, x := range map[string]struct {
		first, second *types.Projection
		want          string
	}{
		"narrow1": {include("Email"), all,
			": index GSI-1 projection: expected INCLUDE Email NextPaymentDate SKU, got INCLUDE Email"},
		"narrow2": {all, include("Email"),
			": index GSI-2 projection: expected INCLUDE Email PaymentAmount PaymentDay PaymentDetails SKU, got INCLUDE Email"},
	} {
		narrow := &sdk{t, wide.client, prefix + name}
		narrow.create(x.first, x.second)
		narrow.expire()
		r := c.run("store", "adopt", "--store", at+"&recurring_table="+narrow.table)
		equal(t, name, r.code, exitFailed)
		contains(t, r.errors, narrow.table+x.want)
		equal(t, "nothing was written", len(narrow.all()), 0)
	}
}

// TestStoreAdopt_MayNotMakeTables: what an operator may not make is made by the command that the
// error names, and then adopting needs no such right.
func TestStoreAdopt_MayNotMakeTables(t *testing.T) {
	proxy := dynamotest.NewProxy(t, dynamotest.Endpoint(t), dynamotest.Options{})
	c := newCLI(t)
	prefix := dynamotest.Prefix(t)
	theirs := &sdk{t, dynamotest.Client(t), prefix + "theirs"}
	theirs.published()
	theirs.expire()
	theirs.subscription(1, "2026-06-28", "2026-06-21")
	at := "dynamodb:?region=us-east-1&prefix=" + prefix + "&recurring_table=" + theirs.table + "&endpoint=" + proxy.URL()
	proxy.Forbid("CreateTable", "UpdateTable", "UpdateTimeToLive", "DescribeContinuousBackups")
	r := c.run("store", "adopt", "--store", at)
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.errors, "the first duesday store adopt --store 'dynamodb:", "duesday schema iam administration",
		"table "+theirs.table+" is unchanged")
	equal(t, "nothing was written", len(theirs.all()), 1)
	proxy.Forbid()
	r = c.run("store", "create", "--store", at)
	equal(t, "still to be adopted", r.code, exitFailed)
	contains(t, r.errors, "duesday store adopt takes over a table")
	equal(t, "adopted", c.object(exitPerson, "store", "adopt", "--store", at)["accounts_made"], 1)
}
