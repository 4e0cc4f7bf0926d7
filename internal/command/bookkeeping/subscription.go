// Package bookkeeping contains the commands for a store's customer data: accounts, subscriptions,
// receipts, periods, import and export, the proof of one subscription, and the monthly report.
//
// It does not run the daily jobs, except for one period when a user asks for it. It does not decide
// anything about money, because package engine does.
package bookkeeping

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// A program is one invocation. Its methods are the commands of this family.
type program struct{ *session.Program }

// Commands returns this family's commands.
func Commands(of *session.Program) []*cobra.Command {
	p := &program{of}
	subscription := session.Group("subscription", p.subscriptionCreate(), p.subscriptionList(), p.subscriptionUpdate(), p.subscriptionCancel(),
		p.subscriptionCharge(), p.subscriptionLeaf("show", session.Need{Read: true}, p.showSubscription),
		p.subscriptionAction("pause", (*engine.Engine).Pause), p.subscriptionAction("resume", (*engine.Engine).Resume),
		p.subscriptionSkip())
	subscription.Aliases = []string{"sub"}
	return []*cobra.Command{
		p.importCommand(), subscription,
		session.Group("account", p.accountCreate(), p.accountShow(), p.accountList(), p.accountUpdate(), p.accountAttach(),
			p.accountCardLink(), p.accountPortalLink(), p.accountErase(), p.accountExport()),
		session.Group("receipt", p.receiptList(), p.receiptShow(), p.receiptCreate(), p.receiptRefund()), session.Group("period", p.periodList()),
		p.reportCommand(), p.exportCommand(), p.proveCommand(), p.historyCommand(),
	}
}

const subscriptionName = "ACCOUNT/SUBSCRIPTION"

func parseName(text string) (billing.Name, error) {
	n, err := billing.ParseName(text)
	return n, screen.Invalid(err)
}

// subscriptionLeaf returns a leaf command for one subscription in the open store.
func (p *program) subscriptionLeaf(verb string, n session.Need,
	do func(context.Context, *session.Session, billing.Name) error) *cobra.Command {
	var name billing.Name
	c := p.StoreLeaf(verb+" "+subscriptionName, n,
		func(ctx context.Context, s *session.Session, _ []string) error { return do(ctx, s, name) })
	return session.Checked(c, func(args []string) (err error) {
		name, err = parseName(args[0])
		return err
	})
}

