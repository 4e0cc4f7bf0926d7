package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/schema/iam"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// A use is one thing that a command asks of DynamoDB, as IAM sees it: the parts of a
// transaction or a batch each by themselves.
type use struct{ operation, table, index, partition string }

// usesOf takes a request apart.
func usesOf(r dynamotest.Request) (list []use) {
	text := func(v any) string { s, _ := v.(string); return s }
	object := func(v any) map[string]any { m, _ := v.(map[string]any); return m }
	one := func(operation string, body map[string]any) {
		partition := text(object(object(body["Key"])["PK"])["S"]) + text(object(object(body["Item"])["PK"])["S"])
		list = append(list, use{operation, text(body["TableName"]), text(body["IndexName"]), partition})
	}
	parts, _ := r.Body["TransactItems"].([]any)
	for _, part := range parts {
		for action, body := range object(part) {
			one(map[string]string{"Get": "GetItem", "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem",
				"ConditionCheck": "ConditionCheckItem"}[action], object(body))
		}
	}
	for table := range object(r.Body["RequestItems"]) {
		list = append(list, use{operation: r.Operation, table: table})
	}
	if len(list) == 0 {
		one(r.Operation, r.Body)
	}
	return list
}

// allows reports whether the policy lets the use happen in the account, by IAM's rules for
// the statements that there are here.
func allows(p iam.Policy, account string, u use) bool {
	resource := "arn:aws:dynamodb:*:" + account + ":table/" + u.table
	if u.index != "" {
		resource += "/index/" + u.index
	}
	for _, s := range p.Statement {
		keys := s.Condition["ForAllValues:StringEquals"]["dynamodb:LeadingKeys"]
		if slices.Contains(s.Action, "dynamodb:"+u.operation) && slices.Contains(s.Resource, resource) &&
			(len(s.Condition) == 0 || slices.Contains(keys, u.partition)) {
			return true
		}
	}
	return false
}

// A duty runs command lines through a proxy, and holds what they ask for against a policy.
type duty struct {
	*cli
	at string // the store's URL, through the proxy

	mu   sync.Mutex
	uses map[use]string // with the first command that had it; guarded by mu
	line string         // the command that is running; guarded by mu
}

func newDuty(c *cli, prefix, endpoint, recurring string) *duty {
	d := &duty{cli: c, uses: map[use]string{}}
	proxy := dynamotest.NewProxy(c.t, endpoint, dynamotest.Options{})
	proxy.SetHook(func(r dynamotest.Request) dynamotest.Fault {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, u := range usesOf(r) {
			if _, known := d.uses[u]; !known {
				d.uses[u] = d.line
			}
		}
		return dynamotest.Pass
	})
	query := url.Values{"prefix": {prefix}, "endpoint": {proxy.URL()}, "region": {dynamotest.Region}}
	if recurring != "" {
		query.Set("recurring_table", recurring)
	}
	d.at = "dynamodb:?" + query.Encode()
	return d
}

// does runs a command line, in which STORE stands for the store; whatever is not said with it
// is about that store too.
func (d *duty) does(code int, line string, more ...string) {
	d.t.Helper()
	args := append(strings.Fields(line), more...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "STORE", d.at)
	}
	if !strings.Contains(line, "STORE") {
		args = append(args, "--store", d.at)
	}
	d.mu.Lock()
	d.line = line
	d.mu.Unlock()
	if r := d.run(args...); r.code != code {
		d.t.Errorf("duesday %s: exit %d, want %d\n%s", line, r.code, code, r.errors)
	}
}

// allowedBy holds every use against the policy, and wants those that the test is there for.
func (d *duty) allowedBy(name string, o iam.Options, operations ...string) {
	d.t.Helper()
	p, err := iam.New(name, o)
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	met := map[string]bool{}
	for u, line := range d.uses {
		met[u.operation] = true
		if u.table == "" || !allows(p, o.Account, u) {
			d.t.Errorf("%s does not allow %s on table %q, index %q, partition %q; duesday %s needs it", name, u.operation,
				u.table, u.index, u.partition, line)
		}
	}
	for _, operation := range operations {
		if !met[operation] {
			d.t.Errorf("nothing that %s is for has asked for %s: the test shows less than it says", name, operation)
		}
	}
}

