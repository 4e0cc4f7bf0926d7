package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

func (p *program) importCommand() *cobra.Command {
	m := &importer{p: p, refused: map[int]*billing.FieldError{}}
	separator := separatorFlag()
	c := leaf("import FILE", "Import a book of subscriptions: CSV, JSON lines or a NoSQL Workbench model",
		func(ctx context.Context, args []string) error {
			m.options.Separator = separator.value
			return m.importFile(ctx, args[0])
		})
	c.Long = `Import a book of subscriptions: CSV with a header, JSON lines with the same names, or a
NoSQL Workbench model with sample data. Names may be in any case, and have spaces or
hyphens for underscores. The separator of a CSV is a comma, a semicolon, a tab or |.

Columns: account, email, subscription, sku, amount, currency, payment_day; optional
payment_method (else the account's is charged), start_date, next_payment_date, interval,
time_zone, reminder_days, installments, address.

Every row is checked first, and one bad row refuses the whole file. With --skip-bad the
bad rows go to FILE.rejected, card numbers masked, and the others are imported.
Importing a file twice changes nothing the second time.`
	c.Flags().BoolVar(&m.skipBad, "skip-bad", false, "import the good rows and write the bad ones to FILE.rejected")
	c.Flags().StringVar(&m.options.PaymentMethod, "payment-method", "",
		"`TOKEN` for what a Workbench model imports (sandbox: pm_card_visa)")
	c.Flags().StringVar(&m.options.Currency, "currency", "USD", "`CODE` for amounts of a Workbench model")
	c.Flags().Var(&separator, "separator", "between the columns of a CSV (default the one of its header)")
	c.Flags().StringSliceVar(&m.options.IgnoreColumns, "ignore-columns", nil, "`NAMES` of columns to leave out, "+
		"with commas between them")
	c.Flags().IntVar(&m.workers, "workers", 16, "how many batches to write at once")
	return c
}

// An importer is one import under way.
type importer struct {
	p       *program
	skipBad bool
	workers int
	options book.Options
	name    string // of the file
	size    int64
	format  book.Format

	list    *listWriter                 // JSON: rejections as they are found
	shown   *table                      // people: the first of them, made when there is one
	refused map[int]*billing.FieldError // by the number of its check, of rows that do not fit the store
	sum     importSummary
}

// An importSummary is the outcome of an import.
type importSummary struct {
	rows, created, existing, due, receipts int
	bad                                    int
	shards                                 int    // per date, of the store that the import has made; else 0
	rejected                               string // the file of the rejected rows
}

func (m *importer) importFile(ctx context.Context, name string) error {
	if err := between("workers", m.workers, 1, 1024); err != nil {
		return err
	}
	if _, err := money.ParseCurrency(m.options.Currency); err != nil {
		return usagef("--currency: %w", err)
	}
	begun, p := time.Now(), m.p
	m.name, m.list = name, &listWriter{out: p.stdout, name: "rejected"}
	if err := m.detect(); err != nil {
		return err
	}
	err := m.do(ctx)
	elapsed, s := time.Since(begun), &m.sum
	if p.cfg.JSON {
		return errors.Join(err, m.list.end(object{"file", name, "rows", s.rows, "imported", s.created,
			"created", s.created, "existing", s.existing, "due", s.due, "receipts", s.receipts, "rejected_rows", s.bad,
			"rejected_file?", s.rejected, "shards?", s.shards, "elapsed_ms", elapsed.Milliseconds()}))
	}
	if m.shown != nil {
		m.shown.flush()
	}
	if err != nil {
		return err
	}
	if s.bad > 0 {
		p.say("")
	}
	p.say("%s: %s in %s", name, plural(s.rows, "row"), short(elapsed))
	p.fields("  created", s.created, "  existing", noted(s.existing, "there already, and unchanged"),
		"  already due", noted(s.due, "charged by the next "+p.hint("run payments")), "  receipts", positive(s.receipts),
		"  rejected", noted(s.bad, "written to "+s.rejected),
		"  shards per date", noted(s.shards, "of the new store; store create --shards makes more, store copy changes them"))
	return nil
}