func (p *program) subscriptionCreate() *cobra.Command {
	var n billing.NewSubscription
	var amount, currency, interval string
	var terms termsFlags
	start, next := screen.DateFlag(), screen.DateFlag()
	c := p.StoreLeaf("create "+subscriptionName,
		session.Need{Create: true}, func(ctx context.Context, s *session.Session, _ []string) error {
			sub, err := terms.tax.create(ctx, s, n)
			if err != nil {
				return err
			}
			p.warnBare(ctx, s, sub)
			due, _ := sub.Overdue(billing.TodayIn(sub.TimeZone, p.Now()))
			if due > 0 {
				p.Warn("%d periods are due from %s on, and one run could charge several of them; to skip past ones, run: %s", due,
					sub.Anchor, p.Hint("subscription skip "+sub.Name.String()+" --until "+s.Engine.Today().String()))
			}
			p.sayChanged(nil, sub, "created")
			return p.JSON(append(view.Changed(nil, sub), "overdue_periods?", due))
		})
	f := c.Flags()
	f.StringVar(&n.SKU, "sku", "", "`SKU` that the customer subscribes to")
	f.StringVar(&amount, "amount", "", "`AMOUNT` of each payment, such as 12.99, or of one unit with --quantity")
	f.StringVar(&currency, "currency", "", "ISO 4217 currency `CODE` of the amount")
	terms.add(f, "")
	f.IntVar(&n.PaymentDay, "payment-day", 0,
		"`DAY` of the month, 1 to 31, or of the week, 1 (Monday) to 7, if the interval is in weeks; only of the first payment, if it is in days")
	f.StringVar(&n.Method, "payment-method", "", "payment method `TOKEN` from the processor, such as pm_card_visa, never a card number (default: the account's)")
	f.StringVar((*string)(&n.Collection), "collection", "", collectionHelp+" (default: automatic)")
	f.StringVar(&n.Email, "email", "", "email `ADDRESS`, for an account that does not exist yet")
	f.Var(&start, "start-date", "first day on which a payment can be due (default: today)")
	f.IntVar(&n.TrialDays, "trial-days", 0,
		"free `DAYS` at the start; the first payment is due on the first payment day after them, or on the day after them if --payment-day is not set")
	f.Var(&next, "next-payment-date", "first due date (default: the first payment day on or after the start date)")
	f.StringVar(&interval, "interval", "monthly", "`PERIOD` between payments: weekly, monthly, quarterly, yearly, 10 days, 2 weeks, 6 months, …")
	f.StringVar(&n.TimeZone, "time-zone", "", "IANA time zone `NAME`, for an account that does not exist yet (default: UTC)")
	f.IntVar(&n.ReminderDays, "reminder-days", billing.DefaultReminderDays, "`DAYS` before a payment when its reminder is sent; 0 for no reminder")
	f.IntVar(&n.Installments, "installments", 0, "`NUMBER` of payments after which the subscription is completed; 0 for no end")
	f.StringVar(&n.Address, "address", "", "postal address `TEXT`")
	session.Required(c, "sku", "amount", "currency")
	return session.Checked(c, func(args []string) error { // invalid values must not create a store
		name, err := parseName(args[0])
		if err != nil {
			return err
		}
		if n.Interval, err = civil.ParseInterval(interval); err != nil {
			return screen.Usagef("--interval: %w", err)
		}
		if !f.Changed("payment-day") && n.TrialDays == 0 && n.Interval.Unit != civil.Day {
			return screen.Usagef("--payment-day is missing; only a subscription with --trial-days or an interval in days can do without it")
		}
		if n.Amount, err = screen.ParseAmount(amount, currency); err == nil {
			err = terms.check(f)
		}
		if err != nil {
			return err
		}
		discount, err := terms.in(n.Amount.Currency())
		if err != nil {
			return err
		}
		n.Terms = price.Terms{Quantity: terms.quantity, Discount: *cmp.Or(discount, new(price.Discount))}
		n.Account, n.ID, n.Start, n.NextPayment = name.Account, name.ID, start.Value, next.Value
		return n.Check()
	})
}

func (p *program) warnBare(ctx context.Context, s *session.Session, sub *billing.Subscription) {
	if s.Engine.Untaxed(sub) {
		p.Warn("subscription %s has no tax rate, so its periods will be parked; set one with %s", sub.Name,
			p.Hint("subscription update "+sub.Name.String()+" --tax-rate RATE"))
	}
	if sub.Method != "" || sub.Collection == billing.ByWire {
		return
	}
	if a, err := s.Engine.Account(ctx, sub.Account); err == nil && a.Method == "" {
		p.Warn("account %s has no payment method, so a due payment will wait for an operator; set a method with "+
			"%s, or let the customer enter a card: %s", a.ID, p.Hint("account attach "+a.ID), p.Hint("account card-link "+a.ID))
	}
}

func (p *program) subscriptionList() *cobra.Command {
	var account string
	f, order := &listFilter{}, screen.ListOrder{}
	c := p.StoreLeaf("list", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		all, err := f.subscriptions(ctx, s, account)
		if err != nil {
			return err
		}
		return screen.ListAll(p.Screen, order, "subscription", all, view.Subscription, subscriptionColumns(), subscriptionCells)
	})
	c.Use = "list [ACCOUNT]"
	accountFlag(c, &account)
	f.flags(c, "subscriptions with")
	session.Ordered(c, &order, "subscription", "sku", "status", "amount", "next-payment")
	return session.Checked(c, func(args []string) error { return accountArgument(&account, args) })
}

