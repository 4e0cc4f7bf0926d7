package bookkeeping

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
)

// periodColumns are the columns of export periods. view.Period returns their values.
var periodColumns = []string{"account", "subscription", "sku", "period", "ending", "due_date", "ended_at", "reason",
	"amount", "currency", "intent"}

type periodFlags struct {
	of     billing.Name // an account, or one of its subscriptions; zero for the whole store
	ending screen.Flag[billing.Ending]
	days   screen.DaySpan
}

func (p *program) periodList() *cobra.Command {
	f := &periodFlags{ending: screen.ChoiceFlag(billing.EndFailed, billing.EndVoid, billing.EndSkipped, billing.EndParked)}
	var order screen.ListOrder
	c := p.StoreLeaf("list", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		if f.of.ID != "" {
			if _, err := s.Engine.Subscription(ctx, f.of); errors.Is(err, store.ErrNotFound) {
				return session.NotFound(err, "subscription "+f.of.String())
			}
		}
		all := s.Engine.EndedPeriods(ctx)
		if f.of.Account != "" {
			all = s.Engine.GetEndedPeriodsByAccount(ctx, f.of.Account)
		}
		wanted := func(x *billing.EndedPeriod) bool {
			return (f.of.ID == "" || x.ID == f.of.ID) && (f.ending.Value == "" || x.Ending == f.ending.Value) && f.days.Has(x.Ended)
		}
		return screen.ListAll(p.Screen, order, "period", sequence.Filter(all, wanted), view.Period,
			[]string{"SUBSCRIPTION", "SKU", "PERIOD", "DUE", "AMOUNT", "ENDING", "ENDED", "REASON"},
			func(x *billing.EndedPeriod) []any {
				return []any{x.Name, x.SKU, x.Period, x.Due, x.Amount, x.Ending, x.Ended, x.Reason}
			})
	})
	c.Use = "list [ACCOUNT[/SUBSCRIPTION]]"
	accountFlag(c, &f.of.Account)
	c.Flags().Var(&f.ending, "ending", "only periods that ended this way, or parked ones")
	f.days.Flags(c, "ended")
	session.Ordered(c, &order, "subscription", "sku", "due", "amount", "ending", "ended")
	return session.Checked(c, func(args []string) (err error) {
		if len(args) == 1 && f.of.Account == "" && strings.Contains(args[0], "/") {
			f.of, err = parseName(args[0])
			return cmp.Or(err, f.days.Check())
		}
		return cmp.Or(accountArgument(&f.of.Account, args), f.days.Check())
	})
}