// detect looks at the file and its beginning.
func (m *importer) detect() error {
	info, err := os.Stat(m.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", m.name)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name a file in it", m.name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no ordinary file: it is read twice, first to check every row; save it to a file", m.name)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty", m.name)
	}
	m.size = info.Size()
	file, err := os.Open(m.name)
	if err != nil {
		return err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, book.HeadSize))
	if err != nil {
		return fmt.Errorf("read %s: %w", m.name, err)
	}
	m.format = book.Detect(head, m.name)
	if m.format == book.Workbench && m.options.PaymentMethod == "" && !m.p.cfg.Live() {
		m.options.PaymentMethod = "pm_card_visa"
	}
	return nil
}

// do checks every row, against the store too if there is one, and then imports. A refused
// file makes no store.
func (m *importer) do(ctx context.Context) (err error) {
	s, err := m.p.open(ctx, need{})
	if err != nil && !errors.Is(err, store.ErrMissing) {
		return err
	}
	defer func() {
		if s != nil {
			err = errors.Join(err, s.close())
		}
	}()
	fatal, err := m.check(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case fatal:
		return fmt.Errorf("%s cannot be imported; nothing was", m.name)
	case m.sum.bad > 0 && !m.skipBad:
		return fmt.Errorf("%d of %d rows are bad; nothing was imported: correct them, or leave them out with --skip-bad",
			m.sum.bad, m.sum.rows)
	}
	if s == nil {
		if s, err = m.p.open(ctx, need{create: true}); err != nil {
			return err
		}
		m.sum.shards = s.engine.Opened.Shards
	}
	if err := m.load(ctx, s); err != nil {
		return fmt.Errorf("%w; %d subscriptions were imported before: import the file again, those change nothing", err,
			m.sum.created)
	}
	return nil
}

// read ranges over the file with a bar of its rows. How many they are is estimated from the bytes
// read, unless they were counted before.
func (m *importer) read(what string, rows int, each func(book.Record, *book.Rejection) error) error {
	file, err := os.Open(m.name)
	if err != nil {
		return err
	}
	defer file.Close()
	bar := m.p.progress(what, int64(rows), nil)
	defer bar.end()
	done := int64(0)
	for rec, bad := range book.Read(bufio.NewReaderSize(file, 1<<20), m.format, m.options) {
		if done++; rows == 0 && done%1024 == 0 {
			if read, err := file.Seek(0, io.SeekCurrent); err == nil {
				bar.total.Store(done * m.size / read)
			}
		}
		bar.done.Store(done)
		if err := each(rec, bad); err != nil {
			return err
		}
	}
	return nil
}

// check reads the file once, reports every bad row and writes nothing to the store, which
// is nil when there is none yet.
func (m *importer) check(ctx context.Context, s *session) (fatal bool, err error) {
	rejected := &rejectedFile{m: m}
	defer func() { err = errors.Join(err, rejected.close(err == nil && !fatal)) }()
	if s != nil && hasAccounts(ctx, s.engine) {
		n := 0
		m.options.Check = func(sub billing.NewSubscription) *billing.FieldError {
			n++
			// An error of the store shows again when it is written to.
			field, refused := errors.AsType[*billing.FieldError](s.engine.Precheck(ctx, sub))
			if refused {
				m.refused[n] = field
			}
			return field
		}
	}
	err = m.read("rows checked", 0, func(_ book.Record, bad *book.Rejection) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if bad == nil {
			m.sum.rows++
			return nil
		}
		if bad.Fatal {
			fatal = true
		} else if bad.Row > m.sum.bad {
			m.sum.bad++
			m.sum.rows++
		}
		m.report(bad.Line, bad.Column, bad.Reason)
		return rejected.add(bad)
	})
	return fatal, err
}

func hasAccounts(ctx context.Context, e *engine.Engine) bool {
	for range e.Accounts(ctx) {
		return true
	}
	return false
}

// shownRejections is how many bad rows people get; --json and FILE.rejected have all.
const shownRejections = 50

func (m *importer) report(line int, column, reason string) {
	if m.p.cfg.JSON {
		m.list.add(object{"line", line, "column", column, "reason", reason})
		return
	}
	if m.shown == nil {
		m.shown = m.p.table("LINE", "COLUMN", "REASON")
	}
	switch {
	case m.shown.rows < shownRejections:
		m.shown.row(line, column, reason)
	case m.shown.rows == shownRejections:
		m.shown.row("…", "", "there are more: all of them with --json, or in the file that --skip-bad writes")
	}
}

func noted(n int, note string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d  (%s)", n, note)
}
