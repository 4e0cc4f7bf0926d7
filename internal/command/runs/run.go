// Package runs contains the commands for the two daily jobs (run and due) and for the audits of
// their charges (verify and reconcile).
//
// It does not decide what is due. It does not run the jobs at their daily times, because package
// serving does.
package runs

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// A program is one invocation. Its methods are the commands of this family.
type program struct{ *session.Program }

// Commands returns this family's commands.
func Commands(of *session.Program) []*cobra.Command {
	p := &program{of}
	return []*cobra.Command{
		p.runCommand(), p.dueCommand(), p.verifyCommand(), p.reconcileCommand(),
	}
}

func (p *program) runCommand() *cobra.Command {
	job := func(kind billing.Kind) *cobra.Command {
		var o job.Options
		var lease time.Duration
		var date session.BusinessDay
		c := session.Leaf(string(kind), func(ctx context.Context, _ []string) error {
			o.Date = date.Value
			return p.runJob(ctx, kind, o, lease, &date)
		})
		date.Flags(c.Flags(), "business day for every account (default: today in each account's time zone)")
		c.Flags().IntVar(&o.Workers, "workers", 16, "number of subscriptions to process at the same time")
		c.Flags().DurationVar(&lease, "lease", engine.DefaultLease, "how long a process on a shared store can be silent before other processes take over its work")
		c.Flags().BoolVar(&o.DryRun, "dry-run", false, "list what the run would do, without doing it")
		return c
	}
	return session.Group("run", job(billing.Payments), job(billing.Reminders), p.runList(), p.runShow(), p.runWatch())
}

func (p *program) runJob(ctx context.Context, kind billing.Kind, o job.Options, lease time.Duration,
	date *session.BusinessDay) error {
	if err := screen.Between("workers", o.Workers, 1, 1024); err != nil {
		return err
	}
	if lease < time.Second || lease > time.Hour {
		return screen.Usagef("--lease must be 1s to 1h (got %s)", lease)
	}
	if err := p.Walkable("date", o.Date); err != nil {
		return err
	}
	if today := civil.Of(p.Now().UTC()); p.Config.Live() && o.Date.After(today.AddDays(1)) {
		return screen.Usagef("--date %s is in the future, but the processor is live", o.Date)
	}
	defer p.LimitMemory()()
	// The reminder job asks a processor that stores cards whether a card will have expired.
	return p.With(ctx, session.Need{Processor: kind == billing.Payments || p.Config.UsesStripe(), Lease: lease, Take: !o.DryRun},
		func(s *session.Session) error {
			if _, err := s.On(date); err != nil && !o.DryRun {
				return err
			}
			if o.DryRun {
				return p.dryRun(ctx, s, kind, o)
			}
			p.WarnOfPages()
			p.WarnOfClock(ctx, s)
			return p.wetRun(ctx, s, kind, o)
		})
}

// start runs the job and shows a progress bar on a terminal.
func (p *program) start(ctx context.Context, s *session.Session, kind billing.Kind, o job.Options) (*job.Report,
	error) {
	bar := p.Progress("subscriptions", 0, func(stop <-chan struct{}) int64 {
		until := o.Date
		if until.IsZero() {
			until = s.Engine.Today().AddDays(1)
		}
		return screen.CountUntil(dueUntil(ctx, s.Engine, kind, until), stop)
	})
	defer bar.End()
	o.Progress = bar.Done.Store
	if kind == billing.Reminders {
		return job.Reminders(ctx, s.Engine, o)
	}
	return job.Payments(ctx, s.Engine, o)
}

// startOrAttach runs the job. If a run of the same day is already in progress, it waits for that
// run and returns its report.
func (p *program) startOrAttach(ctx context.Context, s *session.Session, kind billing.Kind,
	o job.Options) (*job.Report, error) {
	for {
		report, err := p.start(ctx, s, kind, o)
		live, beside := errors.AsType[*worker.BusyError](err)
		if !beside {
			return report, err
		}
		r, err := p.attach(ctx, s, live, o.Date)
		if err != nil {
			return nil, err
		}
		if r != nil {
			return r, r.Err()
		}
	}
}