func subscriptionColumns() []string {
	return []string{"SUBSCRIPTION", "SKU", "STATUS", "AMOUNT", "EVERY", "DAY", "NEXT PAYMENT", "METHOD"}
}

func subscriptionCells(s *billing.Subscription) []any {
	return []any{s.Name, s.SKU, s.Status, s.Amount, s.Interval, dayOf(s), s.NextPayment, methodOf(s, "")}
}

// lookForLink asks the processor for the link where the customer can authenticate the open period's
// payment. noLink explains why there is no link. If the processor cannot be opened, that is also a
// noLink and not an error, because nothing else needs the processor.
func (p *program) lookForLink(ctx context.Context, s *session.Session, sub *billing.Subscription) (link, noLink string) {
	if sub.Open == nil || sub.Open.State != processor.RequiresAction {
		return "", ""
	}
	if s.Processor == nil && !p.Config.UsesStripe() {
		return "", "the sandbox has no page for it"
	}
	if s.Processor == nil {
		if err := p.OpenProcessor(s, false); err != nil {
			return "", secret.Clean(err.Error())
		}
	}
	switch in, err := s.Processor.Lookup(ctx, sub.Open.Ref); {
	case err != nil:
		return "", secret.Clean(err.Error())
	case in.State != processor.RequiresAction:
		return "", "it is already " + string(in.State) + " at the processor; the next payment run continues from there"
	case in.Link == "":
		return "", "the processor has no page for it"
	default:
		return in.Link, ""
	}
}

func (p *program) showSubscription(ctx context.Context, s *session.Session, n billing.Name) error {
	sub, err := s.Subscription(ctx, n)
	if err != nil {
		return err
	}
	link, noLink := p.lookForLink(ctx, s, sub)
	periods, err := processor.Gather(screen.Readable(p.Screen, s.Engine.GetEndedPeriods(ctx, sub.Name))) // unpaid
	if err != nil {
		return err
	}
	const shownReceipts = 12 // only the latest receipts
	var receipts []*billing.Receipt
	for r, err := range screen.Readable(p.Screen, s.Engine.GetReceiptsByAccount(ctx, sub.Account)) {
		if err != nil {
			return err
		}
		if r.ID != sub.ID && (r.ID != "" || r.Name.SKU != sub.Name.SKU) { // legacy receipts name only the SKU
			continue
		}
		if receipts = append(receipts, r); len(receipts) > shownReceipts {
			receipts = receipts[1:]
		}
	}
	v := view.Subscription(sub)
	if open := v.Place("open"); sub.Open != nil {
		v[open] = append(view.Open(sub.Open), "link?", link, "no_link?", noLink)
	}
	p.showSubscriptionText(sub, link, noLink, periods, receipts)
	return p.JSON(append(v, "periods", view.List(periods, view.Period), "receipts", view.Receipts(receipts, s.Engine.Opened.Installation)))
}

