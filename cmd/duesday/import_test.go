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
	contains(t, r.errors, "3 of 4 rows are bad; nothing was imported", "--skip-bad")
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
	o := c.object(exitDone, "import", "book.csv", "--skip-bad")
	equal(t, "counts", members(o, "rows", "imported", "created", "due", "rejected_rows", "rejected_file"),
		[]any{4, 1, 1, 1, 3, "book.csv.rejected"})
	equal(t, "listed", len(o["rejected"].([]any)), 4)
	left := c.read("book.csv.rejected")
	contains(t, left, "rejected_line,rejected_column,rejected_reason,account,", "3,amount; payment_day,",
		"************4242", "5,subscription,")
	if strings.Contains(left, "4242424242424242") || strings.Count(left, "\n") != 4 {
		t.Errorf("rejected:\n%s", left)
	}
	contains(t, c.must("import", "book.csv", "--skip-bad"), "existing  1", "rejected  3  (written to book.csv.rejected)")
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

	o = c.object(exitDone, "import", "two.csv", "--skip-bad")
	equal(t, "skip bad", members(o, "created", "rejected_rows"), []any{1, 1})
	contains(t, c.read("two.csv.rejected"), "rejected_line,rejected_column,rejected_reason,account,email", "2,sku,",
		",1,a@example.com,1,gym,12.99,USD,15,pm_card_visa\n")

	c.file("three.csv", header+rows+"9,x,1,news,12.99,USD,15,pm_card_visa\n")
	c.object(exitDone, "import", "three.csv", "--skip-bad")
	left := c.read("three.csv.rejected")
	contains(t, left, "4,email,", "2,sku,")
	if strings.Count(left, "rejected_line") != 1 {
		t.Errorf("rejected:\n%s", left)
	}
	c.file("four.jsonl", `{"account":"1","email":"a@example.com","subscription":"1","sku":"gym","amount":"12.99","currency":"USD","payment_day":15,"payment_method":"pm_card_visa"}`+"\n")
	c.object(exitDone, "import", "four.jsonl", "--skip-bad")
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
	o := c.object(exitDone, "import", file, "--skip-bad")
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
	for name, want := range map[string]string{"missing.csv": "there is no file", ".": "is a folder",
		c.file("empty.csv", ""): "is empty", "/dev/null": "no ordinary file"} {
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
		[]any{"is an unknown column; the nearest is email; --ignore-columns leaves a column out", 3})
	c.file("book.csv", strings.Replace(text, "E-Mail", "EMAIL", 1))
	equal(t, "imported", members(c.object(exitDone, "import", "book.csv", "--ignore-columns", "NOTES"), "rows", "created"),
		[]any{1, 1})
	c.file("tabs.txt", strings.ReplaceAll(header, ",", "\t")+"2\tb@example.com\t1\tnews\t12.99\tUSD\t15\tpm_card_visa\n")
	c.object(exitDone, "import", "tabs.txt", "--separator", "tab")
	r := c.run("import", "tabs.txt", "--separator", "ab")
	contains(t, r.errors, "--separator", "want one character")
	if r.code != exitUsage {
		t.Errorf("exit %d", r.code)
	}
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
