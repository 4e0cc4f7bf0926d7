package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExport(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv",
		header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n2,\"b@example.com\",1,news,12.99,USD,31,pm_card_visa\n"))
	c.must("run", "payments")
	receipts := strings.Split(c.must("export", "receipts", "--format", "csv"), "\n")
	equal(t, "header", receipts[0], "account,subscription,sku,period,due_date,processed_at,amount,currency,charge,kind,id,number,email,refunded,note,unit_amount,quantity,discount,net,tax,tax_rate,tax_mode,tax_country,tax_note")
	if len(receipts) != 3 || !strings.HasPrefix(receipts[1],
		"1,1,news,0,2026-03-15,2026-03-15T10:30:00.000Z,12.99,USD,pi_sandbox_") ||
		!strings.HasSuffix(receipts[1], ",a@example.com,0.00,,,,,,,,,,") || !strings.Contains(receipts[1], ",charge,") {
		t.Errorf("receipts: %q", receipts)
	}
	o := decode(t, c.must("export", "receipts", "--format", "jsonl")).(map[string]any)
	equal(t, "receipt", members(o, "account", "period", "amount"), []any{"1", 0, "12.99"})
	equal(t, "accounts", c.must("export", "accounts"), "account,email,time_zone,created_at,name,locale,customer,"+
		"payment_method,fallback_payment_method,address_line1,address_line2,city,company,country,postal_code,state,tax_id\n"+
		"1,a@example.com,UTC,2026-03-15T10:30:00.000Z,,,,,,,,,,,,,\n2,b@example.com,UTC,2026-03-15T10:30:00.000Z,,,,,,,,,,,,,\n")
	contains(t, c.must("export", "accounts", "--json"), `{"account":"1",`)

	if out := c.must("export", "subscriptions", "--out", "out.csv"); out != "" {
		t.Errorf("out: %q", out)
	}
	equal(t, "subscriptions", c.read("out.csv"),
		"account,email,subscription,sku,amount,currency,payment_day,payment_method,start_date,next_payment_date,interval,"+
			"time_zone,reminder_days,installments,address,collection,customer,name,locale,fallback,product,quantity,discount,discount_periods,tax_rate,tax,tax_note,address_line1,"+
			"address_line2,city,company,country,postal_code,state,tax_id\n"+
			"1,a@example.com,1,news,12.99,USD,15,pm_card_visa,,2026-04-15,month,UTC,7,,,,,,,,,,,,,,,,,,,,,,\n2,b@example.com,1,news,12.99,USD,"+
			"31,pm_card_visa,,2026-03-31,month,UTC,7,,,,,,,,,,,,,,,,,,,,,,\n")
	if r := c.run("export", "accounts", "--out", "no/such/folder"); r.code != exitFailed {
		t.Errorf("exit %d", r.code)
	}
	c.must("receipt", "refund", "1/1", "--period", "0", "--amount", "2.99")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 16))
	c.must("receipt", "create", "2/1", "--period", "0", "--note", "bank 77")
	equal(t, "refunded", members(decode(t, strings.SplitAfter(c.must("export", "receipts", "--json"), "\n")[0]).(map[string]any), "email", "refunded",
		"note"), []any{"a@example.com", "2.99", nil})
	receipts = strings.Split(c.must("export", "receipts"), "\n")
	r := c.list("receipt", "list", "2")[0].(map[string]any)
	if !strings.HasSuffix(receipts[2], ",bank 77,external,"+r["id"].(string)+","+r["number"].(string)+",b@example.com,0.00,bank 77,,,,,,,,,") {
		t.Errorf("receipts: %q", receipts)
	}
}

// TestExport_FallbackIsAMethod: the account's fallback is the own method of one of its subscriptions. The
// file can be imported all the same.
func TestExport_FallbackIsAMethod(t *testing.T) {
	for _, own := range []string{"1", "2"} { // the first row, and a later one
		t.Run(own, func(t *testing.T) {
			c := newCLI(t)
			c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n1,a@example.com,2,news,12.99,USD,15,pm_card_visa\n"))
			c.must("account", "attach", "1", "--fallback", "pm_card_mastercard")
			c.must("subscription", "update", "1/"+own, "--payment-method", "pm_card_mastercard")
			book := c.must("export", "subscriptions")
			contains(t, c.must("import", c.file("exported.csv", book), "--store", "pebble:other"), "created")
			equal(t, "again", c.must("export", "subscriptions", "--store", "pebble:other"), book)
		})
	}
}