func (p *program) showSubscriptionText(sub *billing.Subscription, link, noLink string, periods []*billing.EndedPeriod,
	receipts []*billing.Receipt) {
	p.subscriptionFields(sub)
	if o := sub.Open; o.ByWire() {
		p.Say("\nOpen: period %d, due %s, %s by wire; it fails on %s if it is not paid before then", o.Period, view.Date(o.Due),
			o.Amount.Format(), view.Date(o.PayBy))
		p.Say("  to record its payment, run: duesday receipt create %s", sub.Name)
	} else if o != nil {
		fallback := ""
		if o.ByFallback() {
			fallback = " (the fallback for " + o.FallbackFor + ")"
		}
		p.Say("\nOpen: period %d, due %s, %s by %s%s, attempt %d%s%s", o.Period, view.Date(o.Due), o.Amount.Format(), o.Method,
			fallback, o.Attempt, screen.Prefixed(", ", string(o.State)), screen.Prefixed(", scheduled for ", view.Date(o.Retry)))
		p.Say("  intent %s", o.Ref)
		switch {
		case link != "":
			p.Say("  the customer can authenticate it at %s", screen.Printable(link))
		case noLink != "":
			p.Say("  no link for the customer: %s", screen.Printable(noLink))
		}
		for _, a := range o.Attempts {
			p.Say("  attempt %d declined at %s: %s (%s)", a.Number, view.Stamp(a.At), a.Code, a.Method)
		}
	}
	screen.Section(p.Screen, "\nPeriods that were not paid:", []string{"  PERIOD", "DUE", "AMOUNT", "ENDING", "REASON"}, periods,
		func(x *billing.EndedPeriod) []any {
			amount := x.Amount.Decimal() + " " + x.Amount.Currency().Code()
			return []any{"  " + strconv.Itoa(x.Period), x.Due, amount, x.Ending, x.Reason}
		})
	screen.Section(p.Screen, "\nReceipts:", []string{"  PERIOD", "DUE", "PROCESSED", "AMOUNT", "KIND", "CHARGE"}, receipts,
		func(r *billing.Receipt) []any {
			return []any{"  " + screen.Printable(screen.Cell(view.PeriodOf(r))), r.Due, r.Processed, r.Amount, r.Kind, r.Charge}
		})
}

// statusNote returns the status, with a note if the user needs to know more about it.
func statusNote(s *billing.Subscription) string {
	note := string(s.Status)
	switch {
	case s.Status == billing.ParkedState:
		note += ": " + s.Parked + "; use duesday subscription charge or skip"
	case s.Manual != nil:
		note += ", a manual payment of " + s.Manual.Amount.Format() + " is recorded when the payment intent is canceled"
	case view.Collects(s) != nil:
		note += ", period " + strconv.Itoa(*view.Collects(s)) + " is being collected"
	case s.Upgrading():
		note += ", the upgrade to " + s.Upgrade.SKU + " is not paid yet"
	case s.CancelAtEnd && s.Status == billing.Active:
		note += ", ends with the period"
	case s.Open != nil && s.Open.State == processor.RequiresAction:
		note += ", requires_action: the customer must authenticate the payment"
	case s.Open.ByWire() && s.Requested == "":
		note += ", the customer was asked to pay"
	case s.Requested != "":
		note += ", " + string(s.Requested) + " is requested"
	}
	return note
}

// dayOf returns the payment day, which an interval in days does not have.
func dayOf(s *billing.Subscription) string {
	if s.Interval.Unit == civil.Day {
		return ""
	}
	return strconv.Itoa(s.PaymentDay)
}

func (p *program) subscriptionFields(s *billing.Subscription) {
	installments, trial := "", ""
	if s.Installments > 0 {
		installments = strconv.Itoa(s.Paid) + " of " + strconv.Itoa(s.Installments) + " paid"
	}
	if s.InTrial() {
		trial = "free; the first payment is due on " + view.Date(view.DueOf(s))
	}
	reminder := view.Date(s.NextReminder)
	if reminder != "" {
		reminder += " (" + strconv.Itoa(s.ReminderDays) + " days before)"
	}
	p.Fields("subscription", s.Name, "sku", s.SKU, "status", statusNote(s), "trial", trial, "amount", s.Amount,
		"quantity", screen.Positive(s.Terms.Quantity), "discount", view.DiscountText(s), "tax", view.TaxText(s.Terms.Tax), "pending", pendingText(s), "upgrade", upgradeText(s), "takeover", takeoverText(s),
		"every", s.Interval.String()+screen.Prefixed(", on day ", dayOf(s)), "period", s.Period, "due", view.DueOf(s),
		"next payment", s.NextPayment, "next reminder", reminder, "payment method", methodOf(s, "its account's"),
		"email", s.Email, "address", s.Address, "time zone", strings.TrimPrefix(s.TimeZone, "UTC"),
		"installments", installments, "paused on", s.PausedOn, "created", s.Created)
}