// wetRun runs the job, delivers its mail even if the job fails, and prints the report.
func (p *program) wetRun(ctx context.Context, s *session.Session, kind billing.Kind, o job.Options) error {
	named := Unsettled{}
	o.Each = named.Add
	report, err := p.startOrAttach(ctx, s, kind, o)
	var mail session.Posted
	if ctx.Err() == nil {
		mail = p.Deliver(ctx, s)
	}
	if err == nil && kind == billing.Payments {
		s.Forget(ctx)
		s.Outlook(ctx, s.Alone(ctx))
	}
	if report == nil {
		return err
	}
	if report.Off {
		nothing := "nothing"
		if errors.Is(err, charging.ErrOff) { // charging was turned off during the run
			nothing, err = "nothing more", nil
		}
		reason := ""
		if meta, err := s.Engine.Meta(ctx); err == nil && meta.Reason != "" {
			reason = " (" + meta.Reason + ")"
		}
		p.Warn("charging is off%s, so %s was charged; turn it on with %s", reason, nothing, p.Hint("charging on"))
	}
	var read, written float64 // the capacity that DynamoDB reports for this process
	if m, ok := s.Store.(interface{ Consumed() (read, write float64) }); ok {
		read, written = m.Consumed()
	}
	if report.State != "" { // a report from another process, which listed the periods itself
		named = nil
	}
	p.sayReport(report)
	if mail.Delivered > 0 {
		p.Say("also: %s", s.Post.Done(mail.Delivered))
	}
	p.sayUnsettled(named)
	if read+written > 0 {
		p.Say("DynamoDB reports that this run consumed %.1f write units and %.1f read units.", written, read)
	}
	v := append(view.Counts(report), "read_units?", read, "write_units?", written)
	if kind == billing.Payments {
		v = append(v, "periods?", named.view())
	}
	v = append(v, "mail", mail.View(s.Post))
	shown := p.JSON(v)
	for _, missed := range report.Missed {
		p.Warn("%v; the next run will do it", missed)
	}
	if err == nil && (report.NeedsPerson() || mail.Stays() > 0) {
		p.Code = screen.ExitPerson
	}
	return cmp.Or(err, shown)
}

// dryRun lists the periods that the job would process, as it finds them.
func (p *program) dryRun(ctx context.Context, s *session.Session, kind billing.Kind, o job.Options) error {
	name, what, left := "would_charge", "charged", engine.OutcomeParked
	if kind == billing.Reminders {
		name, what, left = "would_remind", "reminded", engine.OutcomeSkipped
	}
	list := &screen.ListWriter{Out: p.Out, Name: name}
	t := p.Table("SUBSCRIPTION", "PERIOD", "DUE", "AMOUNT", "ACTION")
	var totals money.Totals // only for payments
	n := 0
	var failed error
	o.Each = func(r engine.Result) {
		if r.Outcome == left || r.Outcome == engine.OutcomeUnreadable { // the log names unreadable ones
			return
		}
		t.Row(r.Name, r.Period, r.Due, r.Amount, r.Reason)
		if kind == billing.Payments {
			if r.Outcome != engine.OutcomeSkipped { // the period waits and is not charged
				return
			}
			failed = cmp.Or(failed, totals.Add(r.Amount))
		}
		n++
		r.Outcome = "" // a dry run has no outcome
		if p.AsJSON {
			failed = cmp.Or(failed, list.Add(view.Result(r)))
		}
	}
	report, err := p.start(ctx, s, kind, o)
	err = cmp.Or(err, failed)
	if report == nil {
		return err
	}
	if report.Counts[engine.OutcomeUnreadable] > 0 {
		p.Code = screen.ExitPerson
	}
	if p.AsJSON {
		report.DryRun, report.Amounts = true, totals
		return cmp.Or(err, list.End(view.Counts(report)))
	}
	t.Flush()
	asked := screen.Prefixed("; asked to pay by wire: ", screen.Positive(report.Counts[engine.OutcomeAsked]))
	p.Say("\n%d would be %s on %s%s%s; nothing was done", n, what, report.Date, screen.Prefixed(": ", FormatTotals(&totals)), asked)
	return err
}
