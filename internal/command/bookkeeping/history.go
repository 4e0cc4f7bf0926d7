package bookkeeping

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) historyCommand() *cobra.Command {
	var n billing.Name
	var order screen.ListOrder
	c := p.StoreLeaf("history ACCOUNT[/SUBSCRIPTION]", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		if n.ID != "" {
			if _, err := s.Subscription(ctx, n); err != nil {
				return err
			}
		} else if _, err := s.Account(ctx, n.Account); err != nil {
			return err
		}
		return screen.ListAll(p.Screen, order, "change", history.Of(ctx, s.Engine.Records, n.Account, n.ID, ""), view.History,
			[]string{"AT", "ACTOR", "SUBSCRIPTION", "WHAT", "CHANGED"}, func(e *history.Entry) []any {
				return []any{e.At, e.Actor, e.Subscription, e.What, changedText(e)}
			})
	})
	session.Ordered(c, &order, "at", "actor", "subscription", "what")
	return session.Checked(c, func(args []string) (err error) {
		if strings.Contains(args[0], "/") {
			n, err = parseName(args[0])
			return err
		}
		n = billing.Name{Account: args[0]}
		return billing.CheckID("account", args[0])
	})
}

// changedText returns the table's cell: status active -> paused, email.
func changedText(e *history.Entry) string {
	var parts []string
	for _, c := range e.Changes {
		text := c.Name
		if !c.Personal {
			text += " " + cmp.Or(c.Before, "-") + " -> " + cmp.Or(c.After, "-")
		}
		parts = append(parts, text)
	}
	if e.Reason != "" {
		parts = append(parts, "reason: "+e.Reason)
	}
	return strings.Join(parts, ", ")
}
