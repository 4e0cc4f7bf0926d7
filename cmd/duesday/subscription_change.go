package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

func (p *program) subscriptionUpdate() *cobra.Command {
	var amount, method, address string
	var day, reminderDays int
	var early bool
	var f *pflag.FlagSet
	c := leaf("update "+subscriptionName, "Change amount, payment day, payment method, reminder or address",
		func(ctx context.Context, args []string) error {
			n, err := parseName(args[0])
			if err != nil {
				return err
			}
			change := billing.Change{PaymentDay: given(f, "payment-day", day), Method: given(f, "payment-method", method),
				ReminderDays: given(f, "reminder-days", reminderDays), Address: given(f, "address", address)}
			switch {
			case change == (billing.Change{}) && !f.Changed("amount"):
				return usagef("%s: nothing to change: give a flag", p.command)
			case early && change.PaymentDay == nil:
				return usagef("--early is for a new --payment-day")
			}
			change.Early = early
			return p.with(ctx, need{processor: change.Method != nil}, func(s *session) error {
				old, err := s.subscription(ctx, n)
				if err == nil && f.Changed("amount") {
					change.Amount = new(money.Amount)
					*change.Amount, err = parseMoney(amount, old.Amount.Currency())
				}
				if err != nil {
					return err
				}
				return p.updateSubscription(ctx, s, old, change)
			})
		})
	c.Long = `Change a subscription. A new amount applies from the next period that is not open yet,
a new day from the first such day on or after the next due date, a new payment method
at once: a period that was declined is tried again with it. Of several new days before one
due date the last one counts, as if it were the only one. A date that has passed by then is
due at once.`
	f = c.Flags()
	f.StringVar(&amount, "amount", "", "`AMOUNT` in the subscription's currency")
	f.IntVar(&day, "payment-day", 0, "`DAY` of the month, or of the week")
	f.BoolVar(&early, "early", false,
		"with --payment-day: from the last such day before the next due date, if it is still ahead")
	f.StringVar(&method, "payment-method", "", "the processor's `TOKEN`; never a card number")
	f.IntVar(&reminderDays, "reminder-days", 0, "`DAYS` before a payment its reminder is sent; 0 for none")
	f.StringVar(&address, "address", "", "`TEXT` of the postal address")
	return c
}

// updateSubscription changes the subscription, and tries its open period again with a new payment
// method, unless charging is off: then the next run does.
func (p *program) updateSubscription(ctx context.Context, s *session, old *billing.Subscription,
	c billing.Change) error {
	n := old.Name
	sub, err := s.engine.UpdateSubscription(ctx, n, c)
	if err != nil {
		return err
	}
	var moved object
	if c.PaymentDay != nil {
		moved = p.sayMoved(old, sub.Anchor, sub.AnchorPeriod)
	}
	if (sub.Open != nil || sub.Collect > 0) && c.Method != nil {
		results, after, err := s.engine.CollectNow(ctx, n)
		if after != nil {
			sub = after
		}
		p.deliver(ctx, s)
		if err != nil && !errors.Is(err, engine.ErrChargingOff) {
			return err
		}
		p.sayResults(results)
	}
	p.sayChanged(sub, "updated")
	return p.json(append(viewSubscription(sub), moved...))
}

// sayMoved tells the period's due date before a change of the payment day and after it, and returns
// both for programs.
func (p *program) sayMoved(old *billing.Subscription, after civil.Date, period int) object {
	before, err := old.Schedule().Due(period)
	if err != nil { // somebody else has changed it meanwhile
		return nil
	}
	days := after.DaysSince(before)
	text := plural(days, "day") + " later"
	if days < 0 {
		text = plural(-days, "day") + " earlier"
	}
	p.say("period %d: due %s before, and %s now: %s", period, before, after, text)
	return object{"due_before", before, "due_after", after, "days_later", days}
}

// subscriptionAction is a command with one action on a subscription. It has the processor: the
// action may end an open period.
func (p *program) subscriptionAction(name, short string,
	do func(*engine.Engine, context.Context, billing.Name) (*billing.Subscription, error)) *cobra.Command {
	return p.subscriptionLeaf(name, short, need{processor: true},
		func(ctx context.Context, s *session, n billing.Name) error {
			sub, err := do(s.engine, ctx, n)
			p.deliver(ctx, s)
			if err != nil {
				return notFound(err, "subscription "+n.String())
			}
			return p.showChanged(sub, "is "+string(sub.Status))
		})
}

func (p *program) subscriptionCancel() *cobra.Command {
	var atEnd bool
	c := p.subscriptionAction("cancel", "End a subscription, now or instead of its next payment",
		func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
			return e.Cancel(ctx, n, atEnd)
		})
	c.Flags().BoolVar(&atEnd, "at-period-end", false, "let the paid period run out first; resume takes it back")
	return c
}

func (p *program) sayResults(results []engine.Result) {
	for _, r := range results {
		reason := ""
		if r.Reason != "" {
			reason = " (" + r.Reason + ")"
		}
		p.say("period %d, due %s, %s: %s%s", r.Period, date(r.Due), r.Amount.Format(), r.Outcome, reason)
	}
}
