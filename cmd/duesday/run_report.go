package main

import (
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
)

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
