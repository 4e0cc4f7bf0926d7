package main

import (
	"context"
	"iter"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/tracking"
)

func (p *program) rebuildCommand() *cobra.Command {
	var account string
	var f backendFlags
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Compare the stored payments and subscriptions with their stored events",
		Long: `Fold the stored events anew, and compare the results with the stored payments and
subscriptions. It changes nothing. An object without its first events, which are kept for
30 days, is counted and not compared. An object that was fetched from Stripe after its last
event is counted as ahead, not as different. Exits 3 if there is a difference.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if account != "" {
				if err := checkAccountFlag(account, true); err != nil {
					return err
				}
			}
			return p.withBackend(cmd.Context(), &f, backendNeed{},
				func(b *backend) error { return p.rebuild(cmd.Context(), b, account) })
		},
	}
	c.Flags().StringVar(&account, "account", "",
		"only the events of the `ACCOUNT`: acct_… at Stripe, or a customer account's UUID (default: of every Stripe "+
			"account that is registered)")
	return f.on(c)
}

func (p *program) rebuild(ctx context.Context, b *backend, account string) error {
	var differences []tracking.Difference
	columns := []string{"STRIPE ACCOUNT", "EVENTS", "UNREAD", "COMPARED", "NOT COMPARED", "AHEAD", "DIFFERENT"}
	_, err := list(p, b.rebuilt(ctx, account), func(r *tracking.Rebuilt) *tracking.Rebuilt {
		differences = append(differences, r.Differences...)
		return r
	}, columns, func(r *tracking.Rebuilt) []string {
		differences = append(differences, r.Differences...)
		return []string{r.StripeAccount, strconv.Itoa(r.Events), strconv.Itoa(r.Unread), strconv.Itoa(r.Compared),
			strconv.Itoa(r.Partial), strconv.Itoa(r.Ahead), strconv.Itoa(len(r.Differences))}
	})
	if err != nil || len(differences) == 0 {
		return err
	}
	p.code = exitPerson
	if p.cfg.JSON {
		return nil
	}
	p.say("\nDifferent:")
	t := newTable(p.stdout, "  OBJECT", "STORED", "BY ITS EVENTS")
	for _, x := range differences {
		t.row("  "+x.ID, x.Stored, x.Folded)
	}
	return t.flush()
}

// rebuilt rebuilds the Stripe accounts of the account, or with "" all registered ones.
func (b *backend) rebuilt(ctx context.Context, account string) iter.Seq2[*tracking.Rebuilt, error] {
	return func(yield func(*tracking.Rebuilt, error) bool) {
		if account != "" {
			places, err := b.places(ctx, account)
			if err != nil {
				yield(nil, err)
			}
			for _, at := range places {
				if r, err := b.ledger.Rebuild(ctx, at); !yield(r, err) || err != nil {
					return
				}
			}
			return
		}
		for a, err := range b.registry.ConnectedAccounts(ctx) {
			var r *tracking.Rebuilt
			if err == nil {
				r, err = b.ledger.Rebuild(ctx, a.StripeAccount)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
