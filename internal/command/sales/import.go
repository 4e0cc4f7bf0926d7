package sales

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking/poller"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) connectImport() *cobra.Command {
	var o poller.ImportOptions
	since := screen.DateFlag()
	c := session.Leaf("import ACCT", func(ctx context.Context, args []string) error {
		return p.withTracking(ctx, trackingNeed{stripe: true}, func(f Followed) error {
			o.Ledger, o.Lister, o.Now = f.Service, sell.New(f.Processor.API()), p.Now()
			if o.Payments = o.Now.Add(-poller.ImportedPayments); since.Text != "" {
				o.Payments = since.Value.In(time.UTC)
			}
			return p.importConnected(ctx, args[0], o)
		})
	})
	c.Flags().BoolVar(&o.Plan, "dry-run", false, "print what an import would do, without writing anything")
	c.Flags().BoolVar(&o.Fulfil, "fulfil-active", false, "fulfil each imported purchase whose subscription is active, once")
	c.Flags().Var(&since, "payments-since", "import payments from this date on (default: the last 400 days)")
	return c
}

// importConnected imports the Stripe account, and prints every subscription of a dry run, or those left out.
func (p *program) importConnected(ctx context.Context, account string, o poller.ImportOptions) error {
	bar, list := p.Progress("objects and events read", 0, nil), &screen.ListWriter{Out: p.Out, Name: "subscriptions"}
	t := p.Table("SUBSCRIPTION", "CUSTOMER", "STATUS", "PRICE", "ACTION", "REASON")
	o.Step = func() { bar.Done.Add(1) }
	var failed error
	o.Each = func(r poller.ImportRow) {
		switch {
		case p.AsJSON:
			failed = errors.Join(failed, list.Add(view.ImportRow(r)))
		case o.Plan || r.Action == poller.Skip:
			action := r.Action
			if r.Fulfils {
				action += ", fulfil"
			}
			t.Row(r.ID, r.Customer, r.Status, r.Price, action, r.Reason)
		}
	}
	r, err := poller.Import(ctx, account, o)
	bar.End()
	if p.AsJSON {
		return errors.Join(err, failed, list.End(view.Import(&r, o.Plan)))
	}
	if err = errors.Join(err, t.Flush()); err != nil {
		return err
	}
	p.Say("\n%s", map[bool]string{true: "dry run; nothing was written", false: "duesday serve follows them from now on"}[o.Plan])
	p.Fields("  imported", r.Imported, "  known before", screen.Positive(r.Known), "  left out", screen.Positive(r.Skipped),
		"  to be fulfilled", screen.Positive(r.Fulfils), "  payments", r.Payments,
		"  payments of others", screen.Positive(r.OtherPayments),
		"  changed", screen.Positive(r.Changed), "  events since", screen.Positive(r.Events))
	return nil
}
