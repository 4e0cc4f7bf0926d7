package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/command/runs"
	"github.com/duesday/duesday/internal/day"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schedule"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/view"
)

const serveWorkers = 16 // the default of duesday run

// announceDay prints when the jobs run and which clock they use, and returns the same as JSON
// members.
func (p *program) announceDay(ctx context.Context, s *session.Session, c *clock.Clock) (view.Object, error) {
	now, err := settings.Read(ctx, s.Engine.Records)
	if err != nil {
		return nil, err
	}
	at, err := schedule.Parse(now.Daily, now.TimeZone)
	if err != nil {
		return nil, err
	}
	if c.Test() {
		p.Warn("test clock: serve and every command on this folder run at %s; it is %s there, and %s on this machine", c,
			view.Stamp(c.Now()), view.Stamp(p.Machine()()))
	}
	if at.None() {
		p.Warn("neither job will run here, so no one is reminded or charged; set the times of day with %s", p.Hint("settings set daily=06:10 time-zone=ZONE"))
		return view.Object{"clock?", c.String()}, nil
	}
	p.WarnOfPages()
	p.WarnOfClock(ctx, s)
	next := at.Next(c.Now())
	p.Say("both jobs run daily at %s in %s, next at %s", strings.Join(now.Daily, " and "), now.TimeZone, view.Stamp(next))
	return view.Object{"daily", now.Daily, "time_zone", now.TimeZone, "next", next, "clock?", c.String()}, nil
}

// A daily runs both jobs and, beside them, the pass that follows the payment run.
type daily struct {
	*day.Day
	jobs  *dailyJobs
	clock *clock.Clock
}

// lookAgain is the time from one look whether a pass is due to the next.
const lookAgain = time.Hour

// Run runs until ctx ends. The heartbeat of a finished day does not wait for the pass.
func (d *daily) Run(ctx context.Context) error {
	var pass sync.WaitGroup
	defer pass.Wait()
	pass.Go(func() {
		for ctx.Err() == nil {
			d.jobs.s.Outlook(ctx, false)
			select {
			case <-ctx.Done():
			case <-d.jobs.paid:
			case <-d.clock.After(lookAgain):
			}
		}
	})
	return d.Day.Run(ctx)
}

// day returns the schedule of the daily jobs.
func (p *program) day(s *session.Session, o *serveFlags, c *clock.Clock, jobs *dailyJobs) *daily {
	options := day.Options{Jobs: jobs, Clock: c, Log: s.Log}
	if s.Shared {
		options.Every = sharedDay
	}
	if o.beat != nil {
		options.Finished = func(ctx context.Context) error {
			if err := o.beat(ctx); err != nil {
				return err
			}
			return s.Engine.NoteHeartbeat(ctx, jobs.payments)
		}
	}
	return &daily{day.New(options), jobs, c}
}

// dailyJobs implements day.Jobs with the session's two daily jobs.
type dailyJobs struct {
	p        *program
	s        *session.Session
	in       *status.Installation // the installation that this process checks
	payments *billing.Run         // the last payment run
	paid     chan struct{}        // holds an element after a payment run
	out      sync.Mutex           // for writes to the output
}

func (d *dailyJobs) Times(ctx context.Context) (schedule.Times, error) {
	now, err := settings.Read(ctx, d.s.Engine.Records)
	if err != nil {
		return schedule.Times{}, err
	}
	return schedule.Parse(now.Daily, now.TimeZone)
}

func (d *dailyJobs) Last(ctx context.Context, kind billing.Kind) (*billing.Run, error) {
	r, err := d.s.Engine.LastDailyRun(ctx, kind)
	if kind == billing.Payments {
		d.payments = r
	}
	return r, err
}

func (d *dailyJobs) Charging(ctx context.Context) (on bool, reason string, err error) {
	meta, err := d.s.Engine.Meta(ctx)
	return meta.Charging, meta.Reason, err
}

