package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// RunOptions are what a run may be told.
type RunOptions struct {
	Date     civil.Date // business day for every account; zero: each account's own today
	Workers  int        // at least 1
	DryRun   bool       // decide, but open and write nothing
	Progress func(done int64)
	Each     func(Result) // called for every result, one at a time; may be nil
}

// A Report says what a run did, counted per subscription and period.
type Report struct {
	Kind    billing.Kind
	Date    civil.Date
	From    civil.Date // the oldest date that was looked at
	Counts  map[Outcome]int
	Sent    int // reminders
	Amounts money.Totals
	Elapsed time.Duration
	DryRun  bool
	Off     bool // charging is off: nothing was charged

	Cards     int     // that customers gave by links, and are used from now on
	Reversals int     // refunds and disputes that were recorded, or have changed
	Orphans   int     // payment intents that nothing was bound to, and are cancelled now
	Missed    []error // what a payment run does beside charging, and could not: the next one does it
}

// Due is the number of periods that were due; it equals the sum of all outcomes.
func (r *Report) Due() int {
	n := r.Sent
	for _, c := range r.Counts {
		n += c
	}
	return n
}

// NeedsPerson reports whether something waits for a person or a customer.
func (r *Report) NeedsPerson() bool {
	return r.Off || r.Counts[OutcomePending] > 0 || r.Counts[OutcomeParked] > 0
}

// WalkDates is how many dates a daily job looks at: the last completed one, those before it
// that a late row may be on, and the day ahead that has begun somewhere.
const WalkDates = billing.LookBack + 2

// job is one run under way.
type job struct {
	e         *Engine
	kind      billing.Kind
	options   RunOptions
	started   time.Time
	watermark *billing.Watermark // as the walk found it
	previous  time.Time          // when the run before ended; set where upkeep needs it
	refused   map[string]bool    // connected accounts that the gate could not ask

	mu      sync.Mutex
	report  Report                // guarded by mu
	waiting map[waiting]int       // counted already, and still in the index; guarded by mu
	left    map[billing.Name]bool // left for the next run, pending or parked; guarded by mu
	errs    []error               // guarded by mu, the first few
	failed  int                   // guarded by mu
	done    int64                 // guarded by mu
}

type waiting struct {
	billing.Name
	period int
}

// RunPayments is the daily payment job: it charges what is due up to the day, and brings
// every open period forward. It may be run at any time, any number of times.
func (e *Engine) RunPayments(ctx context.Context, o RunOptions) (*Report, error) {
	meta, err := e.Meta(ctx)
	if err != nil {
		return nil, err
	}
	handle := func(ctx context.Context, j *job, n billing.Name) error {
		if j.waits(n) {
			return nil
		}
		return e.collect(ctx, n, work{day: o.Date, refused: j.refused}, j.add)
	}
	j := &job{e: e, kind: billing.Payments, options: o}
	j.report.Off, j.report.DryRun = !meta.Charging, o.DryRun
	if o.DryRun || !meta.Charging {
		return j.run(ctx, schema.PaymentIndex, func(ctx context.Context, j *job, n billing.Name) error { return e.dryRun(ctx, n, o.Date, j.add) })
	}
	if j.refused, err = e.checkRollback(ctx); err != nil {
		return nil, err
	}
	if err := j.before(ctx); err != nil {
		return nil, err
	}
	report, err := j.run(ctx, schema.PaymentIndex, handle)
	if _, stopped := errors.AsType[*StopError](err); stopped || report == nil || ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
		return report, err
	}
	return report, errors.Join(err, j.after(ctx)) // rows that could not be dealt with stop nobody else
}

// RunReminders is the daily reminder job.
func (e *Engine) RunReminders(ctx context.Context, o RunOptions) (*Report, error) {
	j := &job{e: e, kind: billing.Reminders, options: o}
	j.report.DryRun = o.DryRun
	return j.run(ctx, schema.ReminderIndex, func(ctx context.Context, j *job, n billing.Name) error {
		return e.remind(ctx, n, o.Date, o.DryRun, j.add)
	})
}

func (j *job) run(ctx context.Context, index string, handle func(context.Context, *job, billing.Name) error) (*Report, error) {
	j.started = j.e.Now()
	j.waiting, j.left = make(map[waiting]int), make(map[billing.Name]bool)
	j.report.Kind, j.report.Counts = j.kind, make(map[Outcome]int)
	from, until, err := j.span(ctx)
	if err != nil {
		return nil, err
	}
	wall := time.Now()
	err = j.walk(ctx, index, from, until, handle)
	j.report.Elapsed = time.Since(wall)
	if err == nil && j.failed > 0 {
		err = fmt.Errorf("%d subscriptions could not be dealt with and are left for the next run: %w", j.failed, errors.Join(j.errs...))
	}
	if j.options.DryRun || j.report.Off {
		return &j.report, err
	}
	return &j.report, errors.Join(err, j.record(context.WithoutCancel(ctx), err == nil))
}

