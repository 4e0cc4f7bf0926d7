package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const badBook = header +
	"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n" +
	"2,b@example.com,1,news,12.999,USD,32,pm_card_visa\n" +
	"3,c@example.com,1,news,12.99,USD,15,4242424242424242\n" +
	"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"

func TestImport_OneBadRowRefusesTheFile(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", badBook)
	o := c.object(exitFailed, "import", "book.csv")
	equal(t, "counts", members(o, "rows", "imported", "created", "rejected_rows"), []any{4, 0, 0, 3})
	var where []any
	for _, r := range o["rejected"].([]any) {
		x := r.(map[string]any)
		where = append(where, []any{x["line"], x["column"]})
		if x["reason"] == "" {
			t.Errorf("no reason: %v", x)
		}
	}
	equal(t, "rejected", where, []any{[]any{3, "amount"}, []any{3, "payment_day"}, []any{4, "payment_method"},
		[]any{5, "subscription"}})

	r := c.run("import", "book.csv")
	contains(t, r.out, "LINE", "************4242", "1 to 31")
	contains(t, r.errors, "3 of 4 rows are bad, so nothing was imported", "--skip-bad")
	if r.code != exitFailed || strings.Contains(r.out+r.errors, "4242424242424242") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errors)
	}
	for _, name := range []string{"duesday-data", "book.csv.rejected", "book.csv.rejected.tmp"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

func TestImport_SkipBad(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", badBook)
	o := c.object(exitPerson, "import", "book.csv", "--skip-bad")
	equal(t, "counts", members(o, "rows", "imported", "created", "due", "rejected_rows", "rejected_file"),
		[]any{4, 1, 1, 1, 3, "book.csv.rejected"})
	equal(t, "listed", len(o["rejected"].([]any)), 4)
	left := c.read("book.csv.rejected")
	contains(t, left, "rejected_line,rejected_column,rejected_reason,account,", "3,amount; payment_day,",
		"************4242", "5,subscription,")
	if strings.Contains(left, "4242424242424242") || strings.Count(left, "\n") != 4 {
		t.Errorf("rejected:\n%s", left)
	}
	r := c.run("import", "book.csv", "--skip-bad")
	contains(t, r.out, "existing  1", "rejected  3  (written to book.csv.rejected)")
	equal(t, "exit", r.code, exitPerson)
	equal(t, "subscriptions", len(c.list("subscription", "list")), 1)
}

// TestImport_WhatTheStoreRefuses covers rows that are good but do not fit what is there.
func TestImport_WhatTheStoreRefuses(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("one.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	const rows = "1,a@example.com,1,gym,12.99,USD,15,pm_card_visa\n1,a@example.com,2,gym,12.99,USD,15,pm_card_visa\n"
	o := c.object(exitFailed, "import", c.file("two.csv", header+rows))
	equal(t, "rejected", members(o["rejected"].([]any)[0].(map[string]any), "line", "column"), []any{2, "sku"})
	equal(t, "nothing was written", len(c.list("subscription", "list")), 1)

	o = c.object(exitPerson, "import", "two.csv", "--skip-bad")
	equal(t, "skip bad", members(o, "created", "rejected_rows"), []any{1, 1})
	contains(t, c.read("two.csv.rejected"), "rejected_line,rejected_column,rejected_reason,account,email", "2,sku,",
		",1,a@example.com,1,gym,12.99,USD,15,pm_card_visa\n")

	c.file("three.csv", header+rows+"9,x,1,news,12.99,USD,15,pm_card_visa\n")
	c.object(exitPerson, "import", "three.csv", "--skip-bad")
	left := c.read("three.csv.rejected")
	contains(t, left, "4,email,", "2,sku,")
	if strings.Count(left, "rejected_line") != 1 {
		t.Errorf("rejected:\n%s", left)
	}
	c.file("four.jsonl", `{"account":"1","email":"a@example.com","subscription":"1","sku":"gym","amount":"12.99","currency":"USD","payment_day":15,"payment_method":"pm_card_visa"}`+"\n")
	c.object(exitPerson, "import", "four.jsonl", "--skip-bad")
	contains(t, c.read("four.jsonl.rejected"), `"rejected_line":1`, `"rejected_column":"sku"`, `"sku":"gym"`)
}

// TestImport_RefusedInOneLine: the items of a model may all be on one line, and those beside a
// refused one are imported.
func TestImport_RefusedInOneLine(t *testing.T) {
	c := newCLI(t)
	const key = `"PK":{"S":"ACC#%d"},"SK":{"S":"SUB#1#SKU#news"},`
	var items []string
	for account := range 3 {
		items = append(items, `{`+fmt.Sprintf(key, account+1)+`"Email":{"S":"a@example.com"},"PaymentDay":{"N":"15"},"NextPaymentDate":{"S":"2026-04-15"},`+
			`"PaymentAmount":{"N":"12"},"PaymentDetails":{"M":{"PaymentMethod":{"S":"pm_card_visa"}}}}`)
	}
	c.must("subscription", "create", "2/1", "--sku", "gym", "--amount", "1.00", "--currency", "USD", "--payment-day", "1",
		"--email", "a@example.com", "--payment-method", "pm_card_visa")
	file := c.file("model.json", `{"ModelName":"m","DataModel":[{"TableName":"t","TableData":[`+
		strings.Join(items, ",")+`]}]}`)
	o := c.object(exitPerson, "import", file, "--skip-bad")
	equal(t, "counts", members(o, "rows", "created", "rejected_rows"), []any{3, 2, 1})
	contains(t, c.read("model.json.rejected"), "ACC#2")
}

func TestImport_TwiceChangesNothing(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", smallBook)
	equal(t, "first", members(c.object(exitDone, "import", "book.csv"), "created", "existing", "due"), []any{6, 0, 5})
	before := c.must("subscription", "list", "--json")
	equal(t, "second", members(c.object(exitDone, "import", "book.csv"), "created", "existing", "due"), []any{0, 6, 0})
	if after := c.must("subscription", "list", "--json"); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

func TestImport_FilesThatAreNone(t *testing.T) {
	c := newCLI(t)
	for name, want := range map[string]string{"missing.csv": "does not exist", ".": "is a folder",
		c.file("empty.csv", ""): "is empty", "/dev/null": "is not a regular file"} {
		r := c.run("import", name)
		if r.code != exitFailed {
			t.Errorf("import %s: exit %d", name, r.code)
		}
		contains(t, r.errors, want)
	}
	c.file("header.csv", "account,colour\n1,red\n")
	o := c.object(exitFailed, "import", "header.csv", "--skip-bad")
	if len(o["rejected"].([]any)) == 0 {
		t.Errorf("a bad header: %v", o)
	}
}

func TestImport_ManyRowsFromSeveralWorkers(t *testing.T) {
	c := newCLI(t)
	var b strings.Builder
	b.WriteString(header)
	const accounts, each = 150, 5
	for a := range accounts {
		for s := range each {
			fmt.Fprintf(&b, "%d,u%d@example.com,%d,news,12.99,USD,%d,pm_card_visa\n", a, a, s, 1+(a+s)%31)
		}
	}
	o := c.object(exitDone, "import", c.file("book.csv", b.String()), "--workers", "4")
	equal(t, "counts", members(o, "rows", "created"), []any{accounts * each, accounts * each})
	equal(t, "accounts", len(c.list("account", "list")), accounts)
	equal(t, "subscriptions", len(c.list("subscription", "list")), accounts*each)
	equal(t, "of one", len(c.list("subscription", "list", "--account", "7")), each)
}

// TestImport_SavedByASpreadsheet: another case, another separator, and columns of the shop's own.
func TestImport_SavedByASpreadsheet(t *testing.T) {
	c := newCLI(t)
	text := "Account;E-Mail;Subscription;SKU;Amount;Currency;Payment Day;Payment Method;Notes\r\n" +
		"1;a@example.com;1;news;12.99;USD;15;pm_card_visa;\"said; hello\"\r\n"
	c.file("book.csv", text)
	o := c.object(exitFailed, "import", "book.csv")
	equal(t, "columns", []any{o["rejected"].([]any)[0].(map[string]any)["reason"], len(o["rejected"].([]any))},
		[]any{"is an unknown column; the closest is email; leave columns out with --ignore-columns", 3})
	c.file("book.csv", strings.Replace(text, "E-Mail", "EMAIL", 1))
	equal(t, "imported", members(c.object(exitDone, "import", "book.csv", "--ignore-columns", "NOTES"), "rows", "created"),
		[]any{1, 1})
	c.file("tabs.txt", strings.ReplaceAll(header, ",", "\t")+"2\tb@example.com\t1\tnews\t12.99\tUSD\t15\tpm_card_visa\n")
	c.object(exitDone, "import", "tabs.txt")
}

// TestImport_ManyRowsOfOneAccount: the rows of one account go to one worker, also when other accounts'
// rows stand between them.
func TestImport_ManyRowsOfOneAccount(t *testing.T) {
	c := newCLI(t)
	rows := func(from, to int) string {
		var b strings.Builder
		b.WriteString(header)
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "1,a@example.com,%d,news,12.99,USD,15,pm_card_visa\n", i)
			if i%7 == 0 {
				fmt.Fprintf(&b, "x%d,x@example.com,1,news,12.99,USD,15,pm_card_visa\n", i)
			}
		}
		return b.String()
	}
	const most = 5000
	o := c.object(exitDone, "import", c.file("book.csv", rows(0, most)), "--store", "mem:")
	equal(t, "created", o["created"], most+(most+6)/7)
	for _, to := range []int{150, 700, 700} {
		c.object(exitDone, "import", c.file("book.csv", rows(0, to)))
		equal(t, "of one", len(c.list("subscription", "list", "--account", "1")), to)
	}
}

// notesOf returns the texts of an import's notes by line.
func notesOf(o map[string]any) (list []any) {
	notes, _ := o["notes"].([]any)
	for _, n := range notes {
		m := n.(map[string]any)
		if m["warning"] != nil {
			list = append(list, []any{m["line"], m["warning"]})
		} else {
			list = append(list, []any{m["line"], m["column"], m["stored"], m["given"]})
		}
	}
	return list
}

// TestImport_Differences: a dry run says what the import then says, and writes nothing; a second
// update finds nothing.
func TestImport_Differences(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", smallBook))
	c.must("subscription", "cancel", "5/1")
	before := c.must("subscription", "list", "--json")
	const full = "account,email,subscription,sku,amount,currency,payment_day,payment_method,reminder_days,address,next_payment_date\n"
	c.file("new.csv", full+
		"1,new@example.com,1,news,20.00,USD,20,pm_sandbox_flaky,3,Elm Street,2026-03-20\n"+
		"1,new@example.com,2,gym,500,JPY,15,pm_sandbox_timeout,,,\n"+
		"1,new@example.com,3,gym,500,JPY,15,pm_card_visa,,,\n"+
		"2,b@example.com,1,news,12.99,EUR,15,,,,\n"+
		"3,c@example.com,1,news,1.500,KWD,15,pm_card_authenticationRequired,,,2026-03-15\n"+
		"5,other@example.com,1,news,1.00,USD,1,pm_card_visa,,,\n")
	want := []any{[]any{2, "amount", "12.99", "20.00"}, []any{2, "payment_day", "15", "20"},
		[]any{2, "payment_method", "pm_card_visa", "pm_sandbox_flaky"}, []any{2, "reminder_days", "7", "3"},
		[]any{2, "address", "", "Elm Street"}, []any{2, "email", "a@example.com", "new@example.com"},
		[]any{5, "currency", "USD", "EUR"}}
	counts := []string{"rows", "created", "existing", "updated", "differing", "ended", "due"}

	// Without --update the new subscription of line 4 does not fit its account.
	o := c.object(exitPerson, "import", "new.csv", "--skip-bad")
	equal(t, "differences", notesOf(o), want)
	equal(t, "counts", members(o, counts...), []any{6, 0, 2, nil, 2, 1, 0})
	if c.must("subscription", "list", "--json") != before {
		t.Error("an import without --update has changed something")
	}
	o = c.object(exitPerson, "import", "new.csv", "--update", "--dry-run")
	equal(t, "dry run", notesOf(o), want)
	equal(t, "dry run", members(o, counts...), []any{6, 1, 2, 1, 1, 1, 1})
	if c.must("subscription", "list", "--json") != before {
		t.Error("a dry run has changed something")
	}
	o = c.object(exitPerson, "import", "new.csv", "--update")
	equal(t, "update", notesOf(o), want)
	equal(t, "update", members(o, counts...), []any{6, 1, 2, 1, 1, 1, 1})
	s := c.object(exitDone, "subscription", "show", "1/1")
	equal(t, "1/1", members(s, "amount", "payment_day", "payment_method", "reminder_days", "address", "email", "due_date"),
		[]any{2000, 20, "pm_sandbox_flaky", 3, "Elm Street", "new@example.com", "2026-03-20"})
	equal(t, "1/3", c.object(exitDone, "subscription", "show", "1/3")["email"], "new@example.com")
	r := c.run("import", "new.csv", "--update")
	contains(t, r.out, "5     2/1           currency USD -> EUR (not changed: cancel the subscription and import another)",
		"existing   4", "differing  1  (not changed, because an import cannot change them)")
	if strings.Contains(r.out, "updated") || strings.Count(r.out, "->") != 1 || r.code != exitPerson {
		t.Errorf("a second update: exit %d\n%s", r.code, r.out)
	}
	c.file("one.csv", header+"1,new@example.com,1,news,10.00,USD,20,pm_sandbox_flaky\n")
	contains(t, c.must("import", "one.csv"), "amount 20.00 -> 10.00\n", "differing  1  (not changed; --update changes them)")
	contains(t, c.must("import", "one.csv", "--update"), "amount 20.00 -> 10.00\n", "updated  1")
	if out := c.must("import", "one.csv", "--update"); strings.Contains(out, "->") {
		t.Errorf("a second update:\n%s", out)
	}
}

func TestImport_DryRunMakesNothing(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", smallBook)
	first := c.must("import", "book.csv", "--dry-run")
	dry := c.object(exitDone, "import", "book.csv", "--dry-run")
	contains(t, first, "book.csv: 6 rows in a dry run; nothing was written", "created", "shards per date")
	c.file("bad.csv", badBook)
	r := c.run("import", "bad.csv", "--dry-run", "--skip-bad")
	contains(t, r.out, "rejected", "3  (left out;")
	if r.code != exitPerson {
		t.Errorf("exit %d", r.code)
	}
	entries, err := os.ReadDir(c.path("."))
	if err != nil || len(entries) != 2 {
		t.Errorf("a dry run has made %v, %v", entries, err)
	}
	real := c.must("import", "book.csv")
	_, first, _ = strings.Cut(first, "\n")
	if _, real, _ = strings.Cut(real, "\n"); real != first {
		t.Errorf("dry run:\n%simport:\n%s", first, real)
	}
	equal(t, "due", members(dry, "created", "due", "dry_run"), []any{6, 5, true})
}

func TestImport_UnknownMethods(t *testing.T) {
	c := newCLI(t)
	row := "1,a@example.com,%d,news,12.99,USD,15,%s\n"
	var text strings.Builder
	text.WriteString(header)
	for i, method := range []string{"pm_card_visa", "pm_1Pgc8mB7WZ01zgkWmB7uCi3m", "card_1Pgc8mB7WZ01", "", "visa", "pm_card_vissa",
		"tok_visa"} {
		fmt.Fprintf(&text, row, i, method)
	}
	c.file("book.csv", text.String())
	want := []any{}
	for i, method := range []string{"visa", "pm_card_vissa", "tok_visa"} {
		want = append(want, []any{6 + i, "payment_method " + method + " is a token that no processor knows, so every charge with it will fail"})
	}
	equal(t, "warnings", notesOf(c.object(exitDone, "import", "book.csv")), want)
	contains(t, c.must("import", "book.csv"), "7     1/5           warning: payment_method pm_card_vissa is a token")
}

// TestImport_PendingPlan: a file with the plan that is pending, or with the one in force, differs
// in nothing.
func TestImport_PendingPlan(t *testing.T) {
	c := newCLI(t)
	row := "1,a@example.com,1,%s,%s,USD,20,pm_card_visa\n"
	c.must("import", c.file("book.csv", header+fmt.Sprintf(row, "news", "12.99")))
	c.must("subscription", "update", "1/1", "--sku", "gold", "--amount", "20.00", "--from", "2026-05-01")
	contains(t, c.run("export", "subscriptions").errors, "1 subscription with a pending plan change")
	for _, plan := range [][]string{{"news", "12.99"}, {"news", "15.00"}} {
		o := c.object(exitDone, "import", c.file("book.csv", header+fmt.Sprintf(row, plan[0], plan[1])))
		if (plan[1] == "12.99") != (o["notes"] == nil) {
			t.Errorf("%v: %v", plan, o["notes"])
		}
	}
	c.must("subscription", "update", "1/1", "--sku", "gold", "--amount", "20.00", "--from", "2026-03-15")
	equal(t, "current plan", members(c.object(exitDone, "prove", "1/1", "--period", "0"), "sku", "state"), []any{"gold", "waiting"})
	o := c.object(exitPerson, "import", "book.csv", "--update", "--dry-run")
	equal(t, "an older file", notesOf(o), []any{[]any{2, "sku", "gold", "news"}, []any{2, "amount", "20.00", "15.00"}})
	contains(t, c.run("import", "book.csv", "--update").out, "not changed: it is the price of news")
	equal(t, "its price", c.object(exitDone, "subscription", "show", "1/1")["amount"], 2000)
}
