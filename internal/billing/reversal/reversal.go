// Package reversal decides what follows when the customer's bank takes the payment of a period
// back: whether its subscription is parked, and whether another payment of the period may be
// recorded.
//
// It does not commit anything, which is up to package engine. It does not charge a period again,
// because a lost dispute may be won on appeal.
package reversal

import (
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// TakenBack reports whether the record shows, and was did not, that the bank has taken the payment
// back: a dispute is lost, or a bank debit was returned. was is nil for a new record.
func TakenBack(was, r *billing.ReversalRecord) bool {
	return r.Kind == processor.Disputed && r.State == processor.ReversalSucceeded && (was == nil || was.State != r.State)
}

// held begins the reason of a subscription that stays parked until an operator decides, even if its
// open period is paid.
const held = "taken back: "

// Park parks the subscription in memory because of the record, on that day. It returns false if
// nothing is charged for the subscription any more, or if another tool has moved it, because a run
// parks it then.
func Park(s *billing.Subscription, r *billing.ReversalRecord, today civil.Date) bool {
	charged := s.Status == billing.Active || s.Status == billing.ParkedState
	if !charged || s.WillEnd() || s.PaidOff() || s.Altered() != "" || s.Removed() {
		return false
	}
	s.Status, s.Collect = billing.ParkedState, 0
	s.Parked = fmt.Sprintf("%speriod %d by dispute %s", held, r.Period, r.ReversalID)
	if r.Reason != "" {
		s.Parked += " (" + r.Reason + ")"
	}
	s.NextPayment, s.NextReminder = today, civil.Date{}
	return true
}

// Holds reports whether the subscription is parked because of a reversal, and no operator has
// decided yet.
func Holds(s *billing.Subscription) bool {
	return s.Status == billing.ParkedState && strings.HasPrefix(s.Parked, held)
}

// Release records an operator's decision in memory, and reports whether there was one to make. The
// subscription stays parked until its period is charged, paid or skipped.
func Release(s *billing.Subscription) bool {
	holds := Holds(s)
	if holds {
		s.Parked = strings.TrimPrefix(s.Parked, held)
	}
	return holds
}
