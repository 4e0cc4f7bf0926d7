// Package adoption prepares an existing table, which other tools wrote in the published model's format,
// for the daily jobs. It does not change subscriptions: package engine adds the missing attributes when
// it first writes one.
package adoption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// Options are the choices of an adoption.
type Options struct {
	Methods  map[string]string // the processor's token by account, for subscriptions without one of their own
	CatchUp  int               // that of a table without settings; 0: DefaultCatchUp
	Workers  int               // accounts written at once; at least 1
	Progress func(items int64) // is called with the number of items read; may be nil
}

// A Report is the result of an adoption scan, and of the writes after it.
type Report struct {
	Items         int64
	Accounts      int // with an item of any kind
	Subscriptions int // readable ones
	Receipts      int
	Own           int // Duesday's own records
	Others        int // items of other kinds; they are not changed
	Upgraded      int // subscriptions already written by Duesday
	OffAgenda     int // subscriptions without a NextPaymentDate, read as paused
	Due           int // subscriptions due today or before
	Arrears       int // of these, with more than CatchUp periods due: they will be parked
	Cards         int // card numbers in subscriptions; the first write removes them
	CardsLeft     int // card numbers in other items; they stay

	Unreadable    Findings // not charged; a run fails at one
	WithoutMethod Findings // they will be parked when they fall due
	NotIndexed    Findings // no job finds them
	Duplicates    Findings // second subscriptions of one id in an account
	Addresses     Findings // accounts whose subscriptions have different addresses
	Unknown       Findings // accounts in Methods without an item

	OldestPayment  civil.Date // before today; the low watermark is lowered to it; zero: none
	OldestReminder civil.Date // the same
	AccountsMade   int        // or, in a dry run, to be made
	AccountsSet    int        // given a method, or completed; or to be
	DryRun         bool
}

// NeedsPerson reports whether any finding is left to a person.
func (r *Report) NeedsPerson() bool {
	return len(r.Unreadable)+len(r.WithoutMethod)+len(r.NotIndexed)+len(r.Duplicates) > 0
}

// Findings has the findings of one kind, in no order.
type Findings []Finding

// A Finding is an item by its key, or an account by its id, and its problem, without any value.
type Finding struct{ Item, Reason string }

func (f *Findings) add(item, format string, args ...any) {
	*f = append(*f, Finding{secret.MaskCards(item), secret.MaskCards(fmt.Sprintf(format, args...))})
}

// Adopt prepares a table filled by other tools from the published model for both jobs. It scans the
// table once, lowers the low watermarks to the oldest dates, and writes an item for every account,
// with its payment method, and the rows by which lists find accounts and subscriptions. It changes no
// subscription: the first write when it is due completes it.
//
// Doing it again changes nothing, or finishes it. It may run beside other workers, but not beside
// those other tools: rows that they write after the scan may be older than the watermark.
func Adopt(ctx context.Context, e *billing.Records, o Options) (*Report, error) {
	if e.Opened.Installation == "" {
		return nil, fmt.Errorf("table %s has an item %s that Duesday did not write, so it cannot be adopted", e.Table, billing.MetaPK)
	}
	v, err := scanTable(ctx, e, o)
	if err != nil {
		return &v.report, err
	}
	if err := e.LowerWatermarks(ctx, v.report.OldestPayment, v.report.OldestReminder); err != nil {
		return &v.report, err
	}
	if err := v.writeAccounts(ctx, max(1, o.Workers)); err != nil {
		return &v.report, err
	}
	return &v.report, lookup.Fill(ctx, e, true, nil)
}

// Scan is the dry run of Adopt. The table need not be a store of Duesday's yet.
func Scan(ctx context.Context, e *billing.Records, o Options) (*Report, error) {
	v, err := scanTable(ctx, e, o)
	v.report.DryRun = true
	return &v.report, err
}

func (v *scan) writeAccounts(ctx context.Context, workers int) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	free := make(chan struct{}, workers)
	var group sync.WaitGroup
	for _, s := range v.unfinished {
		if free <- struct{}{}; ctx.Err() != nil {
			break
		}
		group.Go(func() {
			if err := v.writeAccount(ctx, s); err != nil {
				stop(err)
			}
			<-free
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func (v *scan) writeAccount(ctx context.Context, s *scannedAccount) error {
	overtaken := false
	return store.Retry(ctx, "account "+s.id, func() (err error) {
		if overtaken {
			if s.account, err = v.Account(ctx, s.id); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		overtaken = true
		w := s.completion(v.Table)
		if s.account == nil {
			made := &billing.Account{ID: s.id, Email: s.email, Method: s.method, Created: cmp.Or(s.created, v.Now()),
				Mixed: s.mixed, Version: 1}
			w = store.Put(v.Table, made.Item(), store.Absent())
		} else if len(w.Set) == 0 {
			return nil
		}
		return v.Store.Commit(ctx, w)
	})
}
