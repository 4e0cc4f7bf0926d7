package bookkeeping

import (
	"cmp"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/view"
)

// methodOf describes how the customer pays for the subscription, for human readers. usual is the
// text for a subscription without its own payment method.
func methodOf(s *billing.Subscription, usual string) string {
	if s.Collection == billing.ByWire {
		return "by wire (collection manual)"
	}
	return cmp.Or(s.Method, usual)
}

// pendingText returns the pending plan change as text for human readers.
func pendingText(s *billing.Subscription) string {
	if s.Pending == nil {
		return ""
	}
	units := screen.Prefixed(" times ", screen.Positive(s.Pending.Quantity))
	return s.Pending.SKU + " for " + s.Pending.Amount.Format() + units + " from " + view.Date(s.Pending.From)
}

// sayChanged prints how a command changed a subscription. view.Changed returns the same as JSON
// members. old is the subscription before the change. It is nil if the subscription is new or if
// its plan did not change.
func (p *program) sayChanged(old, s *billing.Subscription, what string) {
	p.Say("subscription %s %s", s.Name, what)
	if old != nil {
		all := view.Changes(old, s)
		for i, d := range all {
			switch d.Name {
			case "detail": // why the subscription is parked
				all[i].Name = "parked"
			case "pending":
				all[i].Before, all[i].After = pendingText(old), pendingText(s)
			case "upgrade":
				all[i].Before, all[i].After = upgradeText(old), upgradeText(s)
			case "collection":
				all[i].Before, all[i].After = cmp.Or(old.Collection, billing.Automatic), cmp.Or(s.Collection, billing.Automatic)
			}
		}
		p.SayDifferences(all)
		p.sayReplaced(s.Replaced(old.Pending), "")
	}
	for i, d := range s.Upcoming(view.ShownDues) {
		p.Say("  %s %s: %s for %s", [...]string{"next due on", "then on", "then on"}[i], d.Due, d.Amount.Format(), d.SKU)
	}
}

// sayReplaced prints the pending plan that a plan change replaces, or would replace. It prints
// nothing if was is nil.
func (p *program) sayReplaced(was *billing.Plan, of string) {
	if was != nil {
		p.Say("  replaces: sku %s %s from %s%s", was.SKU, was.Amount.Decimal(), was.From, of)
	}
}
