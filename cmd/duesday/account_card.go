package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/store"
)

type attachFlags struct{ customer, method, connected, fee string }

func (p *program) accountAttach() *cobra.Command {
	f := new(attachFlags)
	c := &cobra.Command{
		Use:   "attach ACCOUNT --customer cus_… | --payment-method TOKEN",
		Short: "Set the payment method, customer or connected account of an account",
		Long: `Set the payment method of an account's subscriptions, or use the default one of a customer
at the processor; both must exist there. A subscription with a payment method of its own
keeps it. Values without a flag stay.

A new payment method takes effect at once: the next run retries a declined payment with it,
and past_due subscriptions are active again, without a charge for the time between.

With --connected, payments are taken at a connected account of the processor, and --fee is
our share of each. A payment method of another account is removed, since it is not valid
there.`,
		Args: want("ACCOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.attachment(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return p.with(cmd.Context(), need{processor: true}, func(s *session) error {
				a, err := s.engine.Attach(cmd.Context(), args[0], t)
				if err != nil {
					return withoutWallet(notFound(err, "account "+args[0]))
				}
				return p.showAccount(a, "attached")
			})
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.customer, "customer", "", "the processor's `ID` of the customer, cus_…")
	fs.StringVar(&f.method, "payment-method", "",
		"the processor's `TOKEN` (default the customer's default); never a card number")
	fs.StringVar(&f.connected, "connected", "",
		"the processor's `ID` of the connected account, acct_…; \"\" for our own")
	fs.StringVar(&f.fee, "fee", "", "`PERCENT` of each payment that the connected account leaves to us, such as 2.5%")
	return c
}

// attachment checks the flags.
func (f *attachFlags) attachment(given func(string) bool) (engine.Attachment, error) {
	t := engine.Attachment{Customer: f.customer, Method: f.method}
	for flag, text := range map[string]string{"customer": f.customer, "payment-method": f.method} {
		if given(flag) && text == "" {
			return t, usagef("--%s is empty", flag)
		}
	}
	if given("connected") {
		t.Connected = &f.connected
	}
	if given("fee") {
		fee, err := parsePercent(f.fee)
		if err != nil {
			return t, err
		}
		t.Fee = &fee
	}
	return t, t.Check()
}

// parsePercent reads 0 to 100 % with at most two decimals, in hundredths of a percent.
func parsePercent(text string) (int, error) {
	whole, fraction, point := strings.Cut(strings.TrimSpace(strings.TrimSuffix(text, "%")), ".")
	digits := whole + (fraction + "00")[:max(2, len(fraction))]
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || whole == "" || len(fraction) > 2 || (point && fraction == "") || n > 100_00 {
		return 0, usagef("--fee %q: want 0 to 100 with at most two decimals, such as 2.5%%", text)
	}
	return int(n), nil
}

// percent writes hundredths of a percent.
func percent(n int) string { return fmt.Sprintf("%d.%02d%%", n/100, n%100) }

// withoutWallet adds a way out to billing.ErrNoWallet.
func withoutWallet(err error) error {
	if errors.Is(err, billing.ErrNoWallet) {
		return fmt.Errorf("%w: duesday account attach ACCOUNT --payment-method TOKEN; "+
			"or name a processor with them by --processor", err)
	}
	return err
}

func (p *program) accountCardLink() *cobra.Command {
	return &cobra.Command{
		Use:   "card-link ACCOUNT[/SUBSCRIPTION]",
		Short: "Make a link to a page where the customer enters a card",
		Long: `Make a link to a page of the processor's by which the customer gives a card: for the account,
or for one subscription alone. The account gets a customer at the processor when it has
none. The next payment run takes the card over: for what is due, for what was declined,
and for what is past_due. Whoever has the link can use it: give it to the customer alone.`,
		Args: want("ACCOUNT[/SUBSCRIPTION]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			account, subscription, one := strings.Cut(args[0], "/")
			if one {
				if _, err := parseName(args[0]); err != nil {
					return err
				}
			} else if err := billing.CheckID("account", account); err != nil {
				return err
			}
			return p.with(cmd.Context(), need{processor: true}, func(s *session) error {
				l, err := s.engine.CardLink(cmd.Context(), account, subscription)
				if errors.Is(err, store.ErrNotFound) {
					return p.missingTarget(cmd.Context(), s, account, args[0])
				}
				if err != nil {
					return withoutWallet(err)
				}
				return p.showLink(account, subscription, l)
			})
		},
	}
}

// missingTarget names the missing one of account and subscription.
func (p *program) missingTarget(ctx context.Context, s *session, account, name string) error {
	if _, err := s.engine.Account(ctx, account); err != nil {
		return notFound(err, "account "+account)
	}
	return fmt.Errorf("there is no subscription %s", name)
}

// A linkView is the JSON of account card-link.
type linkView struct {
	Account      string `json:"account"`
	Subscription string `json:"subscription,omitempty"`
	URL          string `json:"url"`
	Expires      string `json:"expires_at,omitempty"`
}

func (p *program) showLink(account, subscription string, l billing.CardLink) error {
	v := linkView{Account: account, Subscription: subscription, URL: l.URL, Expires: stamp(l.Expires)}
	if p.cfg.JSON {
		return p.object(v)
	}
	p.say("%s", printable(v.URL))
	p.say("works until %s; the next %s takes the card over", v.Expires, p.hint("run payments"))
	return nil
}

// A cardView has the parts of a card for people.
type cardView struct {
	Brand   string `json:"brand,omitempty"`
	Last4   string `json:"last4,omitempty"`
	Expires string `json:"last_month,omitempty"` // in which it is good: 2026-12
	said    string
}

func (c *cardView) text() string {
	if c == nil {
		return ""
	}
	return c.said + prefixed(", good until ", c.Expires)
}

// cardOf asks the processor for the account's card; nil when the account has none.
func cardOf(ctx context.Context, s *session, a *billing.Account) (*cardView, error) {
	card, err := s.engine.AccountCard(ctx, a.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the card of account %s: %w", a.ID, err)
	}
	return &cardView{Brand: card.Brand, Last4: card.Last4, Expires: card.LastMonth(), said: card.String()}, nil
}
