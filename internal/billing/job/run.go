// Package job runs a store's two daily jobs, payments and reminders, over the due rows, and records
// and reports each run. It shares the rows among processes, and does the maintenance besides
// charging. Package engine decides about each row.
//
// It does not decide about a period.
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Options configure a run.
type Options struct {
	ID       string     // of the run; "" for a new one
	Date     civil.Date // business day for every account; zero means each account's own today
	Workers  int        // at least 1
	DryRun   bool       // decide and report, but do not open intents or write
	Progress func(done int64)
	Each     func(engine.Result) // called for every result, one at a time; may be nil
}

// A Report describes a recorded or active run and its work besides charging.
type Report struct {
	billing.Run
	State   State // set only for a recorded run
	Elapsed time.Duration
	DryRun  bool

	Cards     int              // card updates
	KeepOwn   []billing.Name   // subscriptions that keep their own method instead of the account's new card
	Reversals int              // refunds and disputes recorded or changed
	Orphans   int              // unbound payment intents that the run cancelled
	Missed    []error          // maintenance tasks that failed and are left for the next run
	Doubts    []*billing.Doubt // periods that may have been paid twice and that no person has resolved yet
}

// NeedsPerson reports whether the run leaves something new, or something that a person can act on.
// Such a period has failed, is parked or unreadable, or has started to wait since the last run
// ended. An older wait that only the customer or the processor can end does not count.
func (r *Report) NeedsPerson() bool {
	return r.Off || len(r.Doubts)+r.Waits+r.Counts[engine.OutcomeFailed]+r.Counts[engine.OutcomeParked]+r.Counts[engine.OutcomeUnreadable] > 0
}

// Err returns the error that ended a recorded run, or nil. The error is charging.ErrOff if charging
// was switched off.
func (r *Report) Err() error {
	switch {
	case r.Off:
		return charging.ErrOff
	case r.Reason != "":
		return fmt.Errorf("run %s ended: %s", r.ID, r.Reason)
	}
	return nil
}

// job is one active run.
type job struct {
	e         *engine.Engine
	index     string
	options   Options
	claim     *worker.Claim      // nil in a dry run
	charging  *charging.Switch   // nil for reminders, and if nothing is charged
	watermark *billing.Watermark // as read before the walk
	told      time.Time          // recorded end of the last payment run that ended
	previous  time.Time          // end of the previous run; set if maintenance needs it
	refused   map[string]bool    // connected accounts that the rollback check could not ask
	done      atomic.Int64       // number of rows done

	mu     sync.Mutex
	report Report                 // mu guards its counts and amounts
	left   map[billing.Name][]int // counted periods that are left for the next run; guarded by mu
	tried  map[billing.Name]int   // period that was last counted as OutcomeRetry; guarded by mu
	unread civil.Date             // the oldest date with an unreadable row; guarded by mu
	errs   []error                // the first few errors; guarded by mu
	failed int                    // guarded by mu
	unpaid map[string]*Unpaid     // by place, not recorded yet; guarded by mu
	listed int                    // of the unpaid, recorded or not; guarded by mu
}

