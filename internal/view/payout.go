package view

import (
	"github.com/duesday/duesday/internal/billing/payout"
	"github.com/duesday/duesday/internal/processor"
)

// Payouts returns the comparison of payouts with receipts.
func Payouts(r *payout.Report) Object {
	return Object{"payouts", List(r.Payouts, func(p *payout.Payout) Object {
		return append(Payout(p), "transactions", List(p.Lines, PayoutLine))
	}), "charges_without_receipt", List(r.Unreceipted, PayoutLine), "receipts_without_payout", List(r.Unsettled, PayoutLine),
		"complete", len(r.Gaps) == 0, "incomplete", List(r.Gaps, PayoutGap), "receipts_in_doubt?", r.Untold}
}

// Payout returns a payout without its transactions. Its parts add up to the amount.
func Payout(p *payout.Payout) Object {
	return Object{"payout", p.ID, "stripe_account?", p.At, "arrival", p.Arrival, "state", p.State, "currency", p.Amount.Currency().Code(),
		"receipts", p.Sum(processor.SettledCharge), "refunds", p.Sum(processor.SettledRefund),
		"disputes", p.Sum(processor.SettledDispute), "other", p.Sum(processor.SettledOther), "fees", p.Sum(processor.SettledFee),
		"unlisted", p.Unlisted, "amount", p.Amount}
}

// PayoutLine returns a transaction in a payout, or a receipt in none. For one that is not this
// store's, own is false.
func PayoutLine(l *payout.Line) Object {
	v := Object{"payout?", l.Payout.ID, "stripe_account?", l.Payout.At, "arrival?", l.Payout.Arrival, "transaction?", l.ID, "kind", l.Kind,
		"type?", l.Type, "own", l.Own, "created_at", l.Created, "currency?", l.Net.Currency().Code(), "gross?", l.Gross,
		"fee?", l.Fee, "net?", l.Net, "charged?", l.Charged, "charged_currency?", l.Charged.Currency().Code(), "charge?", l.Ref,
		"receipt?", l.ReceiptID, "problem?", l.Problem}
	if r := l.Receipt; r != nil {
		return append(v, "number?", r.InSeries, "account", r.Account, "subscription", r.ID, "period", r.Period)
	}
	if l.Tag.Account == "" {
		return v
	}
	return append(v, "account", l.Tag.Account, "subscription", l.Tag.Subscription, "period", l.Tag.Period)
}

// PayoutGap returns what is missing in an incomplete comparison.
func PayoutGap(p *payout.Payout) Object {
	return Object{"stripe_account?", p.At, "payout?", p.ID, "detail", p.Hidden}
}
