// Package day schedules the two daily jobs, runs them when they are due, and notifies a monitor after
// each finished day.
//
// Only the records of runs decide what is due: a job is due if a scheduled instant has passed since
// its last completed run began, or if no run has completed. Restarts, changes of the schedule, and
// runs by another process therefore need no special rules.
//
// The package does not know what a job does, and does not know the store.
package day

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/schedule"
)

// ErrElsewhere means that another process is running this job. An error that wraps it names that
// run.
var ErrElsewhere = errors.New("another process runs this job")

// Jobs are the two daily jobs of one store.
type Jobs interface {
	// Times returns when they are to run, as the settings are now.
	Times(ctx context.Context) (schedule.Times, error)
	// Last returns the last completed run of the kind; the zero Run if there is none, or with an error.
	Last(ctx context.Context, kind billing.Kind) (*billing.Run, error)
	// Charging returns whether charging is on, and if not, the reason.
	Charging(ctx context.Context) (on bool, reason string, err error)
	// Run runs the job to its end, or until ctx ends. It returns ErrElsewhere at once if another
	// process runs it, and any other error of a run that has not completed.
	Run(ctx context.Context, kind billing.Kind) error
	// Mails returns how many mails have not been handed over.
	Mails(ctx context.Context) (int, error)
}

// Options configure a Day. All fields are required unless their comments say otherwise.
type Options struct {
	Jobs  Jobs
	Clock *clock.Clock
	Log   *slog.Logger
	Every time.Duration // from one look at the settings and the records to the next; 0: 30 seconds
	// Finished tells a monitor of a finished day, and the last run's record of that; nil: nobody.
	Finished func(context.Context) error
}

const (
	lookEvery = 30 * time.Second // at the settings and the records
	lookSoon  = 5 * time.Second  // while something else has to end
	maxTold   = 5                // attempts to tell of a finished day
	toldEvery = time.Minute      // from one attempt to the next

	longElsewhere = time.Hour // that a job may be overdue because another process runs it
)

