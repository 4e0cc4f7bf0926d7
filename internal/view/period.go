package view

import (
	"cmp"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/proof"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// Open returns the open period, or nil.
func Open(o *billing.OpenPeriod) Object {
	if o == nil {
		return nil
	}
	return Object{"period", o.Period, "due_date", o.Due, "amount", o.Amount,
		"currency", o.Amount.Currency().Code(), "price?", Price(o.Price), "payment_method?", o.Method, "intent?", o.Ref, "attempt", o.Attempt,
		"by_fallback?", o.ByFallback(), // the period uses the account's fallback method
		"state?", o.State, "pay_by?", o.PayBy, "retry_date?", o.Retry, "opened_at", o.Opened, "declined", List(o.Attempts, attempt)}
}

func attempt(a billing.Attempt) Object {
	return Object{"attempt", a.Number, "code", a.Code, "payment_method?", a.Method, "at", a.At}
}

// Period returns a period that ended unpaid, or that is parked.
func Period(p *billing.EndedPeriod) Object {
	return Object{"account", p.Account, "subscription", p.ID, "sku", p.SKU,
		"period", p.Period, "ending", p.Ending, "due_date", p.Due, "ended_at", p.Ended, "detail?", p.Reason, // for human readers

		"amount", p.Amount, "currency", p.Amount.Currency().Code(), "price?", Price(p.Price), "intent?", p.Ref,
		"declined", List(p.Attempts, attempt)}
}

// Receipt returns the receipt with the refunds and disputes of its charge. Disputes do not count as
// refunded. The store's installation is part of the receipt's id.
func Receipt(r *billing.Receipt, installation string, reversals ...*billing.ReversalRecord) Object {
	charge, note := r.Charge, ""
	if r.Kind == billing.External || r.Kind == billing.Overpayment {
		charge, note = "", r.Charge
	}
	v := Object{"id", r.Number(installation), "number?", r.InSeries, "account", r.Account, "subscription", r.ID, "sku", r.SKU, "period?", PeriodOf(r), "due_date", r.Due,
		"processed_at", r.Processed, "amount", r.Amount, "currency", r.Amount.Currency().Code(), "price?", Price(r.Price), "tax?", Taxed(r.Price),
		"charge?", charge, "note?", note, "kind", r.Kind, "email?", r.Email, "expires_at?", r.Expires}
	if refunded := Refunded(r, reversals); !refunded.IsZero() {
		v = append(v, "refunded", refunded)
	}
	if len(reversals) > 0 {
		v = append(v, "returns", List(reversals, Reversal))
	}
	return v
}

// Refunded returns the sum of the refunds that the customer has received or may still receive.
func Refunded(r *billing.Receipt, reversals []*billing.ReversalRecord) money.Amount {
	refunded := money.New(0, r.Amount.Currency())
	for _, x := range reversals {
		if sum, err := refunded.Add(x.Amount); err == nil && x.Kind == processor.Refunded && x.Counts() {
			refunded = sum
		}
	}
	return refunded
}

// Receipts returns the receipts without refunds and disputes.
func Receipts(all []*billing.Receipt, installation string) []Object {
	return List(all, func(r *billing.Receipt) Object { return Receipt(r, installation) })
}

// PeriodOf returns the receipt's period. It returns nil for an imported receipt, whose period is
// not known.
func PeriodOf(r *billing.Receipt) *int {
	if r.Kind == billing.Imported {
		return nil
	}
	return &r.Period
}

// Reversal returns the refund or dispute.
func Reversal(r *billing.ReversalRecord) Object {
	return Object{"id", r.ReversalID, "number?", r.InSeries, "version", r.Version(), "account", r.Account, "subscription", r.ID, "sku", r.SKU, "period", r.Period, "kind", r.Kind,
		"created_at", r.Created, "amount", r.Amount,
		"currency", r.Amount.Currency().Code(), "state", r.State, "reason?", r.Reason, "refusal?", r.Refusal,
		"charge?", r.Charge, "refund?", r.Ref, // the processor's ID
		"processed_at?", r.Processed, // when the processor handled it
		"ended_at?", r.Ended, "evidence_due_at?", r.Evidence}
}

// Result returns the result for one period in a run. In a dry run, the period has no outcome yet.
func Result(r engine.Result) Object {
	return Object{"account", r.Account, "subscription", r.ID, "sku?", r.SKU, "period", r.Period, "due_date?", r.Due,
		"amount?", r.Amount, "currency?", r.Amount.Currency().Code(), "outcome?", r.Outcome, "detail?", r.Reason}
}

// Proof returns the evidence that a period was charged at most once.
func Proof(x *proof.Proof, installation string) Object {
	var end Object
	if x.Ended != nil {
		end = Period(x.Ended)
	}
	return Object{"account", x.Account, "subscription", x.ID, "sku?", x.SKU, "period", x.Period, "state", x.State,
		"due_date?", x.Due, "reminder_date?", x.ReminderDay, "reminded_at?", x.Reminded, "open?", Open(x.OpenPeriod),
		"ended?", end, "receipts", Receipts(x.Receipts, installation), "receipt_expired?", x.Expired, "receipt_months", x.ReceiptMonths,
		"imported", Receipts(x.Imported, installation), "declined", List(x.Attempts, attempt),
		"returns", List(x.Reversals, Reversal), "intents", List(x.Intents, intent), "listed_since", x.Since,
		"alarm", x.Alarm, "why", x.Why}
}

// intent returns an intent in its state at the processor.
func intent(i proof.Intent) Object {
	return Object{"intent", i.Ref, "generation", i.Tag.Generation, "in_the_store", i.Role, "state", cmp.Or(i.State, "unknown"),
		"since?", i.Changed, "amount?", i.Amount, "currency?", i.Amount.Currency().Code(), "code?", i.Code,
		"returns", List(i.Reversals, func(r processor.Reversal) Object {
			return Object{"id", r.ID, "kind", r.Kind, "state", r.State, "amount", r.Amount,
				"currency", r.Amount.Currency().Code(), "created_at", r.Created}
		})}
}
