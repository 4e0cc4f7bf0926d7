package bookkeeping

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/importing"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) importCommand() *cobra.Command {
	m := &importer{p: p}
	c := session.Leaf("import FILE", func(ctx context.Context, args []string) error { return m.importFile(ctx, args[0]) })
	c.Flags().BoolVar(&m.SkipBad, "skip-bad", false, "import the good rows and write the bad ones to FILE.rejected")
	c.Flags().BoolVar(&m.Update, "update", false, "update stored subscriptions and accounts that differ from the file")
	m.overdue = screen.ChoiceFlag(importing.Charge, importing.Skip)
	c.Flags().Var(&m.overdue, "overdue", "what to do with rows that have more than one period due: charge all of these periods, "+
		"or skip those that have passed")
	c.Flags().BoolVar(&m.DryRun, "dry-run", false, "check every row and print what an import would do, without writing anything")
	c.Flags().StringVar(&m.Options.PaymentMethod, "payment-method", "", "payment method `TOKEN` for subscriptions in a Workbench model (sandbox: pm_card_visa)")
	c.Flags().StringVar(&m.Options.Currency, "currency", "USD", "currency `CODE` for amounts in a Workbench model")
	c.Flags().StringSliceVar(&m.Options.IgnoreColumns, "ignore-columns", nil, "`NAMES` of columns to leave out, "+
		"separated by commas")
	c.Flags().IntVar(&m.Workers, "workers", 16, "number of batches to write at the same time")
	return c
}

// An importer runs one import and prints its results.
type importer struct {
	importing.Import
	p       *program
	overdue screen.Flag[string]
	list    *screen.ListWriter // in JSON mode: rejections, as they are found
	reasons []*reason          // in text mode: the first shownRows kinds of reasons
	others  int                // number of rejections that reasons does not include
	notes   []importing.Note   // in text mode, only the first shownRows
	more    int                // number of notes that were dropped
	shards  int                // shards per date if the import created the store; otherwise 0
}

func (m *importer) importFile(ctx context.Context, name string) error {
	if err := screen.Between("workers", m.Workers, 1, 1024); err != nil {
		return err
	}
	if _, err := money.ParseCurrency(m.Options.Currency); err != nil {
		return screen.Usagef("--currency: %w", err)
	}
	begun, p := time.Now(), m.p
	defer p.SpareMemory()() // the check keeps hashes of every row
	m.File, m.Overdue, m.list = p.Path(name), m.overdue.Value, &screen.ListWriter{Out: p.Out, Name: "rejected"}
	m.Stripe, m.Live, m.Now = p.Config.UsesStripe(), p.Config.Live(), func() time.Time { return p.Now() }
	m.Reject, m.Note, m.Progress = m.report, m.note, m.progress
	if err := m.Detect(); err != nil {
		return err
	}
	err := m.do(ctx)
	elapsed, s := time.Since(begun), &m.Sum
	if s.Bad > 0 || m.Update && s.Differing > 0 {
		p.Code = screen.ExitPerson
	}
	if p.AsJSON {
		return errors.Join(err, m.list.End(view.Object{"file", name, "rows", s.Rows, "imported", s.Created,
			"created", s.Created, "existing", s.Existing, "due", s.Due, "receipts", s.Receipts, "rejected_rows", s.Bad,
			"rejected_file?", s.Rejected, "shards?", m.shards, "differing?", s.Differing, "updated?", s.Updated,
			"ended?", s.Ended, "overdue?", s.Overdue, "notes?", m.viewNotes(), "products?", m.Products, "dry_run?", m.DryRun, "elapsed_ms", elapsed.Milliseconds()}))
	}
	m.sayReasons()
	if err != nil {
		return err
	}
	m.sayNotes()
	if s.Bad > 0 || len(m.notes) > 0 {
		p.Say("")
	}
	done, differing, rejected := " in "+screen.Elapsed(elapsed), "not changed; --update changes them", "written to "+s.Rejected
	if m.DryRun {
		done, rejected = " in a dry run; nothing was written", "left out; an import with --skip-bad writes them to a file"
	}
	if m.Update {
		differing = "not changed, because an import cannot change them"
	}
	p.Say("%s: %s%s", name, screen.Plural(s.Rows, "row"), done)
	p.Fields("  created", s.Created, "  existing", noted(s.Existing, "already stored and unchanged"),
		"  updated", screen.Positive(s.Updated), "  differing", noted(s.Differing, differing),
		"  ended", noted(s.Ended, "already stored, but canceled or completed, so not charged"),
		"  overdue", noted(s.Overdue, map[string]string{importing.Charge: "each with more than one period that runs will charge",
			importing.Skip: "their passed periods are skipped",
			"":             "left out; add --overdue charge or --overdue skip"}[m.Overdue]),
		"  already due", noted(s.Due, "charged by the next "+p.Hint("run payments")), "  receipts", screen.Positive(s.Receipts),
		"  product names", screen.Positive(len(m.Products)), "  rejected", noted(s.Bad, rejected),
		"  shards per date", noted(m.shards, "in the new store; store create --shards sets more, and store copy changes the number"))
	return nil
}

