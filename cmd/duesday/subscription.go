package main

import (
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
)

func (p *program) subscriptionCommand() *cobra.Command {
	return group("subscription", "Create, show, list and change subscriptions",
		p.subscriptionCreate(), p.subscriptionShow(), p.subscriptionList(), p.subscriptionUpdate(),
		p.subscriptionAction("pause", "Stop charging until resume; an open period ends first", true,
			func(ctx context.Context, s *session, n billing.Name) (*billing.Subscription, error) {
				return s.engine.Pause(ctx, n)
			}),
		p.subscriptionAction("resume", "Charge a paused or past_due subscription again, or undo cancel --at-period-end",
			true, func(ctx context.Context, s *session, n billing.Name) (*billing.Subscription, error) {
				return s.engine.Resume(ctx, n)
			}),
		p.subscriptionCancel(), p.subscriptionCharge(),
		p.subscriptionAction("skip", "End a parked period without a charge", true,
			func(ctx context.Context, s *session, n billing.Name) (*billing.Subscription, error) {
				return s.engine.SkipParked(ctx, n)
			}))
}

const subscriptionName = "ACCOUNT/SUBSCRIPTION"

func parseName(text string) (billing.Name, error) {
	n, err := billing.ParseName(text)
	if err != nil {
		return n, &usageError{err}
	}
	return n, nil
}

type createFlags struct {
	sku, amount, currency, method, email, interval, zone, address string
	day, reminderDays, installments                               int
	start, next                                                   dateFlag
}

func (p *program) subscriptionCreate() *cobra.Command {
	f := new(createFlags)
	c := &cobra.Command{
		Use:   "create " + subscriptionName,
		Short: "Create a subscription, and its account when there is none yet",
		Args:  want(subscriptionName),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := f.subscription(args[0])
			if err != nil {
				return err
			}
			return p.with(cmd.Context(), need{create: true}, func(s *session) error {
				sub, err := s.engine.CreateSubscription(cmd.Context(), n)
				if err != nil {
					return err
				}
				p.warnBare(cmd.Context(), s, sub)
				return p.showChanged(sub, "created")
			})
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.sku, "sku", "", "what is subscribed to")
	fs.StringVar(&f.amount, "amount", "", "`AMOUNT` of each payment, such as 12.99")
	fs.StringVar(&f.currency, "currency", "", "ISO 4217 `CODE` of the amount")
	fs.IntVar(&f.day, "payment-day", 0, "`DAY` of the month 1 to 31, of the week 1 (Monday) to 7 with weekly intervals")
	fs.StringVar(&f.method, "payment-method", "",
		"the processor's `TOKEN`, such as pm_card_visa; never a card number (default the account's)")
	fs.StringVar(&f.email, "email", "", "`ADDRESS` of an account that does not exist yet")
	fs.Var(&f.start, "start-date", "no payment before it (default today)")
	fs.Var(&f.next, "next-payment-date", "the first due date (default the first payment day from the start)")
	fs.StringVar(&f.interval, "interval", "monthly",
		"`PERIOD`: weekly, monthly, quarterly, yearly, 2 weeks, 6 months, …")
	fs.StringVar(&f.zone, "time-zone", "", "IANA `NAME` for an account that does not exist yet (default UTC)")
	fs.IntVar(&f.reminderDays, "reminder-days", billing.DefaultReminderDays,
		"`DAYS` before a payment its reminder is sent; 0 for none")
	fs.IntVar(&f.installments, "installments", 0, "`NUMBER` of payments after which it is completed; 0 for no end")
	fs.StringVar(&f.address, "address", "", "`TEXT` of the postal address")
	for _, name := range []string{"sku", "amount", "currency", "payment-day"} {
		c.MarkFlagRequired(name)
	}
	return c
}

// warnBare warns of a subscription without a payment method.
func (p *program) warnBare(ctx context.Context, s *session, sub *billing.Subscription) {
	if sub.Method != "" {
		return
	}
	if a, err := s.engine.Account(ctx, sub.Account); err == nil && a.Method == "" {
		p.warn("account %s has no payment method: without one, a payment that is due waits for a person; give it one with "+
			"%s, or let the customer: %s",
			a.ID, p.hint("account attach "+a.ID), p.hint("account card-link "+a.ID))
	}
}

