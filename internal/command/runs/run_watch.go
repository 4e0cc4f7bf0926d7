package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
)

// A run is recorded from its start, so any process can list runs, watch a run and wait for its end.

func (p *program) runList() *cobra.Command {
	kind := screen.ChoiceFlag(billing.Payments, billing.Reminders)
	var limit int
	c := p.StoreLeaf("list", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		runs, err := job.Latest(ctx, s.Engine, kind.Value, limit)
		if err != nil {
			return err
		}
		t := p.Table("RUN", "KIND", "STATE", "ROWS", "DUE", "DONE", "WAITING", "TOOK")
		for _, r := range runs {
			t.Row(r.ID, r.Kind, r.State, r.Rows, r.Due(), r.Counts[engine.OutcomeSent]+r.Counts[engine.OutcomePaid],
				r.Counts[engine.OutcomePending]+r.Counts[engine.OutcomeParked], screen.Elapsed(r.Elapsed))
		}
		return errors.Join(t.Flush(), p.JSON(view.List(runs, view.Run)))
	})
	c.Flags().Var(&kind, "kind", "only runs of this job")
	c.Flags().IntVar(&limit, "limit", 20, "maximum number of runs, from the latest business days")
	return session.Checked(c, func([]string) error { return screen.Between("limit", limit, 1, 1000) })
}

func (p *program) runShow() *cobra.Command {
	return p.StoreLeaf("show ID", session.Need{Read: true}, func(ctx context.Context, s *session.Session, args []string) error {
		r, err := job.Find(ctx, s.Engine, "", args[0])
		if err != nil {
			return session.NotFound(err, "run "+args[0])
		}
		p.sayReport(r)
		p.Fields("state", r.State, "began", r.Started, "ended", r.Ended, "last seen", r.Seen, "process", r.Process, "actor", r.Actor,
			"rows", fmt.Sprintf("%d, %.0f/s", r.Rows, view.Rate(r)), "reason", r.Reason, "settings", r.Settings)
		return p.JSON(view.Run(r))
	})
}

func (p *program) runWatch() *cobra.Command {
	c := p.StoreLeaf("watch", session.Need{Read: true}, p.watchRun)
	c.Use, c.Args = "watch [ID]", cobra.MaximumNArgs(1)
	return c
}

func (p *program) watchRun(ctx context.Context, s *session.Session, args []string) error {
	runs, err := job.Latest(ctx, s.Engine, "", 20)
	if err != nil {
		return err
	}
	var r *job.Report
	switch {
	case len(args) == 1:
		if r, err = job.Find(ctx, s.Engine, "", args[0]); err != nil {
			return session.NotFound(err, "run "+args[0])
		}
	case len(runs) > 0:
		r = runs[0]
	default:
		return errors.New("there has been no run yet")
	}
	begin, end := "", "\n"
	if p.TTY(p.Raw) && !p.AsJSON {
		begin, end = lineBegin, ""
	}
	r, err = p.follow(ctx, s, r.Kind, r.ID, func(r *job.Report, total int) {
		if p.AsJSON {
			_ = screen.WriteValue(p.Out, append(view.Run(r), "expected_rows?", total, "seconds_left?", timeLeft(r, total).Seconds()))
			fmt.Fprintln(p.Out)
		} else {
			fmt.Fprint(p.Out, begin, progressOf(r, total), end)
		}
		_ = p.Out.Flush() // the writer keeps its errors, and the command reports them at its end
	})
	if err != nil {
		return err
	}
	fmt.Fprint(p.Out, begin)
	p.sayReport(r)
	if p.AsJSON {
		err = errors.Join(screen.WriteValue(p.Out, view.Run(r)), p.Out.WriteByte('\n'))
	}
	switch {
	case r.State == job.BrokenOff:
		return fmt.Errorf("run %s was broken off; to continue it, run: %s", r.ID, p.Hint("run "+string(r.Kind)))
	case r.Err() != nil && !r.Off:
		return r.Err()
	case r.NeedsPerson():
		p.Code = screen.ExitPerson
	}
	return err
}

// follow calls show after each update of the run's record, until the run is over. total is 0 until
// the subscriptions are counted.
func (p *program) follow(ctx context.Context, s *session.Session, kind billing.Kind, id string,
	show func(r *job.Report, total int)) (*job.Report, error) {
	var total atomic.Int64
	var counting sync.WaitGroup
	stop := make(chan struct{})
	defer counting.Wait()
	defer close(stop)
	var seen time.Time
	warned := false
	return job.Follow(ctx, s.Engine, kind, id, func(r *job.Report) {
		if r.From.IsZero() {
			return // the run has just started
		}
		if seen.IsZero() {
			counting.Go(func() {
				if left := screen.CountUntil(dueUntil(ctx, s.Engine, kind, r.Date.AddDays(1)), stop); left > 0 {
					total.Store(int64(r.Rows) + left)
				}
			})
		}
		if silent := p.Now().Sub(r.Seen); silent > silentRun && !warned {
			warned = true
			p.Warn("process %s has not reported on the run for %s; check whether it hangs", r.Process,
				silent.Round(time.Second))
		}
		if !r.Seen.Equal(seen) {
			seen = r.Seen
			show(r, int(total.Load()))
		}
	})
}

const (
	lineBegin = "\r\x1b[K" // clears the current line
	silentRun = time.Minute
)

// attach waits for the end of a live run and returns its report. It returns nil if this process
// must run the job itself, because the live run was for another day or did not complete.
func (p *program) attach(ctx context.Context, s *session.Session, live *worker.BusyError, day civil.Date) (*job.Report,
	error) {
	day = cmp.Or(day, civil.Of(p.Now().UTC()))
	same := live.Date() == day
	if same {
		p.Warn("%v; attached to its run", live)
	} else {
		p.Warn("%v; waiting for it to end before running %s", live, day)
	}
	show := func(text string) {
		if p.TTY(p.Err) {
			fmt.Fprint(p.Err, lineBegin, text)
		}
	}
	r, err := p.follow(ctx, s, live.Kind, live.ID, func(r *job.Report, total int) { show(progressOf(r, total)) })
	show("")
	switch {
	case errors.Is(err, store.ErrNotFound): // the run was refused before it started
		return nil, nil
	case err != nil || !same:
		return nil, err
	case r.State == job.BrokenOff:
		p.Warn("run %s was broken off; this process continues it", r.ID)
		return nil, nil
	}
	return r, nil
}

// progressOf describes the progress of a run.
func progressOf(r *job.Report, total int) string {
	text := fmt.Sprintf("%d subscriptions, %.0f/s", r.Rows, view.Rate(r))
	if left := timeLeft(r, total); left > 0 {
		text = fmt.Sprintf("%d of %d subscriptions, %.0f/s, %s left", r.Rows, total, view.Rate(r), left)
	}
	for _, o := range append(engine.Outcomes(), engine.OutcomeUnreadable, engine.OutcomeSent) {
		if n := r.Counts[o]; n > 0 {
			text += fmt.Sprintf(", %s %d", view.OutcomeName(o), n)
		}
	}
	return text
}

// timeLeft estimates the remaining time of a run. It returns 0 if the time is unknown.
func timeLeft(r *job.Report, total int) time.Duration {
	if r.Rows == 0 || total <= r.Rows {
		return 0
	}
	return (time.Duration(float64(total-r.Rows) / view.Rate(r) * float64(time.Second))).Round(time.Second)
}
