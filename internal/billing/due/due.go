// Package due adds item data to due rows from an index, for commands and the API. It does not find the rows,
// which package billing does.
package due

import (
	"cmp"
	"context"
	"errors"

	"github.com/duesday/duesday/internal/billing"
)

// Complete reads the row's items and sets what an index does not contain: the SKU and amount of the first
// period to charge, or the reason why the subscription or its account is unreadable. It returns false if the
// subscription will be canceled instead of charged.
func Complete(ctx context.Context, e *billing.Records, r *billing.DueRow) bool {
	s, err := e.Load(ctx, r.Name)
	_, unread := e.Account(ctx, r.Account)
	switch illegible, ok := errors.AsType[*billing.IllegibleError](cmp.Or(err, unread)); {
	case ok:
		r.Problem = billing.UnreadableReason(illegible)
	case err != nil: // keep the row's own values
	case s.WillEnd():
		return false
	case s.Open != nil:
		r.SKU, r.Amount = s.SKUOf(s.Open), s.Open.Amount
	case s.Collect > 0:
		for past, err := range e.GetEndedPeriods(ctx, r.Name) {
			if err == nil && past.Period == s.AtHand() {
				r.SKU, r.Amount = past.SKU, past.Amount
			}
		}
	default:
		r.Amount = s.AmountOf(s.Period)
	}
	if err == nil && s.PaidByWire(s.AtHand()) {
		r.Method = string(billing.ByWire)
	}
	return true
}