// subscription checks the flags before a store is made for them.
func (f *createFlags) subscription(name string) (billing.NewSubscription, error) {
	n, err := parseName(name)
	if err != nil {
		return billing.NewSubscription{}, err
	}
	currency, err := money.ParseCurrency(f.currency)
	if err != nil {
		return billing.NewSubscription{}, usagef("--currency: %w", err)
	}
	amount, err := money.Parse(f.amount, currency)
	if err != nil {
		return billing.NewSubscription{}, usagef("--amount: %w", err)
	}
	interval, err := civil.ParseInterval(f.interval)
	if err != nil {
		return billing.NewSubscription{}, usagef("--interval: %w", err)
	}
	sub := billing.NewSubscription{Account: n.Account, Email: f.email, ID: n.ID, SKU: f.sku, Amount: amount,
		PaymentDay: f.day,
		Method:     f.method, Address: f.address, Interval: interval, TimeZone: f.zone, ReminderDays: f.reminderDays,
		Installments: f.installments, Start: f.start.Date, NextPayment: f.next.Date}
	return sub, sub.Check()
}

type listFlags struct {
	account string
	status  choiceFlag
}

func (p *program) subscriptionList() *cobra.Command {
	f := &listFlags{status: choiceFlag{choices: []string{string(billing.Active), string(billing.Paused),
		string(billing.PastDue),
		string(billing.ParkedState), string(billing.CanceledSub), string(billing.Completed)}}}
	c := &cobra.Command{
		Use:   "list",
		Short: "List subscriptions: all, or an account's, or those of one status",
		Args:  want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), need{read: true}, func(s *session) error {
				all := s.engine.Subscriptions(cmd.Context())
				if f.account != "" {
					if err := billing.CheckID("account", f.account); err != nil {
						return err
					}
					all = s.engine.GetSubscriptionsByAccount(cmd.Context(), f.account)
				}
				n, err := p.subscriptionTable(withStatus(all, billing.Status(f.status.value)))
				if err == nil {
					p.say("\n%s", plural(n, "subscription"))
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&f.account, "account", "", "only those of the `ACCOUNT`")
	c.Flags().Var(&f.status, "status", "only those of this status")
	return c
}

func withStatus(all iter.Seq2[*billing.Subscription, error],
	status billing.Status) iter.Seq2[*billing.Subscription, error] {
	return func(yield func(*billing.Subscription, error) bool) {
		for s, err := range all {
			if err == nil && status != "" && s.Status != status {
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

func (p *program) subscriptionTable(all iter.Seq2[*billing.Subscription, error]) (int, error) {
	columns := []string{"SUBSCRIPTION", "SKU", "STATUS", "AMOUNT", "EVERY", "DAY", "NEXT PAYMENT", "METHOD"}
	return list(p, all, viewSubscription, columns, func(s *billing.Subscription) []string {
		return []string{s.Name.String(), s.SKU, string(s.Status), s.Amount.Format(), s.Interval.String(),
			strconv.Itoa(s.PaymentDay), date(s.NextPayment), s.Method}
	})
}

func (p *program) subscriptionShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show " + subscriptionName,
		Short: "Show a subscription, its open and unpaid periods, and its last receipts",
		Args:  want(subscriptionName),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := parseName(args[0])
			if err != nil {
				return err
			}
			return p.with(cmd.Context(), need{read: true}, func(s *session) error {
				sub, err := s.engine.Subscription(cmd.Context(), n)
				if err != nil {
					return notFound(err, "subscription "+n.String())
				}
				return p.showSubscription(cmd.Context(), s, sub)
			})
		},
	}
}

// lookForLink asks the processor where the customer can authenticate the open period's
// payment. The processor is opened for that alone: a failure is shown as the reason for the missing
// link.
func (p *program) lookForLink(ctx context.Context, s *session, sub *billing.Subscription, v *openView) {
	if sub.Open == nil || sub.Open.State != billing.RequiresAction {
		return
	}
	if s.processor == nil && !p.cfg.UsesStripe() {
		v.NoLink = "the sandbox has no page for it"
		return
	}
	if s.processor == nil {
		if err := s.openProcessor(&p.cfg); err != nil {
			v.NoLink = secret.Clean(err.Error())
			return
		}
	}
	switch in, err := s.processor.Lookup(ctx, sub.Open.Ref); {
	case err != nil:
		v.NoLink = secret.Clean(err.Error())
	case in.State != billing.RequiresAction:
		v.NoLink = "it is " + string(in.State) + " at the processor by now; the next payment run goes on from there"
	case in.Link == "":
		v.NoLink = "the processor has no page for it"
	default:
		v.Link = in.Link
	}
}

// shownReceipts is how many of its receipts a subscription is shown with.
const shownReceipts = 12

// A fullSubscriptionView is the JSON of subscription show.
type fullSubscriptionView struct {
	subscriptionView
	Periods  []periodView      `json:"periods"` // ended unpaid
	Receipts []fullReceiptView `json:"receipts"`
}

func (p *program) showSubscription(ctx context.Context, s *session, sub *billing.Subscription) error {
	v := fullSubscriptionView{viewSubscription(sub), []periodView{}, []fullReceiptView{}}
	p.lookForLink(ctx, s, sub, v.Open)
	for period, err := range s.engine.GetEndedPeriods(ctx, sub.Name) {
		if err != nil {
			return err
		}
		v.Periods = append(v.Periods, viewPeriod(period))
	}
	var receipts []*billing.Receipt
	for r, err := range s.engine.GetReceiptsByAccount(ctx, sub.Account) {
		if err != nil {
			return err
		}
		if r.ID != sub.ID && (r.ID != "" || r.SKU != sub.SKU) { // a published model's receipts name the SKU alone
			continue
		}
		if receipts = append(receipts, r); len(receipts) > shownReceipts {
			receipts = receipts[1:]
		}
	}
	if !p.cfg.JSON {
		return p.showSubscriptionText(sub, &v, receipts)
	}
	for _, r := range receipts {
		v.Receipts = append(v.Receipts, viewFullReceipt(r))
	}
	return p.object(v)
}

func (p *program) showSubscriptionText(sub *billing.Subscription, v *fullSubscriptionView,
	receipts []*billing.Receipt) error {
	p.subscriptionFields(sub)
	if o := sub.Open; o != nil {
		p.say("\nOpen: period %d, due %s, %s by %s, attempt %d%s%s", o.Period, o.Due, o.Amount.Format(), o.Method, o.Attempt,
			prefixed(", ", string(o.State)), prefixed(", tried again on ", date(o.Retry)))
		p.say("  intent %s", o.Ref)
		switch {
		case v.Open.Link != "":
			p.say("  the customer can authenticate it at %s", printable(v.Open.Link))
		case v.Open.NoLink != "":
			p.say("  no link for the customer: %s", printable(v.Open.NoLink))
		}
		for _, a := range o.Attempts {
			p.say("  attempt %d declined at %s: %s (%s)", a.Number, stamp(a.At), a.Code, a.Method)
		}
	}
	if len(v.Periods) > 0 {
		p.say("\nPeriods that did not end paid:")
		t := newTable(p.stdout, "  PERIOD", "DUE", "AMOUNT", "ENDING", "REASON")
		for _, x := range v.Periods {
			t.row("  "+strconv.Itoa(x.Period), x.Due, x.Amount+" "+x.Currency, x.Ending, x.Reason)
		}
		t.flush()
	}
	if len(receipts) == 0 {
		return nil
	}
	p.say("\nReceipts:")
	t := newTable(p.stdout, "  PERIOD", "DUE", "PROCESSED", "AMOUNT", "KIND", "CHARGE")
	for _, r := range receipts {
		t.row("  "+printable(receiptPeriod(r)), date(r.Due), stamp(r.Processed), r.Amount.Format(), string(r.Kind), r.Charge)
	}
	return t.flush()
}

func (p *program) subscriptionFields(s *billing.Subscription) {
	installments := ""
	if s.Installments > 0 {
		installments = strconv.Itoa(s.Paid) + " of " + strconv.Itoa(s.Installments) + " paid"
	}
	note := string(s.Status)
	switch {
	case s.Status == billing.ParkedState:
		note += ": " + s.Parked + "; duesday subscription charge or skip"
	case s.CancelAtEnd && s.Status == billing.Active:
		note += ", ends with the period"
	case s.Open != nil && s.Open.State == billing.RequiresAction:
		note += ", requires_action: the customer has to authenticate the payment"
	case s.Requested != "":
		note += ", " + string(s.Requested) + " is requested"
	}
	method := s.Method
	if method == "" {
		method = "its account's"
	}
	reminder := date(s.NextReminder)
	if reminder != "" {
		reminder += " (" + strconv.Itoa(s.ReminderDays) + " days before)"
	}
	fields(p.stdout, "subscription", s.Name.String(), "sku", s.SKU, "status", note, "amount", s.Amount.Format(),
		"every", s.Interval.String()+", on day "+strconv.Itoa(s.PaymentDay), "period", strconv.Itoa(s.Period), "due",
		dueOf(s),
		"next payment", date(s.NextPayment), "next reminder", reminder, "payment method", method, "email", s.Email,
		"address", s.Address, "time zone", strings.TrimPrefix(s.TimeZone, "UTC"), "installments", installments,
		"paused on", date(s.PausedOn), "created", stamp(s.Created))
}

// showChanged shows a changed subscription.
func (p *program) showChanged(s *billing.Subscription, what string) error {
	if p.cfg.JSON {
		return p.object(viewSubscription(s))
	}
	p.say("subscription %s %s", s.Name, what)
	p.subscriptionFields(s)
	return nil
}
