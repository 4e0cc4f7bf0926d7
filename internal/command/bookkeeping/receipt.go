package bookkeeping

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) receiptList() *cobra.Command {
	var account string
	var order screen.ListOrder
	c := p.StoreLeaf("list ACCOUNT", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		reversals, err := gatherReversals(screen.Readable(p.Screen, s.Engine.GetReversalsByAccount(ctx, account)))
		if err != nil {
			return err
		}
		installation := s.Engine.Opened.Installation
		return screen.ListAll(p.Screen, order, "receipt", s.Engine.GetReceiptsByAccount(ctx, account),
			func(r *billing.Receipt) view.Object { return view.Receipt(r, installation, reversals.of(r)...) },
			[]string{"PROCESSED", "SUBSCRIPTION", "SKU", "PERIOD", "DUE", "AMOUNT", "REFUNDED", "KIND", "CHARGE", "NUMBER"},
			func(r *billing.Receipt) []any {
				return []any{r.Processed, r.ID, r.SKU, view.PeriodOf(r), r.Due, r.Amount, reversals.text(r), r.Kind, r.Charge,
					cmp.Or(r.InSeries, r.Number(installation))}
			})
	})
	accountFlag(c, &account)
	session.Ordered(c, &order, "processed", "subscription", "sku", "due", "amount", "kind")
	return session.Checked(c, func(args []string) error {
		if len(args) == 0 && account == "" {
			return screen.Usagef("%s: ACCOUNT is missing", p.Command)
		}
		return accountArgument(&account, args)
	})
}

func (p *program) receiptCreate() *cobra.Command {
	var m engine.ManualPayment
	var text, key string
	var period int
	day := screen.DateFlag()
	var f *pflag.FlagSet
	c := p.subscriptionLeaf("create", session.Need{Processor: true},
		func(ctx context.Context, s *session.Session, n billing.Name) error {
			m.Period, m.Date = screen.Given(f, "period", period), day.Value
			return p.recordPayment(session.Keyed(ctx, key), s, n, m, text)
		})
	f = c.Flags()
	f.IntVar(&period, "period", 0, "`NUMBER` of the period, as subscription show prints it (default: the period that is due)")
	f.StringVar(&key, "key", "", "`TEXT` of your choice that identifies this payment; using it again does not record a second payment")
	f.StringVar(&text, "amount", "", "`AMOUNT` that was paid, which must be what the period owes (the default)")
	f.BoolVar(&m.Overpaid, "overpaid", false, "accept an --amount larger than the period owes")
	f.StringVar(&m.Note, "note", "", "`TEXT` about the payment, such as the bank's reference")
	f.Var(&day, "date", "`DATE` on which it was paid (default: now)")
	return c
}

func (p *program) recordPayment(ctx context.Context, s *session.Session, n billing.Name, m engine.ManualPayment,
	amount string) error {
	sub, err := s.Subscription(ctx, n)
	if err != nil {
		return err
	}
	if amount != "" {
		if m.Amount, err = screen.ParseMoney(amount, sub.Amount.Currency()); err != nil {
			return err
		}
	}
	done, err := s.Engine.CreateReceipt(ctx, n, m)
	if err != nil {
		return err
	}
	p.Deliver(ctx, s)
	if done.Repeated {
		p.Say("this payment was requested before, so nothing was recorded again")
	}
	r := done.Receipt
	switch {
	case done.Requested:
		p.Code = screen.ExitPerson
		p.Say("period %d of %s: requested, but its payment intent is not canceled yet; the next payment run tries again",
			done.Period, sub.Name)
	case r == nil:
		p.Say("period %d of %s: its receipt has expired", done.Period, sub.Name)
	case r.Kind == billing.Overpayment:
		p.Code = screen.ExitPerson
		p.Say("period %d of %s was also charged, so %s was recorded as an overpayment; pay it back, or refund the charge: %s", r.Period,
			r.Name, r.Amount.Format(), p.Hint(fmt.Sprintf("receipt refund %s --period %d", r.Name, r.Period)))
	default:
		p.Say("period %d of %s, due %s: %s recorded as a manual payment", r.Period, r.Name, view.Date(r.Due), r.Amount.Format())
	}
	if now, err := s.Subscription(ctx, n); err == nil && now.Status == billing.PastDue {
		p.Say("the subscription is still past_due; to continue with its next period, run: %s", p.Hint("subscription resume "+n.String()))
	}
	v := view.Object{"account", sub.Account, "subscription", sub.ID, "period", done.Period}
	if r != nil {
		v = view.Receipt(r, s.Engine.Opened.Installation)
	}
	return p.JSON(append(v, "requested?", done.Requested, "repeated?", done.Repeated))
}