// TestExport_ImportedReceiptHasNoPeriod takes the published model, whose receipts name none.
func TestExport_ImportedReceiptHasNoPeriod(t *testing.T) {
	model, err := filepath.Abs("../../internal/book/testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	c := newCLI(t)
	c.run("import", model, "--overdue", "charge")
	c.must("run", "payments", "--date", "2023-06-28") // beside it stands period 0, which is known
	known := 0
	for line := range strings.Lines(c.must("export", "receipts", "--format", "jsonl")) {
		period, there := decode(t, line).(map[string]any)["period"]
		if there {
			known++
			equal(t, "period", period, 0)
		}
	}
	equal(t, "with a period", known, 1)
	for _, o := range c.list("receipt", "list", "123") {
		r := o.(map[string]any)
		if _, there := r["period"]; there != (r["kind"] == "charge") {
			t.Errorf("receipt list: %v", r)
		}
	}
	csv := c.must("export", "receipts")
	contains(t, csv, ",999,,,2023-05-28T", ",999,0,2023-06-28,")
	for _, line := range []string{"receipt list 123", "subscription show 123/123"} {
		contains(t, c.must(strings.Fields(line)...), "imported")
	}
}

// TestExport_CanBeImportedAgain also holds that what has ended does not come alive.
func TestExport_CanBeImportedAgain(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", smallBook))
	c.must("subscription", "cancel", "5/1")
	for _, format := range []string{"csv", "jsonl"} {
		out := "again." + format
		r := c.run("export", "subscriptions", "--format", format, "--out", out)
		if r.code != exitDone || !strings.Contains(r.errors, "1 subscription ") {
			t.Fatalf("exit %d, %s", r.code, r.errors)
		}
		o := c.object(exitDone, "import", out, "--store", "pebble:./"+format)
		equal(t, format, members(o, "rows", "created"), []any{5, 5})
		r = c.run("export", "subscriptions", "--format", format, "--store", "pebble:./"+format)
		if r.out != c.read(out) {
			t.Errorf("%s: exported again:\n%swant\n%s", format, r.out, c.read(out))
		}
	}
	c.must("export", "subscriptions", "--all", "--out", "all.csv")
	if n := strings.Count(c.read("all.csv"), "\n"); n != 7 {
		t.Errorf("--all: %d lines", n)
	}
	if r := c.run("import", "all.csv", "--store", "pebble:./all"); r.code != exitFailed {
		t.Errorf("import of --all: exit %d", r.code)
	}
}

// TestReconcile restores a copy of the store from before a charge.
func TestReconcile(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	if err := os.CopyFS(c.path("backup"), os.DirFS(c.path("duesday-data"))); err != nil {
		t.Fatal(err)
	}
	c.must("run", "payments")
	if err := os.Rename(c.path("backup"), c.path("restored")); err != nil {
		t.Fatal(err)
	}
	c.env["DUESDAY_STORE"] = "pebble:./restored"
	r := c.run("run", "payments")
	if r.code != exitFailed {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.errors)
	}
	contains(t, r.errors, "went back in time", "reconcile")
	equal(t, "audit", c.object(exitFailed, "verify")["ok"], false)
	contains(t, c.run("verify").out, "THE AUDIT FOUND 1 PROBLEM.", "1/1")
	equal(t, "reconcile", members(c.object(exitPerson, "reconcile"), "adopted", "charging", "held"), []any{1, false, 1})
	equal(t, "drop", c.object(exitDone, "outbox", "drop")["dropped"], 1)
	contains(t, c.must("reconcile"), "0 charges adopted",
		"charging is still off; to turn it on, run: duesday charging on")
	c.must("charging", "on")
	equal(t, "then", c.object(exitDone, "run", "payments")["due"], 0)
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "receipts", "charges"), []any{true, 1, 1})
}
