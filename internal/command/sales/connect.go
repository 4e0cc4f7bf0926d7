package sales

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) connectAdd() *cobra.Command {
	var account string
	c := p.trackingLeaf("add --account UUID ACCT",
		trackingNeed{create: true, stripe: true}, func(ctx context.Context, t *tracking.Service, args []string) error {
			a, err := t.Register(ctx, account, args[0])
			if errors.Is(err, tracking.ErrOther) {
				return fmt.Errorf("%s and stays with that merchant, which owns its purchases and payments", withoutOther(err))
			}
			if e, ok := errors.AsType[*tracking.FieldError](err); ok && e.Field == "stripe_account" {
				return screen.Usagef("ACCT %q: %s", args[0], e.Problem)
			}
			if err != nil {
				return session.ByFlag(err)
			}
			p.Say("Stripe account %s registered", a.StripeAccount)
			return p.showConnected(a)
		})
	c.Flags().StringVar(&account, "account", "", "`UUID` of the merchant that owns the Stripe account")
	return session.Required(c, "account")
}

func (p *program) connectList() *cobra.Command {
	return p.trackingLeaf("list", trackingNeed{}, func(ctx context.Context, t *tracking.Service, _ []string) error {
		return screen.ListAll(p.Screen, screen.ListOrder{}, "Stripe account", t.ConnectedAccounts(ctx), view.Merchant,
			[]string{"STRIPE ACCOUNT", "ACCOUNT", "STATUS", "VERIFIED THROUGH", "CHECKED", "ERROR"},
			func(a *tracking.ConnectedAccount) []any {
				return []any{a.StripeAccount, a.Merchant, a.Status, a.Polled.Through, a.Polled.Checked, a.Polled.Error}
			})
	})
}

func (p *program) connectShow() *cobra.Command {
	return p.trackingLeaf("show ACCT",
		trackingNeed{}, func(ctx context.Context, t *tracking.Service, args []string) error {
			a, err := t.ConnectedAccount(ctx, args[0])
			if err != nil {
				return err
			}
			return p.showConnected(a)
		})
}

func (p *program) showConnected(a *tracking.ConnectedAccount) error {
	own, polled := "", a.Polled
	if a.Own {
		own = "the account that owns the key"
	}
	p.Fields("Stripe account", a.StripeAccount, "account", a.Merchant, "own", own, "status", a.Status,
		"verified through", polled.Through, "checked", polled.Checked, "next check", polled.Next,
		"compared", polled.Swept, "error", polled.Error, "registered", a.Created, "changed", a.Updated)
	return p.JSON(view.Merchant(a))
}

func (p *program) jobCommand() *cobra.Command {
	list := p.trackingLeaf("list", trackingNeed{}, p.listJobs)
	replay := p.trackingLeaf("replay JOB",
		trackingNeed{write: true}, func(ctx context.Context, t *tracking.Service, args []string) error {
			if err := t.ReplayJob(ctx, args[0]); err != nil {
				return session.NotFound(err, "job "+args[0]+" that was given up")
			}
			p.Say("job %s is due; a running duesday serve runs it", args[0])
			return p.JSON(view.Object{"replayed", args[0]})
		})
	return session.Group("job", list, replay)
}

func (p *program) listJobs(ctx context.Context, t *tracking.Service, _ []string) error {
	dead := 0
	n, err := screen.List(p.Screen, t.Jobs(ctx), func(j tracking.WaitingJob) view.Object {
		j.Error = secret.Clean(j.Error)
		return view.Job(j)
	}, []string{"JOB", "STATE", "NEXT TRY", "TRIES", "REASON"}, func(j tracking.WaitingJob) []any {
		state := "waiting"
		if j.Dead {
			state = "given up"
			dead++
		}
		return []any{j.ID, state, j.Due, j.Tries, secret.Clean(j.Error)}
	})
	if err != nil {
		return err
	}
	p.Say("\n%s, %d given up", screen.Plural(n, "job"), dead)
	if dead > 0 {
		p.Say("To retry a job that was given up, run: %s", p.Hint("job replay JOB"))
	}
	return nil
}