func (j *job) progress() {
	if j.options.Progress == nil {
		return
	}
	j.mu.Lock()
	j.done++
	done := j.done
	j.mu.Unlock()
	j.options.Progress(done)
}

// fail notes a row that could not be dealt with; the others go on, unless the error is
// everybody's.
func (j *job) fail(err error, stop context.CancelCauseFunc) {
	if _, ok := errors.AsType[*StopError](err); ok || errors.Is(err, store.ErrClosed) {
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

// add counts a result. A period that stays in the index is met again when its row has
// been moved to the run's day, and is counted once.
func (j *job) add(r Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Outcome == OutcomePending || r.Outcome == OutcomeParked || j.report.Off {
		j.left[r.Name] = true
		w := waiting{r.Name, r.Period}
		if j.waiting[w]++; j.waiting[w] > 1 {
			return
		}
	}
	if r.Outcome == outcomeSent {
		j.report.Sent++
	} else {
		j.report.Counts[r.Outcome]++
	}
	if r.Outcome == OutcomePaid || (j.report.DryRun && r.Outcome == OutcomeSkipped) {
		if err := j.report.Amounts.Add(r.Amount); err != nil {
			j.errs, j.failed = append(j.errs, err), j.failed+1
		}
	}
	if j.options.Each != nil {
		j.options.Each(r)
	}
}

// waits reports whether this run has left the subscription for the next one. Its row, moved
// to the run's day, may be met again: a period is counted once, under one outcome.
func (j *job) waits(n billing.Name) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.left[n]
}

// span returns the dates to walk: from the oldest of the last completed day (before there is
// one, the day on which the store was made) less lookBack, today less lookBack, and the
// floor; to the latest day it is anywhere.
func (j *job) span(ctx context.Context) (from, until civil.Date, err error) {
	e := j.e
	today := e.Today()
	until = j.options.Date
	if j.report.Date = until; until.IsZero() {
		j.report.Date = today
		until = today.AddDays(1) // the far side of the date line is a day ahead
	}
	if past := j.report.Date.Before(today); past && !j.options.DryRun { // payments write both jobs' dates
		if err := errors.Join(e.LowerWatermark(ctx, billing.Payments, j.report.Date), e.LowerWatermark(ctx, billing.Reminders, j.report.Date)); err != nil {
			return from, until, err
		}
	}
	j.report.From, j.watermark, err = e.WalkFrom(ctx, j.kind, j.report.Date)
	return j.report.From, until, err
}

// record writes the run, and lifts the floor when this run has emptied everything older.
// A day later than the clock's today is never recorded as completed.
func (j *job) record(ctx context.Context, ok bool) error {
	e, r := j.e, &j.report
	ended := e.Now()
	complete := ok && !r.Date.After(civil.Of(ended))
	var counts store.Item
	for outcome, n := range r.Counts {
		counts.Set(string(outcome), store.Int(int64(n)))
	}
	if r.Sent > 0 {
		counts.Set(string(outcomeSent), store.Int(int64(r.Sent)))
	}
	counts.Set("due", store.Int(int64(r.Due())))
	it := store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(billing.RunPK(j.kind))},
		store.Attribute{Name: schema.SK, Value: store.S(r.Date.String() + "#" + billing.Stamp(j.started) + "-" + rand.Text()[:6])},
		store.Attribute{Name: schema.RunDate, Value: store.S(r.Date.String())},
		store.Attribute{Name: schema.FromDate, Value: store.S(r.From.String())},
		store.Attribute{Name: schema.StartedDate, Value: store.S(billing.Stamp(j.started))},
		store.Attribute{Name: schema.EndedDate, Value: store.S(billing.Stamp(ended))},
		store.Attribute{Name: schema.Completed, Value: store.Bool(complete)},
		store.Attribute{Name: schema.Counts, Value: store.M(counts)})
	if err := e.Store.Commit(ctx, store.Put(e.Table, it)); err != nil && !errors.Is(err, store.ErrUnknown) {
		return fmt.Errorf("recording the run: %w", err)
	}
	if complete && j.watermark != nil && r.Date == civil.Of(j.started) && j.emptied(ctx) {
		return e.RaiseWatermark(ctx, j.kind, j.watermark, j.started)
	}
	return nil
}

// emptied reports whether no row is left on the dates that only the floor makes walks look
// at.
func (j *job) emptied(ctx context.Context) bool {
	index := schema.PaymentIndex
	if j.kind == billing.Reminders {
		index = schema.ReminderIndex
	}
	for d := j.watermark.Date; d.Before(j.report.Date.AddDays(-billing.LookBack)); d = d.AddDays(1) {
		for range j.e.Indexed(ctx, index, d) {
			return false // a row, or an error: either way not known to be empty
		}
	}
	return true
}

// Outcomes lists the outcomes of a payment run in the order they are shown.
func Outcomes() []Outcome {
	return slices.Clone([]Outcome{OutcomePaid, OutcomeRetry, OutcomeFailed, OutcomePending, OutcomeParked, OutcomeSkipped})
}