// backoff is the wait after a failed run; the last one is repeated until the next scheduled instant.
func backoff(tries int) time.Duration {
	waits := [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
	return waits[min(tries, len(waits))-1]
}

// A Day runs both jobs, one at a time, reminders before payments.
type Day struct {
	o     Options
	times schedule.Times
	jobs  [2]*job
	said  string    // the last problem that was logged; "": none since
	given time.Time // the last scheduled instant of the day whose telling was given up
	tries int       // failed attempts to tell of one day
	tell  time.Time // the next attempt
}

// A job is the state of one job.
type job struct {
	kind  billing.Kind
	last  *billing.Run // the last completed one
	tries int          // failed runs since
	retry time.Time    // the earliest next run after a failed one
	said  string       // the last problem that was logged
}

// New returns a Day that has not started yet.
func New(o Options) *Day {
	o.Every = cmp.Or(o.Every, lookEvery)
	return &Day{o: o, jobs: [2]*job{{kind: billing.Reminders}, {kind: billing.Payments}}}
}

// Run runs each job when it is due, until ctx ends. A failed run is logged and retried, after 1, 5
// and then every 15 minutes, and at the next scheduled instant.
func (d *Day) Run(ctx context.Context) error {
	for {
		wait := d.turn(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-d.o.Clock.After(wait):
		}
	}
}

// turn does what is due and returns how long to wait.
func (d *Day) turn(ctx context.Context) time.Duration {
	var err error
	if d.times, err = d.o.Jobs.Times(ctx); err != nil {
		d.problem(ctx, &d.said, "cannot read the times of the daily jobs; no job runs until they are readable", err)
		return d.o.Every
	}
	d.said = ""
	if d.times.None() {
		return d.o.Every
	}
	first, second := d.do(ctx, d.jobs[0]), d.do(ctx, d.jobs[1])
	return min(first, second, d.finished(ctx), d.o.Every)
}

// do runs the job if it is due, and returns how long to wait.
func (d *Day) do(ctx context.Context, j *job) (again time.Duration) {
	now := d.o.Clock.Now()
	var err error
	if j.last, err = d.o.Jobs.Last(ctx, j.kind); err != nil {
		d.problem(ctx, &j.said, "the records of "+string(j.kind)+" cannot be read", err)
		return d.o.Every
	}
	next := d.times.Next(now)
	if !j.last.Started.IsZero() && d.times.Next(j.last.Started).After(now) {
		j.tries, j.retry = 0, time.Time{}
		return next.Sub(now)
	}
	if j.retry.After(now) {
		return j.retry.Sub(now)
	}
	if j.kind == billing.Payments {
		if on, reason, err := d.o.Jobs.Charging(ctx); err == nil && !on {
			off := fmt.Errorf("charging is off: %s", reason)
			d.problem(ctx, &j.said, "payments wait until duesday charging on", off)
			return d.o.Every
		}
	}
	err = d.run(ctx, j)
	switch {
	case err == nil:
		j.said = ""
		return 0 // the next instant may have passed meanwhile
	case errors.Is(err, ErrElsewhere):
		due := d.times.Last(now)
		if !j.last.Started.IsZero() {
			due = d.times.Next(j.last.Started)
		}
		if now.Sub(due) > longElsewhere {
			d.problem(ctx, &j.said, "a run of "+string(j.kind)+" is long overdue, because another process has not ended its run", err)
		}
		return lookSoon
	}
	now = d.o.Clock.Now()
	j.tries++
	j.retry = now.Add(backoff(j.tries))
	if next = d.times.Next(now); next.Before(j.retry) {
		j.retry = next
	}
	d.problem(ctx, &j.said, "a run of "+string(j.kind)+" failed; the server tries again", err)
	return j.retry.Sub(now)
}

// run runs the job. It turns a panic into an error: the other job goes on.
func (d *Day) run(ctx context.Context, j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.o.Log.Error("a run of "+string(j.kind)+" panicked", "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := d.o.Jobs.Run(ctx, j.kind); err != nil {
		return err
	}
	before := j.last
	if j.last, err = d.o.Jobs.Last(ctx, j.kind); err == nil && !j.last.Started.After(before.Started) {
		err = errors.New("its end was not recorded")
	}
	return err
}

// problem logs a problem, once for as long as it stays the same.
func (d *Day) problem(ctx context.Context, said *string, what string, err error) {
	if ctx.Err() != nil || *said == what+err.Error() {
		return
	}
	*said = what + err.Error()
	d.o.Log.Error(what, "error", err)
}

// finished tells of a day once both jobs have completed after its last scheduled instant, and all
// mail is handed over. It returns how long to wait.
func (d *Day) finished(ctx context.Context) time.Duration {
	now := d.o.Clock.Now()
	last := d.times.Last(now)
	reminders, payments := d.jobs[0].last, d.jobs[1].last
	if d.o.Finished == nil || !payments.Told.IsZero() || !last.After(d.given) || !d.times.LastOfDay(last) ||
		reminders.Started.Before(last) || payments.Started.Before(last) {
		return d.o.Every
	}
	if d.tell.After(now) {
		return d.tell.Sub(now)
	}
	if n, err := d.o.Jobs.Mails(ctx); err != nil || n > 0 {
		return lookSoon
	}
	err := d.o.Finished(ctx)
	if err == nil || ctx.Err() != nil {
		d.tries, d.tell = 0, time.Time{}
		return d.o.Every
	}
	d.tries, d.tell = d.tries+1, now.Add(toldEvery)
	d.o.Log.Error("the server could not send the heartbeat for a finished day", "error", err, "attempt", d.tries, "attempts", maxTold)
	if d.tries == maxTold {
		d.given, d.tries, d.tell = last, 0, time.Time{}
	}
	return toldEvery
}
