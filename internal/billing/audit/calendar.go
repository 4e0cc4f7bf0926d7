package audit

import (
	"github.com/duesday/duesday/internal/billing"
)

// This file holds subscriptions that have ended against the calendar. That each period before the next
// one has a receipt or a record is comparePeriods.

// checkEnd reports a canceled subscription with a period that was due by the day of the request, and
// that was neither collected nor recorded. An older Duesday noted no day: then it cannot tell.
func (a *auditor) checkEnd(k *audited, s *billing.Subscription) {
	if s.Status == billing.Completed && s.PaidOff() {
		k.owes = int32(s.Installments)
	}
	due, err := s.Schedule().Due(s.Period)
	if s.Status != billing.CanceledSub || s.CancelDate.IsZero() || s.PaidOff() || err != nil || due.After(s.CancelDate) {
		return
	}
	a.problem("period dropped", s.Name, s.Period, "it was due on %s, and the cancellation of %s neither collected it nor "+
		"recorded that it ended unpaid", due, s.CancelDate)
}

// compareInstallments reports a completed subscription whose calendar has fewer paid periods than
// installments. A period counts as paid if no record says that it ended unpaid.
func (a *auditor) compareInstallments(s *audited, n billing.Name) {
	unpaid := int32(0)
	for _, m := range s.marks {
		if m.kind == recordOfEnd && m.period < s.next {
			unpaid++
		}
	}
	if s.next-unpaid < s.owes {
		a.problem("completed too early", n, int(s.next), "%d of its %d periods ended unpaid, and it had %d installments", unpaid,
			s.next, s.owes)
	}
}
