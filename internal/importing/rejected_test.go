package importing_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/importing"
)

// columnCount is the number of columns in the header of a file.
var columnCount = strings.Count(columns, ",") + 1

// overlong reports whether a line of the file has more fields than the header.
func overlong(text, separator string) bool {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return slices.ContainsFunc(lines, func(line string) bool { return strings.Count(line, separator) >= columnCount })
}

// TestRejected checks that FILE.rejected is written only by a complete check that skips bad rows.
func TestRejected(t *testing.T) {
	bad := book1(good, with("account", "2", "amount", "nine"))
	for _, c := range []struct {
		what, text string
		set        func(*importing.Import)
		rows       int // in the file, including its header
	}{
		{"skipped", bad, func(m *importing.Import) { m.SkipBad = true }, 2},
		{"refused", bad, nil, 0},
		{"a dry run", bad, func(m *importing.Import) { m.SkipBad, m.DryRun = true, true }, 0},
		{"no bad row", book1(good), func(m *importing.Import) { m.SkipBad = true }, 0},
		{"an unfinished check", bad + strings.Repeat("x", 2<<20), func(m *importing.Import) { m.SkipBad = true }, 0},
	} {
		dir := t.TempDir()
		o, _ := run(dir, c.text, newEngine(), c.set)
		text, err := os.ReadFile(o.File + ".rejected")
		if rows := strings.Count(string(text), "\n"); rows != c.rows || (err == nil) != (c.rows > 0) || (o.Sum.Rejected == "") != (c.rows == 0) {
			t.Errorf("%s: %d rows in %q, %v; must be %d", c.what, rows, o.Sum.Rejected, err, c.rows)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
			t.Errorf("%s leaves %q", c.what, left)
		}
	}
}

// TestAnyFile checks that, for any file, each bad row is rejected with its line and column, the
// good rows are imported once, and FILE.rejected is rejected for the same reasons.
func TestAnyFile(t *testing.T) {
	cells := []string{"1", "2", "ada@example.com", "eve@example.com", "gold", "9,00", "1.234,56", "1,234", "EUR", "JPY", "31", "0", "2026-03-31",
		"31.03.2026", "30.02.2026", "2024-01-31", "pm_card_visa", "4242424242424242", "cus_1", "de", "Deutsch", "Europe/Berlin", "MEZ", "-", "Summe",
		" ", "", "\"", "a\"b", "=1+1", "\xff", "\u00a0", "ä", "1,002E+05", "************1111", "\x00"}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		separator := rapid.SampledFrom([]string{",", ";", "\t", "|"}).Draw(t, "separator")
		lines := []string{strings.ReplaceAll(columns, ",", separator)}
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			row := strings.Split(with("account", rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "account"),
				"subscription", rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "subscription")), ",")
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				row[rapid.IntRange(0, len(row)-1).Draw(t, "column")] = rapid.OneOf(rapid.SampledFrom(cells), rapid.String()).Draw(t, "cell")
			}
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				row = row[:rapid.IntRange(0, len(row)).Draw(t, "fields")]
			}
			lines = append(lines, strings.Join(row, separator))
		}
		text := strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "line break"))
		e := newEngine()
		o, err := run(dir, text, e, func(m *importing.Import) { m.SkipBad = true })
		for _, r := range o.rejected {
			line, rest, _ := strings.Cut(r, " ")
			column, reason, _ := strings.Cut(rest, ": ")
			// These are about the row, or may be about a field after the last column of the header.
			whole := strings.HasPrefix(reason, "has ") || strings.HasPrefix(reason, "a quoted field does not end") ||
				strings.HasPrefix(reason, `a " at byte`) && overlong(text, separator)
			if line == "0" || reason == "" || column == "" && !whole && err == nil {
				t.Fatalf("refused without line, column or reason: %q", r)
			}
		}
		if err != nil {
			if len(o.rejected) == 0 || !strings.Contains(err.Error(), "cannot be imported") {
				t.Fatalf("%v, without a reason", err)
			}
			return
		}
		if s := o.Sum; s.Created+s.Bad != s.Rows {
			t.Fatalf("%+v: rows are neither bad nor created", s)
		}
		again := must(run(dir, text, e, func(m *importing.Import) { m.SkipBad, m.DryRun = true, true }))
		if s := again.Sum; s.Existing != o.Sum.Created || s.Bad != o.Sum.Bad || !slices.Equal(again.rejected, o.rejected) {
			t.Fatalf("the second import: %+v after %+v", s, o.Sum)
		}
	})
}
