package bookkeeping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) accountCreate() *cobra.Command {
	var n billing.Account
	c := p.StoreLeaf("create ACCOUNT --email ADDRESS", session.Need{Create: true},
		func(ctx context.Context, s *session.Session, args []string) error {
			a, err := account.Create(ctx, s.Engine.Records, args[0], n)
			if err != nil {
				return err
			}
			return p.showAccount(nil, a, "created")
		})
	c.Flags().StringVar(&n.Email, "email", "", "email `ADDRESS` for reminders and receipts")
	c.Flags().StringVar(&n.TimeZone, "time-zone", "", "IANA time zone `NAME` that determines the account's current date (default: UTC)")
	c.Flags().StringVar(&n.Name, "name", "", "customer's `NAME`, for mail and receipts")
	detailFlags(c.Flags(), &n.Details, "")
	session.LocaleFlag(c, &n.Locale)
	session.Required(c, "email")
	return session.Checked(c, func(args []string) error { // invalid values must not create a store
		return cmp.Or(billing.CheckID("account", args[0]), billing.CheckEmail(n.Email), checkZone(n.TimeZone, n.TimeZone != ""),
			session.CheckLocale(n.Locale), account.Check(args[0], n))
	})
}

// detailFlags adds a flag for each of the account's details. removal is the end of their help.
func detailFlags(f *pflag.FlagSet, d *party.Details, removal string) {
	help := [...]string{"first `LINE` of the billing address", "second `LINE` of the billing address", "`CITY` of the billing address",
		"customer's company `NAME`, for receipts", "ISO 3166-1 `CODE` of the billing address's country, such as DE", "postal `CODE` of the billing address",
		"`STATE` or region of the billing address", "customer's tax `ID`; in an EU country, a VAT ID must be one of that country"}
	for i, text := range d.Fields() {
		f.StringVar(text, strings.ReplaceAll(party.Names[i], "_", "-"), "", help[i]+removal)
	}
}

func checkZone(zone string, given bool) error {
	if !given {
		return nil
	}
	if _, err := civil.Zone(zone); err != nil {
		return screen.Usagef("--time-zone: %w", err)
	}
	return nil
}

func (p *program) accountShow() *cobra.Command {
	card := false
	c := session.Leaf("show ACCOUNT", func(ctx context.Context, args []string) error {
		return p.With(ctx, session.Need{Read: true, Processor: card}, func(s *session.Session) error {
			a, err := s.Account(ctx, args[0])
			if err != nil {
				return err
			}
			var shown *processor.Card // nil if not requested, or if there is no card
			if card {
				found, err := s.Engine.Cards().AccountCard(ctx, a.ID)
				if billing.IgnoreNotFound(err) != nil {
					return fmt.Errorf("account %s's card could not be read: %w", a.ID, err)
				} else if err == nil {
					shown = &found
				}
			}
			var own []billing.Name // subscriptions that keep their own payment method
			if a.Method != "" {
				if own, err = s.Engine.KeepOwn(ctx, a.ID); err != nil {
					return err
				}
			}
			subscriptions := s.Engine.GetSubscriptionsByAccount(ctx, a.ID)
			if !p.AsJSON {
				p.accountFields(a, shown)
				p.Say("")
				_, err := screen.List(p.Screen, subscriptions, view.Subscription, subscriptionColumns(), subscriptionCells)
				p.SayKeepOwn(own)
				return err
			}
			list, err := processor.Gather(screen.Readable(p.Screen, subscriptions))
			if err != nil {
				return err
			}
			return p.JSON(append(view.Account(a), "card?", view.Card(shown), "keep_own_method?", view.Names(own), "subscriptions", view.List(list, view.Subscription)))
		})
	})
	c.Flags().BoolVar(&card, "card", false, "also ask the processor for the card")
	return c
}

func (p *program) accountFields(a *billing.Account, card *processor.Card) {
	v := view.Account(a)
	bounced, change, fee := "", "", ""
	if a.Payer.Fee > 0 {
		fee = percent(a.Payer.Fee)
	}
	if a.Copying {
		change = "unfinished; update the account again"
	}
	if b := a.Bounced; b.Email != "" {
		bounced = b.Email + " on " + view.Date(civil.Of(b.At)) + " (" + b.Code + "), so no mail is sent there"
	}
	p.Fields("account", a.ID, "email", a.Email, "name", a.Name, "company", a.Details.Company, "address", view.Address(a),
		"tax id", a.Details.TaxID, "bounced", bounced, "time zone", screen.Text(v, "time_zone"), "locale", a.Locale,
		"customer", a.Payer.Customer,
		"connected account", a.Payer.At, "application fee", fee, "payment method", a.Method, "fallback", a.Fallback,
		"method set", a.Given, "card", cardText(card), "created", a.Created, "change", change)
}

