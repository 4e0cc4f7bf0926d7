package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/money"
)

// viewReport is the report of a run; due is the sum of the outcomes.
func viewReport(r *engine.Report) object {
	v := object{"kind", r.Kind, "date", r.Date, "from", r.From, "due", r.Due()}
	if r.Kind == billing.Reminders {
		v = append(v, "sent", r.Sent, "skipped", r.Counts[engine.OutcomeSkipped],
			"failed", r.Counts[engine.OutcomeFailed])
	} else {
		for _, o := range engine.Outcomes() {
			v = append(v, string(o), r.Counts[o])
		}
		v = append(v, "amounts", r.Amounts.Strings(), "cards_taken_over?", r.Cards,
			"refunds_and_disputes?", r.Reversals, // recorded, or changed
			"orphans_cancelled?", r.Orphans)
	}
	return append(v, "elapsed_ms", r.Elapsed.Milliseconds(), "dry_run?", r.DryRun, "charging_off?", r.Off)
}

func (p *program) sayReport(r *engine.Report, waiting *firstFew) {
	p.say("%s of %s (looked from %s on): %d due, in %s", r.Kind, r.Date, r.From, r.Due(), short(r.Elapsed))
	t := p.table()
	if r.Kind == billing.Reminders {
		t.row("  sent", r.Sent)
		t.row("  skipped", r.Counts[engine.OutcomeSkipped], "nothing to remind of any more")
	} else {
		for _, o := range engine.Outcomes() {
			amounts := ""
			if o == engine.OutcomePaid {
				amounts = formatTotals(&r.Amounts)
			}
			t.row("  "+string(o), r.Counts[o], cmp.Or(amounts, outcomeText(o)))
		}
	}
	t.flush()
	p.sayBeside(r)
	if waiting.all == 0 {
		return
	}
	p.say("\nWaiting for the customer or for you:")
	w := p.table("SUBSCRIPTION", "PERIOD", "DUE", "AMOUNT", "OUTCOME", "REASON")
	for _, r := range waiting.kept {
		w.row(r.Name, r.Period, r.Due, r.Amount, r.Outcome, r.Reason)
	}
	w.flush()
	if more := waiting.all - len(waiting.kept); more > 0 {
		p.say("and %d more", more)
	}
	p.say("\nLook further: %s", p.hint("subscription show "+waiting.kept[0].Name.String()))
}

// sayBeside prints the work of a payment run beside charging.
func (p *program) sayBeside(r *engine.Report) {
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

// formatTotals returns the sums as people write them, by currency.
func formatTotals(t *money.Totals) string {
	var parts []string
	for sum := range t.All() {
		parts = append(parts, sum.Format())
	}
	return strings.Join(parts, "  ")
}

func short(d interface{ Milliseconds() int64 }) string {
	ms := d.Milliseconds()
	if ms < 10_000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}
