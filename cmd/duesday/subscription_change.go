package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/money"
)

type changeFlags struct {
	amount, method, address string
	day, reminderDays       int
}

func (p *program) subscriptionUpdate() *cobra.Command {
	f := new(changeFlags)
	c := &cobra.Command{
		Use:   "update " + subscriptionName,
		Short: "Change amount, payment day, payment method, reminder or address",
		Long: `Change a subscription. A new amount applies from the next period that is not open yet,
a new day from the first such day on or after the next due date, a new payment method
at once: a period that was declined is tried again with it.`,
		Args: want(subscriptionName),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := parseName(args[0])
			if err != nil {
				return err
			}
			given := cmd.Flags().Changed
			if !given("amount") && !given("payment-day") && !given("payment-method") && !given("reminder-days") &&
				!given("address") {
				return usagef("%s: nothing to change: give a flag", cmd.CommandPath())
			}
			return p.update(cmd.Context(), n, f, given)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.amount, "amount", "", "`AMOUNT` in the subscription's currency")
	fs.IntVar(&f.day, "payment-day", 0, "`DAY` of the month, or of the week")
	fs.StringVar(&f.method, "payment-method", "", "the processor's `TOKEN`; never a card number")
	fs.IntVar(&f.reminderDays, "reminder-days", 0, "`DAYS` before a payment its reminder is sent; 0 for none")
	fs.StringVar(&f.address, "address", "", "`TEXT` of the postal address")
	return c
}

func (p *program) update(ctx context.Context, n billing.Name, f *changeFlags, given func(string) bool) error {
	return p.with(ctx, need{processor: given("payment-method")}, func(s *session) error {
		old, err := s.engine.Subscription(ctx, n)
		if err != nil {
			return notFound(err, "subscription "+n.String())
		}
		var c billing.Change
		if given("amount") {
			amount, err := money.Parse(f.amount, old.Amount.Currency())
			if err != nil {
				return usagef("--amount: %w", err)
			}
			c.Amount = &amount
		}
		if given("payment-day") {
			c.PaymentDay = &f.day
		}
		if given("payment-method") {
			c.Method = &f.method
		}
		if given("reminder-days") {
			c.ReminderDays = &f.reminderDays
		}
		if given("address") {
			c.Address = &f.address
		}
		sub, err := s.engine.UpdateSubscription(ctx, n, c)
		if err != nil {
			return err
		}
		if sub.Open == nil || c.Method == nil {
			return p.showChanged(sub, "updated")
		}
		return p.chargeOpen(ctx, s, sub)
	})
}

// chargeOpen tries the open period again with its new payment method, unless charging is
// off: then the next run does.
func (p *program) chargeOpen(ctx context.Context, s *session, sub *billing.Subscription) error {
	results, after, err := s.engine.CollectNow(ctx, sub.Name)
	if after != nil {
		sub = after
	}
	p.deliver(ctx, s)
	if err != nil && !errors.Is(err, engine.ErrChargingOff) {
		return err
	}
	p.sayResults(results)
	return p.showChanged(sub, "updated")
}

// subscriptionAction is a command with one action on a subscription. An action that may
// end an open period needs the processor.
func (p *program) subscriptionAction(name, short string, processor bool,
	do func(context.Context, *session, billing.Name) (*billing.Subscription, error)) *cobra.Command {
	return &cobra.Command{
		Use:   name + " " + subscriptionName,
		Short: short,
		Args:  want(subscriptionName),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.act(cmd.Context(), args[0], processor, do)
		},
	}
}

func (p *program) act(ctx context.Context, name string, processor bool,
	do func(context.Context, *session, billing.Name) (*billing.Subscription, error)) error {
	n, err := parseName(name)
	if err != nil {
		return err
	}
	return p.with(ctx, need{processor: processor}, func(s *session) error {
		sub, err := do(ctx, s, n)
		if processor {
			p.deliver(ctx, s)
		}
		if err != nil {
			return notFound(err, "subscription "+n.String())
		}
		return p.showChanged(sub, "is "+string(sub.Status))
	})
}

func (p *program) subscriptionCancel() *cobra.Command {
	var atEnd bool
	c := p.subscriptionAction("cancel", "End a subscription, now or instead of its next payment", true,
		func(ctx context.Context, s *session, n billing.Name) (*billing.Subscription, error) {
			return s.engine.Cancel(ctx, n, atEnd)
		})
	c.Flags().BoolVar(&atEnd, "at-period-end", false, "let the paid period run out first; resume takes it back")
	return c
}

// A chargeView is the JSON of subscription charge.
type chargeView struct {
	Results      []resultView     `json:"results"`
	Subscription subscriptionView `json:"subscription"`
}

func (p *program) subscriptionCharge() *cobra.Command {
	return &cobra.Command{
		Use:   "charge " + subscriptionName,
		Short: "Charge the period of a parked subscription now",
		Args:  want(subscriptionName),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := parseName(args[0])
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			return p.with(ctx, need{processor: true}, func(s *session) error {
				results, sub, err := s.engine.ChargeParked(ctx, n)
				p.deliver(ctx, s)
				if err != nil {
					return notFound(err, "subscription "+n.String())
				}
				if !p.cfg.JSON {
					p.sayResults(results)
					return p.showChanged(sub, "is "+string(sub.Status))
				}
				v := chargeView{make([]resultView, len(results)), viewSubscription(sub)}
				for i, r := range results {
					v.Results[i] = viewResult(r)
				}
				return p.object(v)
			})
		},
	}
}

func (p *program) sayResults(results []engine.Result) {
	for _, r := range results {
		p.say("period %d, due %s, %s: %s%s", r.Period, date(r.Due), r.Amount.Format(), r.Outcome,
			prefixed(" (", closed(r.Reason)))
	}
}

func closed(text string) string {
	if text == "" {
		return ""
	}
	return text + ")"
}
