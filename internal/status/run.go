package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schedule"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// lookBack is how many runs are read for the one that began last: runs are listed by business day.
const lookBack = 16

func (v *view) store(ctx context.Context, c *Check) (err error) {
	if v.meta, err = v.Engine.Meta(ctx); err != nil {
		return err
	}
	if v.settings, err = settings.Read(ctx, v.Engine.Records); err != nil {
		return err
	}
	if v.times, err = schedule.Parse(v.settings.Daily, v.settings.TimeZone); err != nil {
		return err
	}
	c.say("format %d; duesday %s", v.meta.Format, v.Version)
	if v.meta.Moved != "" {
		c.wrong("use that store instead", "this store was moved to %s and is no longer live", v.meta.Moved)
	}
	return nil
}

// serve tells which process serves, and when it has looked.
func (v *view) serve(ctx context.Context, c *Check) (err error) {
	holder, claims, known := "", store.Claimer(nil), false
	if claims, known = v.Engine.Store.(store.Claimer); known {
		_, _, err = claims.Claim(ctx, ClaimName, "")
		if by, running := errors.AsType[*store.ClaimedError](err); running {
			holder, err = by.By, nil
		}
	}
	if v.Serving || err != nil {
		c.say("process %s", cmp.Or(holder, worker.ThisProcess()))
		return err
	}
	if c.served, err = v.others(ctx, holder, known); err != nil {
		return err
	}
	daily := "both jobs are scheduled daily at " + strings.Join(v.settings.Daily, " and ")
	switch l := c.served; {
	case len(l.fresh) > 0:
		c.say("process %s, which ran the checks %s ago", l.fresh[0].by, v.ago(l.fresh[0].at))
	case holder != "":
		c.mark(Unknown, "check that process's log, and restart it", "process %s runs, but %s", holder, l.since)
	case known && !v.times.None():
		c.wrong("to start it, run: "+v.Hint("serve"), "serve is not running, but %s; %s", daily, l.since)
	case !v.times.None():
		c.wrong("to start it, run: "+v.Hint("serve"), "%s, but %s", daily, l.since)
	case known:
		c.say("serve is not running, and no times are set for the daily jobs")
	default:
		c.say("not known, because processes on this store do not see each other; %s", l.since)
	}
	return nil
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
	finished, never := v.now, ""
	for _, kind := range []billing.Kind{billing.Reminders, billing.Payments} {
		r, err := v.Engine.LastDailyRun(ctx, kind)
		if err != nil {
			return err
		}
		if r.Started.IsZero() {
			never = fmt.Sprintf("no daily run of %s has completed yet: ", kind)
		}
		if r.Started.Before(finished) {
			finished = r.Started
		}
	}
	since := v.meta.Created // when days began to be scheduled
	for change, err := range settings.History(ctx, v.Engine.Records) {
		if err != nil {
			return err
		}
		if change.Name == "daily" && change.Before == "" {
			since = change.At
		}
	}
	if finished.Before(since) {
		finished = since
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
	c.say("all days are finished up to %s; next run at %s", at(last), at(v.times.Next(v.now)))
	if open > 0 || never != "" {
		c.say("%s%d not finished yet", never, open)
	}
	if late > 0 || never != "" && v.now.Sub(since) > firstRun {
		c.wrong("to see why, run: "+v.Hint("run list")+"; to continue, run: "+v.Hint("run payments"), "%s%d not finished, %d late",
			never, open, late)
	}
	return nil
}

// due counts the payments that were due before today and that no completed run has looked at: those
// of all days, if the last one is older than yesterday's. They are counted anew when that can have
// changed, and hourly.
func (v *view) due(ctx context.Context, c *Check) error {
	run, err := v.Engine.LastDailyRun(ctx, billing.Payments)
	if err != nil {
		return err
	}
	today, left := v.Engine.Today(), overdue{}
	if run.Date.Before(today.AddDays(-1)) {
		from, _, err := v.Engine.WalkFrom(ctx, billing.Payments, today)
		if err != nil {
			return err
		}
		left = overdue{from: from, today: today, run: run.ID, counted: v.now.Truncate(recount)}
		if was := v.left; was.from == from && was.today == today && was.run == run.ID && was.counted.Equal(left.counted) {
			left = was
		} else if err := v.count(ctx, &left); err != nil {
			return err
		}
		v.left = left
	}
	c.value("duesday_overdue_payments", float64(left.before))
	c.say("no payment is overdue")
	if left.onDay > 0 {
		c.say("no payment is overdue; %s due today", many(left.onDay))
	}
	if left.before > 0 {
		last := "no daily run has completed yet"
		if !run.Started.IsZero() {
			last = "the last completed run began " + at(run.Started)
		}
		c.wrong("to charge them, run: "+v.Hint("run payments"), "%s due before today; %s", many(left.before), last)
	}
	return nil
}

// An overdue is how many payments are left to runs.
type overdue struct {
	from, today   civil.Date
	run           string    // the last completed one
	counted       time.Time // in whole hours
	before, onDay int       // due before today, and today
}

const (
	recount   = time.Hour
	firstRun  = time.Hour // in which the jobs must complete for the first time, once times are set
	mostCount = 10_000
)

func (v *view) count(ctx context.Context, o *overdue) error {
	for d := o.from; !d.After(o.today); d = d.AddDays(1) {
		for _, err := range v.Engine.Indexed(ctx, schema.PaymentIndex, d) {
			if err != nil {
				return err
			}
			if o.before+o.onDay == mostCount {
				return nil
			}
			if d == o.today {
				o.onDay++
			} else {
				o.before++
			}
		}
	}
	return nil
}

func many(n int) string {
	if n == mostCount {
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}

// lastRun is the check of the run of the job that began last.
func (v *view) lastRun(kind billing.Kind) func(context.Context, *Check) error {
	return func(ctx context.Context, c *Check) error {
		runs, err := job.Latest(ctx, v.Engine, kind, lookBack)
		if err != nil {
			return err
		}
		if c.say("has never run"); len(runs) == 0 {
			v.Runs.mark(kind, c)
			return nil
		}
		r := runs[0]
		label := string(kind)
		if err := v.completed(ctx, kind, runs, c); err != nil {
			return err
		}
		c.value("duesday_last_run_start_timestamp_seconds", seconds(r.Started), label)
		if !r.Ended.IsZero() {
			c.value("duesday_last_run_end_timestamp_seconds", seconds(r.Ended), label)
		}
		c.value("duesday_last_run_periods", float64(r.Due()), label, "due")
		parts := []string{fmt.Sprintf("%d due", r.Due())}
		for _, o := range append([]engine.Outcome{engine.OutcomeSent, engine.OutcomeUnreadable}, engine.Outcomes()...) {
			if n, counted := r.Counts[o]; counted {
				c.value("duesday_last_run_periods", float64(n), label, string(o))
				name := string(o)
				if o == engine.OutcomeSent { // as mail, if it leaves
					name = "written to the outbox"
				}
				parts = append(parts, fmt.Sprintf("%d %s", n, name))
			}
		}
		balance := strings.Join(parts, ", ")
		c.say("%s %s: %s", r.State, at(r.Started), balance)
		again := v.Hint("run " + label)
		switch r.State {
		case job.BrokenOff:
			c.wrong("to finish it, run: "+again, "%s, started %s: %s", r.State, at(r.Started), balance)
		case job.Ended:
			c.wrong("to finish it, run: "+again, "%s %s without completing (%s): %s", r.State, at(r.Ended), r.Reason, balance)
		}
		if declined, paid := declinedOf(runs); paid == 0 && declined >= noneOf && c.State == OK {
			c.wrong("to see why, run: "+v.Hint("period list --from "+r.Date.String()), "none of %d payments succeeded on %s", declined, r.Date)
		}
		v.Runs.mark(kind, c)
		return nil
	}
}

// noneOf is how many payments of a day must have been declined at least, for the first time, for it
// to be wrong that none was paid. That none of a day's retries is paid is usual.
const noneOf = 20

// declinedOf returns how many payments were declined for the first time, and paid, on the latest
// business day of the runs.
func declinedOf(runs []*job.Report) (declined, paid int) {
	for _, r := range runs {
		if r.Date == runs[0].Date {
			declined += r.Declined
			paid += r.Counts[engine.OutcomePaid]
		}
	}
	return declined, paid
}

// completed adds when the last completed run began and ended.
func (v *view) completed(ctx context.Context, kind billing.Kind, runs []*job.Report, c *Check) (err error) {
	var last *billing.Run
	if i := slices.IndexFunc(runs, func(r *job.Report) bool { return r.State == job.Completed }); i >= 0 {
		last = &runs[i].Run
	} else if last, err = v.Engine.LastDailyRun(ctx, kind); err != nil || last.Started.IsZero() {
		return err
	}
	c.value("duesday_last_completed_run_start_timestamp_seconds", seconds(last.Started), string(kind))
	c.value("duesday_last_completed_run_end_timestamp_seconds", seconds(last.Ended), string(kind))
	return nil
}

// Runs holds the state of the daily jobs in a process that serves. A nil Runs holds none. It is safe for
// concurrent use.
type Runs struct {
	mu   sync.Mutex
	list map[billing.Kind]refusal // guarded by mu
}

// A refusal is why no run of a job has begun, and since when.
type refusal struct {
	since time.Time
	why   string
}

// Note records the error of a run that was refused before it began, or nil.
func (r *Runs) Note(kind billing.Kind, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, refused := r.list[kind]
	switch {
	case err == nil:
		delete(r.list, kind)
		return
	case r.list == nil:
		r.list = map[billing.Kind]refusal{}
	}
	if !refused {
		was.since = now
	}
	r.list[kind] = refusal{was.since, secret.Clean(err.Error())}
}

// mark makes the check of the job wrong if its runs are refused.
func (r *Runs) mark(kind billing.Kind, c *Check) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, refused := r.list[kind]; refused {
		c.wrong("fix the cause; serve then tries again by itself", "refused since %s: %s; %s", at(x.since), x.why, c.Text)
	}
}

// waiting is of the last completed payment run: a look at every subscription would be a scan.
func (v *view) waiting(ctx context.Context, c *Check) error {
	doubts, err := processor.Gather(v.Engine.Doubts(ctx))
	if err != nil {
		return err
	}
	if len(doubts) > 0 {
		d := doubts[0]
		c.wrong("check whether the tool took the payment, then run: "+v.Hint("subscription update "+d.Account+"/"+d.ID+" --paid-once"),
			"periods that may be paid twice: %d, the first is %s period %d; another tool moved its due date during the charge", len(doubts),
			d.Name, d.Period)
		return nil
	}
	runs, err := job.Latest(ctx, v.Engine, billing.Payments, lookBack)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.State != job.Completed {
			continue
		}
		parked, pending := r.Counts[engine.OutcomeParked], r.Counts[engine.OutcomePending]
		c.value("duesday_waiting_periods", float64(parked), string(engine.OutcomeParked))
		c.value("duesday_waiting_periods", float64(pending), string(engine.OutcomePending))
		c.say("%d pending; the customer or the processor must act", pending)
		if n := r.Counts[engine.OutcomeUnreadable]; n > 0 {
			c.wrong(v.Hint("verify")+" lists them; correct them with the tool that wrote them",
				"%d unreadable, %d parked, %d pending", n, parked, pending)
		} else if parked > 0 {
			c.wrong("decide about each one: "+v.Hint("subscription list --status parked")+", then subscription charge or skip",
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
	c.wrong("when the cause is fixed, run: "+v.Hint("charging on"), "off: %s", v.meta.Reason)
	return nil
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
