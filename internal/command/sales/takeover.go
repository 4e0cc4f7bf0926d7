package sales

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/takeover"
	"github.com/duesday/duesday/internal/view"
)

// takeoverCommand returns the commands that move Stripe's subscriptions here, and back.
func (p *program) takeoverCommand() *cobra.Command {
	plan := p.takeoverList("plan", session.Need{Processor: true}, p.takeoverPlan)
	start := p.takeoverList("start", session.Need{Processor: true}, p.takeoverStart)
	var name billing.Name
	undo := p.StoreLeaf("undo ACCOUNT/SUBSCRIPTION", session.Need{Processor: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		v, err := takeover.New(s.Engine)
		if err != nil {
			return err
		}
		sub, err := v.Undo(ctx, name)
		if err != nil {
			return err
		}
		p.Say("%s is canceled here, and %s is handed back to Stripe", sub.Name, sub.Takeover.From)
		return p.JSON(view.Subscription(sub))
	})
	session.Checked(undo, func(args []string) (err error) {
		name, err = billing.ParseName(args[0])
		return screen.Invalid(err)
	})
	return session.Group("takeover", plan, start, undo)
}

// takeoverList returns a command for the subscriptions that --where selects.
func (p *program) takeoverList(verb string, n session.Need, do func(context.Context, *takeover.Service, takeover.Filter) error) *cobra.Command {
	var where []string
	var f takeover.Filter
	c := p.StoreLeaf(verb, n, func(ctx context.Context, s *session.Session, _ []string) error {
		v, err := takeover.New(s.Engine)
		if err != nil {
			return err
		}
		return do(ctx, v, f)
	})
	c.Flags().StringArrayVar(&where, "where", nil, "only subscriptions with `FIELD=VALUE`: subscription=SUB_ID, customer=CUS_ID or sku=SKU; can be repeated")
	return session.Checked(c, func([]string) error {
		for _, text := range where {
			name, value, _ := strings.Cut(text, "=")
			field := map[string]*string{"subscription": &f.ID, "customer": &f.Customer, "sku": &f.SKU}[name]
			if field == nil || *field != "" || value == "" {
				return screen.Usagef("--where must be subscription=SUB_ID, customer=CUS_ID or sku=SKU, each at most once (got %s)", text)
			}
			*field = value
		}
		return nil
	})
}

// takeoverColumns are the columns of both lists.
var takeoverColumns = []string{"AT STRIPE", "STATE", "BECOMES", "AMOUNT", "INTERVAL", "DUE", "METHOD", "TAX", "QUANTITY", "DISCOUNT", "REASON"}

func takeoverCells(e takeover.Entry) []any {
	return append(append([]any{e.Theirs.ID, view.TakeoverState(e)}, view.TakeoverTerms(e)...), e.Stays)
}

// takeoverPlan lists what a start would do, and changes nothing.
func (p *program) takeoverPlan(ctx context.Context, v *takeover.Service, f takeover.Filter) error {
	states := map[string]int{}
	n, err := screen.List(p.Screen, v.Plan(ctx, f), view.Takeover, takeoverColumns, func(e takeover.Entry) []any {
		states[view.TakeoverState(e)]++
		return takeoverCells(e)
	})
	if err != nil {
		return err
	}
	p.Say("\n%s at Stripe: %d can be taken over, %d stay", screen.Plural(n, "subscription"), states["ready"], states["stays"])
	if states["ready"] > 0 {
		p.Say("To take them over, run: %s", p.Hint("takeover start"))
	}
	return nil
}

func (p *program) takeoverStart(ctx context.Context, v *takeover.Service, f takeover.Filter) error {
	var taken, stay, failed int
	list := []view.Object{}
	table := p.Table(takeoverColumns...)
	err := v.Start(ctx, f, func(e takeover.Entry, err error) {
		switch {
		case err != nil:
			failed++
			p.Warn("%s: %s", e.Theirs.ID, secret.Clean(err.Error()))
		case e.Stored && e.Stays == "":
			taken++
		default:
			stay++
		}
		table.Row(takeoverCells(e)...)
		list = append(list, view.Takeover(e))
	})
	if flushed := table.Flush(); err == nil {
		err = flushed
	}
	p.Say("\n%s taken over, %d stay", screen.Plural(taken, "subscription"), stay)
	if printed := p.JSON(list); err == nil {
		err = printed
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%s not taken over completely; run the same command again to continue", screen.Plural(failed, "subscription"))
	}
	return err
}
