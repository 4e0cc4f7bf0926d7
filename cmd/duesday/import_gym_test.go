package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// gymColumns are the columns of the gym's file, in its order, with notes of its own.
var gymColumns = []string{"Account", "Name", "E-Mail", "Subscription", "SKU", "Product", "Amount", "Currency", "Payment Day",
	"Next Payment Date", "Payment Method", "Customer", "Locale", "Fallback", "Notes"}

// dirt is what a cell has in the gym's file. What is only untidy is imported; wrong dirt refuses its row.
type dirt struct {
	column, cell string
	wrong        bool
}

// gymDirt are forty kinds of dirt.
var gymDirt = []dirt{
	{"Account", " 10%03d ", false}, {"Account", "7c9e6679-7425-40de-944b-e07fc1f9%04d", false}, {"Account", "Mitglied %03d", true},
	{"Account", "", true}, {"Account", "DE/%03d", true}, {"Account", "\u00a0%03d\u200b", false}, {"Name", " Zoë  O'Brien-Łukasz", false},
	{"Name", "김민수", false}, {"Name", "=SUM(A1)", false}, {"Name", `"Müller, Anna ""Anni"""`, false}, {"Name", "عمر الخيّام", false},
	{"Name", "N\xe4hring", true}, {"E-Mail", " m%d@gym.example ", false}, {"E-Mail", "m%d@gym.example; x@gym.example", true},
	{"E-Mail", "", true}, {"E-Mail", "m%d(at)gym.example", true}, {"Subscription", "", true}, {"SKU", "gym gold", true},
	{"Amount", "39,90", false}, {"Amount", "1.039,90", false}, {"Amount", " 39.9 ", false}, {"Amount", "1'039.90", false},
	{"Amount", "1 039,90", false}, {"Amount", "1,039", true}, {"Amount", "1.039", true}, {"Amount", "39,90 €", true},
	{"Amount", "", true}, {"Amount", "-39,90", true}, {"Amount", "39,900", true}, {"Currency", " eur", false},
	{"Currency", "Euro", true}, {"Payment Day", "1.", true}, {"Payment Day", "32", true}, {"Next Payment Date", "1.4.2026", false},
	{"Next Payment Date", "01.04.2026", false}, {"Next Payment Date", "04/01/2026", true}, {"Next Payment Date", "01.04.26", true},
	{"Fallback", "pm_card_visa", true}, {"Payment Method", "4242 4242 4242 4242", true}, {"Locale", "Deutsch", true},
}

// gymFile is the book of 304 members as Excel saves it in Germany. The dirt of a kind is in seven rows or
// more, and clean has none of the wrong kinds.
func gymFile(clean bool) (text string, untidy, wrong int) {
	var b strings.Builder
	b.WriteString("\ufeffsep=;\r\n" + strings.Join(gymColumns, ";") + "\r\n")
	for i := range 304 {
		cells := []string{fmt.Sprintf("20%03d", i), fmt.Sprintf("Member %d", i), fmt.Sprintf("m%d@gym.example", i), "1", "gym",
			"Fitness, alle Tage", "29,90", "EUR", "1", "01.04.2026", "pm_card_visa", fmt.Sprintf("cus_%06d", i), "de", "", "seit 2019; Spind 4"}
		cells[14] = `"` + cells[14] + `"`
		if d := gymDirt[i%len(gymDirt)]; !clean || !d.wrong {
			if strings.Contains(d.cell, "%") {
				d.cell = fmt.Sprintf(d.cell, i)
			}
			cells[slices.Index(gymColumns, d.column)] = d.cell
			if d.wrong {
				wrong++
			} else {
				untidy++
			}
		}
		b.WriteString(strings.Join(cells, ";") + "\r\n")
		if i%100 == 99 {
			b.WriteString(strings.Repeat(";", len(gymColumns)-1) + "\r\n") // an empty row of the sheet
		}
	}
	return b.String(), untidy, wrong
}

// TestImport_Gym: each kind of wrong dirt is named once, with the number of its rows, and nothing
// else is. What is only untidy is imported, and customers read their name and the product's.
func TestImport_Gym(t *testing.T) {
	const golden = "testdata/gym.txt"
	want, _ := os.ReadFile(golden)
	c := newCLI(t)
	text, untidy, wrong := gymFile(false)
	file := c.file("gym.csv", text)
	ignore := []string{"--ignore-columns", "Notes"}
	r := c.run(append([]string{"import", file}, ignore...)...)
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.out, "E-Mail", "is an unknown column; the closest is email")
	c.file("gym.csv", strings.Replace(text, "E-Mail", "EMAIL", 1))
	r = c.run(append([]string{"import", file}, ignore...)...)
	if got := r.out + r.errors; got != string(want) {
		t.Errorf("%s:\n%s", golden, got)
		if os.Getenv("DUESDAY_GOLDEN") != "" {
			os.WriteFile(golden, []byte(got), 0o644)
		}
	}

	o := c.object(exitPerson, append([]string{"import", file, "--skip-bad"}, ignore...)...)
	equal(t, "skipped", members(o, "rows", "created", "rejected_rows", "products"),
		[]any{304, 304 - wrong, wrong, map[string]any{"gym": "Fitness, alle Tage"}})
	equal(t, "bad rows", strings.Count(c.read("gym.csv.rejected"), "\n"), 1+wrong)
	if untidy+wrong != 304 {
		t.Errorf("%d untidy, %d wrong", untidy, wrong)
	}
	text, _, _ = gymFile(true)
	c.file("gym.csv", strings.Replace(text, "E-Mail", "EMAIL", 1))
	equal(t, "corrected", members(c.object(exitDone, append([]string{"import", file}, ignore...)...), "created", "existing", "notes"),
		[]any{wrong, 304 - wrong, nil})
	equal(t, "again", members(c.object(exitDone, append([]string{"import", file}, ignore...)...), "created", "existing", "notes"),
		[]any{0, 304, nil})
	equal(t, "customer", members(c.object(exitDone, "account", "show", "20007"), "name", "locale", "customer"),
		[]any{"김민수", "de", "cus_000007"})
	c.clock.Set(c.clock.Now().AddDate(0, 0, 17))
	equal(t, "charged", members(c.object(exitDone, "run", "payments"), "paid", "failed"), []any{304, 0})
	mails, err := filepath.Glob(c.path("duesday-mail/*/receipt-*.eml"))
	greeted := 0
	for _, name := range mails {
		if text := c.read(name); strings.Contains(text, "Guten Tag Member ") && strings.Contains(text, "Produkt: Fitness, alle Tage") {
			greeted++
		}
	}
	equal(t, "mails to members whose name is clean", []any{len(mails), greeted, err}, []any{304, 304 - 40, nil})
	c.must("verify")

	book, accounts := c.must("export", "subscriptions"), c.must("export", "accounts")
	other := func(args ...string) string { return c.must(append(args, "--store", "pebble:other")...) }
	other("import", c.file("book.csv", book))
	equal(t, "the book in another store", other("export", "subscriptions"), book)
	times := regexp.MustCompile(`[0-9-]{10}T[0-9:.]+Z`)
	equal(t, "the accounts in another store", times.ReplaceAllString(other("export", "accounts"), "at"),
		times.ReplaceAllString(accounts, "at"))
}