// showAccount prints how a command changed the account. old is the account before the change, or
// nil for a new account.
func (p *program) showAccount(old, a *billing.Account, what string, own ...billing.Name) error {
	p.Say("account %s %s", a.ID, what)
	if old != nil {
		p.SayDifferences(view.Differences(view.Account(old), view.Account(a)))
	}
	p.SayKeepOwn(own)
	return p.JSON(append(view.Account(a), "keep_own_method?", view.Names(own)))
}

func (p *program) accountList() *cobra.Command {
	f, order := &listFilter{}, screen.ListOrder{}
	c := p.StoreLeaf("list", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		return screen.ListAll(p.Screen, order, "account", f.accounts(ctx, p, s), view.Account,
			[]string{"ACCOUNT", "EMAIL", "TIME ZONE", "METHOD", "CREATED"}, func(a *billing.Account) []any {
				return []any{a.ID, a.Email, screen.Text(view.Account(a), "time_zone"), a.Method, a.Created}
			})
	})
	f.flags(c, "accounts that have a subscription with")
	c.Flags().StringVar(&f.customer, "customer", "", "only the account of this `CUSTOMER` at the processor, cus_… or acct_…/cus_…")
	return session.Ordered(c, &order, "account", "email", "created")
}

func (p *program) accountUpdate() *cobra.Command {
	var email, zone, locale, name string
	var details party.Details
	var change account.Change
	c := p.StoreLeaf("update ACCOUNT", session.Need{}, func(ctx context.Context, s *session.Session, args []string) error {
		old, err := s.Account(ctx, args[0])
		if err != nil {
			return err
		}
		a, err := account.Update(ctx, s.Engine.Records, args[0], change)
		if err != nil {
			return err
		}
		return p.showAccount(old, a, "updated")
	})
	f := c.Flags()
	f.StringVar(&email, "email", "", "new email `ADDRESS`")
	f.StringVar(&zone, "time-zone", "", "new IANA time zone `NAME`")
	f.StringVar(&name, "name", "", "customer's `NAME`, for mail and receipts; \"\" removes it")
	detailFlags(f, &details, "; \"\" removes it")
	session.LocaleFlag(c, &locale)
	return session.Checked(c, func([]string) error {
		change = account.Change{Email: screen.Given(f, "email", email), TimeZone: screen.Given(f, "time-zone", zone),
			Locale: screen.Given(f, "locale", locale), Name: screen.Given(f, "name", name)}
		for i, text := range details.Fields() {
			*change.Details.Fields()[i] = screen.Given(f, strings.ReplaceAll(party.Names[i], "_", "-"), *text)
		}
		if change == (account.Change{}) {
			return screen.Usagef("%s: nothing to change; set at least one flag", p.Command)
		}
		return cmp.Or(checkZone(zone, change.TimeZone != nil), session.CheckLocale(locale), change.Check())
	})
}

func (p *program) accountAttach() *cobra.Command {
	var a billing.Attachment
	var connected, fee, fallback string
	c := p.StoreLeaf("attach ACCOUNT --customer cus_… | --payment-method TOKEN | --fallback TOKEN", session.Need{Processor: true},
		func(ctx context.Context, s *session.Session, args []string) error {
			old, err := s.Account(ctx, args[0])
			if err != nil {
				return err
			}
			account, err := s.Engine.Attach(ctx, args[0], a)
			var own []billing.Name
			if err == nil && account.Method != "" {
				own, err = s.Engine.KeepOwn(ctx, account.ID)
			}
			if err != nil {
				return withoutWallet(err)
			}
			return p.showAccount(old, account, "attached", own...)
		})
	f := c.Flags()
	f.StringVar(&a.Customer, "customer", "", "customer `ID` at the processor, cus_…")
	f.StringVar(&a.Method, "payment-method", "", "payment method `TOKEN` from the processor, never a card number (default: the customer's default)")
	f.StringVar(&fallback, "fallback", "", "second payment method `TOKEN`, tried when the first was permanently declined; none removes it")
	f.StringVar(&connected, "connected", "", "connected account `ID` at the processor, acct_…; \"\" for the platform's own account")
	f.StringVar(&fee, "fee", "", "`PERCENT` of each payment that the connected account pays to the platform, such as 2.5%")
	return session.Checked(c, func([]string) error {
		switch {
		case f.Changed("customer") && a.Customer == "":
			return screen.Usagef("--customer must not be empty")
		case f.Changed("payment-method") && a.Method == "":
			return screen.Usagef("--payment-method must not be empty")
		case f.Changed("fallback") && fallback == "":
			return screen.Usagef("--fallback must be a token or none (got an empty value)")
		}
		if a.Connected, a.Fallback = screen.Given(f, "connected", connected), screen.Given(f, "fallback", fallback); fallback == "none" {
			*a.Fallback = ""
		}
		if f.Changed("fee") {
			n, err := parsePercent(fee)
			if err != nil {
				return err
			}
			a.Fee = &n
		}
		return a.Check()
	})
}