func (d *dailyJobs) Run(ctx context.Context, kind billing.Kind) error {
	return d.run(call.With(ctx, &call.Call{Actor: "schedule"}), kind, job.Options{Workers: serveWorkers})
}

// run runs the job at its daily time or on request, and logs what an operator may need to know.
func (d *dailyJobs) run(ctx context.Context, kind billing.Kind, o job.Options) error {
	run := job.Payments
	if kind == billing.Reminders {
		run = job.Reminders
	}
	named, began := runs.Unsettled{}, civil.Of(d.p.Now().UTC())
	o.Each = func(r engine.Result) {
		if named.Add(r); kind == billing.Payments {
			d.in.Meters.Payment(r)
		}
	}
	r, err := run(ctx, d.s.Engine, o)
	if busy, ok := errors.AsType[*worker.BusyError](err); ok {
		return fmt.Errorf("%w: %w", day.ErrElsewhere, busy)
	}
	if ctx.Err() == nil {
		refused := err
		if r != nil {
			refused = nil // the run's record contains the error
		}
		d.in.Runs.Note(kind, refused, d.p.Now())
	}
	if r == nil {
		return err
	}
	if err == nil && kind == billing.Payments {
		d.s.Forget(ctx)
		select {
		case d.paid <- struct{}{}:
		default:
		}
	}
	for _, missed := range r.Missed {
		d.s.Log.Warn("a part of the "+string(kind)+" run failed; the next run will do it", "error", missed)
	}
	if err == nil && r.Off {
		err = charging.ErrOff
	}
	parts := []string{}
	for _, o := range append(engine.Outcomes(), engine.OutcomeUnreadable, engine.OutcomeSent) {
		if n := r.Counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, view.OutcomeName(o)))
		}
	}
	d.out.Lock()
	defer d.out.Unlock()
	d.p.Say("%s  %s of %s: %d due%s", view.Stamp(d.p.Now()), kind, r.Date, r.Due(),
		screen.Prefixed(": ", strings.Join(parts, ", ")))
	d.p.Out.Flush() // the writer keeps its error, and the command reports it at its end
	if kind == billing.Payments {
		d.logUnsettled(began, named)
	}
	return err
}

// logUnsettled logs the periods that a user may need to know about. These are periods that failed
// or will be tried again, and periods that have been waiting since this run. It logs at most
// runs.ShownWaiting of them.
func (d *dailyJobs) logUnsettled(began civil.Date, u runs.Unsettled) {
	all := slices.DeleteFunc(u.Of(engine.OutcomePaid, engine.OutcomeParked, engine.OutcomePending, engine.OutcomeUnreadable),
		func(r engine.Result) bool { return !r.New })
	all = slices.Concat(u.Of(engine.OutcomeFailed), all, u.Of(engine.OutcomeRetry))
	for _, r := range all[:min(len(all), runs.ShownWaiting)] {
		d.s.Log.Warn("payment: "+string(r.Outcome), "subscription", r.Name.String(), "period", r.Period, "due", view.Date(r.Due),
			"amount", screen.Cell(r.Amount), "reason", r.Reason, "again_on", view.Date(r.Retry))
	}
	if more := len(all) - runs.ShownWaiting; more > 0 {
		d.s.Log.Warn("more payments have failed or are waiting", "number", more,
			"see", d.p.Hint("period list --from "+began.String()))
	}
}

func (d *dailyJobs) Mails(ctx context.Context) (int, error) {
	b, err := d.s.Outbox(nil).Backlog(ctx, 0)
	return b.Due + b.Later, err
}

// drainMail delivers the mail that is due.
func drainMail(ctx context.Context, s *session.Session) (outbox.Report, error) {
	m, err := s.Drain(ctx, new(screen.Progress))
	if m.Reason != "" && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "mail could not be delivered", "first_error", m.Reason)
	}
	return m.Report, err
}
