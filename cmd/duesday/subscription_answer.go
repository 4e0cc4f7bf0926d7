package main

import (
	"reflect"
	"strings"

	"github.com/duesday/duesday/internal/billing"
)

// The answer of a command that changes a subscription: what differs, the next due dates, and the
// subscription as it is now.

// shownDues is how many due dates a changed subscription is shown with.
const shownDues = 3

// sayChanged prints the answer for people, and viewChanged is the same for programs. old is the
// subscription before; nil: a new one.
func (p *program) sayChanged(old, s *billing.Subscription, what string) {
	p.say("subscription %s %s", s.Name, what)
	for _, d := range differences(old, s) {
		before, after := cell(d.before), cell(d.after)
		if d.name == "pending" {
			before, after = pendingText(old), pendingText(s)
		}
		p.say("  %s: %s -> %s", strings.ReplaceAll(d.name, "_", " "), printable(before), printable(after))
	}
	if old != nil {
		p.sayReplaced(s.Replaced(old.Pending), "")
	}
	for i, d := range s.Upcoming(shownDues) {
		p.say("  %s %s: %s for %s", [...]string{"next due on", "then on", "then on"}[i], d.Due, d.Amount.Format(), d.SKU)
	}
	p.subscriptionFields(s)
}

func (p *program) showChanged(old, s *billing.Subscription, what string) error {
	p.sayChanged(old, s, what)
	return p.json(viewChanged(old, s))
}

func viewChanged(old, s *billing.Subscription) object {
	changed := object{}
	for _, d := range differences(old, s) {
		changed = append(changed, d.name, object{"before", d.before, "after", d.after})
	}
	v := append(viewSubscription(s), "changed", changed, "next_due", views(s.Upcoming(shownDues), viewUpcoming))
	if old != nil {
		v = append(v, "replaces?", viewPending(s.Replaced(old.Pending)))
	}
	return v
}

// sayReplaced names a pending plan that a change of the plan has dropped, or would drop; nil: none.
func (p *program) sayReplaced(was *billing.Plan, of string) {
	if was != nil {
		p.say("  replaces: sku %s %s from %s%s", was.SKU, was.Amount.Decimal(), was.From, of)
	}
}

func viewUpcoming(u billing.Upcoming) object {
	return object{"period", u.Period, "due_date", u.Due, "sku", u.SKU, "amount", u.Amount.Decimal(),
		"currency", u.Amount.Currency().Code()}
}

// A difference is a member of the view of a subscription that a command has changed.
type difference struct {
	name          string
	before, after any
}

func differences(old, s *billing.Subscription) (all []difference) {
	if old == nil {
		return nil
	}
	was, now := viewSubscription(old), viewSubscription(s) // they have the same members
	for i := 0; i < len(now); i += 2 {
		name := strings.TrimSuffix(now[i].(string), "?")
		if before, after := was.shown(i+1), now.shown(i+1); name != "open" && !reflect.DeepEqual(before, after) {
			all = append(all, difference{name, before, after})
		}
	}
	return all
}