// percent formats hundredths of a percent, such as 2.50%.
func percent(n int) string { return fmt.Sprintf("%d.%02d%%", n/100, n%100) }

// parsePercent parses 0 to 100 % with at most two decimals, and returns hundredths of a percent.
func parsePercent(text string) (int, error) {
	whole, fraction, point := strings.Cut(strings.TrimSpace(strings.TrimSuffix(text, "%")), ".")
	digits := whole + (fraction + "00")[:max(2, len(fraction))]
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || whole == "" || len(fraction) > 2 || (point && fraction == "") || n > 100_00 {
		return 0, screen.Usagef("--fee must be 0 to 100 with at most two decimals, such as 2.5%% (got %q)", text)
	}
	return int(n), nil
}

// withoutWallet adds advice to processor.ErrNoWallet.
func withoutWallet(err error) error {
	if errors.Is(err, processor.ErrNoWallet) {
		return fmt.Errorf("%w with duesday account attach ACCOUNT --payment-method TOKEN, "+
			"or set --processor to a processor that keeps them", err)
	}
	return err
}

func (p *program) accountCardLink() *cobra.Command {
	c := p.StoreLeaf("card-link ACCOUNT[/SUBSCRIPTION]",
		session.Need{Processor: true}, func(ctx context.Context, s *session.Session, args []string) error {
			account, subscription, _ := strings.Cut(args[0], "/")
			l, err := s.Engine.Cards().CardLink(ctx, account, subscription)
			if errors.Is(err, store.ErrNotFound) {
				if _, err := s.Engine.Account(ctx, account); err != nil {
					return session.NotFound(err, "account "+account)
				}
				return fmt.Errorf("there is no subscription %s", args[0])
			}
			if err != nil {
				return withoutWallet(err)
			}
			p.Say("%s", screen.Printable(l.URL))
			p.Say("the link works until %s, and the next %s uses the new card", view.Stamp(l.Expires), p.Hint("run payments"))
			var own []billing.Name
			if subscription == "" {
				if own, err = s.Engine.KeepOwn(ctx, account); err != nil {
					return err
				}
			}
			p.SayKeepOwn(own)
			return p.JSON(view.CardLink(account, subscription, l, own))
		})
	return session.Checked(c, func(args []string) error {
		if strings.Contains(args[0], "/") {
			_, err := parseName(args[0])
			return err
		}
		return billing.CheckID("account", args[0])
	})
}

func (p *program) accountPortalLink() *cobra.Command {
	revoke := false
	c := p.StoreLeaf("portal-link ACCOUNT", session.Need{}, func(ctx context.Context, s *session.Session, args []string) error {
		l, err := portal.NewLink(ctx, s.Engine.Records, portal.Pass{Purpose: portal.Page, Account: args[0]}, portal.Hour, revoke)
		if err != nil {
			return session.NotFound(err, "account "+args[0])
		}
		if revoke {
			p.Say("all earlier links and sessions of account %s have ended", args[0])
		}
		p.Say("%s", l.URL)
		p.Say("the link works until %s", view.Stamp(l.Expires))
		return p.JSON(view.PortalLink(args[0], l))
	})
	c.Flags().BoolVar(&revoke, "revoke", false, "first end all links and sessions of the account that were made before")
	return session.Checked(c, func(args []string) error { return billing.CheckID("account", args[0]) })
}

func cardText(c *processor.Card) string {
	if c == nil {
		return ""
	}
	return c.String() + screen.Prefixed(", valid until ", c.LastMonth())
}
