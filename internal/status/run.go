package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/schedule"
	"github.com/duesday/duesday/internal/store"
)

// lookBack is how many runs are read for the one that began last: runs are listed by business day.
const lookBack = 16

func (v *view) store(ctx context.Context, c *Check) (err error) {
	if v.meta, err = v.Engine.Meta(ctx); err != nil {
		return err
	}
	if v.settings, err = v.Engine.Settings(ctx); err != nil {
		return err
	}
	if v.times, err = schedule.Parse(v.settings.Daily, v.settings.TimeZone); err != nil {
		return err
	}
	c.value("duesday_build_info", 1, v.Version)
	c.say("format %d; duesday %s", billing.FormatVersion, v.Version)
	if v.meta.Moved != "" {
		c.wrong("work on that store", "this store is not the live one: it was moved to %s", v.meta.Moved)
	}
	return nil
}

// serve tells whether a process serves that should. Only the processes of a folder know of each other.
func (v *view) serve(ctx context.Context, c *Check) error {
	claims, known := v.Engine.Store.(store.Claimer)
	if !known {
		c.say("not known: processes that share this store do not know of each other")
		if v.Serving {
			c.say("this process")
		}
		return nil
	}
	_, _, err := claims.Claim(ctx, ClaimName, "")
	if by, running := errors.AsType[*store.ClaimedError](err); running {
		c.say("process %s", by.By)
		return nil
	}
	if c.say("none runs, and no times are set for the daily jobs"); !v.times.None() {
		c.wrong("start it: "+v.Hint("serve"), "none runs, and both jobs are to run daily at %s",
			strings.Join(v.settings.Daily, " and "))
	}
	return err
}

// days counts the scheduled days that are not finished. A day is finished by its last scheduled
// instant if a run of both jobs that began then or later has completed. It has time for that until
// alarm-at comes next; without alarm-at, until the next scheduled instant.
func (v *view) days(ctx context.Context, c *Check) error {
	if v.times.None() {
		c.say("no times are set for the daily jobs")
		return nil
	}
	deadlines, err := v.times, error(nil)
	if v.settings.AlarmAt != "" {
		if deadlines, err = schedule.Parse([]string{v.settings.AlarmAt}, v.settings.TimeZone); err != nil {
			return err
		}
	}
	finished := v.now
	for _, kind := range []billing.Kind{billing.Reminders, billing.Payments} {
		r, err := v.Engine.LastDailyRun(ctx, kind)
		if err != nil {
			return err
		}
		if r.Started.Before(finished) {
			finished = r.Started
		}
	}
	if finished.Before(v.meta.Created) {
		finished = v.meta.Created
	}
	open, late := 0, 0
	last := v.times.Last(v.now)
	for t := last; t.After(finished) && open < billing.LookBack; t = v.times.Last(t.Add(-time.Millisecond)) {
		if !v.times.LastOfDay(t) {
			continue
		}
		if open++; !deadlines.Next(t).After(v.now) {
			late++
		}
	}
	c.value("duesday_unfinished_dates", float64(open))
	c.say("all are finished up to %s; next run at %s", at(last), at(v.times.Next(v.now)))
	if open > 0 {
		c.say("%d not finished yet", open)
	}
	if late > 0 {
		c.wrong("see why: "+v.Hint("run list")+"; and "+v.Hint("run payments")+" goes on", "%d not finished, %d too late", open,
			late)
	}
	return nil
}

// lastRun is the check of the run of the job that began last.
func (v *view) lastRun(kind billing.Kind) func(context.Context, *Check) error {
	return func(ctx context.Context, c *Check) error {
		runs, err := v.Engine.LatestRunsOf(ctx, kind, lookBack)
		if err != nil {
			return err
		}
		if len(runs) == 0 {
			c.say("has never run")
			return nil
		}
		r := runs[0]
		job := string(kind)
		c.value("duesday_last_run_start_timestamp_seconds", seconds(r.Started), job)
		if !r.Ended.IsZero() {
			c.value("duesday_last_run_end_timestamp_seconds", seconds(r.Ended), job)
		}
		c.value("duesday_last_run_periods", float64(r.Due()), job, "due")
		parts := []string{fmt.Sprintf("%d due", r.Due())}
		for _, o := range append([]engine.Outcome{engine.OutcomeSent, engine.OutcomeUnreadable}, engine.Outcomes()...) {
			if n, counted := r.Counts[o]; counted {
				c.value("duesday_last_run_periods", float64(n), job, string(o))
				parts = append(parts, fmt.Sprintf("%d %s", n, o))
			}
		}
		balance := strings.Join(parts, ", ")
		c.say("%s %s: %s", r.State, at(r.Started), balance)
		again := v.Hint("run "+job) + " goes on from there"
		switch r.State {
		case engine.RunBrokenOff:
			c.wrong(again, "%s, begun %s: %s", r.State, at(r.Started), balance)
		case engine.RunEnded:
			c.wrong(again, "%s %s without completing (%s): %s", r.State, at(r.Ended), r.Reason, balance)
		}
		return nil
	}
}

// waiting is of the last completed payment run: a look at every subscription would be a scan.
func (v *view) waiting(ctx context.Context, c *Check) error {
	runs, err := v.Engine.LatestRunsOf(ctx, billing.Payments, lookBack)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.State != engine.RunCompleted {
			continue
		}
		parked, pending := r.Counts[engine.OutcomeParked], r.Counts[engine.OutcomePending]
		c.value("duesday_waiting_periods", float64(parked), string(engine.OutcomeParked))
		c.value("duesday_waiting_periods", float64(pending), string(engine.OutcomePending))
		c.say("%d pending: the customer or the processor has to act", pending)
		if n := r.Counts[engine.OutcomeUnreadable]; n > 0 {
			c.wrong(v.Hint("verify")+" names them; correct them where they were written",
				"%d unreadable, %d parked, %d pending", n, parked, pending)
		} else if parked > 0 {
			c.wrong("decide about each: "+v.Hint("subscription list --status parked")+", then subscription charge or skip",
				"%d parked, %d pending", parked, pending)
		}
		return nil
	}
	return nil
}

func (v *view) charging(_ context.Context, c *Check) error {
	if c.say("on"); v.meta.Charging {
		c.value("duesday_charging_enabled", 1)
		return nil
	}
	c.value("duesday_charging_enabled", 0)
	c.wrong("once the reason is gone: "+v.Hint("charging on"), "off: %s", v.meta.Reason)
	return nil
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
