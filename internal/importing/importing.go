// Package importing imports subscriptions from a file into a store.
//
// An Import reads its file twice. Check compares every row with the store, decides how to import it, and
// refuses the file if a row is bad, unless bad rows are skipped. Load writes the rows as Check decided.
// After a failed Load, another import of the same file continues, and does not change the written rows.
//
// It does not ask the processor about customers or payment methods, and does not open the store.
package importing

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/store"
)

// The values of Import.Overdue.
const (
	Charge = "charge"
	Skip   = "skip"
)

// An Import is the import of one file: Detect, Check and then, unless DryRun is set, Load.
type Import struct {
	File         string
	Options      book.Options
	SkipBad      bool   // bad rows are left out and written to FILE.rejected; otherwise they refuse the file
	Update       bool   // stored subscriptions and accounts take the file's values
	DryRun       bool   // Check counts what Load would do
	Overdue      string // Charge or Skip; "": a new subscription with several periods due is a bad row
	Workers      int    // that write batches at the same time
	Stripe, Live bool   // the processor is Stripe, with a live key
	Now          func() time.Time
	// Progress begins a bar of rows, of which rows are expected (0: unknown).
	Progress func(what string, rows int) (step func(done, rows int64), end func())
	Reject   func(*book.Rejection) // is called for each problem of a row or of the file
	Note     func(Note)            // is called for each difference and warning
	Sum      Summary
	// Products has the names that the file gives to SKUs, after Check: those that the store lacks, and with
	// Update those that differ. The caller stores them.
	Products map[string]string

	size      int64
	format    book.Format
	looks     bool              // rows are compared with a store
	told      map[string]bool   // accounts whose differences have been noted, and /SKU
	named     map[string]string // products by the store's settings
	row       verdict           // on the row at hand
	failed    error             // of the store, at the row at hand
	decisions []decision        // on the file's subscriptions, in their order
}

// A decision is what Load does with a subscription of the file.
type decision byte

const (
	pass   decision = iota // nothing
	create                 // the store does not have it
	update                 // the store has another one; or it is new, and its account differs
)

// A Summary counts the outcomes of an import.
type Summary struct {
	Rows, Created, Existing, Due, Receipts int
	Differing                              int // with Update: that it cannot change
	Updated                                int
	Ended                                  int // already stored, and cancelled or completed
	Bad                                    int
	Overdue                                int    // new, with more than one period due; bad without Import.Overdue
	Rejected                               string // the file of the bad rows; "": none
}

// A Note is a difference or a warning of a row.
type Note struct {
	Line    int
	Name    billing.Name
	Differs billing.Difference // without a Field: none
	Warning string
}

// Detect detects the file's format. For a Workbench model without a payment method, it sets the
// sandbox's card, unless the key is live.
func (m *Import) Detect() error {
	info, err := os.Stat(m.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("file %s does not exist", m.File)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; use a file in it", m.File)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; save it to one, because import reads the file twice, first to check every row", m.File)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty", m.File)
	}
	m.size = info.Size()
	file, err := os.Open(m.File)
	if err != nil {
		return err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, book.HeadSize))
	if err != nil {
		return fmt.Errorf("read %s: %w", m.File, err)
	}
	m.format = book.Detect(head, m.File)
	if m.format == book.Workbench && m.Options.PaymentMethod == "" && !m.Live {
		m.Options.PaymentMethod = "pm_card_visa"
	}
	return nil
}

// Check judges every row, with e unless there is no store yet (nil). It returns an error if the file
// is refused, or if the store fails.
func (m *Import) Check(ctx context.Context, e *engine.Engine) error {
	fatal, err := m.check(ctx, e)
	s := &m.Sum
	refused := fatal || s.Bad > 0 && !m.SkipBad
	if err != nil || refused || !m.DryRun { // Load counts them again
		s.Created, s.Due, s.Receipts, s.Updated = 0, 0, 0, 0
	}
	switch {
	case err != nil:
		return err
	case fatal:
		return fmt.Errorf("%s cannot be imported, so nothing was imported", m.File)
	case refused:
		overdue := ""
		if m.Overdue == "" && s.Overdue > 0 {
			noun := "rows"
			if s.Overdue == 1 {
				noun = "row"
			}
			overdue = fmt.Sprintf(", and for %d overdue %s add --overdue charge or --overdue skip", s.Overdue, noun)
		}
		return fmt.Errorf("%d of %d rows are bad, so nothing was imported; correct them, or leave them out with --skip-bad%s",
			s.Bad, s.Rows, overdue)
	}
	return nil
}

