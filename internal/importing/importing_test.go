package importing_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/importing"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store/memstore"
)

const (
	columns = "account,email,subscription,sku,amount,currency,payment_day,next_payment_date,payment_method,customer,name,locale,time_zone,product,fallback"
	good    = "1,ada@example.com,1,gold,9.00,EUR,31,2026-03-31,pm_card_visa,,,,,,"
)

func now() time.Time { return time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// newEngine returns an engine with an empty in-memory store and a sandbox.
func newEngine() *engine.Engine {
	tables := schema.New(schema.DefaultPrefix)
	return must(engine.Open(context.Background(), engine.Options{Store: must(memstore.Open(tables.All(), now)), Tables: tables,
		Processor: must(sandbox.Open("", sandbox.Options{Now: now})), Now: now, Config: engine.DefaultConfig()}))
}

// with returns the good row with some columns changed.
func with(changes ...string) string {
	row, names := strings.Split(good, ","), strings.Split(columns, ",")
	for i := 0; i < len(changes); i += 2 {
		row[slices.Index(names, changes[i])] = changes[i+1]
	}
	return strings.Join(row, ",")
}

func book1(rows ...string) string { return columns + "\n" + strings.Join(rows, "\n") + "\n" }

// An outcome records each callback of an import as text.
type outcome struct {
	importing.Import
	rejected, notes []string
}

// run writes the text to a file in the folder and imports it.
func run(dir, text string, e *engine.Engine, set func(*importing.Import)) (*outcome, error) {
	o, err := check(dir, text, e, set)
	if err != nil || o.DryRun {
		return o, err
	}
	return o, o.Load(context.Background(), e)
}

func check(dir, text string, e *engine.Engine, set func(*importing.Import)) (o *outcome, err error) {
	o = &outcome{Import: importing.Import{File: filepath.Join(dir, "book.csv"), Workers: 2, Now: now}}
	o.Reject = func(r *book.Rejection) {
		o.rejected = append(o.rejected, strconv.Itoa(r.Line)+" "+r.Column+": "+r.Reason)
	}
	o.Note = func(n importing.Note) {
		text := strconv.Itoa(n.Line) + " " + n.Name.String() + " " + n.Warning
		if n.Differs.Field != "" {
			text += n.Differs.String()
		}
		o.notes = append(o.notes, text)
	}
	o.Progress = func(string, int) (func(done, rows int64), func()) { return func(int64, int64) {}, func() {} }
	if set != nil {
		set(&o.Import)
	}
	if err = os.WriteFile(o.File, []byte(text), 0o600); err != nil {
		return o, err
	}
	if err = o.Detect(); err != nil {
		return o, err
	}
	return o, o.Check(context.Background(), e)
}

func contains(t *testing.T, what string, all []string, parts ...string) {
	t.Helper()
	if len(all) != len(parts) {
		t.Errorf("%s: %q; must be %d: %q", what, all, len(parts), parts)
		return
	}
	for i, part := range parts {
		if !strings.Contains(all[i], part) {
			t.Errorf("%s: %q must contain %q", what, all[i], part)
		}
	}
}

func TestDetect(t *testing.T) {
	dir := t.TempDir()
	for name, wrong := range map[string]string{"none.csv": "does not exist", "": "is a folder", "/dev/null": "is not a regular file", "empty.csv": "is empty"} {
		m := importing.Import{File: filepath.Join(dir, name)}
		if filepath.IsAbs(name) {
			m.File = name
		}
		if name == "empty.csv" {
			must(0, os.WriteFile(m.File, nil, 0o600))
		}
		if err := m.Detect(); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v; the error must contain %q", m.File, err, wrong)
		}
	}
	for _, live := range []bool{false, true} {
		m := importing.Import{File: filepath.Join(dir, "model.json"), Live: live}
		must(0, os.WriteFile(m.File, []byte(`{"ModelName": "x"}`), 0o600))
		if err := m.Detect(); err != nil || (m.Options.PaymentMethod == "pm_card_visa") == live {
			t.Errorf("live %v: %v, payment method %q", live, err, m.Options.PaymentMethod)
		}
	}
}

// TestCheck checks the counts for a file, and that one bad row rejects the whole file.
func TestCheck(t *testing.T) {
	bad := with("account", "2", "amount", "nine")
	overdue := with("account", "3", "next_payment_date", "2026-01-31")
	for _, c := range []struct {
		what, text string
		set        func(*importing.Import)
		wrong      string // in the error; "" for none
		rejected   string // in the only rejection
		sum        importing.Summary
	}{
		{"good", book1(good), nil, "", "", importing.Summary{Rows: 1, Created: 1}},
		{"bad", book1(good, bad), nil, "1 of 2 rows are bad, so nothing was imported", "3 amount: ", importing.Summary{Rows: 2, Bad: 1}},
		{"two faults of a row", book1(with("amount", "x", "email", "")), func(m *importing.Import) { m.SkipBad = true }, "", "",
			importing.Summary{Rows: 1, Bad: 1}},
		{"overdue", book1(good, overdue), nil, "and for 1 overdue row add --overdue charge or --overdue skip", "3 next_payment_date: 2 periods are due",
			importing.Summary{Rows: 2, Bad: 1, Overdue: 1}},
		{"overdue, to charge", book1(overdue), func(m *importing.Import) { m.Overdue = importing.Charge }, "", "",
			importing.Summary{Rows: 1, Created: 1, Overdue: 1, Due: 1}},
		{"overdue, to skip", book1(overdue), func(m *importing.Import) { m.Overdue = importing.Skip }, "", "",
			importing.Summary{Rows: 1, Created: 1, Overdue: 1}},
		{"another header", "a,b\n1,2\n", nil, "cannot be imported", "", importing.Summary{}},
		{"another header, skipping", "a,b\n1,2\n", func(m *importing.Import) { m.SkipBad = true }, "cannot be imported", "", importing.Summary{}},
	} {
		o, err := run(t.TempDir(), c.text, newEngine(), func(m *importing.Import) {
			m.DryRun = true
			if c.set != nil {
				c.set(m)
			}
		})
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v; the error must contain %q", c.what, err, c.wrong)
		}
		if c.rejected != "" {
			contains(t, c.what, o.rejected, c.rejected)
		}
		if o.Sum != c.sum {
			t.Errorf("%s: %+v; must be %+v", c.what, o.Sum, c.sum)
		}
	}
}

// TestProducts checks that an import collects the names that the store lacks and, with Update,
// those that differ.
func TestProducts(t *testing.T) {
	for _, update := range []bool{false, true} {
		o, err := run(t.TempDir(), book1(with("product", "Gold"), with("subscription", "2", "sku", "pro", "product", "Pro")), newEngine(),
			func(m *importing.Import) { m.Update = update })
		if err != nil || len(o.Products) != 2 || o.Products["gold"] != "Gold" || o.Products["pro"] != "Pro" {
			t.Errorf("update %v: %v, %v", update, o.Products, err)
		}
	}
}