// Payments runs the daily payment job. It charges every period due up to the day, and advances
// every open period. Callers may run it at any time and any number of times. On a store whose
// processes can claim names, Payments returns a worker.BusyError while another run is active. If
// charging is switched off during the run, Payments starts no further request within a second, and
// returns charging.ErrOff with its report.
func Payments(ctx context.Context, e *engine.Engine, o Options) (*Report, error) {
	j, err := newJob(ctx, e, billing.Payments, schema.PaymentIndex, o)
	ctx = call.Without(ctx)
	if err != nil {
		return nil, err
	}
	e = j.e
	meta, err := e.Meta(ctx)
	if err != nil {
		return nil, err
	}
	j.report.Off, j.told = !meta.Charging, meta.RunEnded
	if o.DryRun || !meta.Charging {
		return j.run(ctx, func(ctx context.Context, n billing.Name) error { return e.DryRun(ctx, n, o.Date, j.add) })
	}
	end, err := j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if j.refused, err = e.Charging().CheckRollback(ctx); err != nil {
		return nil, err
	}
	if err := j.before(ctx); err != nil {
		return nil, err
	}
	report, err := j.run(ctx, func(ctx context.Context, n billing.Name) error {
		if j.isLeft(n) {
			return nil
		}
		return e.Collect(ctx, n, engine.Pass{Day: o.Date, Refused: j.refused, Charging: j.charging,
			Since: cmp.Or(meta.RunEnded, e.Opened.Created)}, j.add)
	})
	if report != nil {
		for d, wrong := range e.Doubts(ctx) {
			if wrong != nil {
				err = errors.Join(err, j.missed(ctx, "listing the periods that may have been paid twice", wrong))
			} else {
				report.Doubts = append(report.Doubts, d)
			}
		}
	}
	if _, stopped := errors.AsType[*charging.StopError](err); stopped || report == nil || report.Off || ctx.Err() != nil ||
		errors.Is(err, store.ErrClosed) {
		return report, err
	}
	return report, errors.Join(err, j.after(ctx)) // maintenance runs even if rows failed
}

// ErrUnreconciled is returned when a restored store is not reconciled, because the store that it
// replaces may already have sent the reminders.
var ErrUnreconciled = fmt.Errorf("a restored store sends no reminder until duesday reconcile has run: %w", billing.ErrState)

