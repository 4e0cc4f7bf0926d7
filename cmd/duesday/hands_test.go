package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// TestOtherHands_Unreadable: due rows that cannot be read are listed, counted and named, with exit code 3
// and never 2; everybody else is charged.
func TestOtherHands_Unreadable(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	amount, key, text := foreign("2", "bad", "2026-03-15"), foreign("3", "1", "2026-03-15"), foreign("4", "1", "2026-03-15")
	amount.Set("PaymentAmount", store.S("a dozen"))
	key.Set("SK", store.S("SUBSCRIPTION#1"))
	text.Set("SK", store.S("SUB#1#SKU999"))
	for _, it := range []store.Item{foreign("1", "1", "2026-03-15"), amount, key, text} {
		c.commit(store.Put("duesday-recurring-payments", it))
	}
	c.object(exitPerson, "store", "adopt", "--methods", c.file("methods.csv",
		"account,payment_method\n1,pm_card_visa\n4,pm_card_visa\n"))

	var problems []string
	rows := c.json(exitPerson, "due", "payments", "--date", "2026-03-15").([]any)
	for _, row := range rows {
		if p, ok := row.(map[string]any)["problem"]; ok {
			problems = append(problems, p.(string))
		}
	}
	slices.Sort(problems)
	equal(t, "due", []any{len(rows), problems}, []any{4, []string{
		"PaymentAmount is not an amount in the subscription's currency", "SK is not SUB#<subscription>#SKU#<sku>"}})
	r := c.run("run", "payments", "--dry-run")
	equal(t, "dry run", r.code, exitPerson)
	contains(t, r.errors, "a due subscription cannot be read", "2/bad")
	r = c.run("run", "payments")
	equal(t, "run", r.code, exitPerson)
	contains(t, r.out, "4 due", "paid        2", "unreadable  2", "2/bad", "3/SUBSCRIPTION#1",
		"PaymentAmount is not an amount in the subscription's currency", "For details, run: duesday verify\n")
	equal(t, "again", members(c.object(exitPerson, "run", "payments"), "due", "paid", "unreadable"), []any{2, 0, 2})
	equal(t, "status", c.run("status").code, exitPerson)
	for _, args := range []string{"subscription show 2/bad", "subscription pause 2/bad", "verify"} {
		equal(t, args, c.run(strings.Fields(args)...).code, exitFailed)
	}
}

// TestOtherHands_ListsGoOn: every list and export names an unreadable item, shows the others, and exits
// with 3.
func TestOtherHands_ListsGoOn(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	c.create("2/1", "pm_card_visa")
	c.create("2/3", "pm_card_visa_chargeDeclinedLostCard")
	c.run("run", "payments")
	receipt := store.NewItem(store.Attribute{Name: "ProcessedAmount", Value: store.S("a dozen")})
	receipt.Set("PK", store.S("ACC#2"))
	receipt.Set("SK", store.S("REC#2026-01-01T00:00:00.000Z#SKU#news"))
	bad, stray, period := foreign("2", "2", "2026-03-15"), foreign("2", "3", "2026-03-15"), receipt.Clone()
	bad.Set("PaymentAmount", store.S("a dozen"))
	stray.Set("SK", store.S("SUB#stray"))
	period.Set("SK", store.S("PER#3#SKU#news#000009"))
	reversal := receipt.Clone()
	reversal.Set("SK", store.S("REF#2026-01-01T00:00:00.000Z#re_1"))
	for _, it := range []store.Item{bad, stray, period, receipt, reversal} {
		c.commit(store.Put("duesday-recurring-payments", it))
	}
	subscriptions := []string{"item ACC#2 SUB#2#SKU#999: PaymentAmount is not an amount", "item ACC#2 SUB#stray: SK is not"}
	receipts := []string{"item ACC#2 REC#2026-01-01T00:00:00.000Z#SKU#news: ProcessedAmount"}
	reversals := []string{"item ACC#2 REF#2026-01-01T00:00:00.000Z#re_1: SK"}
	for line, x := range map[string]struct {
		shown int
		named []string
	}{
		"subscription list":              {3, subscriptions},
		"subscription list --account 2":  {2, subscriptions},
		"account show 2":                 {2, subscriptions},
		"subscription show 2/3":          {2, append([]string{"item ACC#2 PER#3#SKU#news#000009: "}, receipts...)},
		"receipt list 2":                 {1, append(reversals, receipts...)},
		"export subscriptions --all":     {3, subscriptions},
		"export receipts":                {2, append(reversals, receipts...)},
		"export refunds":                 {0, reversals},
		"period list":                    {1, []string{"item ACC#2 PER#3#SKU#news#000009: "}},
		"period list 2/3":                {1, []string{"item ACC#2 PER#3#SKU#news#000009: "}},
		"export periods":                 {1, []string{"item ACC#2 PER#3#SKU#news#000009: "}},
		"account list --status canceled": {0, subscriptions},
	} {
		for _, flag := range []string{"", " --json"} {
			r := c.run(strings.Fields(line + flag)...)
			equal(t, line+flag, r.code, exitPerson)
			contains(t, r.errors, x.named...)
			equal(t, line+flag+": named", strings.Count(r.errors, "left out: "), len(x.named))
			if flag != "" {
				equal(t, line+": shown", strings.Count(r.out, `"account":`), x.shown)
			}
		}
	}
}

