package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/money"
)

// The columns of export refunds; refund is the processor's id.
var returnColumns = []string{"account", "subscription", "sku", "period", "kind", "id", "created_at", "amount",
	"currency", "state", "reason", "charge", "refund"}

// A returnView is a refund or a dispute; also a line of export refunds.
type returnView struct {
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Period       int    `json:"period"`
	Kind         string `json:"kind"`
	ID           string `json:"id"`
	Created      string `json:"created_at"`
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	State        string `json:"state"`
	Reason       string `json:"reason,omitempty"`
	Refusal      string `json:"refusal,omitempty"`
	Charge       string `json:"charge"`
	Ref          string `json:"refund,omitempty"`       // the processor's id
	Processed    string `json:"processed_at,omitempty"` // by the processor
	Ended        string `json:"ended_at,omitempty"`
}

func viewReturn(r *billing.ReversalRecord) returnView {
	return returnView{Account: r.Account, Subscription: r.ID, SKU: r.SKU, Period: r.Period, Kind: string(r.Kind),
		ID:      r.ReversalID,
		Created: stamp(r.Created), Amount: r.Amount.Decimal(), Currency: r.Amount.Currency().Code(), State: string(r.State),
		Reason:  r.Reason,
		Refusal: r.Refusal, Charge: r.Charge, Ref: r.Ref, Processed: stamp(r.Processed), Ended: stamp(r.Ended)}
}

func (p *program) receiptRefund() *cobra.Command {
	var o refund.Order
	var amount string
	reason := choiceFlag{choices: []string{string(billing.Duplicate), string(billing.Fraudulent),
		string(billing.RequestedByCustomer)}}
	c := &cobra.Command{
		Use:   "refund " + subscriptionName,
		Short: "Refund the charge of a period, or a part of it",
		Long: `Refund the charge of a period, or a part of it, through the processor, and record it beside
the receipt, which does not change. The same command again is the same refund: after a
crash or a lost answer it continues, as the next payment run does, and otherwise it changes
nothing. Another refund of the same amount needs another --key.`,
		Args: want(subscriptionName),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Name, err = parseName(args[0]); err != nil {
				return err
			}
			o.Reason = billing.RefundReason(reason.value)
			return p.with(cmd.Context(), need{processor: true},
				func(s *session) error { return p.refund(cmd.Context(), s, o, amount) })
		},
	}
	c.Flags().IntVar(&o.Period, "period", 0, "`NUMBER` of the period, as receipt list shows it")
	c.Flags().StringVar(&amount, "amount", "", "`AMOUNT` to give back (default all that is left)")
	c.Flags().Var(&reason, "reason", "for the processor")
	c.Flags().StringVar(&o.Key, "key", "", "`TEXT` that tells this refund from others of the same amount")
	c.Flags().StringVar(&o.Charge, "charge", "", "`REF` of the charge at the processor, where the receipt has expired")
	if err := c.MarkFlagRequired("period"); err != nil {
		panic(err) // unreachable: the flag is defined above
	}
	return c
}

func (p *program) refund(ctx context.Context, s *session, o refund.Order, amount string) error {
	sub, err := s.engine.Subscription(ctx, o.Name)
	if err != nil {
		return notFound(err, "subscription "+o.Name.String())
	}
	if amount != "" {
		if o.Amount, err = money.Parse(amount, sub.Amount.Currency()); err != nil {
			return usagef("--amount: %w", err)
		}
		if !o.Amount.IsPositive() { // zero would be the whole rest
			return usagef("--amount %s: want more than zero", amount)
		}
	}
	r, repeated, err := s.engine.Refunds().Refund(ctx, o)
	if err != nil {
		return err
	}
	if p.cfg.JSON {
		return p.object(struct {
			returnView
			Repeated bool `json:"repeated,omitempty"` // it had been asked for, and answered, before
		}{viewReturn(r), repeated})
	}
	if repeated {
		p.say("asked for before, and nothing was done now; another refund of the same amount takes another --key")
	}
	p.say("period %d of %s: %s given back, %s (%s of charge %s)", r.Period, r.Name, r.Amount.Format(), r.State, r.Ref,
		r.Charge)
	return nil
}

// A listedReceiptView is a receipt with its reversals.
type listedReceiptView struct {
	fullReceiptView
	Refunded string       `json:"refunded,omitempty"` // together; disputes are not counted
	Returns  []returnView `json:"returns,omitempty"`  // refunds and disputes, oldest first
}

// accountReturns are the refunds and disputes of an account by their charge.
type accountReturns map[string][]*billing.ReversalRecord

func returnsOf(ctx context.Context, s *session, account string) (accountReturns, error) {
	all := accountReturns{}
	for r, err := range s.engine.GetReversalsByAccount(ctx, account) {
		if err != nil {
			return nil, err
		}
		all[r.Charge] = append(all[r.Charge], r)
	}
	return all, nil
}

// of returns the reversals of the receipt's charge, and the sum of the standing refunds.
func (a accountReturns) of(r *billing.Receipt) (list []*billing.ReversalRecord, refunded money.Amount) {
	refunded = money.New(0, r.Amount.Currency())
	if r.Kind != billing.Charged {
		return nil, refunded
	}
	list = a[r.Charge]
	for _, x := range list {
		if sum, err := refunded.Add(x.Amount); err == nil && x.Kind == billing.Refunded && x.Counts() {
			refunded = sum
		}
	}
	return list, refunded
}

func (a accountReturns) view(r *billing.Receipt) listedReceiptView {
	v := listedReceiptView{fullReceiptView: viewFullReceipt(r)}
	list, refunded := a.of(r)
	if !refunded.IsZero() {
		v.Refunded = refunded.Decimal()
	}
	for _, x := range list {
		v.Returns = append(v.Returns, viewReturn(x))
	}
	return v
}

// cell is the text in the table: the refunds, and the undecided reversals.
func (a accountReturns) cell(r *billing.Receipt) string {
	list, refunded := a.of(r)
	var parts []string
	if !refunded.IsZero() {
		parts = append(parts, refunded.Format())
	}
	for _, x := range list {
		switch {
		case x.Kind == billing.Disputed && x.Counts():
			parts = append(parts, x.Amount.Format()+" "+disputeState(x.State))
		case x.Counts() && x.State != billing.ReversalSucceeded:
			parts = append(parts, x.Amount.Format()+" of it "+string(x.State))
		}
	}
	return strings.Join(parts, ", ")
}

func disputeState(s billing.ReversalState) string {
	if s == billing.ReversalSucceeded {
		return "dispute lost"
	}
	return "disputed"
}