func (p *program) receiptRefund() *cobra.Command {
	var o refund.Order
	var amount, key string
	reason := screen.ChoiceFlag(processor.Duplicate, processor.Fraudulent, processor.RequestedByCustomer)
	c := p.subscriptionLeaf("refund", session.Need{Processor: true},
		func(ctx context.Context, s *session.Session, n billing.Name) error {
			o.Name, o.Reason = n, reason.Value
			return p.refund(session.Keyed(ctx, key), s, o, amount)
		})
	c.Flags().IntVar(&o.Period, "period", 0, "`NUMBER` of the period, as receipt list shows it")
	c.Flags().StringVar(&amount, "amount", "", "`AMOUNT` to refund (default: the amount not refunded yet)")
	c.Flags().Var(&reason, "reason", "reason to send to the processor")
	c.Flags().StringVar(&key, "key", "", "`TEXT` that distinguishes this refund from others of the same amount")
	c.Flags().StringVar(&o.Charge, "charge", "", "`REF` of the charge at the processor, if the receipt has expired")
	return session.Required(c, "period")
}

func (p *program) refund(ctx context.Context, s *session.Session, o refund.Order, amount string) error {
	sub, err := s.Subscription(ctx, o.Name)
	if err != nil {
		return err
	}
	if amount != "" {
		if o.Amount, err = screen.ParseMoney(amount, sub.Amount.Currency()); err != nil {
			return err
		}
		if !o.Amount.IsPositive() { // a zero amount means the whole remaining amount
			return screen.Usagef("--amount must be more than zero (got %s)", amount)
		}
	}
	r, repeated, err := s.Engine.Refunds().Refund(ctx, o)
	if err != nil {
		return err
	}
	if repeated {
		p.Say("this refund was requested before, so nothing was done now; to refund the same amount again, use another --key")
	}
	p.Say("period %d of %s: refund of %s %s (%s of charge %s)", r.Period, r.Name, r.Amount.Format(), r.State, r.Ref,
		r.Charge)
	return p.JSON(append(view.Reversal(r), "repeated?", repeated)) // a repeated request gets the stored answer
}

// accountReversals maps a charge to its refunds and disputes, for one account or for all.
type accountReversals map[string][]*billing.ReversalRecord

func gatherReversals(seq iter.Seq2[*billing.ReversalRecord, error]) (accountReversals, error) {
	all := accountReversals{}
	for r, err := range seq {
		if err != nil {
			return nil, err
		}
		all[r.Charge] = append(all[r.Charge], r)
	}
	return all, nil
}

// of returns the reversals of the receipt's charge.
func (a accountReversals) of(r *billing.Receipt) []*billing.ReversalRecord {
	if r.Kind != billing.Charged {
		return nil
	}
	return a[r.Charge]
}

// text returns the receipt's table cell, which lists the refunds and the undecided reversals.
func (a accountReversals) text(r *billing.Receipt) string {
	list := a.of(r)
	refunded := view.Refunded(r, list)
	var parts []string
	if !refunded.IsZero() {
		parts = append(parts, refunded.Format())
	}
	for _, x := range list {
		switch {
		case x.Kind == processor.Disputed && x.Counts() && x.State == processor.ReversalSucceeded:
			parts = append(parts, x.Amount.Format()+" dispute lost")
		case x.Kind == processor.Disputed && x.Counts():
			parts = append(parts, x.Amount.Format()+" disputed")
		case x.Counts() && x.State != processor.ReversalSucceeded:
			parts = append(parts, x.Amount.Format()+" of it "+string(x.State))
		}
	}
	return strings.Join(parts, ", ")
}