func (m *Import) check(ctx context.Context, e *engine.Engine) (fatal bool, err error) {
	rejected := &rejectedFile{m: m}
	defer func() { err = errors.Join(err, rejected.close(err == nil && !fatal)) }()
	if m.looks = e != nil; m.looks && !m.DryRun {
		there, err := billing.AnyItem(e.Accounts(ctx))
		m.looks = there || err != nil // an error shows again
	}
	if e != nil {
		settings, err := settings.Read(ctx, e.Records)
		if err != nil {
			return false, err
		}
		m.named = settings.Products
	}
	m.told = map[string]bool{}
	m.Options.Check = func(n billing.NewSubscription, given func(string) bool) *billing.FieldError {
		problem := m.judge(ctx, e, n, given)
		if problem == nil && n.Product != "" {
			m.nameProduct(n.SKU, n.Product)
		}
		if m.row.overdue > 0 {
			m.Sum.Overdue++
		}
		m.decisions = append(m.decisions, m.decision(problem))
		return problem
	}
	err = m.read(ctx, "rows checked", func(rec book.Record, bad *book.Rejection) error {
		switch {
		case bad == nil:
			m.Sum.Rows++
			return m.count(ctx, e, rec)
		case bad.Fatal:
			fatal = true
		case bad.Row > m.Sum.Bad:
			m.Sum.Bad++
			m.Sum.Rows++
		}
		m.Reject(bad)
		return rejected.add(bad)
	})
	return fatal, err
}

// nameProduct notes the product's name, and its difference from the store's.
func (m *Import) nameProduct(sku, name string) {
	stored := m.named[sku]
	if stored == name || m.told["/"+sku] {
		return
	}
	m.told["/"+sku] = true
	if stored == "" || m.Update {
		if m.Products == nil {
			m.Products = map[string]string{}
		}
		m.Products[sku] = name
	}
	if stored != "" {
		m.row.differs = append(m.row.differs, billing.Difference{Field: "product", Stored: stored, Given: name})
	}
}

// decision returns what becomes of the row at hand.
func (m *Import) decision(problem *billing.FieldError) decision {
	switch {
	case problem != nil:
		return pass
	case m.Update && m.row.changes():
		return update
	case m.row.exists:
		return pass
	}
	return create
}

// count counts a good row, and notes its differences and warning.
func (m *Import) count(ctx context.Context, e *engine.Engine, rec book.Record) error {
	if rec.Receipt != nil && m.DryRun {
		r := *rec.Receipt
		r.Kind = billing.Imported
		_, err := e.Store.Get(ctx, e.Table, billing.KeyOf(r.Item()))
		if errors.Is(err, store.ErrNotFound) {
			m.Sum.Receipts++
		}
		return billing.IgnoreNotFound(err)
	}
	if rec.Subscription == nil {
		return nil
	}
	row, sum, kept := &m.row, &m.Sum, false
	name := billing.Name{Account: rec.Subscription.Account, ID: rec.Subscription.ID}
	for _, d := range row.differs {
		kept = kept || d.Kept != ""
		m.Note(Note{Line: rec.Line, Name: name, Differs: d})
	}
	if row.warning != "" {
		m.Note(Note{Line: rec.Line, Name: name, Warning: row.warning})
	}
	applies := m.Update && row.changes()
	if applies {
		sum.Updated++
	}
	if row.due {
		sum.Due++
	}
	switch {
	case row.ended:
		sum.Ended++
	case len(row.differs) > 0 && (kept || !m.Update):
		sum.Differing++
	case !row.exists:
		sum.Created++
	case !applies:
		sum.Existing++
	}
	return nil
}

// read calls each for the file's rows, and shows a bar. The number of rows that are not counted yet is
// estimated from the bytes read.
func (m *Import) read(ctx context.Context, what string, each func(book.Record, *book.Rejection) error) error {
	file, err := os.Open(m.File)
	if err != nil {
		return err
	}
	defer file.Close()
	total, done := int64(m.Sum.Rows), int64(0)
	counted := total > 0
	step, end := m.Progress(what, m.Sum.Rows)
	defer end()
	for rec, bad := range book.Read(bufio.NewReaderSize(file, 1<<20), m.format, m.Options) {
		if done++; !counted && done%1024 == 0 {
			if read, err := file.Seek(0, io.SeekCurrent); err == nil {
				total = done * m.size / read
			}
		}
		step(done, total)
		if err := cmp.Or(m.failed, ctx.Err()); err != nil {
			return err
		}
		if err := each(rec, bad); err != nil {
			return err
		}
	}
	return nil
}
