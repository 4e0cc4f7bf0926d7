package adoption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// AdoptOptions are what Adopt may be told.
type Options struct {
	Methods  map[string]string // the processor's token by account, for subscriptions without one of their own
	CatchUp  int               // missed periods that a run charges before it parks a subscription; 0: DefaultCatchUp
	Workers  int               // accounts written at once; at least 1
	DryRun   bool              // look and report, write nothing
	Progress func(items int64) // how many items have been read; nil: nobody asks
}

// An AdoptReport says what was found in the table, and what was written.
type Report struct {
	Items         int64
	Accounts      int // that have an item of any kind
	Subscriptions int // that can be read
	Receipts      int
	Own           int // Duesday's own records
	Others        int // items of other kinds, left alone
	Upgraded      int // subscriptions that Duesday has written before
	OffAgenda     int // subscriptions without a NextPaymentDate, read as paused
	Due           int // subscriptions that are due today or before
	Arrears       int // of these, with more periods due than are caught up with: they will be parked
	Cards         int // card numbers in subscriptions, which leave them with their first write
	CardsLeft     int // card numbers in other items, which stay

	Unreadable    Findings // not charged; a run that meets one fails
	WithoutMethod Findings // will be parked when they fall due
	NotIndexed    Findings // found by no job
	Duplicates    Findings // second subscriptions of one id in an account
	Addresses     Findings // accounts whose subscriptions have different addresses
	Unknown       Findings // accounts in Methods alone

	OldestPayment  civil.Date // before today, which the floor is lowered to; zero: none
	OldestReminder civil.Date // the same
	AccountsMade   int        // or, in a dry run, to be made
	AccountsSet    int        // given a method, or completed; or to be
	DryRun         bool
}

// NeedsPerson reports whether something was found that no job will deal with.
func (r *Report) NeedsPerson() bool {
	return r.Unreadable.Count+r.WithoutMethod.Count+r.NotIndexed.Count+r.Duplicates.Count > 0
}

// Findings counts things of one kind, and has the first of them in order of their keys.
type Findings struct {
	Count int
	First []Finding
}

// A Finding is an item by its key, or an account by its id, and what is the matter with it. It
// shows no value of an attribute, and no card number.
type Finding struct{ Item, Reason string }

const mostFindings = 20

func (f *Findings) add(item, format string, args ...any) {
	f.Count++
	x := Finding{secret.MaskCards(item), secret.MaskCards(fmt.Sprintf(format, args...))}
	i, _ := slices.BinarySearchFunc(f.First, x, func(a, b Finding) int { return strings.Compare(a.Item, b.Item) })
	if f.First = slices.Insert(f.First, i, x); len(f.First) > mostFindings {
		f.First = f.First[:mostFindings]
	}
}

// Adopt makes a table that other tools have filled from the published model ready for both
// jobs: it scans it once, lowers the floors to the oldest dates found, and writes an item for
// every account, with its payment method. It changes no subscription: each is completed by
// its first write, when it comes due. Doing it again changes nothing; cut off anywhere, it is
// finished by doing it again. It may run beside other workers, but not beside the tools
// that it adopts from: what they write after the scan is not under the floor.
func Adopt(ctx context.Context, e *billing.Records, o Options) (*Report, error) {
	if e.Opened.Installation == "" {
		return nil, fmt.Errorf("table %s has an item %s that is not Duesday's: it cannot be adopted", e.Table, billing.MetaPK)
	}
	v, err := scanTable(ctx, e, o)
	if err != nil || o.DryRun {
		return &v.report, err
	}
	for _, f := range [...]struct {
		kind billing.Kind
		date civil.Date
	}{{billing.Payments, v.report.OldestPayment}, {billing.Reminders, v.report.OldestReminder}} {
		if f.date.IsZero() {
			continue
		}
		if err := e.LowerWatermark(ctx, f.kind, f.date); err != nil {
			return &v.report, err
		}
	}
	return &v.report, v.writeAccounts(ctx, max(1, o.Workers))
}

// Scan is Adopt's dry run over a store that need not be Duesday's yet: Open would make it
// so.
func Scan(ctx context.Context, e *billing.Records, o Options) (*Report, error) {
	o.DryRun = true
	v, err := scanTable(ctx, e, o)
	return &v.report, err
}

// writeAccounts writes what the survey's accounts lack.
func (v *scan) writeAccounts(ctx context.Context, workers int) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	todo := make(chan *scannedAccount, workers)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for s := range todo {
				if ctx.Err() != nil {
					continue
				}
				if err := v.writeAccount(ctx, s); err != nil {
					stop(err)
				}
			}
		})
	}
	for s := range v.unfinished() {
		if ctx.Err() != nil {
			break
		}
		todo <- s
	}
	close(todo)
	group.Wait()
	return context.Cause(ctx)
}

// writeAccount makes the account's item, or completes the one that is there.
func (v *scan) writeAccount(ctx context.Context, s *scannedAccount) error {
	e := v.Records
	now := s.account
	for range store.MaxTries {
		w := s.completion(e.Table, now)
		if now == nil {
			w = store.Put(e.Table, s.made(e.Now()).Item(), store.Absent())
		} else if len(w.Set) == 0 {
			return nil
		}
		err := e.Store.Commit(ctx, w)
		if !store.Retryable(err) {
			return err
		}
		if now, err = e.Account(ctx, s.id); errors.Is(err, store.ErrNotFound) {
			now = nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("account %s: overtaken by others %d times", s.id, store.MaxTries)
}
