package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

type runFlags struct {
	date    dateFlag
	workers int
	lease   time.Duration
	dry     bool
}

func (p *program) runCommand() *cobra.Command {
	job := func(kind billing.Kind, short string) *cobra.Command {
		f := new(runFlags)
		c := &cobra.Command{
			Use:   string(kind),
			Short: short,
			Args:  want(),
			RunE:  func(cmd *cobra.Command, _ []string) error { return p.runJob(cmd.Context(), kind, f) },
		}
		c.Flags().Var(&f.date, "date", "business day for every account (default: each account's own today)")
		c.Flags().IntVar(&f.workers, "workers", 16, "how many subscriptions to work on at once")
		c.Flags().DurationVar(&f.lease, "lease", engine.DefaultLease,
			"how long a process on a shared store may be silent before others take over its share")
		c.Flags().BoolVar(&f.dry, "dry-run", false, "list what would be done, and do nothing")
		return c
	}
	g := group("run", "Run one of the two daily jobs",
		job(billing.Payments, "Charge every subscription that is due"),
		job(billing.Reminders, "Send the reminders of payments that are a few days ahead"))
	g.Long = `Run one of the two daily jobs. Both may be run at any time and any number of times,
and straight after a crash: a period is charged once. On a dynamodb: store any number
of processes may run one at the same time: they share the work, shard by shard.

Exits 3 if a period or an action waits for a person.`
	return g
}

func (p *program) runJob(ctx context.Context, kind billing.Kind, f *runFlags) error {
	if f.workers < 1 || f.workers > 1024 {
		return usagef("--workers %d: want 1 to 1024", f.workers)
	}
	if f.lease < time.Second || f.lease > time.Hour {
		return usagef("--lease %s: want 1s to 1h", f.lease)
	}
	if err := p.walkable("date", f.date); err != nil {
		return err
	}
	if today := civil.Of(p.now().UTC()); p.cfg.Live() && f.date.After(today.AddDays(1)) {
		return usagef("--date %s has not come yet, and the processor is live", f.date.Date)
	}
	// Reminders ask the processor whether a card will have expired, where it knows cards.
	return p.with(ctx, need{processor: kind == billing.Payments || p.cfg.UsesStripe(), lease: f.lease},
		func(s *session) error {
			o := engine.RunOptions{Date: f.date.Date, Workers: f.workers, DryRun: f.dry}
			if f.dry {
				return p.dryRun(ctx, s, kind, o)
			}
			p.warnOfPages()
			return p.wetRun(ctx, s, kind, o)
		})
}

// start runs the job with a bar on the terminal.
func (p *program) start(ctx context.Context, s *session, kind billing.Kind, o engine.RunOptions) (*engine.Report,
	error) {
	bar := p.progress("subscriptions", 0, func(stop <-chan struct{}) int64 { return countDue(ctx, s, kind, o.Date, stop) })
	defer bar.end()
	o.Progress = bar.set
	if kind == billing.Reminders {
		return s.engine.RunReminders(ctx, o)
	}
	return s.engine.RunPayments(ctx, o)
}

// wetRun runs the job, delivers its mail, also after a failure, and prints the report.
func (p *program) wetRun(ctx context.Context, s *session, kind billing.Kind, o engine.RunOptions) error {
	var waiting firstFew
	o.Each = waiting.add
	report, err := p.start(ctx, s, kind, o)
	if ctx.Err() == nil {
		p.deliver(ctx, s)
	}
	if report == nil {
		return err
	}
	if report.Off {
		p.warnOff(ctx, s)
	}
	read, written := consumed(s.store)
	if p.cfg.JSON {
		if shown := p.object(viewReport(report, read, written)); err == nil {
			err = shown
		}
	} else {
		p.showReport(report, &waiting)
		if read+written > 0 {
			p.say("DynamoDB says that this consumed %.1f write units and %.1f read units.", written, read)
		}
	}
	for _, missed := range report.Missed {
		p.warn("%v; the next run does it", missed)
	}
	if err == nil && report.NeedsPerson() {
		p.code = exitPerson
	}
	return err
}

func (p *program) warnOff(ctx context.Context, s *session) {
	reason := ""
	if meta, err := s.engine.Meta(ctx); err == nil && meta.Reason != "" {
		reason = " (" + meta.Reason + ")"
	}
	p.warn("charging is off%s: nothing was charged; switch it on with %s", reason, p.hint("charging on"))
}

// consumed returns the units counted by DynamoDB for this process; zero for another
// store.
func consumed(s store.Store) (read, written float64) {
	if m, ok := s.(interface{ Consumed() (read, write float64) }); ok {
		return m.Consumed()
	}
	return 0, 0
}

// firstFew keeps the first results with an action for a person or a customer.
type firstFew struct {
	kept []engine.Result
	all  int
}

const shownWaiting = 20

func (f *firstFew) add(r engine.Result) {
	if r.Outcome != engine.OutcomePending && r.Outcome != engine.OutcomeParked {
		return
	}
	if f.all++; len(f.kept) < shownWaiting {
		f.kept = append(f.kept, r)
	}
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// formatTotals returns the sums as people write them, by currency.
func formatTotals(t *money.Totals) string {
	var parts []string
	for sum := range t.All() {
		parts = append(parts, sum.Format())
	}
	return strings.Join(parts, "  ")
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// countDue counts the due rows of a run, for its bar; an error ends the count.
func countDue(ctx context.Context, s *session, kind billing.Kind, day civil.Date, stop <-chan struct{}) int64 {
	if day.IsZero() {
		day = s.engine.Today().AddDays(1)
	}
	n := int64(0)
	for _, err := range dueUntil(ctx, s.engine, kind, day) {
		select {
		case <-stop:
			return 0
		default:
		}
		if err != nil {
			return 0
		}
		n++
	}
	return n
}

func short(d interface{ Milliseconds() int64 }) string {
	ms := d.Milliseconds()
	if ms < 10_000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}
