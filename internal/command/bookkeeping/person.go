package bookkeeping

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) accountErase() *cobra.Command {
	dry, confirm := false, ""
	c := p.StoreLeaf("erase ACCOUNT", session.Need{}, func(ctx context.Context, s *session.Session, args []string) error {
		x, err := person.Erase(ctx, s.Engine.Records, args[0], dry)
		if refused, is := errors.AsType[*person.RefusedError](err); is && !p.AsJSON {
			p.Say("account %s cannot be erased yet:\n  %s", refused.Account, strings.Join(refused.Reasons, "\n  "))
		}
		if err != nil {
			return session.NotFound(err, "account "+args[0])
		}
		v := view.Erasure(x, dry)
		p.Say("%s with personal data %s", screen.Plural(x.Changed, "item"), map[bool]string{true: "found", false: "erased"}[dry])
		for _, r := range x.Invoices {
			p.Say("invoice %s keeps its name and address until %s", r.InSeries, cmp.Or(view.Stamp(r.Expires), "someone removes it"))
		}
		p.Say("\nNot reached:")
		for _, o := range v[v.Place("not_reached")].([]view.Object) {
			p.Say("  %s%s: %s", screen.Text(o, "what"), screen.Prefixed(" ", screen.Text(o, "id")), screen.Text(o, "detail"))
		}
		return p.JSON(v)
	})
	c.Flags().BoolVar(&dry, "dry-run", false, "only count the items with personal data, and check whether the account can be erased")
	c.Flags().StringVar(&confirm, "confirm", "", "`ACCOUNT` again, because this cannot be undone")
	return session.Checked(c, func(args []string) error {
		if !dry && confirm != args[0] {
			return screen.Usagef("this takes the personal data of account %s out of the store, and cannot be undone; to confirm, add --confirm %s",
				args[0], args[0])
		}
		return billing.CheckID("account", args[0])
	})
}

func (p *program) accountExport() *cobra.Command {
	c := p.StoreLeaf("export ACCOUNT", session.Need{Read: true}, func(ctx context.Context, s *session.Session, args []string) error {
		d, err := person.Export(ctx, s.Engine.Records, args[0])
		if err != nil {
			return session.NotFound(err, "account "+args[0])
		}
		return p.PrintJSON(view.Export(d))
	})
	return session.Checked(c, func(args []string) error { return billing.CheckID("account", args[0]) })
}
