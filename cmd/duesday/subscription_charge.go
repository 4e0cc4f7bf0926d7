package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
)

func (p *program) subscriptionCharge() *cobra.Command {
	var r engine.PeriodCharge
	var c *cobra.Command
	c = p.subscriptionLeaf("charge", "Charge one period now: the parked one, or one that did not end paid",
		need{processor: true}, func(ctx context.Context, s *session, n billing.Name) error {
			var a engine.PeriodCharged
			var err error
			if c.Flags().Changed("period") {
				a, err = s.engine.ChargePeriod(ctx, n, r)
			} else {
				a.Results, a.Subscription, err = s.engine.ChargeParked(ctx, n)
			}
			p.deliver(ctx, s)
			if err != nil {
				return notFound(err, "subscription "+n.String())
			}
			return p.showCharged(s, n, r.Period, a)
		})
	f := c.Flags()
	f.IntVar(&r.Period, "period", 0, "`NUMBER` of the period, from 0")
	f.StringVar(&r.Reopen, "reopen", "", "with --period: `REASON` to charge a void or skipped period after all")
	f.StringVar(&r.Key, "key", "", "with --period: `TEXT` of this request; the same key again charges nothing more")
	return checked(c, func([]string) error {
		if (f.Changed("reopen") || f.Changed("key")) && !f.Changed("period") {
			return usagef("--reopen and --key are for a --period")
		}
		return nil
	})
}

// showCharged shows the answer. A period that is neither paid nor parked leaves a person to act.
func (p *program) showCharged(s *session, n billing.Name, period int, a engine.PeriodCharged) error {
	sub := a.Subscription
	p.sayResults(a.Results)
	number := ""
	if a.Receipt != nil {
		number = a.Receipt.Number(s.engine.Opened.Installation)
	}
	switch {
	case a.Repeated && !a.Paid && len(a.Results) == 0:
		p.say("the key was known, and period %d is not tried once more", period)
	case a.Paid:
		p.say("period %d of %s is paid already%s", period, n, prefixed(": receipt ", number))
	}
	for _, r := range a.Results {
		switch {
		case r.Outcome == engine.OutcomeFailed, r.Outcome == engine.OutcomePending:
			p.code = exitPerson
		case r.Outcome == engine.OutcomePaid && sub.Status == billing.PastDue:
			p.warn("a due date has passed meanwhile, and the subscription is still past_due: %s", p.hint("subscription resume "+
				n.String()))
		}
	}
	p.sayChanged(nil, sub, "is "+string(sub.Status))
	return p.json(object{"results", views(a.Results, viewResult), "paid_before?", a.Paid, "repeated?", a.Repeated, "receipt?", number,
		"subscription", viewSubscription(sub)})
}
