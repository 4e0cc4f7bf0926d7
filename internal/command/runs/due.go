package runs

import (
	"context"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/due"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) dueCommand() *cobra.Command {
	index := func(kind billing.Kind) *cobra.Command {
		on, until := screen.DateFlag(), screen.DateFlag()
		c := p.StoreLeaf(string(kind), session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
			rows, ending := dueOn(ctx, s.Engine, kind, on.Value), 0
			if on.Value.IsZero() {
				rows = dueUntil(ctx, s.Engine, kind, until.Value)
			}
			rows = toBeCharged(ctx, s.Engine, rows, &ending)
			err := p.listDue(kind, rows)
			if err == nil && ending > 0 {
				p.Say("left out %s that the payment run will cancel", screen.Plural(ending, "subscription"))
			}
			return err
		})
		c.Flags().Var(&on, "date", "only this day")
		c.Flags().Var(&until, "until", "this day and all earlier days")
		return session.Checked(c, func([]string) error {
			if on.Value.IsZero() == until.Value.IsZero() {
				return screen.Usagef("set either --date DATE or --until DATE")
			}
			return p.Walkable("until", until.Value)
		})
	}
	return session.Group("due", index(billing.Payments), index(billing.Reminders))
}

func (p *program) listDue(kind billing.Kind, rows iter.Seq2[billing.DueRow, error]) error {
	noun := strings.TrimSuffix(string(kind), "s")
	bad := 0
	rows = sequence.Filter(rows, func(r billing.DueRow) bool {
		if r.Problem != "" {
			bad++
		}
		return true
	})
	orProblem := func(r billing.DueRow, v any) any {
		if r.Problem != "" {
			return "cannot be read: " + r.Problem
		}
		return v
	}
	columns := []string{"SUBSCRIPTION", "SKU", "DATE", "AMOUNT", "METHOD", "EMAIL"}
	row, cells := view.DuePayment, func(r billing.DueRow) []any {
		return []any{r.Name, r.SKU, r.NextPayment, orProblem(r, r.Amount), r.Method, r.Email}
	}
	if kind == billing.Reminders {
		columns = []string{"SUBSCRIPTION", "SKU", "DATE", "PAYMENT", "EMAIL"}
		row, cells = view.DueReminder, func(r billing.DueRow) []any {
			return []any{r.Name, r.SKU, r.NextReminder, orProblem(r, r.NextPayment), r.Email}
		}
	}
	err := screen.ListAll(p.Screen, screen.ListOrder{}, noun, rows, row, columns, cells)
	if err == nil && bad > 0 {
		p.Code = screen.ExitPerson
		p.Warn("%s written by another tool cannot be read", screen.Plural(bad, "row"))
	}
	return err
}

func dueOn(ctx context.Context, e *engine.Engine, kind billing.Kind, d civil.Date) iter.Seq2[billing.DueRow, error] {
	if kind == billing.Reminders {
		return e.GetDueRemindersByDate(ctx, d)
	}
	return e.GetDuePaymentsByDate(ctx, d)
}

// dueUntil yields the due rows of a run, from its first date through until.
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

// DueAhead is the number of subscriptions that are read at the same time for an index's rows.
const DueAhead = 64

// toBeCharged completes the rows, and omits those of subscriptions that will be canceled instead of
// charged, whose number it adds to ending.
func toBeCharged(ctx context.Context, e *engine.Engine, rows iter.Seq2[billing.DueRow, error],
	ending *int) iter.Seq2[billing.DueRow, error] {
	return func(yield func(billing.DueRow, error) bool) {
		ahead := make([]billing.DueRow, 0, DueAhead)
		flush := func() bool {
			charged := processor.AskEach(ahead, func(r billing.DueRow) (*billing.DueRow, error) { // nil to omit the row
				if !due.Complete(ctx, e.Records, &r) {
					return nil, nil
				}
				return &r, nil
			})
			for _, answer := range charged {
				if answer.Value == nil {
					*ending++
				} else if !yield(*answer.Value, nil) {
					return false
				}
			}
			ahead = ahead[:0]
			return true
		}
		for r, err := range rows {
			if err != nil {
				_ = flush() && yield(r, err)
				return
			}
			if ahead = append(ahead, r); len(ahead) == DueAhead && !flush() {
				return
			}
		}
		flush()
	}
}
