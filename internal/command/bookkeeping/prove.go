package bookkeeping

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/proof"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) proveCommand() *cobra.Command {
	var period int
	c := p.subscriptionLeaf("prove", session.Need{Processor: true, Read: true},
		func(ctx context.Context, s *session.Session, n billing.Name) error {
			x, err := s.Engine.Prove(ctx, n, period)
			if err != nil {
				return session.NotFound(err, "subscription "+n.String())
			}
			if x.Alarm {
				p.Code = screen.ExitPerson
			}
			p.sayProof(s, x)
			return p.JSON(view.Proof(x, s.Engine.Opened.Installation))
		})
	c.Flags().IntVar(&period, "period", 0, "`NUMBER` of the period, as receipt list prints it")
	session.Required(c, "period")
	return c
}

func (p *program) sayProof(s *session.Session, x *proof.Proof) {
	p.Say("Period %d of %s, %s: %s", x.Period, x.Name, cmp.Or(x.SKU, "SKU not known"), x.State)
	reminder, receipt, ended, colour := "none", "none", "", screen.GoodColour
	switch {
	case !x.Reminded.IsZero():
		reminder = "for " + view.Date(x.ReminderDay) + ", written " + view.Stamp(x.Reminded)
	case x.ReminderDay.After(s.Engine.Today()):
		reminder = "on " + view.Date(x.ReminderDay)
	case !x.ReminderDay.IsZero():
		reminder = "for " + view.Date(x.ReminderDay) + "; none is recorded (the store records only the latest)"
	}
	if x.Expired {
		receipt = "expired; receipts of this period are kept for " + screen.Plural(x.ReceiptMonths, "month")
	} else if len(x.Receipts) > 0 {
		receipt = ""
	}
	if e := x.Ended; e != nil {
		ended = string(e.Ending) + " at " + view.Stamp(e.Ended) + ": " + e.Reason
	}
	p.Fields("  due", cmp.Or(view.Date(x.Due), "not known, because the payment day was changed after it"), "  reminder", reminder,
		"  receipt", receipt, "  end", ended)
	screen.Section(p.Screen, "\nReceipts:", []string{"  KIND", "PROCESSED", "AMOUNT", "CHARGE", "NUMBER"}, x.Receipts,
		func(r *billing.Receipt) []any {
			return []any{"  " + string(r.Kind), r.Processed, r.Amount, r.Charge, cmp.Or(r.InSeries, r.Number(s.Engine.Opened.Installation))}
		})
	screen.Section(p.Screen, "\nPayment intents, as the processor shows them now:",
		[]string{"  INTENT", "GENERATION", "IN THE STORE", "STATE", "SINCE", "AMOUNT", "CODE"}, x.Intents,
		func(i proof.Intent) []any {
			return []any{"  " + i.Ref, i.Tag.Generation, i.Role, cmp.Or(string(i.State), "not known"), i.Changed, i.Amount, i.Code}
		})
	screen.Section(p.Screen, "\nDeclined attempts:", []string{"  ATTEMPT", "AT", "CODE", "METHOD"}, x.Attempts,
		func(a billing.Attempt) []any { return []any{"  " + strconv.Itoa(a.Number), a.At, a.Code, a.Method} })
	returns := []string{"  ID", "KIND", "STATE", "AMOUNT", "AT", "REASON", "EVIDENCE DUE"}
	screen.Section(p.Screen, "\nRefunds and disputes in the store:", returns, x.Reversals, func(r *billing.ReversalRecord) []any {
		return []any{"  " + r.ReversalID, r.Kind, r.State, r.Amount, r.Created, r.Reason, r.Evidence}
	})
	for _, i := range x.Intents {
		screen.Section(p.Screen, "\nRefunds and disputes of "+i.Ref+" at the processor:", returns, i.Reversals,
			func(r processor.Reversal) []any {
				return []any{"  " + r.ID, r.Kind, r.State, r.Amount, r.Created, r.Reason, r.EvidenceDue}
			})
	}
	screen.Section(p.Screen, "\nImported payments from this time:", []string{"  PROCESSED", "AMOUNT"}, x.Imported,
		func(r *billing.Receipt) []any { return []any{"  " + view.Stamp(r.Processed), r.Amount} })
	if x.Alarm {
		colour = screen.ErrorColour
	}
	p.Say("\nDuesday asked the processor for each intent above, and for successful payments since %s.\n%s", view.Stamp(x.Since),
		p.Painted(p.Raw, colour, x.Why))
}
