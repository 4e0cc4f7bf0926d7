package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// recordEvery is how often a run under way writes its record.
const recordEvery = 2 * time.Second

// newJob returns a run that has not begun.
func (e *Engine) newJob(kind billing.Kind, index string, o RunOptions) *job {
	j := &job{e: e, kind: kind, index: index, options: o, started: e.Now(), process: ThisProcess()}
	if j.report.Date = o.Date; o.Date.IsZero() {
		j.report.Date = civil.Of(j.started)
	}
	j.id = j.report.Date.String() + "#" + billing.Stamp(j.started) + "-" + rand.Text()[:6]
	j.e = new(*e)
	j.e.Records = new(*e.Records)
	j.e.Log = e.Log.With("run", j.id)
	j.report.Kind, j.report.Counts, j.report.DryRun = kind, make(map[Outcome]int), o.DryRun
	j.waiting, j.left = make(map[waiting]bool), make(map[billing.Name]bool)
	return j
}

// begin claims the job, and looks at the charging switch from now on. It returns a BusyError beside
// another run.
func (j *job) begin(ctx context.Context) (end func(), err error) {
	j.claim = claim{store: j.e.claims, kind: j.kind, by: j.id + " " + j.process}
	if err := j.claim.hold(ctx); err != nil {
		return nil, err
	}
	stop := func() {}
	if j.kind == billing.Payments {
		j.charging = &chargingSwitch{e: j.e}
		stop = j.e.every(switchAge, func() { j.charging.old.Store(true) })
	}
	return func() {
		stop()
		j.claim.end()
	}, nil
}

// every calls do again and again until stop is called. stop waits for the last call.
func (e *Engine) every(d time.Duration, do func()) (stop func()) {
	tick, end := e.ticker(d), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				do()
			}
		}
	})
	return func() {
		tick.Stop()
		close(end)
		work.Wait()
	}
}

// mayGoOn returns a StopError if the run must not begin another row.
func (j *job) mayGoOn(ctx context.Context) error {
	if err := j.claim.hold(ctx); err != nil {
		return &StopError{err}
	}
	return j.charging.check(ctx)
}

// wet reports whether the run changes anything: only then it is recorded.
func (j *job) wet() bool { return !j.options.DryRun && !j.report.Off }

// keep writes the record now, and every few seconds until stop is called.
func (j *job) keep(ctx context.Context) (stop func(), err error) {
	if !j.wet() {
		return func() {}, nil
	}
	always := context.WithoutCancel(ctx) // a write that is given up could land after the last one
	write := func() error { return j.e.Store.Commit(always, j.now().Write(j.e.Table)) }
	if err := write(); err != nil && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrThrottled) {
		return nil, fmt.Errorf("recording the run: %w", err)
	}
	return j.e.every(recordEvery, func() { _ = write() }), nil // after an error the next one tells more
}

// now returns the record of the run as it stands.
func (j *job) now() *billing.Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &j.report
	counts := map[string]int{"due": r.Due()}
	for outcome, n := range r.Counts {
		counts[string(outcome)] = n
	}
	if r.Sent > 0 {
		counts[string(outcomeSent)] = r.Sent
	}
	run := &billing.Run{Kind: j.kind, ID: j.id, Date: r.Date, From: r.From, Process: j.process, Started: j.started,
		Seen: j.e.Now(), Settings: j.e.settingsNote(), Rows: int(j.done.Load()), Counts: counts}
	for sum := range r.Amounts.All() {
		_ = run.Amounts.Add(sum) // it was added before
	}
	return run
}

// record writes the run's end, and raises the low watermark if no row is left before the look-back. A
// day later than the clock's today is never recorded as completed.
func (j *job) record(ctx context.Context, failed error) error {
	e, r := j.e, j.now()
	r.Ended = r.Seen
	r.Completed = failed == nil && !r.Date.After(civil.Of(r.Ended))
	switch r.Off = errors.Is(failed, ErrChargingOff); {
	case errors.Is(failed, context.Canceled):
		r.Reason = "interrupted"
	case failed != nil:
		r.Reason = secret.MaskCards(failed.Error())
	}
	if err := e.Store.Commit(ctx, r.Write(e.Table)); err != nil && !errors.Is(err, store.ErrUnknown) {
		return fmt.Errorf("recording the run: %w", err)
	}
	if r.Completed && j.watermark != nil && r.Date == civil.Of(j.started) && j.emptied(ctx) {
		return e.RaiseWatermark(ctx, j.kind, j.watermark, j.started)
	}
	return nil
}

// ReportOf returns the balance of a recorded run, and its error. It is
// ErrChargingOff if charging was switched off meanwhile.
func ReportOf(r *billing.Run) (*Report, error) {
	report := &Report{Kind: r.Kind, Date: r.Date, From: r.From, Counts: map[Outcome]int{},
		Sent: r.Counts[string(outcomeSent)], Amounts: r.Amounts, Elapsed: r.Ended.Sub(r.Started), Off: r.Off}
	for name, n := range r.Counts {
		if name != "due" && name != string(outcomeSent) {
			report.Counts[Outcome(name)] = n
		}
	}
	switch {
	case r.Off:
		return report, ErrChargingOff
	case r.Reason != "":
		return report, fmt.Errorf("run %s ended: %s", r.ID, r.Reason)
	}
	return report, nil
}
