package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// bookColumns are the columns of the long book, in its order.
var bookColumns = []string{"account", "email", "subscription", "sku", "amount", "currency", "payment_day", "payment_method",
	"start_date", "next_payment_date", "interval", "time_zone", "reminder_days", "installments", "address"}

// A mistake is what a person has typed into a column, and how it is named.
type mistake struct{ column, typed, reason string }

// mistakes are forty that people make. A line break in typed ends the row: it is short.
var mistakes = []mistake{
	{"account", "", "is missing"},
	{"account", "10 01", "must not contain spaces"},
	{"account", "A/17", "must not contain # or /"},
	{"account", "#N/A", "must not contain # or /"},
	{"email", "", "is missing"},
	{"email", "ann.example.com", "must be an address such as ada@example.com"},
	{"email", `"ann@example.com, bob@example.com"`, "must be an address such as ada@example.com"},
	{"email", "Ann Smith <ann@example.com>", "must be an address such as ada@example.com"},
	{"email", "ann@ example.com", "must be an address such as ada@example.com"},
	{"subscription", "", "is missing"},
	{"subscription", "1/2", "must not contain # or /"},
	{"sku", "", "is missing"},
	{"sku", "news plus", "must not contain spaces"},
	{"amount", "", "is missing"},
	{"amount", `"1,299"`, "must be 1299.00 or 1.29, because the comma can separate thousands or decimals"},
	{"amount", "$12.99", "must not contain the currency"},
	{"amount", `"12,99,00"`, "such as 12.99"},
	{"amount", "1O.00", "such as 12.99"},
	{"amount", "0.00", "must be more than zero"},
	{"amount", "-12.99", "must be more than zero"},
	{"amount", "12.990", "at most 2 decimals"},
	{"amount", "12.99 USD", "must not contain the currency"},
	{"currency", "", "is missing"},
	{"currency", "Dollar", `"Dollar"`},
	{"currency", "€", "€"},
	{"payment_day", "", "is missing"},
	{"payment_day", "32", "must be 1 to 31 (got 32)"},
	{"payment_day", "15th", "must be a whole number"},
	{"payment_method", "4242 4242 4242 4242", "looks like a card number"},
	{"start_date", "15.03.26", "must be"},
	{"start_date", "30.02.2026", "no day 30"},
	{"start_date", "03/15/2026", "must be"},
	{"start_date", "2026-02-30", "2026-02-30"},
	{"next_payment_date", "2026-04-16", "is not a payment day; with payment_day 15, the first payment day from then on is 2026-05-15"},
	{"interval", "fortnightly", "fortnightly"},
	{"time_zone", "Berlin", "must be an IANA name such as Europe/Berlin"},
	{"reminder_days", "400", "must be 0 (none) to 366 (got 400)"},
	{"installments", "twelve", "must be a whole number"},
	{"address", "1 Elm Street, Springfield", `has 16 fields, but the header has 15; put a field that contains the separator ',' in quotes`},
	{"address", "the \"old\" mill", "put the field in quotes"},
}

// longBook has rows of which every fiftieth has a mistake, in the order of mistakes. edit changes the
// others' fields.
func longBook(rows int, wrong bool, edit func(i int, fields []string)) string {
	var b strings.Builder
	b.WriteString(strings.Join(bookColumns, ",") + "\n")
	for i := range rows {
		fields := []string{fmt.Sprint(10000 + i/2), fmt.Sprintf("u%d@example.com", i/2), fmt.Sprint(1 + i%2), "news", "12.99",
			"USD", "15", "pm_card_visa", "", "", "", "Europe/Berlin", "", "", ""}
		if edit != nil {
			edit(i, fields)
		}
		if wrong && i%50 == 49 {
			m := mistakes[i/50]
			fields[slices.Index(bookColumns, m.column)] = m.typed
		}
		b.WriteString(strings.Join(fields, ",") + "\n")
	}
	return b.String()
}

// TestImport_FortyMistakes: each is named by its line and column, and nothing else is. An update with
// differences finds them once.
func TestImport_FortyMistakes(t *testing.T) {
	const rows = 2000
	if len(mistakes)*50 != rows {
		t.Fatalf("%d mistakes", len(mistakes))
	}
	c := newCLI(t)
	c.file("book.csv", longBook(rows, true, nil))
	o := c.object(exitFailed, "import", "book.csv")
	equal(t, "refused", members(o, "rows", "created", "rejected_rows"), []any{rows, 0, len(mistakes)})
	named := map[int]map[string]any{}
	for _, r := range o["rejected"].([]any) {
		x := r.(map[string]any)
		line := int(x["line"].(float64))
		if named[line] != nil {
			t.Errorf("line %d: a second time: %v", line, x)
		}
		named[line] = x
	}
	for i, m := range mistakes {
		line := 51 + 50*i
		x := named[line]
		if x == nil {
			t.Errorf("line %d: %s %q is not named", line, m.column, m.typed)
			continue
		}
		wholeRow := strings.HasPrefix(m.reason, "has 16 fields")
		if x["column"] != m.column && !wholeRow || !strings.Contains(x["reason"].(string), m.reason) {
			t.Errorf("line %d: %s %q is named as %v: %v", line, m.column, m.typed, x["column"], x["reason"])
		}
	}
	if len(named) != len(mistakes) {
		t.Errorf("%d lines are named", len(named))
	}

	o = c.object(exitPerson, "import", "book.csv", "--skip-bad")
	equal(t, "skipped", members(o, "created", "rejected_rows", "rejected_file"),
		[]any{rows - len(mistakes), len(mistakes), "book.csv.rejected"})
	c.file("right.csv", longBook(rows, false, nil))
	equal(t, "corrected", members(c.object(exitDone, "import", "right.csv"), "created", "existing", "differing"),
		[]any{len(mistakes), rows - len(mistakes), nil})

	differences := 0
	c.file("new.csv", longBook(rows, false, func(i int, fields []string) {
		switch {
		case i%20 == 0:
			fields[4] = "14.99"
		case i%20 == 4:
			fields[6], fields[12], fields[14] = "20", "3", "Elm Street"
			differences += 2
		case i%20 == 8 || i%20 == 9: // both subscriptions of an account: one difference
			fields[1] = "new-" + fields[1]
			differences -= i % 2
		default:
			return
		}
		differences++
	}))
	o = c.object(exitDone, "import", "new.csv", "--update")
	equal(t, "updated", members(o, "created", "existing", "updated", "differing"), []any{0, rows - 300, 300, nil})
	if got := len(o["notes"].([]any)); got != differences {
		t.Errorf("%d differences, want %d", got, differences)
	}
	o = c.object(exitDone, "import", "new.csv", "--update")
	equal(t, "again", members(o, "created", "existing", "updated", "notes"), []any{0, rows, nil, nil})
	c.must("verify")
}
