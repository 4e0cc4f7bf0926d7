// Package due completes the due rows of an index for people and programs who ask what the next runs will
// do. It does not find the rows, which package billing does.
package due

import (
	"cmp"
	"context"
	"errors"

	"github.com/duesday/duesday/internal/billing"
)

// Complete reads the base items of the row and fills in what an index does not contain: the SKU and the
// amount of the first period to be charged, and the reason why a subscription or its account cannot be
// read. It returns false if the subscription will be canceled instead of charged.
func Complete(ctx context.Context, e *billing.Records, r *billing.DueRow) bool {
	s, err := e.Load(ctx, r.Name)
	_, unread := e.Account(ctx, r.Account)
	switch illegible, ok := errors.AsType[*billing.IllegibleError](cmp.Or(err, unread)); {
	case ok:
		r.Problem = billing.UnreadableReason(illegible)
	case err != nil: // only the row's own values are known
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
	}
	if err == nil && s.PaidByWire(s.AtHand()) {
		r.Method = string(billing.ByWire)
	}
	return true
}