// Reminders runs the daily reminder job. Like Payments, it returns a worker.BusyError while another
// run is active.
func Reminders(ctx context.Context, e *engine.Engine, o Options) (*Report, error) {
	j, err := newJob(ctx, e, billing.Reminders, schema.ReminderIndex, o)
	ctx = call.Without(ctx)
	if err != nil {
		return nil, err
	}
	e = j.e
	if !o.DryRun {
		if meta, err := e.Meta(ctx); err != nil || meta.Unreconciled() {
			return nil, cmp.Or(err, ErrUnreconciled)
		}
		end, err := j.begin(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	return j.run(ctx, func(ctx context.Context, n billing.Name) error {
		return e.Remind(ctx, n, o.Date, o.DryRun, j.add)
	})
}

// run walks the index and calls handle for each row.
func (j *job) run(ctx context.Context, handle func(context.Context, billing.Name) error) (*Report, error) {
	until, err := j.span(ctx)
	if err != nil {
		return nil, err
	}
	stop, err := j.keep(ctx)
	if err != nil {
		return nil, err
	}
	wall := time.Now()
	err = j.walk(ctx, j.report.From, until, handle)
	stop()
	if err == nil && j.wet() { // an unreadable row cannot move, so later walks must reach its date
		err = j.e.LowerWatermarks(ctx, j.unread, j.unread)
	}
	j.report.Elapsed = time.Since(wall)
	if err == nil && j.failed > 0 {
		const left = "%d subscriptions failed, and the next run tries them again: %w"
		err = fmt.Errorf(left, j.failed, errors.Join(j.errs...))
	}
	if !j.wet() {
		return &j.report, err
	}
	return &j.report, errors.Join(err, j.record(context.WithoutCancel(ctx), err))
}

func (j *job) progress() {
	n := j.done.Add(1)
	if j.options.Progress != nil {
		j.options.Progress(n)
	}
}

// fail records the error of a failed row. It stops the run only if the error affects every row.
func (j *job) fail(err error, stop context.CancelCauseFunc) {
	if _, ok := errors.AsType[*charging.StopError](err); ok || errors.Is(err, store.ErrClosed) {
		stop(err)
		return
	}
	const shown = 5
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed++; j.failed <= shown {
		j.errs = append(j.errs, err)
	}
}

// unreadable counts and logs a due row that another tool has made unreadable. The run continues
// with the other rows.
func (j *job) unreadable(r row, err error) {
	reason := billing.UnreadableReason(err)
	j.e.Log.Warn("a due subscription cannot be read", "subscription", r.Name, "reason", reason)
	j.add(engine.Result{Name: r.Name, SKU: r.SKU, Outcome: engine.OutcomeUnreadable, Reason: reason})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unread = civil.Earlier(j.unread, r.date)
}

// add counts each result only once, because the run can meet a period again on its own day if the
// period is still in the index.
func (j *job) add(r engine.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case r.Outcome == engine.OutcomePending, r.Outcome == engine.OutcomeParked, r.Outcome == engine.OutcomeUnreadable, j.report.Off:
		if slices.Contains(j.left[r.Name], r.Period) {
			return
		}
		j.left[r.Name] = append(j.left[r.Name], r.Period)
	case r.Outcome == engine.OutcomeFailed: // the next run collects the period if there is a new method
		j.left[r.Name] = append(j.left[r.Name], r.Period)
	case r.Outcome == engine.OutcomeRetry:
		j.tried[r.Name] = r.Period
	}
	if r.New && (r.Outcome == engine.OutcomePending || r.Outcome == engine.OutcomePaid && r.Reason != "") {
		j.report.Waits++ // a period that was paid twice waits for a person
	}
	if r.Outcome == engine.OutcomeSkipped || r.Outcome == engine.OutcomePending { // perhaps on a request since this run tried it
		if period, tried := j.tried[r.Name]; tried && period == r.Period {
			return
		}
	}
	if j.report.Counts[r.Outcome]++; r.First {
		j.report.Declined++
	}
	if r.Customer {
		j.report.Awaited++
	}
	if r.Outcome != engine.OutcomePaid && j.report.Kind == billing.Payments && j.wet() && j.listed < unpaidMost {
		if p := unpaidOf(r); len(p.Place()) <= longest {
			j.unpaid[p.Place()] = p
			j.listed++
		}
	}
	j.addAmount(r)
	if j.options.Each != nil {
		j.options.Each(r)
	}
}

// addAmount adds the result's amount to the sums of its outcome. An unreadable row has none.
func (j *job) addAmount(r engine.Result) {
	var err error
	unpaid := func(o engine.Outcome) {
		sum := j.report.Unpaid[o]
		err = errors.Join(err, sum.Add(r.Amount))
		j.report.Unpaid[o] = sum
	}
	if r.Outcome == engine.OutcomePaid || (j.report.DryRun && r.Outcome == engine.OutcomeSkipped) {
		err = j.report.Amounts.Add(r.Amount)
	}
	if r.Outcome != engine.OutcomePaid && r.Outcome != engine.OutcomeUnreadable && j.report.Kind == billing.Payments {
		unpaid(r.Outcome)
	}
	if r.Customer {
		unpaid(billing.AwaitsCustomer)
	}
	if err != nil {
		j.e.Log.Warn("the run met more than an amount can hold, so a sum in its report is incomplete", "subscription", r.Name,
			"amount", r.Amount.String(), "error", err)
	}
}

// isLeft reports whether this run left the subscription for the next run. The walk may meet such a
// subscription again.
func (j *job) isLeft(n billing.Name) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.left[n]) > 0
}

// span sets the oldest date to walk, from WalkFrom, and returns the latest date that has begun in
// any time zone.
func (j *job) span(ctx context.Context) (until civil.Date, err error) {
	e := j.e
	today := e.Today()
	if until = j.options.Date; until.IsZero() {
		until = j.report.Date.AddDays(1) // the time zones beyond the date line are a day ahead
	}
	if j.report.Date.Before(today) && !j.options.DryRun {
		// A payment run writes rows to the dates of both jobs.
		if err := e.LowerWatermarks(ctx, j.report.Date, j.report.Date); err != nil {
			return until, err
		}
	}
	j.report.From, j.watermark, err = e.WalkFrom(ctx, j.report.Kind, j.report.Date)
	return until, err
}

// emptied reports whether no row is left on the dates that the run walked only because of the low
// watermark.
func (j *job) emptied(ctx context.Context) bool {
	for d := j.watermark.Date; d.Before(j.report.Date.AddDays(-billing.LookBack)); d = d.AddDays(1) {
		for range j.e.Indexed(ctx, j.index, d) {
			return false // a row or an error
		}
	}
	return true
}
