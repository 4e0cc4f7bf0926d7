package runs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) sayReport(r *job.Report) {
	p.Say("%s for %s (looked back to %s): %d due, in %s", r.Kind, r.Date, r.From, r.Due(), screen.Elapsed(r.Elapsed))
	t := p.Table()
	if r.Kind == billing.Reminders {
		t.Row("  written", r.Counts[engine.OutcomeSent], "to the outbox")
		t.Row("  skipped", r.Counts[engine.OutcomeSkipped], "no longer needed")
	} else {
		for _, o := range engine.Outcomes() {
			amounts := ""
			if o == engine.OutcomeAsked && r.Counts[o] == 0 {
				continue
			}
			if o == engine.OutcomePaid {
				amounts = FormatTotals(&r.Amounts)
			}
			t.Row("  "+string(o), r.Counts[o], cmp.Or(amounts, outcomeText(o)))
		}
	}
	if n := r.Counts[engine.OutcomeUnreadable]; n > 0 {
		t.Row("  unreadable", n, "written by another tool; correct the items there")
	}
	t.Flush()
	for _, d := range r.Doubts {
		p.Warn("%s period %d was perhaps paid twice, because another tool %s during the charge; check whether that tool "+
			"took the payment, then run: %s", d.Name, d.Period, billing.MovedTo(d.Moved), p.Hint("subscription update "+d.Name.String()+" --paid-once"))
	}
	beside := func(n int, noun, what string) { // prints the other work of a payment run
		if n > 0 {
			p.Say("also: %s %s", screen.Plural(n, noun), what)
		}
	}
	beside(r.Cards, "card", "entered by customers, used from now on")
	p.SayKeepOwn(r.KeepOwn)
	beside(r.Reversals, "change", "to refunds and disputes, recorded")
	beside(r.Orphans, "payment intent", "that nothing was bound to, canceled")
	if r.State != "" && r.Counts[engine.OutcomeFailed] > 0 { // another process has listed them
		p.Say("\nTo list the failed periods, run: %s", p.Hint("period list --ending failed --from "+civil.Of(r.Started).String()))
	}
}

func outcomeText(o engine.Outcome) string {
	return map[engine.Outcome]string{
		engine.OutcomeRetry:   "declined, to be tried again on a later day",
		engine.OutcomeFailed:  "declined for good, or not paid in time",
		engine.OutcomeAsked:   "the customer pays by wire and was asked to pay",
		engine.OutcomePending: "the customer or the processor must act",
		engine.OutcomeParked:  "use duesday subscription charge or skip",
		engine.OutcomeSkipped: "canceled, paused, or charging is off",
	}[o]
}

// FormatTotals returns the sum for each currency, formatted for human readers.
func FormatTotals(t *money.Totals) string {
	var parts []string
	for sum := range t.All() {
		parts = append(parts, sum.Format())
	}
	return strings.Join(parts, "  ")
}

// Unsettled holds the periods that a run lists, by outcome. It contains each period that is neither
// paid nor ended on request, and each period that was paid twice. It is nil if another
// process does the run.
type Unsettled map[engine.Outcome][]engine.Result

// Add adds the result, unless the period is settled.
func (u Unsettled) Add(r engine.Result) {
	if r.Outcome != engine.OutcomeSent && r.Outcome != engine.OutcomeAsked && r.Outcome != engine.OutcomeSkipped &&
		(r.Outcome != engine.OutcomePaid || r.Reason != "") {
		u[r.Outcome] = append(u[r.Outcome], r)
	}
}

// Of returns the periods with any of the given outcomes. New periods come first, and each part is
// sorted by subscription name.
func (u Unsettled) Of(outcomes ...engine.Outcome) (all []engine.Result) {
	for _, o := range outcomes {
		all = append(all, u[o]...)
	}
	slices.SortFunc(all, func(a, b engine.Result) int {
		return cmp.Or(cmp.Compare(strconv.FormatBool(b.New), strconv.FormatBool(a.New)),
			strings.Compare(a.Account, b.Account), strings.Compare(a.ID, b.ID), a.Period-b.Period)
	})
	return all
}

func (u Unsettled) view() view.Object {
	if u == nil {
		return nil
	}
	of := func(o engine.Outcome) []view.Object {
		return view.List(u.Of(o), func(r engine.Result) view.Object {
			return append(view.Result(r), "retry_date?", r.Retry, "new?", r.New)
		})
	}
	return view.Object{"failed", of(engine.OutcomeFailed), "retried", of(engine.OutcomeRetry), "parked", of(engine.OutcomeParked),
		"pending", of(engine.OutcomePending), "unreadable", of(engine.OutcomeUnreadable), "overpaid", of(engine.OutcomePaid)}
}

// ShownWaiting is the maximum number of listed periods that have been waiting for their customers
// since earlier runs.
const ShownWaiting = 20

func (p *program) sayUnsettled(u Unsettled) {
	columns := []string{"SUBSCRIPTION", "PERIOD", "DUE", "AMOUNT"}
	cells := func(r engine.Result, more ...any) []any {
		return append([]any{r.Name, r.Period, r.Due, r.Amount}, more...)
	}
	failed := u.Of(engine.OutcomeFailed)
	screen.Section(p.Screen, "\nFailed:", append(columns, "REASON"), failed, func(r engine.Result) []any { return cells(r, r.Reason) })
	screen.Section(p.Screen, "\nDeclined, to be tried again:", append(columns, "NEXT ATTEMPT", "REASON"), u.Of(engine.OutcomeRetry),
		func(r engine.Result) []any { return cells(r, r.Retry, r.Reason) })
	waiting, left := u.Of(engine.OutcomePaid, engine.OutcomeParked, engine.OutcomePending, engine.OutcomeUnreadable), 0
	shown := slices.DeleteFunc(slices.Clone(waiting), func(r engine.Result) bool {
		old := !r.New && r.Outcome == engine.OutcomePending
		if old {
			left++
		}
		return old && left > ShownWaiting
	})
	screen.Section(p.Screen, "\nWaiting for the customer or for you:", append(columns, "OUTCOME", "NEW", "REASON"), shown,
		func(r engine.Result) []any {
			since := ""
			if r.New {
				since = "new"
			}
			return cells(r, r.Outcome, since, r.Reason)
		})
	if more := len(waiting) - len(shown); more > 0 {
		p.Say("and %d more that have been waiting since earlier runs", more)
	}
	named, look := append(waiting, failed...), "verify" // no command shows an unreadable item
	legible := func(r engine.Result) bool { return r.Outcome != engine.OutcomeUnreadable }
	if i := slices.IndexFunc(named, legible); i >= 0 {
		look = "subscription show " + named[i].Name.String()
	}
	if len(named) > 0 {
		p.Say("\nFor details, run: %s", p.Hint(look))
	}
}
