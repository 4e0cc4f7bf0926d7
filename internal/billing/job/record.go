package job

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// recordEvery is the interval at which an active run writes its record.
const recordEvery = 2 * time.Second

// newJob returns a job that has not started yet, with the current settings.
func newJob(ctx context.Context, e *engine.Engine, kind billing.Kind, index string, o Options) (*job, error) {
	e, err := e.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	j := &job{e: e, index: index, options: o, left: make(map[billing.Name][]int), tried: make(map[billing.Name]int),
		unpaid: make(map[string]*Unpaid)}
	r := &j.report
	r.Run, r.DryRun = *NewRun(ctx, e, kind, o.Date), o.DryRun
	r.ID, r.Settings = cmp.Or(o.ID, r.ID), e.SettingsNote()
	e.Records = new(*e.Records)
	e.Log = e.Log.With("run", r.ID)
	return j, nil
}

// NewRun returns the record of a run that the context's call starts in this process now. A zero date means
// the clock's day.
func NewRun(ctx context.Context, e *engine.Engine, kind billing.Kind, date civil.Date) *billing.Run {
	now := e.Now()
	r := &billing.Run{Kind: kind, Date: cmp.Or(date, civil.Of(now)), Process: worker.ThisProcess(), Started: now, Seen: now,
		Counts: make(map[engine.Outcome]int), Unpaid: make(map[engine.Outcome]money.Totals)}
	if c := call.Of(ctx); c != nil {
		r.Actor = c.Actor
	}
	r.ID = r.Date.String() + "#" + billing.Stamp(now) + "-" + rand.Text()[:6]
	return r
}

// begin claims the job and starts to watch the charging switch. It returns a worker.BusyError if
// another run holds the claim.
func (j *job) begin(ctx context.Context) (end func(), err error) {
	j.claim = worker.NewClaim(j.e.Sharing.Claims, &j.report.Run)
	if err := j.claim.Hold(ctx); err != nil {
		return nil, err
	}
	stop := func() {}
	if j.report.Kind == billing.Payments {
		j.charging, stop = j.e.Charging().Watch(j.e.Sharing.Ticker)
	}
	return func() {
		stop()
		j.claim.End()
	}, nil
}

// mayGoOn returns a StopError if the run must not start another row.
func (j *job) mayGoOn(ctx context.Context) error {
	if err := j.claim.Hold(ctx); err != nil {
		return &charging.StopError{Err: err}
	}
	return j.charging.Check(ctx)
}

// wet reports whether the run can change anything. Only such a run is recorded.
func (j *job) wet() bool { return !j.options.DryRun && !j.report.Off }

// keep writes the record now, and then every recordEvery until stop is called.
func (j *job) keep(ctx context.Context) (stop func(), err error) {
	if !j.wet() {
		return func() {}, nil
	}
	always := context.WithoutCancel(ctx) // a write that the caller cancels could still land after the final write
	write := func() error {
		err := j.e.Store.Commit(always, j.now())
		j.list(always)
		return err
	}
	if err := write(); err != nil && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrThrottled) {
		return nil, fmt.Errorf("recording the run: %w", err)
	}
	return j.e.Sharing.Ticker.Every(recordEvery, func() { _ = write() }), nil // the next write replaces one that failed
}

// list records what the run has left unpaid since the last call. What the store may take later, the next call repeats. An
// error is only logged: the counts are right without the list.
func (j *job) list(ctx context.Context) {
	j.mu.Lock()
	some := j.unpaid
	j.unpaid = map[string]*Unpaid{}
	j.mu.Unlock()
	err := recordUnpaid(ctx, j.e.Records, j.report.ID, j.report.Started, some)
	if err != nil {
		j.mu.Lock()
		maps.Copy(some, j.unpaid)
		j.unpaid = some
		j.mu.Unlock()
		j.e.Log.WarnContext(ctx, "the run's list of unpaid periods is incomplete", "run", j.report.ID, "error", err)
	}
}

// now returns the write that stores the run's current record.
func (j *job) now() store.Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.report.Rows, j.report.Seen = int(j.done.Load()), j.e.Now()
	return j.report.Write(j.e.Table)
}

// record writes the run's end. It raises the low watermark if no row is left before the look-back.
// It never records a run as completed if the run's date is after the clock's today.
func (j *job) record(ctx context.Context, failed error) error {
	e, r := j.e, &j.report
	r.Ended = e.Now()
	r.Completed = failed == nil && !r.Date.After(civil.Of(r.Ended))
	switch r.Off = errors.Is(failed, charging.ErrOff); {
	case errors.Is(failed, context.Canceled):
		r.Reason = "interrupted"
	case failed != nil:
		r.Reason = secret.MaskCards(failed.Error())
	}
	j.list(ctx)
	end := append(e.RunEnd(ctx, &r.Run, j.told), j.now())
	if e.RunEnded != nil {
		rows, err := e.RunEnded(ctx, &r.Run)
		if err != nil {
			return fmt.Errorf("recording the run: %w", err)
		}
		end = append(end, rows...)
	}
	if err := e.Store.Commit(ctx, end...); err != nil && !errors.Is(err, store.ErrUnknown) {
		return fmt.Errorf("recording the run: %w", err)
	}
	if r.Completed && j.watermark != nil && r.Date == civil.Of(r.Started) && j.emptied(ctx) {
		return e.RaiseWatermark(ctx, r.Kind, j.watermark, r.Started)
	}
	return nil
}