// TestPolicies_AllowWhatCommandsDo: what the commands of each policy ask of DynamoDB is in it.
func TestPolicies_AllowWhatCommandsDo(t *testing.T) {
	endpoint, client := dynamotest.Endpoint(t), dynamotest.Client(t)
	c := newCLI(t)
	prefix := dynamotest.Prefix(t)
	o := iam.Options{Account: "123456789012", Region: "*", Prefix: prefix}

	admin := newDuty(c, prefix, endpoint, "")
	admin.does(exitFailed, "store describe")
	admin.does(exitDone, "store create --shards 2")
	admin.does(exitDone, "store create --provisioned")
	admin.does(exitDone, "store describe")

	operator := newDuty(c, prefix, endpoint, "")
	c.file("book.csv", smallBook)
	operator.does(exitDone, "import book.csv")

	runtime := newDuty(c, prefix, endpoint, "")
	runtime.aMonth()
	runtime.allowedBy(iam.Runtime, o, "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")

	for _, what := range []string{"subscriptions", "accounts", "receipts", "periods"} {
		operator.does(exitDone, "export "+what)
	}
	operator.does(exitDone, "account list --sku gym")
	operator.does(exitDone, "period list --ending failed")
	operator.does(exitDone, "due payments --until 2026-05-31")
	operator.does(exitDone, "subscription list")
	operator.does(exitDone, "verify")
	operator.does(exitDone, "store copy --from STORE --to pebble:copied")
	operator.allowedBy(iam.Operator, o, "Scan")

	// Back into tables that the administration has made by a template, which say nothing of
	// themselves yet.
	o.Prefix = dynamotest.Prefix(t)
	if _, err := dynamotable.Create(t.Context(), client, schema.New(o.Prefix).All(), dynamotable.Settings{},
		nil); err != nil {
		t.Fatal(err)
	}
	operator = newDuty(c, o.Prefix, endpoint, "")
	operator.does(exitDone, "store copy --from pebble:copied --to STORE")
	operator.allowedBy(iam.Operator, o, "Scan", "PutItem")

	// A table of other tools, and Duesday's own beside it.
	o.Prefix, o.RecurringTable = dynamotest.Prefix(t), prefix+"theirs"
	theirs := &sdk{t, client, o.RecurringTable}
	theirs.published()
	theirs.expire()
	theirs.subscription(1, "2026-06-28", "2026-06-21")
	if _, err := dynamotable.Create(t.Context(), client, schema.New(o.Prefix).All()[1:], dynamotable.Settings{},
		nil); err != nil {
		t.Fatal(err)
	}
	operator = newDuty(c, o.Prefix, endpoint, o.RecurringTable)
	c.file("methods.csv", "account,payment_method\n1,pm_card_visa\n")
	operator.does(exitPerson, "store adopt --dry-run")
	operator.does(exitDone, "store adopt --methods methods.csv")
	operator.allowedBy(iam.Operator, o, "DescribeTable", "DescribeTimeToLive", "Scan", "PutItem")

	admin.does(exitDone, "store drop --confirm "+prefix)
	admin.allowedBy(iam.Administration, iam.Options{Account: o.Account, Region: "*", Prefix: prefix}, "CreateTable",
		"UpdateTable", "UpdateTimeToLive", "DeleteTable", "PutItem")
}

// aMonth runs the jobs and the commands about one account on the small book.
func (d *duty) aMonth() {
	d.t.Helper()
	d.does(exitDone, "due payments --until 2026-03-15")
	d.does(exitDone, "due reminders --date 2026-03-15")
	d.file("no-folder", "")
	d.does(exitPerson, "run payments --mail no-folder")
	for range 9 {
		d.clock.Set(d.clock.Now().Add(25 * time.Hour))
		d.does(exitPerson, "outbox send --mail no-folder")
	}
	dead, _ := d.object(exitDone, "outbox", "list", "--store", d.at)["dead_letters"].([]any)
	if len(dead) == 0 {
		d.t.Fatal("no mail was given up")
	}
	d.does(exitDone, "outbox list")
	d.does(exitDone, "outbox replay "+fmt.Sprint(dead[0].(map[string]any)["id"]))
	d.does(exitDone, "outbox send")
	d.does(exitDone, "account create 9 --email i@example.com")
	d.does(exitDone, "account update 9 --email j@example.com")
	d.does(exitDone, "account show 9")
	const plan = " --sku news --amount 12.99 --currency USD --payment-method pm_card_visa --payment-day "
	for _, line := range []string{"create 9/1" + plan + "22", "update 9/1 --amount 15", "pause 9/1", "resume 9/1",
		"show 9/1", "list --account 9", "cancel 9/1",
		"create 9/2" + plan + "24 --next-payment-date 2026-03-24", "create 9/4" + plan + "15 --next-payment-date 2025-09-15",
		"create 9/3" + plan + "25", "cancel 9/3 --at-period-end"} {
		d.does(exitDone, "subscription "+line)
	}
	d.does(exitDone, "receipt create 9/2 --amount 12.99 --note cash")
	d.does(exitDone, "receipt list 1")
	d.clock.Set(d.clock.Now().AddDate(0, 1, -14))
	d.does(exitDone, "run reminders")
	d.clock.Set(d.clock.Now().AddDate(0, 0, 7))
	d.does(exitPerson, "run payments")
	d.does(exitDone, "subscription charge 9/4")
	d.does(exitDone, "subscription skip 9/4")
	d.does(exitDone, "reconcile")
	d.does(exitDone, "charging off --reason holidays")
	d.does(exitDone, "charging on")
}
