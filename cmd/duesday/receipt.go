package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
)

func (p *program) receiptCommand() *cobra.Command {
	return group("receipt", "List receipts, record manual payments and refund charges",
		p.receiptList(), p.receiptCreate(), p.receiptRefund())
}

func (p *program) receiptList() *cobra.Command {
	var account string
	c := &cobra.Command{
		Use:   "list ACCOUNT",
		Short: "List an account's receipts, oldest first",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && account != "" && args[0] != account:
				return usagef("two accounts: %q and %q", args[0], account)
			case len(args) == 1:
				account = args[0]
			case account == "":
				return usagef("%s: ACCOUNT is missing", cmd.CommandPath())
			}
			if err := billing.CheckID("account", account); err != nil {
				return err
			}
			return p.with(cmd.Context(), need{read: true},
				func(s *session) error { return p.listReceipts(cmd.Context(), s, account) })
		},
	}
	c.Flags().StringVar(&account, "account", "", "the `ACCOUNT`, instead of the argument")
	return c
}

func (p *program) listReceipts(ctx context.Context, s *session, account string) error {
	returns, err := returnsOf(ctx, s, account)
	if err != nil {
		return err
	}
	columns := []string{"PROCESSED", "SUBSCRIPTION", "SKU", "PERIOD", "DUE", "AMOUNT", "REFUNDED", "KIND", "CHARGE"}
	n, err := list(p, s.engine.GetReceiptsByAccount(ctx, account), returns.view, columns,
		func(r *billing.Receipt) []string {
			return []string{stamp(r.Processed), r.ID, r.SKU, receiptPeriod(r), date(r.Due), r.Amount.Format(), returns.cell(r),
				string(r.Kind), r.Charge}
		})
	if err == nil {
		p.say("\n%s", plural(n, "receipt"))
	}
	return err
}

func (p *program) receiptCreate() *cobra.Command {
	var amount, note string
	c := &cobra.Command{
		Use:   "create " + subscriptionName,
		Short: "Record a manual payment of the due period",
		Long: `Record a manual payment, in cash or by a transfer: it settles the due period without a
charge. It is refused while a payment intent of the period is live, since that could take
the money a second time.`,
		Args: want(subscriptionName),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := parseName(args[0])
			if err != nil {
				return err
			}
			return p.with(cmd.Context(), need{processor: true}, func(s *session) error {
				return p.createReceipt(cmd.Context(), s, n, amount, note)
			})
		},
	}
	c.Flags().StringVar(&amount, "amount", "", "`AMOUNT` that was taken (default the subscription's)")
	c.Flags().StringVar(&note, "note", "", "`TEXT` that says where, such as the bank's reference")
	return c
}

func (p *program) createReceipt(ctx context.Context, s *session, n billing.Name, text, note string) error {
	sub, err := s.engine.Subscription(ctx, n)
	if err != nil {
		return notFound(err, "subscription "+n.String())
	}
	var amount money.Amount
	if text != "" {
		if amount, err = money.Parse(text, sub.Amount.Currency()); err != nil {
			return usagef("--amount: %w", err)
		}
	}
	r, err := s.engine.CreateReceipt(ctx, n, amount, note, time.Time{})
	if err != nil {
		return err
	}
	p.deliver(ctx, s)
	if p.cfg.JSON {
		return p.object(viewFullReceipt(r))
	}
	p.say("period %d of %s, due %s: %s recorded as paid outside", r.Period, r.Name, date(r.Due), r.Amount.Format())
	return nil
}
