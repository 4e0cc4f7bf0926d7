// Package job runs the two daily jobs over a store, payments and reminders: the walk over the due rows, shared
// among processes, the record of the run, its report, and the maintenance beside charging. Package engine
// decides about each row.
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
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Options configure a run.
type Options struct {
	Date     civil.Date // business day for every account; zero: each account's own today
	Workers  int        // at least 1
	DryRun   bool       // decide and report, but open and write nothing
	Progress func(done int64)
	Each     func(engine.Result) // called for every result, one at a time; may be nil
}

// A Report is a run, as it is recorded or under way, and its work beside charging.
type Report struct {
	billing.Run
	State   State // of a recorded run
	Elapsed time.Duration
	DryRun  bool

	Cards     int              // card updates
	KeepOwn   []billing.Name   // subscriptions of their accounts that keep a method of their own
	Reversals int              // refunds and disputes recorded or changed
	Orphans   int              // cancelled unbound payment intents
	Missed    []error          // failed maintenance, left for the next run
	Doubts    []*billing.Doubt // periods perhaps paid twice, until a person has answered
}

// NeedsPerson reports whether the run leaves something that is new or can be acted on: a period
// that has failed, is parked or unreadable, or waits since the last run ended. A wait from
// before that, which only the customer or the processor can end, does not count.
func (r *Report) NeedsPerson() bool {
	return r.Off || len(r.Doubts)+r.Waits+r.Counts[engine.OutcomeFailed]+r.Counts[engine.OutcomeParked]+r.Counts[engine.OutcomeUnreadable] > 0
}

// Err returns the error with which a recorded run ended: charging.ErrOff if that was the reason.
func (r *Report) Err() error {
	switch {
	case r.Off:
		return charging.ErrOff
	case r.Reason != "":
		return fmt.Errorf("run %s ended: %s", r.ID, r.Reason)
	}
	return nil
}

// job is one run under way.
type job struct {
	e         *engine.Engine
	index     string
	options   Options
	claim     *worker.Claim      // nil: a dry run
	charging  *charging.Switch   // nil: reminders, or nothing is charged
	watermark *billing.Watermark // before the walk
	told      time.Time          // end of the last payment run that has ended, as it was recorded
	previous  time.Time          // end of the run before; set if maintenance needs it
	refused   map[string]bool    // connected accounts not asked by the rollback check
	done      atomic.Int64       // rows

	mu     sync.Mutex
	report Report                 // its counts and amounts are guarded by mu
	left   map[billing.Name][]int // periods left for the next run, and counted; guarded by mu
	unread civil.Date             // the oldest date with an unreadable row; guarded by mu
	errs   []error                // guarded by mu, the first few
	failed int                    // guarded by mu
}

// Payments is the daily payment job: it charges every period due up to the day, and brings every
// open period forward. It may run at any time, any number of times. It returns a BusyError beside
// another run on a store whose processes can claim names. If charging is switched off meanwhile, it
// begins no further request within a second, and returns charging.ErrOff with its report.
func Payments(ctx context.Context, e *engine.Engine, o Options) (*Report, error) {
	j, err := newJob(ctx, e, billing.Payments, schema.PaymentIndex, o)
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
	return report, errors.Join(err, j.after(ctx)) // failed rows do not stop maintenance
}

// ErrUnreconciled means that the replaced store may already have sent the reminders.
var ErrUnreconciled = fmt.Errorf("a restored store sends no reminder until duesday reconcile has run: %w", billing.ErrState)

// Reminders is the daily reminder job. It returns a BusyError as Payments does.
func Reminders(ctx context.Context, e *engine.Engine, o Options) (*Report, error) {
	j, err := newJob(ctx, e, billing.Reminders, schema.ReminderIndex, o)
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

// run walks the index, and calls handle for each row.
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
	if err == nil && j.wet() { // an unreadable row cannot be moved to the run's day; later walks find it as it is
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

// fail notes a failed row. The others go on, unless the error concerns all of them.
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

// unreadable counts and names a due row that another tool has made unreadable. The others go on.
func (j *job) unreadable(r row, err error) {
	reason := billing.UnreadableReason(err)
	j.e.Log.Warn("a due subscription cannot be read", "subscription", r.Name, "reason", reason)
	j.add(engine.Result{Name: r.Name, SKU: r.SKU, Outcome: engine.OutcomeUnreadable, Reason: reason})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unread = civil.Earlier(j.unread, r.date)
}

// add counts a result, once: a period left in the index may be met again on the run's day.
func (j *job) add(r engine.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case r.Outcome == engine.OutcomePending, r.Outcome == engine.OutcomeParked, r.Outcome == engine.OutcomeUnreadable, j.report.Off:
		if slices.Contains(j.left[r.Name], r.Period) {
			return
		}
		j.left[r.Name] = append(j.left[r.Name], r.Period)
	case r.Outcome == engine.OutcomeFailed: // with a new method it is collected by the next run
		j.left[r.Name] = append(j.left[r.Name], r.Period)
	}
	if j.report.Counts[r.Outcome]++; r.First {
		j.report.Declined++
	}
	if r.New && (r.Outcome == engine.OutcomePending || r.Outcome == engine.OutcomePaid && r.Reason != "") {
		j.report.Waits++ // one that was paid twice waits for a person
	}
	if r.Outcome == engine.OutcomePaid || (j.report.DryRun && r.Outcome == engine.OutcomeSkipped) {
		if err := j.report.Amounts.Add(r.Amount); err != nil {
			j.e.Log.Warn("the run collected more than an amount can hold, so the sum in its report is incomplete", "subscription", r.Name,
				"amount", r.Amount.String(), "error", err)
		}
	}
	if j.options.Each != nil {
		j.options.Each(r)
	}
}

// isLeft reports whether this run left the subscription for the next one: it may meet it again.
func (j *job) isLeft(n billing.Name) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.left[n]) > 0
}

// span sets the oldest date to walk, WalkFrom's, and returns the latest one anywhere on earth.
func (j *job) span(ctx context.Context) (until civil.Date, err error) {
	e := j.e
	today := e.Today()
	if until = j.options.Date; until.IsZero() {
		until = j.report.Date.AddDays(1) // the far side of the date line is a day ahead
	}
	if j.report.Date.Before(today) && !j.options.DryRun {
		// A payment run writes both jobs' dates.
		if err := e.LowerWatermarks(ctx, j.report.Date, j.report.Date); err != nil {
			return until, err
		}
	}
	j.report.From, j.watermark, err = e.WalkFrom(ctx, j.report.Kind, j.report.Date)
	return until, err
}

// emptied reports whether no row is left on the dates visited only because of the low watermark.
func (j *job) emptied(ctx context.Context) bool {
	for d := j.watermark.Date; d.Before(j.report.Date.AddDays(-billing.LookBack)); d = d.AddDays(1) {
		for range j.e.Indexed(ctx, j.index, d) {
			return false // a row or an error
		}
	}
	return true
}
