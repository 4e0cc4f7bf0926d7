package book

import (
	"encoding/csv"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

func dayOf(t *testing.T, text string) civil.Date {
	t.Helper()
	d, err := civil.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func amountOf(t *testing.T, text, code string) money.Amount {
	t.Helper()
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	a, err := money.Parse(text, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCSV_Row(t *testing.T) {
	records, bad := readAll(t, CSV, byteOrderMark+" account, email "+
		",subscription,sku,amount,currency,payment_day,payment_method\r\n"+
		"\r\n123,s@s.com,123,999,12.99,USD,28,pm_card_visa\r\n")
	rejects(t, bad)
	want := []Record{{Line: 3, Subscription: &billing.NewSubscription{Account: "123", Email: "s@s.com", ID: "123",
		SKU:    "999",
		Amount: amountOf(t, "12.99", "USD"), PaymentDay: 28, Method: "pm_card_visa", Interval: billing.Monthly,
		ReminderDays: 7}}}
	if !reflect.DeepEqual(records, want) {
		t.Errorf("got %+v", records[0].Subscription)
	}

	records, bad = readAll(t, CSV, fullHeader+"\n"+
		`123,s@s.com,123,999,500,jpy,31,pm_1,2023-01-01,2023-02-28,3 months,Asia/Tokyo,0,12,"12 Bridge Street, Birmingham, B12 7ST",manual`)
	rejects(t, bad)
	want = []Record{{Line: 2, Subscription: &billing.NewSubscription{Account: "123", Email: "s@s.com", ID: "123",
		SKU:    "999",
		Amount: amountOf(t, "500", "JPY"), PaymentDay: 31, Method: "pm_1", Collection: billing.ByWire, Start: dayOf(t, "2023-01-01"),
		NextPayment: dayOf(t, "2023-02-28"), Interval: civil.Interval{N: 3, Unit: civil.Month}, TimeZone: "Asia/Tokyo",
		ReminderDays: 0, Installments: 12, Address: "12 Bridge Street, Birmingham, B12 7ST"}}}
	if !reflect.DeepEqual(records, want) {
		t.Errorf("got %+v", records[0].Subscription)
	}
}

// TestCSV_Columns sets one column of a good row and says what is wrong with it then.
func TestCSV_Columns(t *testing.T) {
	good := map[string]string{"account": "a1", "email": "s@s.com", "subscription": "s1", "sku": "k", "amount": "12.99",
		"currency":    "USD",
		"payment_day": "28", "payment_method": "pm_card_visa"}
	for _, tt := range []struct{ set, reason string }{
		{"account=", "is missing"}, {"account=a b", "spaces"}, {"account=a#b", "#"}, {"account=a\xff", "UTF-8"},
		{"email=", "is missing"}, {"email=ada", "must be an address"}, {"email=Ada <a@b.c>", "must be an address"},
		{"collection=", ""}, {"collection=manual", ""}, {"collection=automatic", ""}, {"collection=wire", "automatic or manual"},
		{"subscription=", "is missing"}, {"subscription=a/b", "/"}, {"sku=", "is missing"},
		{"amount=", "is missing"}, {"amount=0", "more than zero"}, {"amount=-1", "more than zero"},
		{"amount=12.999", "at most 2 decimals"},
		{"amount=$5", "must not contain the currency"}, {"amount=1e3", "digits"}, {"amount=99999999999999999999", "limit"}, {"amount=12.9", ""},
		{"currency=JPY;amount=500", ""}, {"currency=JPY;amount=500.00", "without decimals"}, {"currency=KWD;amount=1.230", ""}, {"amount=1.234;currency=KWD", "multiple of 0.010 KWD"},
		{"currency=", "is missing"}, {"currency=US", "ISO 4217"}, {"currency=ZZZ", "ISO 4217"},
		{"payment_day=", "is missing"}, {"payment_day=0", "1 to 31"}, {"payment_day=32", "1 to 31"},
		{"payment_day=1.0", "whole number"},
		{"payment_day=+1", "whole number"}, {"payment_day=-1", "whole number"}, {"payment_day=1234567890", "whole number"},
		{"payment_day=08", ""},
		{"interval=weekly;payment_day=7", ""}, {"interval=weekly;payment_day=8", "1 to 7"},
		{"interval=2 weeks;payment_day=1", ""},
		{"interval=10 days;payment_day=", ""}, {"interval=10 days;payment_day=31", ""}, {"payment_day=32;interval=10 days", "0 to 31"},
		{"payment_day=1.0;interval=10 days", "whole number"}, {"next_payment_date=2023-06-27;interval=10 days", ""},
		{"start_date=9999-12-30;interval=10 days;payment_day=", "1970 to 9000"}, {"next_payment_date=9999-12-30;interval=10 days;payment_day=", "1970 to 9000"},
		{"interval=biweekly", "must be weekly"}, {"interval=daily", "7 to 3650 days"}, {"interval=6 days", "7 to 3650 days"}, {"interval=0 months", "must be 1 to"}, {"interval=YEARLY", ""},
		{"payment_method=", ""}, {"time_zone=Europe/Berlin", ""}, {"time_zone=Mars", "IANA"}, {"time_zone=Local", "IANA"},
		{"reminder_days=0", ""}, {"reminder_days=366", ""}, {"reminder_days=367", "0 (none) to 366"},
		{"reminder_days=x", "whole number"},
		{"installments=9999", ""}, {"installments=10000", "9999"},
		{"start_date=2023-02-30", "no day 30"}, {"start_date=02/03/2023", "such as"},
		{"start_date=9999-12-30", "after year 9999"},
		{"start_date=1969-12-31", "1970 to 9000"}, {"next_payment_date=9001-06-28", "1970 to 9000"},
		{"next_payment_date=2023-06-28", ""}, {"next_payment_date=2023-06-27", "the first payment day from then on is 2023-06-28"},
		{"next_payment_date=2023-02-28;payment_day=31", ""}, {"next_payment_date=2024-02-28;payment_day=31", "2024-02-29"},
		{"next_payment_date=9999-12-31;payment_day=30", "after year 9999"},
		{"next_payment_date=2023-07-03;interval=weekly;payment_day=1", ""},
		{"next_payment_date=2023-07-04;interval=weekly;payment_day=1", "2023-07-10"},
		{"next_payment_date=2023-06-28;start_date=2023-06-29", "before start_date"},
		{"address=12 Bridge Street, Birmingham", ""}, {"address=a\nb", "must be UTF-8"},
		{"address=" + strings.Repeat("x", 1025), "must be at most"},
	} {
		row := maps.Clone(good)
		var column string
		for i, set := range strings.Split(tt.set, ";") {
			name, value, _ := strings.Cut(set, "=")
			row[name] = value
			if i == 0 {
				column = name
			}
		}
		if strings.Contains(tt.set, "amount=500.00") {
			column = "amount"
		} else if strings.Contains(tt.set, "payment_day=8") {
			column = "payment_day"
		}
		_, got := readAll(t, CSV, csvOf(t, row))
		if tt.reason == "" {
			rejects(t, got)
		} else {
			rejects(t, got, "2 "+column+": …"+tt.reason)
		}
	}
}

// Dates out of range are told beside each other, and beside other bad columns.
func TestCSV_AllDates(t *testing.T) {
	row := map[string]string{"account": "a1", "email": "s@s.com", "subscription": "s1", "sku": "a/b", "amount": "12.99",
		"currency": "USD", "payment_day": "28", "start_date": "1969-12-31", "next_payment_date": "9001-06-28"}
	_, got := readAll(t, CSV, csvOf(t, row))
	rejects(t, got, "2 sku: …must not contain", "2 start_date: …1970 to 9000", "2 next_payment_date: …1970 to 9000")
}

// csvOf writes one row under every column.
func csvOf(t testing.TB, row map[string]string) string {
	t.Helper()
	var b strings.Builder
	w := csv.NewWriter(&b)
	values := make([]string, columns)
	for i, name := range columnNames {
		values[i] = row[name]
	}
	if err := w.WriteAll([][]string{columnNames[:], values}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCSV_EveryBadColumnOfEveryBadRow(t *testing.T) {
	records, got := readAll(t, CSV, fullHeader+"\n"+
		"a b,nobody,,k#,x,ZZZ,99,a\tb,2023-13-01,2023-1-1,daily,Mars,x,-1,\"a\nb\",wire\n"+
		"1,a@b.c,s,k,1,USD,1,pm,,,,,,,,\n"+
		"1,a@b.c,s2,k,0.001,USD,1,4242424242424242,,,,,,,,\n"+
		"1,a@b.c,s3,k,1,USD,1,,,,,,,,,\n")
	rejects(t, got, "2 account: ", "2 email: ", "2 subscription: ", "2 sku: ", "2 amount: ", "2 currency: ",
		"2 payment_day: ",
		"2 payment_method: ", "2 start_date: ", "2 next_payment_date: ", "2 interval: ", "2 time_zone: ", "2 reminder_days: ",
		"2 installments: ", "2 address: ", "2 collection: ", "5 amount: ", "5 payment_method: ")
	if len(records) != 2 || records[0].Line != 4 || records[1].Line != 6 || records[1].Subscription.Method != "" {
		t.Errorf("records: %+v", records)
	}
}

func TestCSV_Header(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"account,email,subscription,sku,amount,currency\n1\n", []string{"!1 payment_day: is missing"}},
		{"account,email,subscription,sku,amount,currency,payment_day\n", nil},
		{header + ",colour\n", []string{"!1 colour: is an unknown column; the columns are account, email"}},
		{header + ",colour,size,Adress\n", []string{"!1 colour: is an unknown column; the columns", "!1 size: is an unknown column; leave columns out",
			"!1 Adress: is an unknown column; the closest"}},
		{header + ",Adress\n", []string{"!1 Adress: is an unknown column; the closest is address; leave columns"}},
		{header + ",Payment-Days\n", []string{"!1 Payment-Days: is an unknown column; the closest is payment_day;"}},
		{header + ",e-mail\n", []string{"!1 e-mail: is an unknown column; the closest is email;"}},
		{header + ",Email\n", []string{"!1 Email: appears twice"}},
		{header + ",Address,ADDRESS\n", []string{"!1 ADDRESS: appears twice"}},
		{"colour," + header + "\n", []string{"!1 colour: is an unknown column"}}, // and account is there once
		{"colour,email,subscription,sku,amount,currency,payment_day\n", []string{"!1 colour: is an unknown column",
			"!1 account: is missing"}},
		{header + ",sku\n", []string{"!1 sku: appears twice"}},
		{header + ",\n", []string{"!1 : column 9 of the header has no name"}},
		{"email\n", []string{"!1 account: ", "!1 subscription: ", "!1 sku: ", "!1 amount: ", "!1 currency: ",
			"!1 payment_day: "}},
		{strings.ReplaceAll(header, ",", ":") + "\n", []string{"!1 : the header is a single column: it contains no ','"}},
		{"kunde\n", []string{"!1 : the header is a single column: it contains no ','"}},
		{"\n\n" + header + ",x\n", []string{"!3 x: "}},
		{header + ",4242424242424242\n", []string{"!1 ************4242: looks like a card number"}},
		{header + ",4242_4242_4242_4242\n", []string{"!1 ****_****_****_4242: looks like a card number"}},
		{"account,\"em\"ail\"\n", []string{"!1 : a quoted field does not end correctly"}},
		{"acc\"ount\n", []string{"!1 : a \" at byte 4"}},
		{"\n\n", []string{"!1 : the file is empty"}},
		{header, nil},
		{strings.Repeat("x", maxRow+4*chunk), []string{"!1 : a row is longer"}},
	} {
		records, got := readAll(t, CSV, tt.text)
		rejects(t, got, tt.want...)
		if len(records) > 0 {
			t.Errorf("%.60q: rows were read", tt.text)
		}
	}
}

func TestCSV_LinesAndForm(t *testing.T) {
	records, got := readAll(t, CSV, header+",address\r\n"+ // 1
		"1,a@b.c,s1,k,1,USD,1,pm,x\r\n"+ // 2
		"\r\n"+ // 3
		"1,a@b.c,s2,k,1,USD,1,pm,\"two\r\n\r\nlines\"\r\n"+ // 4 to 6
		"1,a@b.c,s3,k,1,USD,1,pm\r\n"+ // 7: a field too few
		"1,a@b.c,s4,k,1,USD,1,pm,x,y\r\n"+ // 8: one too many
		",,,,,,,,\r\n  \r\n"+ // 9, 10: nothing in them
		"1,a@b.c,s\"5,k,1,USD,1,pm,x\r\n"+ // 11: bare quote
		"1,a@b.c,s6,k,1,USD,1,pm,\"x\"y\r\n"+ // 12: after the quote
		"1,a@b.c,\"s7\",k,1,USD,1,pm,\"\"\r\n"+ // 13
		"1,a@b.c,s8,k,1,USD,1,pm,\"never closed\r\n"+ // 14
		"1,a@b.c,s9,k,1,USD,1,pm,x\r\n") // 15: swallowed
	rejects(t, got, "4 address: must be UTF-8", "7 address: has 8 fields, but the header has 9",
		"8 : has 10 fields, but the header has 9",
		"11 subscription: a \" at byte 10", "12 address: a quoted field does not end correctly at byte 27",
		"14 address: a quoted field does not end correctly at byte 27 of line 15")
	var lines []int
	for _, r := range records {
		lines = append(lines, r.Line)
	}
	if !reflect.DeepEqual(lines, []int{2, 13}) {
		t.Errorf("good lines %v, want 2, 13", lines)
	}
}

func TestCSV_UnboundedRowEndsTheFile(t *testing.T) {
	row := "1,a@b.c,s1,k,1,USD,1,pm\n"
	long := header + "\n" + row + "\n1,\"a@b.c" + strings.Repeat("1,a@b.c,s1,k,1,USD,1,pm\n", 200_000)
	records, got := readAll(t, CSV, long)
	rejects(t, got, "!3 : a row is longer than 1 MiB")
	if len(records) != 1 {
		t.Errorf("%d rows before it, want 1", len(records))
	}
	_, got = readAll(t, CSV, header+"\n"+strings.Repeat("x", maxRow+1)+"\n"+row)
	rejects(t, got, "!2 : a row is longer than 1 MiB")
	_, got = readAll(t, CSV, header+"\n"+strings.Repeat("x", maxRow-10)+"\n"+row)
	rejects(t, got, "2 email: has 1 fields")
}

func TestCSV_RowsAgainstEachOther(t *testing.T) {
	h := header + ",time_zone\n"
	first := "1,a@b.c,s1,k,1,USD,1,pm,\n"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"same row twice", h + first + first,
			[]string{"3 subscription: … on line 2; a subscription must have one row and one SKU"}},
		{"another SKU", h + first + "1,a@b.c,s1,k2,1,USD,1,pm,\n", []string{"3 subscription: … on line 2"}},
		{"first wins thrice", h + first + first + first,
			[]string{"3 subscription: … on line 2", "4 subscription: … on line 2"}},
		{"another subscription", h + first + "1,a@b.c,s2,k,1,USD,1,pm,\n", nil},
		{"another account", h + first + "2,b@b.c,s1,k,1,USD,1,pm,\n", nil},
		{"another email", h + first + "1,x@b.c,s2,k,1,USD,1,pm,\n",
			[]string{"3 email: the account has a different address on line 2"}},
		{"zone after none", h + first + "1,a@b.c,s2,k,1,USD,1,pm,Asia/Tokyo\n",
			[]string{"3 time_zone: the account has no time zone on line 2"}},
		{"UTC after none", h + first + "1,a@b.c,s2,k,1,USD,1,pm,UTC\n", nil},
		{"UTC and none", h + "1,a@b.c,s1,k,1,USD,1,pm,UTC\n1,a@b.c,s2,k,1,USD,1,pm,\n", nil},
		{"another zone", h + "1,a@b.c,s1,k,1,USD,1,pm,Asia/Tokyo\n1,a@b.c,s2,k,1,USD,1,pm,Europe/Berlin\n",
			[]string{"3 time_zone: the account has time zone Asia/Tokyo on line 2"}},
		{"all at once", h + "1,a@b.c,s1,k,1,USD,1,pm,Asia/Tokyo\n1,x@b.c,s1,k,1,USD,1,pm,UTC\n",
			[]string{"3 email: ", "3 subscription: ", "3 time_zone: "}},
		{"the first is bad elsewhere", h + "1,a@b.c,s1,k,x,USD,1,pm,\n" + first, []string{"2 amount: ", "3 subscription: "}},
		{"the first has a bad email", h + "1,ab.c,s1,k,1,USD,1,pm,\n1,a@b.c,s2,k,1,USD,1,pm,\n", []string{"2 email: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got := readAll(t, CSV, tt.text)
			rejects(t, got, tt.want...)
			for _, r := range got {
				if strings.Contains(r, "@b.c") {
					t.Errorf("an address is shown: %s", r)
				}
			}
		})
	}

	records, _ := readAll(t, CSV, h+"1,a@b.c,s1,k,1,USD,1,pm,Asia/Tokyo\n1,a@b.c,s2,k,1,USD,1,pm,\n")
	if len(records) != 2 || records[1].Subscription.TimeZone != "Asia/Tokyo" {
		t.Errorf("a row without a time zone does not take its account's")
	}
}

// TestCSV_CardsInEveryColumn: a card number is refused in its column and shown nowhere,
// whatever stands before it that does not make it a part of an id.
func TestCSV_CardsInEveryColumn(t *testing.T) {
	good := map[string]string{"account": "a1", "email": "s@s.com", "subscription": "s1", "sku": "k", "amount": "12.99",
		"currency":    "JPY",
		"payment_day": "28", "payment_method": "pm_card_visa"}
	for _, name := range columnNames {
		for _, card := range []string{"4242424242424242", "4242 4242 4242 4242", "4242-4242-4242-4242", "378282246310005"} {
			for _, before := range []string{"", "x:", "é", "\u2028", "\u00a0", "\x01", "\xff", "\"", strings.Repeat("y", 33) +
				"="} {
				row := maps.Clone(good)
				row[name] = before + card
				text := csvOf(t, row)
				_, got := readAll(t, CSV, text)
				found := false
				for _, r := range got {
					found = found || strings.HasPrefix(r, "2 "+name+": ")
				}
				shown := strings.Join(got, "\n") + rejectedFile(t, CSV, text)
				if !found || strings.Contains(shown, card[:9]) {
					t.Errorf("%s %q: %s", name, row[name], shown)
				}
			}
		}
	}
}

// TestCSV_NumbersThatAreNoCards: ids and telephone numbers are taken as they are. Only as a
// payment method is a number of 13 digits refused, and only there is it masked.
func TestCSV_NumbersThatAreNoCards(t *testing.T) {
	const uuid, phone = "1e6f3b52-1234-4012-8888-888888881881", "4915112345679"
	row := map[string]string{"account": uuid, "email": "a@b.c", "subscription": "order-4242424242424242",
		"sku": "1764150000123", "amount": "12.99",
		"currency": "EUR", "payment_day": "28", "payment_method": "pm_card_visa", "address": phone}
	records, got := readAll(t, CSV, csvOf(t, row))
	if rejects(t, got); len(records) != 1 || records[0].Subscription.Account != uuid {
		t.Errorf("got %d records", len(records))
	}
	for _, card := range []string{"4222222222222", "4222 2222 2222 2", "1234123412341234"} {
		row["payment_method"] = card
		text := csvOf(t, row)
		_, got := readAll(t, CSV, text)
		rejects(t, got, "2 payment_method: looks like a card number (***")
		if file := rejectedFile(t, CSV, text); strings.Contains(file, card) || !strings.Contains(file, "2") ||
			!strings.Contains(file, uuid) {
			t.Errorf("%s: %s", card, file)
		}
	}
}

// TestCSV_ByHand: what spreadsheets of other countries, and other programs, make of a header.
func TestCSV_ByHand(t *testing.T) {
	names := strings.ReplaceAll(fullHeader, "payment_day", "Payment Day")
	row := "1;a@b.c;s1;k;12.99;USD;1;pm_1;;;2 weeks;;3;;street;"
	for _, tt := range []struct {
		name, text string
		o          Options
	}{
		{"semicolons", strings.ReplaceAll(strings.ToUpper(names), ",", ";") + "\r\n" + row + "\r\n", Options{}},
		{"tabs", strings.ReplaceAll(names, ",", "\t") + "\n" + strings.ReplaceAll(row, ";", "\t") + "\n", Options{}},
		{"bars", strings.ReplaceAll(names, ",", "|") + "\n" + strings.ReplaceAll(row, ";", "|") + "\n", Options{}},
		{"ignored", "Notes;" + strings.ReplaceAll(names, ",", ";") + ";Sales Rep\nx;" + row + ";y\n",
			Options{IgnoreColumns: []string{"notes", "sales_rep"}}},
	} {
		var records []Record
		for r, bad := range Read(strings.NewReader(tt.text), CSV, tt.o) {
			if bad != nil {
				t.Errorf("%s: %+v", tt.name, bad)
			}
			records = append(records, r)
		}
		if len(records) != 1 || records[0].Subscription.PaymentDay != 1 || records[0].Subscription.ReminderDays != 3 {
			t.Errorf("%s: %+v", tt.name, records)
		}
	}
	line := with(`"Notes":"x"`)
	for _, bad := range Read(strings.NewReader(line), JSONLines, Options{IgnoreColumns: []string{"NOTES"}}) {
		if bad != nil {
			t.Errorf("an ignored member: %+v", bad)
		}
	}
	for _, bad := range Read(strings.NewReader(names), CSV, Options{IgnoreColumns: []string{"sku"}}) {
		if bad == nil || bad.Column != "sku" || bad.Reason != "is missing from the header" {
			t.Errorf("a required column was ignored: %+v", bad)
		}
	}
}

// TestRejected_KeepsItsSeparator: the file of the rejected rows is read as the book was.
func TestRejected_KeepsItsSeparator(t *testing.T) {
	text := strings.ReplaceAll(header, ",", ";") + "\n1;a@b.c;s1;k;12,9x;USD;1;pm_1\n"
	left := rejectedFile(t, CSV, text)
	want := "rejected_line;rejected_column;rejected_reason;" + strings.ReplaceAll(header, ",", ";") + "\n2;amount;"
	if !strings.HasPrefix(left, want) || !strings.HasSuffix(left, ";1;a@b.c;s1;k;12,9x;USD;1;pm_1\n") {
		t.Errorf("rejected:\n%s", left)
	}
	records, bad := readAll(t, CSV, strings.ReplaceAll(left, "12,9x", "12.99"))
	rejects(t, bad)
	if len(records) != 1 {
		t.Errorf("corrected: %+v", records)
	}
}
