package main

import (
	"context"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
)

type dueFlags struct{ on, until dateFlag }

func (p *program) dueCommand() *cobra.Command {
	index := func(kind billing.Kind, short string) *cobra.Command {
		f := new(dueFlags)
		c := &cobra.Command{
			Use:   string(kind),
			Short: short,
			Args:  want(),
			RunE:  func(cmd *cobra.Command, _ []string) error { return p.due(cmd.Context(), kind, f) },
		}
		c.Flags().Var(&f.on, "date", "exactly this day")
		c.Flags().Var(&f.until, "until", "this day and all before it")
		return c
	}
	return group("due", "List the subscriptions that the daily jobs will look at",
		index(billing.Payments, "List subscriptions by the day of their next payment or retry"),
		index(billing.Reminders, "List subscriptions by the day of their next reminder"))
}

func (p *program) due(ctx context.Context, kind billing.Kind, f *dueFlags) error {
	if f.on.IsZero() == f.until.IsZero() {
		return usagef("want one of --date DATE and --until DATE")
	}
	if err := p.walkable("until", f.until); err != nil {
		return err
	}
	return p.with(ctx, need{read: true}, func(s *session) error {
		rows := dueOn(ctx, s.engine, kind, f.on.Date)
		if f.on.IsZero() {
			rows = dueUntil(ctx, s.engine, kind, f.until.Date)
		}
		var n int
		var err error
		if kind == billing.Payments {
			n, err = list(p, rows, viewDuePayment, []string{"SUBSCRIPTION", "SKU", "DATE", "AMOUNT", "METHOD", "EMAIL"},
				func(r billing.DueRow) []string {
					return []string{r.Name.String(), r.SKU, r.NextPayment, r.Amount.Format(), r.Method, r.Email}
				})
		} else {
			n, err = list(p, rows, viewDueReminder, []string{"SUBSCRIPTION", "SKU", "DATE", "PAYMENT", "EMAIL"},
				func(r billing.DueRow) []string {
					return []string{r.Name.String(), r.SKU, r.NextReminder, r.NextPayment, r.Email}
				})
		}
		if err == nil {
			p.say("\n%s", plural(n, strings.TrimSuffix(string(kind), "s")))
		}
		return err
	})
}

func dueOn(ctx context.Context, e *engine.Engine, kind billing.Kind, d civil.Date) iter.Seq2[billing.DueRow, error] {
	if kind == billing.Reminders {
		return e.GetDueRemindersByDate(ctx, d)
	}
	return e.GetDuePaymentsByDate(ctx, d)
}

// dueUntil walks the dates of a run, up to the day given.
func dueUntil(ctx context.Context, e *engine.Engine, kind billing.Kind,
	until civil.Date) iter.Seq2[billing.DueRow, error] {
	return func(yield func(billing.DueRow, error) bool) {
		from, err := e.WalkStart(ctx, kind)
		if err != nil {
			yield(billing.DueRow{}, err)
			return
		}
		for d := from; !d.After(until); d = d.AddDays(1) {
			for row, err := range dueOn(ctx, e, kind, d) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

type duePaymentView struct {
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Email        string `json:"email"`
	Next         string `json:"next_payment_date"`
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	PaymentDay   string `json:"payment_day"`
	Method       string `json:"payment_method"`
}

func viewDuePayment(r billing.DueRow) duePaymentView {
	return duePaymentView{r.Account, r.ID, r.SKU, r.Email, r.NextPayment, r.Amount.Decimal(), r.Amount.Currency().Code(),
		r.PaymentDay, r.Method}
}

type dueReminderView struct {
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Email        string `json:"email"`
	Next         string `json:"next_reminder_date"`
	Payment      string `json:"next_payment_date"`
}

func viewDueReminder(r billing.DueRow) dueReminderView {
	return dueReminderView{r.Account, r.ID, r.SKU, r.Email, r.NextReminder, r.NextPayment}
}
