package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

func (p *program) importCommand() *cobra.Command {
	m := &importer{p: p, refused: map[int]*billing.FieldError{}, changes: map[int]bool{}, told: map[string]bool{}}
	c := leaf("import FILE", func(ctx context.Context, args []string) error { return m.importFile(ctx, args[0]) })
	c.Flags().BoolVar(&m.skipBad, "skip-bad", false, "import the good rows and write the bad ones to FILE.rejected")
	c.Flags().BoolVar(&m.update, "update", false, "update stored subscriptions and accounts that differ from the file")
	m.overdue = choiceFlag(overdueCharge, overdueSkip)
	c.Flags().Var(&m.overdue, "overdue", "what to do with rows that have more than one period due: charge all of these periods, "+
		"or skip those that have passed")
	c.Flags().BoolVar(&m.dryRun, "dry-run", false, "check every row and print what an import would do, without writing anything")
	c.Flags().StringVar(&m.options.PaymentMethod, "payment-method", "",
		"payment method `TOKEN` for subscriptions in a Workbench model (sandbox: pm_card_visa)")
	c.Flags().StringVar(&m.options.Currency, "currency", "USD", "currency `CODE` for amounts in a Workbench model")
	c.Flags().StringSliceVar(&m.options.IgnoreColumns, "ignore-columns", nil, "`NAMES` of columns to leave out, "+
		"separated by commas")
	c.Flags().IntVar(&m.workers, "workers", 16, "number of batches to write at the same time")
	return c
}

// What --overdue says.
const (
	overdueCharge = "charge"
	overdueSkip   = "skip"
)

// An importer is one import under way.
type importer struct {
	p       *program
	skipBad bool
	update  bool
	dryRun  bool
	overdue valueFlag[string]
	workers int
	options book.Options
	name    string // of the file
	size    int64
	format  book.Format

	list    *listWriter                 // JSON: rejections as they are found
	shown   *table                      // people: the first of them, made when there is one
	refused map[int]*billing.FieldError // by the number of its check, of rows that do not fit the store
	changes map[int]bool                // by the number of its check, of rows that --update applies
	looks   bool                        // rows are compared with a store
	told    map[string]bool             // accounts whose differences have been noted
	row     verdict                     // of the row at hand
	failed  error                       // of the store, at the row at hand
	notes   []importNote                // of people, the first shownRows
	more    int                         // notes that are not kept
	sum     importSummary
}

// An importSummary is the outcome of an import.
type importSummary struct {
	rows, created, existing, due, receipts int
	differing                              int // with --update: that it cannot change
	updated                                int
	ended                                  int // there already, and cancelled or completed
	bad                                    int
	overdue                                int    // new, with more than one period due; bad without --overdue
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
			"rejected_file?", s.rejected, "shards?", s.shards, "differing?", s.differing, "updated?", s.updated,
			"ended?", s.ended, "overdue?", s.overdue, "notes?", m.viewNotes(), "dry_run?", m.dryRun, "elapsed_ms", elapsed.Milliseconds()}))
	}
	if m.shown != nil {
		m.shown.flush()
	}
	if err != nil {
		return err
	}
	m.sayNotes()
	if s.bad > 0 || len(m.notes) > 0 {
		p.say("")
	}
	done, differing, rejected := " in "+short(elapsed), "not changed; --update changes them", "written to "+s.rejected
	if m.dryRun {
		done, rejected = " in a dry run; nothing was written", "left out; an import with --skip-bad writes them to a file"
	}
	if m.update {
		differing = "not changed, because an import cannot change them"
	}
	p.say("%s: %s%s", name, plural(s.rows, "row"), done)
	p.fields("  created", s.created, "  existing", noted(s.existing, "already stored and unchanged"),
		"  updated", positive(s.updated), "  differing", noted(s.differing, differing),
		"  ended", noted(s.ended, "already stored, but canceled or completed, so not charged"),
		"  overdue", noted(s.overdue, map[string]string{overdueCharge: "each with more than one period that runs will charge",
			overdueSkip: "their passed periods are skipped",
			"":          "left out; add --overdue charge or --overdue skip"}[m.overdue.value]),
		"  already due", noted(s.due, "charged by the next "+p.hint("run payments")), "  receipts", positive(s.receipts),
		"  rejected", noted(s.bad, rejected),
		"  shards per date", noted(s.shards, "in the new store; store create --shards sets more, and store copy changes the number"))
	return nil
}

func (m *importer) detect() error {
	info, err := os.Stat(m.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("file %s does not exist", m.name)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; use a file in it", m.name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; save it to one, because import reads the file twice, first to check every row", m.name)
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

// do checks every row, against a store too, and then imports. A refused file makes no store.
func (m *importer) do(ctx context.Context) (err error) {
	s, err := m.p.open(ctx, need{read: m.dryRun, processor: m.update && !m.dryRun})
	missing := errors.Is(err, store.ErrMissing)
	if missing && m.dryRun { // an empty store stands for it
		place := m.p.cfg.Store
		m.p.cfg.Store = "mem:"
		s, err = m.p.open(ctx, need{create: true})
		m.p.cfg.Store = place
	}
	if err != nil && !(missing && !m.dryRun) {
		return err
	}
	defer func() {
		if s != nil {
			err = errors.Join(err, s.close())
		}
	}()
	fatal, err := m.check(ctx, s)
	refused := fatal || m.sum.bad > 0 && !m.skipBad
	if refused || !m.dryRun { // counted by the check, and again as they are written
		m.sum.created, m.sum.due, m.sum.receipts, m.sum.updated = 0, 0, 0, 0
	}
	switch {
	case err != nil:
		return err
	case fatal:
		return fmt.Errorf("%s cannot be imported, so nothing was imported", m.name)
	case refused:
		overdue := ""
		if m.overdue.value == "" && m.sum.overdue > 0 {
			overdue = ", and for " + plural(m.sum.overdue, "overdue row") + " add --overdue charge or --overdue skip"
		}
		return fmt.Errorf("%d of %d rows are bad, so nothing was imported; correct them, or leave them out with --skip-bad%s",
			m.sum.bad, m.sum.rows, overdue)
	}
	if s == nil {
		if s, err = m.p.open(ctx, need{create: true}); err != nil {
			return err
		}
	}
	if missing {
		m.sum.shards = s.engine.Opened.Shards
	}
	if m.sum.bad > 0 || m.update && m.sum.differing > 0 {
		m.p.code = exitPerson
	}
	if !m.dryRun {
		if err := m.load(ctx, s); err != nil {
			return fmt.Errorf("%w; %d subscriptions were imported before it, so import the file again: they do not change", err,
				m.sum.created)
		}
	}
	return nil
}

func noted(n int, note string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d  (%s)", n, note)
}
