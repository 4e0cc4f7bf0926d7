package book

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
)

// TestPlainAmount: what spreadsheets write for amounts, by the currency's decimals.
func TestPlainAmount(t *testing.T) {
	for _, tt := range []struct {
		text     string
		decimals int
		want     string // an amount, or ! and a part of the problem
	}{
		{"12.50", 2, "12.50"}, {"12,50", 2, "12.50"}, {"12,5", 2, "12.5"}, {"0,123", 3, "0.123"}, {"1234,5", 2, "1234.5"},
		{"1.234,56", 2, "1234.56"}, {"1,234.56", 2, "1234.56"}, {"1.234.567,89", 2, "1234567.89"}, {"1,234,567", 2, "1234567"},
		{"1 234,56", 2, "1234.56"}, {"1\u202f234,56", 2, "1234.56"}, {"1'234.50", 2, "1234.50"}, {"1’234", 2, "1234"},
		{"1,234", 2, "!must be 1234.00 or 1.23,"}, {"1,234", 3, "!must be 1234.000 or 1.234,"}, {"1,234", 0, "1234"},
		{"1.234", 3, "1.234"}, {"1.234", 2, "1.234"}, {"1.234", 0, "1234"}, {"1.234.567", 3, "1234567"}, {"12,345.678", 3, "12345.678"},
		{"12,99 €", 2, "!must not contain the currency"}, {"€12.99", 2, "!must not"}, {"EUR 1.234,50", 2, "!must not"}, {"12 Fr.", 2, "12 Fr."},
		// left to money.Parse, which refuses them
		{"12,34,56", 2, "12,34,56"}, {"1,234,56", 2, "1,234,56"}, {",50", 2, ",50"}, {"12,", 2, "12,"},
		{"1.23.456", 2, "1.23.456"}, {"-1,50", 2, "-1,50"}, {"1 2.99", 2, "1 2.99"}, {"", 2, ""},
	} {
		plain, problem := plainAmount(tt.text, tt.decimals)
		if want, refused := strings.CutPrefix(tt.want, "!"); refused != (problem != "") ||
			refused && !strings.HasPrefix(problem, want) || !refused && plain != want {
			t.Errorf("%q with %d decimals: %q, %q; want %q", tt.text, tt.decimals, plain, problem, tt.want)
		}
	}
}

const customerHeader = header + ",next_payment_date,customer,name,locale,fallback,product"

// TestCSV_Excel: a file as a German Excel saves it, with what it says of customers and products.
func TestCSV_Excel(t *testing.T) {
	for _, sep := range []string{"sep=;\r\n", "\"sep=;\"\r\n", ""} {
		records, bad := readAll(t, CSV, byteOrderMark+sep+strings.ReplaceAll(customerHeader, ",", ";")+"\r\n"+
			" 1 ;a@b.c\u00a0; s1; news ; 1.234,50 ;EUR; 7 ;pm_1; 7.3.2026 ;cus_1; Zoë  Ó Briain ;de;pm_2; Tageszeitung, täglich \r\n")
		rejects(t, bad)
		if len(records) != 1 {
			t.Fatal("no record")
		}
		got := records[0]
		want := billing.NewSubscription{Account: "1", Email: "a@b.c", ID: "s1", SKU: "news", Amount: amountOf(t, "1234.50", "EUR"),
			PaymentDay: 7, Method: "pm_1", Interval: billing.Monthly, ReminderDays: 7, NextPayment: dayOf(t, "2026-03-07"),
			Customer: "cus_1", Name: "Zoë  Ó Briain", Locale: "de", Fallback: "pm_2", Product: "Tageszeitung, täglich"}
		if *got.Subscription != want || got.Line != 2+strings.Count(sep, "\n") {
			t.Errorf("%q: line %d: %+v", sep, got.Line, *got.Subscription)
		}
	}
	_, bad := readAll(t, CSV, "sep=^\n"+header+"\n")
	rejects(t, bad, "!1 : the header is a single column")
	_, bad = readAll(t, CSV, customerHeader+"\n"+
		"1.002E+05,a@b.c,s1,news,\"39,5\",JPY,7,pm_1,30.02.2026,,,,,\n")
	rejects(t, bad, `2 account: is a number that a spreadsheet shortened (got "1.002E+05")`, `2 amount: …(got "39,5")`,
		`2 next_payment_date: there is no day 30 in February 2026, which has 28 days (got "30.02.2026")`)
}

// TestCSV_Customers: rows that contradict an earlier row, or have a wrong form.
func TestCSV_Customers(t *testing.T) {
	_, bad := readAll(t, CSV, customerHeader+"\n"+
		"1,a@b.c,s1,news,1,EUR,7,pm_1,,cus_1,Ann,de,pm_2,News\n"+
		"1,a@b.c,s2,news,1,EUR,7,pm_1,,,,,,\n"+
		"1,a@b.c,s3,news,1,EUR,7,pm_1,,cus_2,Anne,en,pm_3,Old news\n"+
		"2,b@b.c,s1,gym,1,EUR,7,pm_1,,a b,\x01,German,pm_1,\n"+
		"3,c@b.c,s1,gym,1,EUR,7,pm_1,,,4242424242424242,,4242424242424242,\n"+
		"4,d@b.c,s1,gym,1,EUR,7,pm_1,03/04/2026,,\xe4,,,\n")
	rejects(t, bad, "4 customer: differs from the account's first row on line 2", "4 name: differs", "4 locale: differs",
		"4 fallback: differs", `4 product: SKU news has the name "News" on line 2`,
		"5 customer: must not contain spaces", "5 name: must be UTF-8", "5 locale: must be a language", "5 fallback: must differ from the payment method",
		"6 name: looks like a card", "6 fallback: looks like a card", "7 next_payment_date: must be a date", "7 name: is not UTF-8")
}