// tables returns the names of the tables that begin with the prefix. Other tests have tables at the same time, and a response
// has at most 100.
func (s *sdk) tables(prefix string) (names []string) {
	s.t.Helper()
	for pages := dynamodb.NewListTablesPaginator(s.client, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, name := range page.TableNames {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	return names
}

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
		contains(t, r.errors, "but no META item", "store adopt takes over a table")
		for _, name := range theirs.tables(prefix) {
			if name != theirs.table {
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

	// An empty table without our indexes is theirs, too: no run would find what is written there.
	empty := dynamotable.Input(store.Table{Name: prefix + "empty", PartitionKey: "PK", SortKey: "SK"}, dynamotable.Settings{})
	if _, err := theirs.client.CreateTable(t.Context(), empty); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"import", book}, {"account", "create", "9", "--email", "nine@example.com"}} {
		r := c.run(append(args, "--store", strings.ReplaceAll(at, theirs.table, prefix+"empty"))...)
		equal(t, "exit code", r.code, exitFailed)
		contains(t, r.errors, "these tables are not Duesday's, so they were not changed", "index GSI-1")
	}
	if tables := theirs.tables(prefix); len(tables) != 2 {
		t.Errorf("tables were made: %v", tables)
	}

	at = strings.Split(at, "&recurring_table=")[0]
	r := c.run("import", book, "--store", at)
	equal(t, "import", r.code, exitFailed) // the name may be mistyped
	contains(t, r.errors, "create one with duesday store create")
	c.must("store", "create", "--store", at)
	equal(t, "again", strings.Contains(c.must("import", book, "--store", at), "shards"), false)
}

// TestOtherHands_BothKeys: another tool copies a subscription to the other form of its key. On both
// engines each run charges one of them and names the other, status and due tell, and verify has one
// problem.
func TestOtherHands_BothKeys(t *testing.T) {
	for _, engine := range []string{"pebble", "dynamodb"} {
		t.Run(engine, func(t *testing.T) {
			c := newCLI(t)
			at, tables := config.DefaultStore, schema.New(schema.DefaultPrefix)
			if engine == "dynamodb" {
				var prefix string
				at, prefix = onDynamo(t)
				tables = schema.New(prefix)
				c.must("store", "create", "--store", at)
			}
			c.env["DUESDAY_STORE"] = at
			c.must("import", c.file("book.csv", "account,email,subscription,sku,amount,currency,payment_day,payment_method\n"+
				"1,a@example.com,7,gold,5.00,USD,15,pm_card_visa\n2,b@example.com,7,gold,5.00,USD,15,pm_card_visa\n"))
			p := newProgram(c.getenv([]string{"--store", at}), nil, nil, nil, c.clock.Now)
			p.Dir = c.dir
			p.Config = config.Config{Store: at}
			name := billing.Name{Account: "1", ID: "7", SKU: "gold"}
			if err := p.With(t.Context(), session.Need{Read: true}, func(s *session.Session) error {
				it, err := s.Store.Get(t.Context(), tables.RecurringPayments.Name, name.Key())
				if err != nil {
					return err
				}
				tables.RecurringPayments.SetKey(&it, name.TextKey())
				return s.Store.Commit(t.Context(), store.Put(tables.RecurringPayments.Name, it))
			}); err != nil {
				t.Fatal(err)
			}
			contains(t, c.run("store", "adopt", "--dry-run").out, "another subscription with this ID")
			for n := range 3 {
				r := c.run("run", "payments")
				equal(t, "run", r.code, exitPerson)
				contains(t, r.out, "1/SUB#7#SKUgold", "SK is the second key of the subscription under SUB#7#SKU#gold")
				contains(t, c.run("due", "payments", "--until", "2026-03-15").out, "SUB#7#SKUgold")
				contains(t, c.run("status").out, "1 unreadable")
				audit := c.object(exitFailed, "verify")
				problems := audit["problems"].([]any)
				equal(t, "problems", len(problems), 1)
				contains(t, fmt.Sprint(problems[0]), "two subscriptions with one ID", "SUB#7#SKU#gold is charged, and SUB#7#SKUgold is not")
				equal(t, "charges of two", audit["charges"], 2*float64(n+1))
				c.clock.Set(c.clock.Now().AddDate(0, 1, 0))
			}
		})
	}
}

// TestOtherHands_PaidOnce: a period that was perhaps paid twice is named by runs, status and verify until a
// person has answered.
func TestOtherHands_PaidOnce(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	c.must("run", "payments")
	moved, err := civil.Parse("2026-04-20")
	if err != nil {
		t.Fatal(err)
	}
	doubt := billing.Doubt{Name: billing.Name{Account: "1", ID: "1", SKU: "news"}, Moved: moved, Created: c.clock.Now()}
	c.commit(doubt.Write("duesday-recurring-payments"))
	v := c.object(exitPerson, "run", "payments")
	equal(t, "run", v["perhaps_paid_twice"], []any{map[string]any{"account": "1", "subscription": "1", "period": 0.0,
		"moved_to": "2026-04-20"}})
	contains(t, c.run("run", "payments").errors, "1/1 period 0 was perhaps paid twice", "subscription update 1/1 --paid-once")
	r := c.run("verify")
	equal(t, "verify", r.code, exitFailed)
	contains(t, r.out, "perhaps paid twice")
	contains(t, c.run("status").out, "periods that may be paid twice: 1, the first is 1/1 period 0")
	for _, args := range []string{"1/1 --paid-once --amount 5", "--paid-once", "--where sku=news --paid-once"} {
		equal(t, args, c.run(append([]string{"subscription", "update"}, strings.Fields(args)...)...).code, exitUsage)
	}
	contains(t, c.must("subscription", "update", "1/1", "--paid-once"), "confirmed for 1 period")
	contains(t, c.must("history", "1/1"), "perhaps_paid_twice 0 -> -", "user ")
	contains(t, c.run("subscription", "update", "1/1", "--paid-once").errors, "has no period that was perhaps paid twice")
	c.must("verify")
	c.must("run", "payments")
}
