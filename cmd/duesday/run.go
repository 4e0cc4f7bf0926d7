package main

import (
	"context"
	"fmt"
	"strconv"
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

// A paymentsView is the JSON of a payment run; due is the sum of the six outcomes.
type paymentsView struct {
	Kind    string            `json:"kind"`
	Date    string            `json:"date"`
	From    string            `json:"from"`
	Due     int               `json:"due"`
	Paid    int               `json:"paid"`
	Retry   int               `json:"retry"`
	Failed  int               `json:"failed"`
	Pending int               `json:"pending"`
	Parked  int               `json:"parked"`
	Skipped int               `json:"skipped"`
	Amounts map[string]string `json:"amounts"`
	Cards   int               `json:"cards_taken_over,omitempty"`
	Returns int               `json:"refunds_and_disputes,omitempty"` // recorded, or changed
	Orphans int               `json:"orphans_cancelled,omitempty"`
	Elapsed int64             `json:"elapsed_ms"`
	DryRun  bool              `json:"dry_run,omitempty"`
	Off     bool              `json:"charging_off,omitempty"`
	Read    float64           `json:"read_units,omitempty"` // as DynamoDB has counted them
	Written float64           `json:"write_units,omitempty"`
}

// A remindersView is the JSON of a reminder run.
type remindersView struct {
	Kind    string `json:"kind"`
	Date    string `json:"date"`
	From    string `json:"from"`
	Due     int    `json:"due"`
	Sent    int    `json:"sent"`
	Skipped int    `json:"skipped"`
	Failed  int    `json:"failed"`
	Elapsed int64  `json:"elapsed_ms"`
	DryRun  bool   `json:"dry_run,omitempty"`

	Read    float64 `json:"read_units,omitempty"` // as DynamoDB has counted them
	Written float64 `json:"write_units,omitempty"`
}

func viewReport(r *engine.Report, read, written float64) any {
	if r.Kind == billing.Reminders {
		return remindersView{Kind: string(r.Kind), Date: date(r.Date), From: date(r.From), Due: r.Due(), Sent: r.Sent,
			Skipped: r.Counts[engine.OutcomeSkipped], Failed: r.Counts[engine.OutcomeFailed], Elapsed: r.Elapsed.Milliseconds(),
			DryRun: r.DryRun, Read: read, Written: written}
	}
	return paymentsView{Kind: string(r.Kind), Date: date(r.Date), From: date(r.From), Due: r.Due(),
		Paid:  r.Counts[engine.OutcomePaid],
		Retry: r.Counts[engine.OutcomeRetry], Failed: r.Counts[engine.OutcomeFailed],
		Pending: r.Counts[engine.OutcomePending],
		Parked:  r.Counts[engine.OutcomeParked], Skipped: r.Counts[engine.OutcomeSkipped], Amounts: r.Amounts.Strings(),
		Cards: r.Cards, Returns: r.Reversals, Orphans: r.Orphans, Elapsed: r.Elapsed.Milliseconds(), DryRun: r.DryRun,
		Off: r.Off, Read: read, Written: written}
}

func (p *program) showReport(r *engine.Report, waiting *firstFew) {
	p.say("%s of %s (looked from %s on): %d due, in %s", r.Kind, r.Date, r.From, r.Due(), short(r.Elapsed))
	t := newTable(p.stdout)
	if r.Kind == billing.Reminders {
		t.row("  sent", strconv.Itoa(r.Sent))
		t.row("  skipped", strconv.Itoa(r.Counts[engine.OutcomeSkipped]), "nothing to remind of any more")
	} else {
		for _, o := range engine.Outcomes() {
			amounts := ""
			if o == engine.OutcomePaid {
				amounts = formatTotals(&r.Amounts)
			}
			t.row("  "+string(o), strconv.Itoa(r.Counts[o]), firstText(amounts, outcomeText(o)))
		}
	}
	t.flush()
	p.showBeside(r)
	if waiting.all == 0 {
		return
	}
	p.say("\nWaiting for the customer or for you:")
	w := newTable(p.stdout, "SUBSCRIPTION", "PERIOD", "DUE", "AMOUNT", "OUTCOME", "REASON")
	for _, r := range waiting.kept {
		w.row(r.Name.String(), strconv.Itoa(r.Period), date(r.Due), r.Amount.Format(), string(r.Outcome), r.Reason)
	}
	w.flush()
	if more := waiting.all - len(waiting.kept); more > 0 {
		p.say("and %d more", more)
	}
	p.say("\nLook further: %s", p.hint("subscription show "+waiting.kept[0].Name.String()))
}

// showBeside prints the work of a payment run beside charging.
func (p *program) showBeside(r *engine.Report) {
	for _, did := range [...]struct {
		n          int
		noun, what string
	}{{r.Cards, "card", "that customers have given: used from now on"},
		{r.Reversals, "change", "of refunds and disputes: recorded"},
		{r.Orphans, "payment intent", "that nothing was bound to: cancelled"}} {
		if did.n > 0 {
			p.say("also: %s %s", plural(did.n, did.noun), did.what)
		}
	}
}

func outcomeText(o engine.Outcome) string {
	switch o {
	case engine.OutcomeRetry:
		return "declined, tried again on a later day"
	case engine.OutcomeFailed:
		return "declined for good"
	case engine.OutcomePending:
		return "the customer or the processor has to act"
	case engine.OutcomeParked:
		return "duesday subscription charge or skip"
	case engine.OutcomeSkipped:
		return "cancelled, paused, or charging is off"
	}
	return ""
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

// dryRun lists the periods of the job as they are found.
func (p *program) dryRun(ctx context.Context, s *session, kind billing.Kind, o engine.RunOptions) error {
	name := "would_charge"
	if kind == billing.Reminders {
		name = "would_remind"
	}
	list := newObjectWriter(p.stdout, name)
	t := newTable(p.stdout, "SUBSCRIPTION", "PERIOD", "DUE", "AMOUNT", "WHAT")
	var totals money.Totals
	n := 0
	var failed error
	o.Each = func(r engine.Result) {
		if kind == billing.Reminders && r.Outcome == engine.OutcomeSkipped {
			return
		}
		if kind == billing.Payments {
			if r.Outcome == engine.OutcomeParked {
				return
			}
			if err := totals.Add(r.Amount); err != nil && failed == nil {
				failed = err
			}
		}
		n++
		if !p.cfg.JSON {
			t.row(r.Name.String(), strconv.Itoa(r.Period), date(r.Due), r.Amount.Format(), r.Reason)
			return
		}
		v := viewResult(r)
		v.Outcome = ""
		if err := list.add(v); err != nil && failed == nil {
			failed = err
		}
	}
	report, err := p.start(ctx, s, kind, o)
	if err == nil {
		err = failed
	}
	if report == nil {
		return err
	}
	if p.cfg.JSON {
		report.DryRun, report.Amounts = true, totals
		if ending := list.end(viewReport(report, 0, 0)); err == nil {
			err = ending
		}
		return err
	}
	t.flush()
	what := "charged"
	if kind == billing.Reminders {
		what = "reminded of"
	}
	p.say("\n%d would be %s on %s%s; nothing was done", n, what, report.Date, prefixed(": ", formatTotals(&totals)))
	return err
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
