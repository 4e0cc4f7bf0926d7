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
	var amount, sku, method, address string
	var day, reminderDays int
	var early bool
	from, on := dateFlag(), dateFlag()
	var f *pflag.FlagSet
	c := leaf("update "+subscriptionName, "Change plan, amount, payment day, payment method, reminder or address",
		func(ctx context.Context, args []string) error {
			n, err := parseName(args[0])
			if err != nil {
				return err
			}
			change := billing.Change{PaymentDay: given(f, "payment-day", day), Method: given(f, "payment-method", method),
				ReminderDays: given(f, "reminder-days", reminderDays), Address: given(f, "address", address),
				SKU: given(f, "sku", sku)}
			switch {
			case change == (billing.Change{}) && !f.Changed("amount"):
				return usagef("%s: nothing to change: give a flag", p.command)
			case early && change.PaymentDay == nil:
				return usagef("--early is for a new --payment-day")
			case !from.value.IsZero() && change.SKU == nil && !f.Changed("amount"):
				return usagef("--from is for a new --sku or --amount")
			}
			change.Early, change.From = early, from.value
			if err := p.walkable("date", on.value); err != nil {
				return err
			}
			return p.with(ctx, need{processor: change.Method != nil}, func(s *session) error {
				s.engine = s.engine.On(on.value)
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
	c.Long = updateLong
	f = c.Flags()
	f.StringVar(&sku, "sku", "", "`SKU` of the new plan, from the next period")
	f.StringVar(&amount, "amount", "", "`AMOUNT` in the subscription's currency")
	f.Var(&from, "from", "with --sku or --amount: from the first period due on it or later")
	f.IntVar(&day, "payment-day", 0, "`DAY` of the month, or of the week")
	f.BoolVar(&early, "early", false,
		"with --payment-day: from the last such day before the next due date, if it is still ahead")
	f.StringVar(&method, "payment-method", "", "the processor's `TOKEN`; never a card number")
	f.IntVar(&reminderDays, "reminder-days", 0, "`DAYS` before a payment its reminder is sent; 0 for none")
	f.StringVar(&address, "address", "", "`TEXT` of the postal address")
	f.Var(&on, "date", businessDay)
	return c
}

// businessDay describes the flag of the day of a request.
const businessDay = "the business day, as of a run (default today)"

const updateLong = `Change a subscription. A new amount applies from the next period that is not open yet,
a new payment method at once: a period that was declined is tried again with it.

A new plan (--sku, with its --amount) begins with the first period due after today; one that
is due or open is charged as it was agreed. With --from it begins with the first period due on
that day or later, and so does a new amount. Until then it is pending, and a second such change
takes its place; the plan that is in force takes it back.

A new payment day applies from the first such day on or after the next due date. Of several
new days before one due date the last one counts, as if it were the only one. A date that has
passed by then is due at once.`

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
	p.sayChanged(old, sub, "updated")
	return p.json(append(viewChanged(old, sub), moved...))
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

// subscriptionAction is a command with one action on a subscription, on a business day. It has the
// processor: the action may end an open period.
func (p *program) subscriptionAction(name, short string,
	do func(*engine.Engine, context.Context, billing.Name) (*billing.Subscription, error)) *cobra.Command {
	on := dateFlag()
	c := p.subscriptionLeaf(name, short, need{processor: true},
		func(ctx context.Context, s *session, n billing.Name) error {
			old, err := s.subscription(ctx, n)
			if err != nil {
				return err
			}
			sub, err := do(s.engine.On(on.value), ctx, n)
			p.deliver(ctx, s)
			if err != nil {
				return notFound(err, "subscription "+n.String())
			}
			return p.showChanged(old, sub, "is "+string(sub.Status))
		})
	c.Flags().Var(&on, "date", businessDay)
	return checked(c, func([]string) error { return p.walkable("date", on.value) })
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