// do checks every row, compares the rows with the store if there is one, and then imports them. A
// rejected file does not create a store.
func (m *importer) do(ctx context.Context) (err error) {
	s, err := m.p.Open(ctx, session.Need{Read: m.DryRun, Processor: m.Update && !m.DryRun})
	missing := errors.Is(err, store.ErrMissing)
	if missing && m.DryRun { // check against an empty in-memory store
		place := m.p.Config.Store
		m.p.Config.Store = "mem:"
		s, err = m.p.Open(ctx, session.Need{Create: true})
		m.p.Config.Store = place
	}
	if err != nil && !(missing && !m.DryRun) {
		return err
	}
	defer func() {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	var e *engine.Engine
	if s != nil {
		e = s.Engine
	}
	if err := m.Check(ctx, e); err != nil {
		return err
	}
	if s == nil {
		if s, err = m.p.Open(ctx, session.Need{Create: true}); err != nil {
			return err
		}
	}
	if missing {
		m.shards = s.Engine.Opened.Shards
	}
	if m.DryRun {
		return nil
	}
	if err := settings.NameProducts(ctx, s.Engine.Records, m.Products); err != nil {
		return err
	}
	return m.Load(ctx, s.Engine)
}

func (m *importer) progress(what string, rows int) (step func(done, rows int64), end func()) {
	bar := m.p.Progress(what, int64(rows), nil)
	return func(done, rows int64) {
		bar.Done.Store(done)
		bar.Total.Store(rows)
	}, bar.End
}

// shownRows is the maximum number of reasons that text mode prints, and of differences and
// warnings. JSON mode prints all of them.
const shownRows = 50

// shownLines is the maximum number of line numbers that text mode prints for equal reasons. This is
// enough to see how their values differ.
const shownLines = 3

// A reason groups the rejections that differ only in their values and line numbers.
type reason struct {
	kind  string
	first *book.Rejection
	lines []int // line numbers of the first shownLines rows
	rows  int
}

// values matches the parts of a reason that may differ within a group.
var values = regexp.MustCompile(`"(\\.|[^"\\])*"|[0-9*]+`)

func (m *importer) report(r *book.Rejection) {
	if m.p.AsJSON {
		m.list.Add(view.Object{"line", r.Line, "column", r.Column, "reason", r.Reason})
		return
	}
	kind := r.Column + ": " + values.ReplaceAllString(r.Reason, "#")
	at := slices.IndexFunc(m.reasons, func(x *reason) bool { return x.kind == kind })
	switch {
	case at >= 0:
		x := m.reasons[at]
		if x.rows++; x.rows <= shownLines {
			x.lines = append(x.lines, r.Line)
		}
	case len(m.reasons) < shownRows:
		m.reasons = append(m.reasons, &reason{kind, r, []int{r.Line}, 1})
	default:
		m.others++
	}
}

// sayReasons prints each group of equal reasons once, with the reason of the first row.
func (m *importer) sayReasons() {
	if len(m.reasons) == 0 {
		return
	}
	t := m.p.Table("LINE", "COLUMN", "REASON")
	for _, x := range m.reasons {
		lines := fmt.Sprint(x.first.Line)
		switch list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(x.lines)), ", "), "[]"); {
		case x.rows > len(x.lines):
			lines = fmt.Sprintf("%d rows, such as lines %s", x.rows, list)
		case x.rows > 1:
			lines = "lines " + list
		}
		t.Row(lines, x.first.Column, x.first.Reason)
	}
	if m.others > 0 {
		t.Row("…", "", screen.Plural(m.others, "more reason")+"; --json prints all of them, and --skip-bad writes them to a file")
	}
	t.Flush()
}

func (m *importer) note(n importing.Note) {
	if len(m.notes) < shownRows || m.p.AsJSON {
		m.notes = append(m.notes, n)
	} else {
		m.more++
	}
}

func (m *importer) sayNotes() {
	if len(m.notes) == 0 {
		return
	}
	if len(m.reasons) > 0 {
		m.p.Say("")
	}
	t := m.p.Table("LINE", "SUBSCRIPTION", "NOTE")
	for _, n := range m.notes {
		if n.Warning != "" {
			t.Row(n.Line, n.Name, "warning: "+n.Warning)
		} else {
			t.Row(n.Line, n.Name, n.Differs)
		}
	}
	if m.more > 0 {
		t.Row("…", "", "and "+screen.Plural(m.more, "more note")+"; --json prints all of them")
	}
	t.Flush()
}

func (m *importer) viewNotes() (list []view.Object) {
	for _, n := range m.notes {
		v := view.Object{"line", n.Line, "subscription", n.Name.String(), "warning?", n.Warning}
		if d := n.Differs; d.Field != "" {
			v = append(v, "column", d.Field, "stored", d.Stored, "given", d.Given, "not_changed?", d.Kept)
		}
		list = append(list, v)
	}
	return list
}

func noted(n int, note string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d  (%s)", n, note)
}
