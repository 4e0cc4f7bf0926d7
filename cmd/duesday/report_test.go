package main

import (
	"strings"
	"testing"
)

// TestReport: the same months as text, CSV and JSON, exact in every currency, before the mail has left
// and after it.
func TestReport(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", smallBook))
	contains(t, c.must("report"), "2026-03  USD       0.00", "Monthly recurring revenue: ¥500; KWD 1.500; $51.96")
	c.run("run", "payments", "--mail", "dir:book.csv/mail")
	before := c.object(exitDone, "report", "--days", "17")
	c.must("outbox", "send")
	r := c.object(exitDone, "report", "--days", "17")
	equal(t, "months", r["months"], before["months"])

	month := func(currency string, collected, declined, failed, outstanding int) map[string]any {
		return map[string]any{"month": "2026-03", "currency": currency, "collected": collected, "outside": 0,
			"refunded": 0, "declined": declined, "failed": failed, "recovered": 0, "outstanding": outstanding, "complete": true}
	}
	equal(t, "months", r["months"], []any{month("JPY", 500, 0, 0, 0), month("KWD", 0, 0, 0, 1500),
		month("USD", 1299, 2598, 1299, 2598)})
	equal(t, "mrr", r["mrr"], map[string]any{"JPY": 500, "KWD": 1500, "USD": 3897})
	expected := func(date string) map[string]any {
		return map[string]any{"date": date, "currency": "USD", "amount": 1299, "count": 1}
	}
	equal(t, "expected", r["expected"], []any{expected("2026-03-16"), expected("2026-03-31")})
	equal(t, "as of", r["as_of"], "2026-03-15T10:30:00.000Z")
	equal(t, "csv", c.must("report", "--csv", "--from", "2026-02"), `month,currency,collected,outside,refunded,declined,failed,recovered,outstanding,complete
2026-02,JPY,0,0,0,0,0,0,0,no
2026-02,KWD,0.000,0.000,0.000,0.000,0.000,0.000,0.000,no
2026-02,USD,0.00,0.00,0.00,0.00,0.00,0.00,0.00,no
2026-03,JPY,500,0,0,0,0,0,0,yes
2026-03,KWD,0.000,0.000,0.000,0.000,0.000,0.000,1.500,yes
2026-03,USD,12.99,0.00,0.00,25.98,12.99,0.00,25.98,yes
`)
	contains(t, c.must("report", "--from", "2026-02"), "2026-02: sums have been kept since 2026-03-15")
	contains(t, c.must("verify"), "The audit is clean")
	for _, n := range []string{"1/1", "1/2", "2/1", "3/1", "4/1", "5/1"} { // no currency recurs
		c.run("subscription", "cancel", n)
	}
	contains(t, c.must("report", "--from", "2026-01", "--to", "2026-02"), "the store has no sums for these months")
}

// TestReport_ArrearsOfAnImport: what was due before the store was made is not left out.
func TestReport_ArrearsOfAnImport(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", "account,email,subscription,sku,amount,currency,payment_day,payment_method,start_date\n"+
		"1,a@example.com,1,news,10.00,EUR,5,pm_card_visa,2025-11-05\n2,b@example.com,1,news,1000,JPY,5,pm_card_visa,2026-02-05\n"),
		"--overdue", "charge")
	contains(t, c.must("report"), "outstanding from earlier months: €40.00\noutstanding from earlier months: ¥1,000\n")
	equal(t, "json", c.object(exitDone, "report")["outstanding_before"], map[string]any{"EUR": 4000, "JPY": 1000})
	contains(t, c.run("report", "--csv").errors, "€40.00 more is outstanding")
	equal(t, "all of them", c.object(exitDone, "report", "--from", "2025-11")["outstanding_before"], map[string]any{})
}

// TestReport_DayOfAManualPayment: it is in the month of the given day, wherever the account and the
// operator live.
func TestReport_DayOfAManualPayment(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "America/New_York", "Asia/Tokyo"} {
		c := newFolder(t)
		c.must("import", c.file("book.csv", "account,email,subscription,sku,amount,currency,payment_day,time_zone,start_date\n"+
			"1,a@example.com,1,news,1.00,EUR,5,UTC,2026-01-05\n2,b@example.com,1,news,20.00,EUR,5,Asia/Tokyo,2026-01-05\n"+
			"3,c@example.com,1,news,300.00,EUR,5,America/New_York,2026-01-05\n"), "--overdue", "charge")
		c.must("settings", "set", "time-zone="+zone)
		for _, account := range []string{"1", "2", "3"} {
			c.must("receipt", "create", account+"/1", "--period", "0", "--date", "2026-03-01")
		}
		contains(t, c.must("report", "--from", "2026-02"), "2026-03  EUR       0.00       321.00")
	}
}

// TestReport_ImportedReceipts: they are in no sum, so their month is not complete; another one is. A sum
// that is lost is named by verify, and corrected.
func TestReport_ImportedReceipts(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("model.json", `{"ModelName":"m","DataModel":[{"TableName":"t","TableData":[`+
		`{"PK":{"S":"ACC#1"},"SK":{"S":"SUB#1#SKU#news"},"Email":{"S":"a@example.com"},"PaymentDay":{"N":"15"},"NextPaymentDate":{"S":"2026-03-15"},`+
		`"PaymentAmount":{"N":"12"},"PaymentDetails":{"M":{"PaymentMethod":{"S":"pm_card_visa"}}}},`+
		`{"PK":{"S":"ACC#1"},"SK":{"S":"REC#2026-03-02T10:00:00.000Z#SKU#news"},"ProcessedDate":{"S":"2026-03-02T10:00:00.000Z"},`+
		`"ProcessedAmount":{"N":"12"},"SKU":{"S":"news"},"Email":{"S":"a@example.com"}}]}]}`))
	c.must("run", "payments")
	contains(t, c.must("report"), "2026-03  USD       12.00      0.00     0.00      0.00      0.00    0.00       0.00         no",
		"2026-03: its imported receipts are in no sum")
	equal(t, "corrected", c.object(exitDone, "verify", "--repair-sums")["corrected"], nil)
	c.at("2026-04-15")
	contains(t, c.must("report"), "2026-04  USD       0.00       0.00     0.00      0.00      0.00    0.00       12.00        yes")
}

func TestReport_Usage(t *testing.T) {
	c := newCLI(t)
	for args, want := range map[string]string{
		"--from 2026-13":              "must be a month such as 2026-01",
		"--to 2026-01-31":             "must be a month such as 2026-01",
		"--from 2026-03 --to 2026-02": "--from 2026-03 must not be after --to 2026-02",
		"--from 2026-04":              "--from 2026-04 has not begun",
		"--to 2126-04":                "must be 2036-03-15 or earlier",
		"--days 0":                    "--days must be 1 to 366 (got 0)",
		"--csv --json":                "--csv and --json cannot be combined",
	} {
		contains(t, c.refused(append([]string{"report"}, strings.Fields(args)...)...), want)
	}
}
