package view

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/money"
)

// DuePayment returns a subscription with a due payment.
func DuePayment(r billing.DueRow) Object {
	day, _ := strconv.Atoi(r.PaymentDay) // 0 if another tool wrote something else
	return Object{"account", r.Account, "subscription", r.ID, "sku?", r.SKU, "email?", r.Email,
		"next_payment_date", r.NextPayment, "amount?", r.Amount, "currency?", r.Amount.Currency().Code(),
		"payment_day?", day, "payment_method?", r.Method, "problem?", r.Problem}
}

// DueReminder returns a subscription with a due reminder.
func DueReminder(r billing.DueRow) Object {
	return Object{"account", r.Account, "subscription", r.ID, "sku?", r.SKU, "email?", r.Email,
		"next_reminder_date", r.NextReminder, "next_payment_date", r.NextPayment, "problem?", r.Problem}
}

// Unpaid returns a period that a run has left unpaid.
func Unpaid(p *job.Unpaid) Object {
	return Object{"account", p.Account, "subscription", p.ID, "sku?", p.SKU, "period", p.Number, "outcome", p.Outcome, "due_date?", p.Due,
		"retry_date?", p.Retry, "amount?", p.Amount, "currency?", p.Amount.Currency().Code(), "detail?", p.Reason}
}

// Run returns a job's run with its progress and counts.
func Run(r *job.Report) Object {
	v := append(Object{"id", r.PathID(), "state", StateOf(r)}, Counts(r)...)
	return append(v, "rows", r.Rows, "rows_per_second", math.Round(Rate(r)), "process?", r.Process, "actor?", r.Actor, "started_at", r.Started,
		"seen_at?", r.Seen, "ended_at?", r.Ended, "detail?", r.Reason, "settings?", r.Settings)
}

// StateOf returns the run's state as a code.
func StateOf(r *job.Report) string { return strings.ReplaceAll(string(r.State), " ", "_") }

// Rate returns a run's number of subscriptions per second, up to the last record.
func Rate(r *job.Report) float64 { return float64(r.Rows) / max(r.Elapsed.Seconds(), 0.001) }

// Counts returns the run's counts by outcome. The field due is their sum.
func Counts(r *job.Report) Object {
	v := Object{"kind", r.Kind, "date", r.Date, "from?", r.From, "due", r.Due()}
	if r.Kind == billing.Reminders {
		v = append(v, OutcomeName(engine.OutcomeSent), r.Counts[engine.OutcomeSent], "skipped", r.Counts[engine.OutcomeSkipped],
			"failed", r.Counts[engine.OutcomeFailed])
	} else {
		for _, o := range engine.Outcomes() {
			v = append(v, string(o), r.Counts[o])
		}
		v = append(v, "pending_customer?", r.Awaited, "amounts", Sums(r.Amounts.All()), "amounts_unpaid?", unpaid(r), "cards_taken_over?", r.Cards, "keep_own_method?", Names(r.KeepOwn),
			"refunds_and_disputes?", r.Reversals, // recorded or changed
			"orphans_cancelled?", r.Orphans)
	}
	if len(r.Doubts) > 0 {
		v = append(v, "perhaps_paid_twice", List(r.Doubts, func(d *billing.Doubt) Object {
			return Object{"account", d.Account, "subscription", d.ID, "period", d.Period, "moved_to?", d.Moved}
		}))
	}
	return append(v, "unreadable?", r.Counts[engine.OutcomeUnreadable], "elapsed_ms", r.Elapsed.Milliseconds(),
		"dry_run?", r.DryRun, "charging_off?", r.Off)
}

// unpaid returns the sums of the periods that were not paid, by outcome and currency.
func unpaid(r *job.Report) (v Object) {
	for _, o := range append(engine.Outcomes(), billing.AwaitsCustomer) {
		if sums := r.Unpaid[o]; sums.Len() > 0 {
			v = append(v, string(o), Sums(sums.All()))
		}
	}
	return v
}

// OutcomeName returns the outcome's name in the output. OutcomeSent is named "written", because a mail in
// the outbox is not sent yet.
func OutcomeName(o engine.Outcome) string {
	if o == engine.OutcomeSent {
		return "written"
	}
	return string(o)
}

// Audit returns an audit's result.
func Audit(a *audit.Report) Object {
	problem := func(x audit.Problem) Object {
		return Object{"kind", x.Kind, "account", x.Account, "subscription?", x.Subscription, "period", x.Period,
			"detail", x.Detail}
	}
	v := Object{"ok", a.OK, "subscriptions", a.Subscriptions, "receipts", a.Receipts, "charges", a.Charges,
		"imported", a.Imported, "external", a.External, "open", a.Open, "parked", a.Parked, "refunds?", a.Refunds,
		"disputes?", a.Disputes, "foreign?", a.Others, "problems", List(a.Problems, problem)}
	if len(a.Notes) > 0 {
		v = append(v, "notes", List(a.Notes, problem))
	}
	return v
}

// Report returns the monthly report.
func Report(r *report.Report) Object {
	return Object{"as_of", r.AsOf, "time_zone", r.Zone, "months", List(r.Months, Month), "outstanding_before", Sums(slices.Values(r.Before)),
		"mrr", Sums(slices.Values(r.MRR)), "expected", List(r.Expected, Expected), "taxes?", List(r.Taxes, Tax), "taxes_left?", r.TaxesLeft, "unreadable?", r.Unreadable}
}

// Expected returns the charges that are expected of one day's runs in one currency.
func Expected(x report.Expected) Object {
	return Object{"date", x.Date, "currency", x.Amount.Currency().Code(), "amount", x.Amount, "count", x.Count}
}

// Tax returns the sum of one month's receipts and refunds with a tax rate, or of those without a rate.
func Tax(x report.Tax) Object {
	month := x.Month.String()[:len("2026-01")]
	if !x.Rated {
		return Object{"month", month, "currency", x.Currency.Code(), "receipts", x.Receipts, "gross", x.Gross, "refunds", x.Refunds,
			"refunded", x.Refunded}
	}
	return Object{"month", month, "country?", x.Country, "rate", x.Rate.String(), "note?", x.Note,
		"currency", x.Currency.Code(), "receipts", x.Receipts, "net", x.Net, "tax", x.Tax, "gross", x.Gross,
		"refunds", x.Refunds, "refunded_net", x.RefundedNet, "refunded_tax", x.RefundedTax, "refunded", x.Refunded}
}

// Month returns one month of the report, in one currency.
func Month(m report.Month) Object {
	o := Object{"month", m.First.String()[:len("2026-01")], "currency", m.Outstanding.Currency().Code()}
	for _, kind := range report.Kinds {
		o = append(o, string(kind), m.Sums[kind])
	}
	return append(o, "outstanding", m.Outstanding, "complete", m.Missing == "")
}

// Sums returns an object with one sum per currency.
func Sums(all iter.Seq[money.Amount]) Object {
	o := Object{}
	for a := range all {
		o = append(o, a.Currency().Code(), a)
	}
	return o
}
