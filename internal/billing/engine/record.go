package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// recordEvery is how often a run under way writes its record.
const recordEvery = 2 * time.Second

// newJob returns a run that has not begun, with the settings as they are now.
func (e *Engine) newJob(ctx context.Context, kind billing.Kind, index string, o RunOptions) (*job, error) {
	e, err := e.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	j := &job{e: e, index: index, options: o, left: make(map[billing.Name][]int)}
	r := &j.report
	r.Kind, r.Started, r.Process, r.DryRun = kind, e.Now(), ThisProcess(), o.DryRun
	r.Date, r.Counts, r.Settings = cmp.Or(o.Date, civil.Of(r.Started)), make(map[Outcome]int), e.settingsNote()
	r.ID = r.Date.String() + "#" + billing.Stamp(r.Started) + "-" + rand.Text()[:6]
	e.Records = new(*e.Records)
	e.Log = e.Log.With("run", r.ID)
	return j, nil
}

// begin claims the job, and looks at the charging switch from now on, or returns a BusyError.
func (j *job) begin(ctx context.Context) (end func(), err error) {
	j.claim = claim{store: j.e.claims, kind: j.report.Kind, by: j.report.ID + " " + j.report.Process}
	if err := j.claim.hold(ctx); err != nil {
		return nil, err
	}
	stop := func() {}
	if j.report.Kind == billing.Payments {
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
	write := func() error { return j.e.Store.Commit(always, j.now()) }
	if err := write(); err != nil && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrThrottled) {
		return nil, fmt.Errorf("recording the run: %w", err)
	}
	return j.e.every(recordEvery, func() { _ = write() }), nil // after an error the next one tells more
}

// now returns the write of the run's record as it stands.
func (j *job) now() store.Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.report.Rows, j.report.Seen = int(j.done.Load()), j.e.Now()
	return j.report.Write(j.e.Table)
}

// record writes the run's end, and raises the low watermark if no row is left before the look-back. A
// day later than the clock's today is never recorded as completed.
func (j *job) record(ctx context.Context, failed error) error {
	e, r := j.e, &j.report
	r.Ended = e.Now()
	r.Completed = failed == nil && !r.Date.After(civil.Of(r.Ended))
	switch r.Off = errors.Is(failed, ErrChargingOff); {
	case errors.Is(failed, context.Canceled):
		r.Reason = "interrupted"
	case failed != nil:
		r.Reason = secret.MaskCards(failed.Error())
	}
	end := append(e.RunEnd(ctx, &r.Run), j.now())
	if err := e.Store.Commit(ctx, end...); err != nil && !errors.Is(err, store.ErrUnknown) {
		return fmt.Errorf("recording the run: %w", err)
	}
	if r.Completed && j.watermark != nil && r.Date == civil.Of(r.Started) && j.emptied(ctx) {
		return e.RaiseWatermark(ctx, r.Kind, j.watermark, r.Started)
	}
	return nil
}

// A RunState is how a recorded run stands.
type RunState string

// The states of runs.
const (
	RunRunning   RunState = "running"
	RunCompleted RunState = "completed"  // every row was dealt with, or waits for somebody
	RunEnded     RunState = "ended"      // it has ended, and left rows for the next run
	RunBrokenOff RunState = "broken off" // its process is gone, or has not written for silentRun
)

const (
	followEvery = 500 * time.Millisecond
	// silentRun is when a silent run counts as broken off if nobody knows which runs are under way.
	silentRun = 30 * time.Second
)

// FindRun returns the run of the id (kind "": of either), or ErrNotFound: a new one has no record.
func (e *Engine) FindRun(ctx context.Context, kind billing.Kind, id string) (*Report, error) {
	for _, k := range kinds(kind) {
		busy, known, err := e.Busy(ctx, k) // first: a run records its end, and then gives its claim back
		if err != nil {
			return nil, err
		}
		r, err := e.Run(ctx, k, id)
		switch {
		case err == nil:
			return e.reportOf(r, busy, known), nil
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		case busy != nil && busy.ID == id:
			now := e.Now()
			r = &billing.Run{Kind: k, ID: id, Date: busy.Date(), Process: busy.Process, Started: now, Seen: now}
			return e.reportOf(r, busy, known), nil
		}
	}
	return nil, store.ErrNotFound
}

// LatestRunsOf returns that many runs at most, the latest begun first: those of the latest business
// days, and those under way. An empty kind is both.
func (e *Engine) LatestRunsOf(ctx context.Context, kind billing.Kind, limit int) ([]*Report, error) {
	var all []*Report
	for _, k := range kinds(kind) {
		busy, known, err := e.Busy(ctx, k)
		if err != nil {
			return nil, err
		}
		for r, err := range e.Runs(ctx, k, limit) {
			if err != nil {
				return nil, err
			}
			all = append(all, e.reportOf(r, busy, known))
		}
		if busy != nil && !slices.ContainsFunc(all, func(r *Report) bool { return r.ID == busy.ID }) {
			if r, err := e.FindRun(ctx, k, busy.ID); err == nil { // else it has ended meanwhile
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Report) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(limit, len(all))], nil
}

func kinds(kind billing.Kind) []billing.Kind {
	if kind == "" {
		return []billing.Kind{billing.Payments, billing.Reminders}
	}
	return []billing.Kind{kind}
}

// reportOf returns the report of a recorded run, with its state.
func (e *Engine) reportOf(r *billing.Run, busy *BusyError, known bool) *Report {
	report := &Report{Run: *r, State: RunBrokenOff, Elapsed: cmp.Or(r.Ended, r.Seen).Sub(r.Started)}
	switch {
	case busy != nil && busy.ID == r.ID: // it may be ended, with its maintenance under way
		report.State = RunRunning
	case r.Completed:
		report.State = RunCompleted
	case !r.Ended.IsZero():
		report.State = RunEnded
	case !known && e.Now().Sub(r.Seen) < silentRun:
		report.State = RunRunning
	}
	return report
}

// Follow calls each with the run now and then until it is no longer running, and returns it then.
// It returns store.ErrNotFound if the run has ended without a record.
func (e *Engine) Follow(ctx context.Context, kind billing.Kind, id string, each func(*Report)) (*Report, error) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		r, err := e.FindRun(ctx, kind, id)
		if err != nil || r.State != RunRunning {
			return r, err
		}
		each(r)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
