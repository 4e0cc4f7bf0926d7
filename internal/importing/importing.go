// Package importing imports subscriptions from a file into a store.
//
// An Import reads its file twice. Check compares every row with the store, decides how to import
// it, and rejects the file if it contains a bad row, unless SkipBad is set. Load writes the rows as
// Check decided. If Load fails, the user can import the same file again. That import continues and
// does not change rows that were already written.
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
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/store"
)

// These are the values of Import.Overdue.
const (
	Charge = "charge"
	Skip   = "skip"
)

// An Import imports one file. Call Detect, then Check and, unless DryRun is set, Load.
type Import struct {
	File         string
	Options      book.Options
	SkipBad      bool   // write bad rows to FILE.rejected instead of rejecting the file
	Update       bool   // update stored subscriptions and accounts from the file
	DryRun       bool   // Check counts what Load would do
	Overdue      string // Charge or Skip; "" rejects new subscriptions with several periods due
	Workers      int    // number of workers that write batches at the same time
	Stripe, Live bool   // the processor is Stripe; its key is a live key
	Now          func() time.Time
	// Progress starts a progress bar. rows is the expected number of rows, or 0 if it is unknown.
	Progress func(what string, rows int) (step func(done, rows int64), end func())
	Reject   func(*book.Rejection) // called for each problem with a row or the file
	Note     func(Note)            // called for each difference and warning
	Sum      Summary
	// Products maps SKUs to the product names in the file. Check fills it with the names that the
	// store lacks and, if Update is set, with the names that differ. The caller stores them.
	Products map[string]string

	taxes     *tax.Defaults // of new subscriptions
	size      int64
	format    book.Format
	looks     bool              // compare rows with the store
	told      map[string]bool   // accounts whose differences were noted, and "/" + SKU for products
	named     map[string]string // product names in the store's settings
	row       verdict           // for the current row
	failed    error             // store error for the current row
	decisions []decision        // one for each subscription in the file, in order
}

// A decision is what Load does with one subscription in the file.
type decision byte

const (
	pass   decision = iota // do nothing
	create                 // the store does not have the subscription
	update                 // the subscription differs; or it is new, and its account differs
)

// A Summary counts the results of an import.
type Summary struct {
	Rows, Created, Existing, Due, Receipts int
	Differing                              int // with Update, only those that cannot be updated
	Updated                                int
	Ended                                  int // already stored, and canceled or completed
	Bad                                    int
	Overdue                                int    // new, with several periods due
	Rejected                               string // file with the bad rows; "" if there is none
}

// A Note is a difference or a warning about one row.
type Note struct {
	Line    int
	Name    billing.Name
	Differs Difference // has no Field if the note is a warning
	Warning string
}

// Detect detects the file's format. For a Workbench model without a payment method, it uses the
// sandbox's test card, unless the key is live.
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

// Check validates every row, and compares it with the store of e. If there is no store yet, e is
// nil. Check returns an error if it rejects the file, or if the store fails.
func (m *Import) Check(ctx context.Context, e *engine.Engine) error {
	fatal, err := m.check(ctx, e)
	s := &m.Sum
	refused := fatal || s.Bad > 0 && !m.SkipBad
	if err != nil || refused || !m.DryRun { // Load counts these again
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
		m.looks = there || err != nil // judge gets the same error again
	}
	if e != nil {
		settings, err := settings.Read(ctx, e.Records)
		if err != nil {
			return false, err
		}
		m.named, m.taxes = settings.Products, settings.Taxes()
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

// nameProduct records the product's name and, if the store has another name, the difference.
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
		m.row.differs = append(m.row.differs, Difference{Field: "product", Stored: stored, Given: name})
	}
}

// decision returns what Load does with the current row.
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

// count counts a good row, and calls Note for its differences and its warning.
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

// read calls each for every row in the file, and shows a progress bar. Unless Check has already
// counted the rows, it estimates their number from the bytes read.
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
