package audit

import (
	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
)

// A status has a cause: a person's request, which stands in the item, or a failed period. Without one,
// another tool has written the status, and no run would ever charge the subscription again. Items of an
// older Duesday do not have their causes; nor has an item that another tool made.

// told reports whether the subscription's status was set by a Duesday that stores the cause. In a store
// of an older one, a subscription has lived since then if a payment and its due date tell so.
func (a *auditor) told(s *billing.Subscription) bool {
	since := a.Opened.Caused
	if since.IsZero() || since.Equal(a.Opened.Created) {
		return !since.IsZero()
	}
	due, err := s.Schedule().Due(s.Period - 1)
	return s.Created.After(since) || err == nil && s.Period > 0 && s.LastPayment.After(since) && due.After(civil.Of(since).AddDays(1))
}

// A cause is what a period tells of a subscription that is past due after it.
type cause uint8

const (
	notKnown cause = iota
	failed         // it has failed, or had before it was paid
	passed         // it says nothing: the period before does
	contrary       // it was paid when it was due: the subscription was active
)

// checkPastDue reports a subscription that is past due although its last period was paid. Periods that
// were void while it was past due, or paid after the next one was due, leave it so.
func (a *auditor) checkPastDue(s *audited, n billing.Name) {
	if !s.pastDue {
		return
	}
	for period := int(s.next) - 1; period >= 0; period-- {
		switch a.causeOf(s, period) {
		case contrary:
			a.problem("past due without a failure", n, int(s.next), "period %d was paid and has not failed, so no run charges it; resume "+
				"it, or cancel it", period)
			return
		case notKnown, failed:
			return
		case passed:
		}
	}
}

func (a *auditor) causeOf(s *audited, period int) (c cause) {
	next, err := s.due(period + 1)
	for _, m := range s.marks {
		switch {
		case int(m.period) != period || m.kind == chargeAlone:
		case m.failed || err != nil:
			return failed
		case m.kind != receiptOfCharge || !m.taken.Before(next):
			c = max(c, passed)
		case m.taken.Before(civil.Of(a.Opened.Summed)): // no receipt of that time tells of a failure
			return notKnown
		default:
			c = contrary
		}
	}
	return c
}
