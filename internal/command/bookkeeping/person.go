package bookkeeping

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

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
