package bookkeeping

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// updateFlags holds the flags of subscription update.
type updateFlags struct {
	set                          *pflag.FlagSet
	sku, amount, method, address string
	collection                   string
	terms                        termsFlags
	day, reminderDays            int
	early, notify, yes, paidOnce bool
	now                          bool
	key                          string
	where                        []string
	prices                       string
	from                         screen.Flag[civil.Date]
	on                           session.BusinessDay
}

func (u *updateFlags) add(f *pflag.FlagSet) {
	u.set, u.from = f, screen.DateFlag()
	f.StringVar(&u.sku, "sku", "", "`SKU` of the new plan, from the next period")
	f.StringVar(&u.amount, "amount", "", "new `AMOUNT` in the subscription's currency")
	u.terms.add(f, ", or none")
	f.Var(&u.from, "from", "with --sku, --amount or --quantity: start with the first period due on this day or later")
	f.BoolVar(&u.notify, "notify", false, "with a new --sku, --amount, --quantity or --discount: tell the customer by mail")
	f.StringArrayVar(&u.where, "where", nil, "`sku=SKU`: change the plan of every subscription with this SKU; add currency=CODE to select one currency")
	f.StringVar(&u.prices, "prices", "", "`FILE` with a price list: CSV with the columns sku, amount, and optionally currency and name")
	f.BoolVar(&u.now, "now", false, "with a new --sku or --amount: charge the next period today for the new plan, and start the schedule again today")
	f.StringVar(&u.key, "key", "", "with --now: `TEXT` that identifies this request; using the same key again charges nothing more")
	f.BoolVar(&u.yes, "yes", false, "with --where, --prices or --now: make the changes; without --yes, the command only shows what it would do")
	f.IntVar(&u.day, "payment-day", 0, "new payment `DAY` of the month, or of the week")
	f.BoolVar(&u.early, "early", false, "with --payment-day: start on the last such day before the next due date, if that day has not passed")
	f.StringVar(&u.method, "payment-method", "", "payment method `TOKEN` from the processor, never a card number")
	f.StringVar(&u.collection, "collection", "", collectionHelp+"; starts with the next period that is not open")
	f.IntVar(&u.reminderDays, "reminder-days", 0, "`DAYS` before a payment when its reminder is sent; 0 for no reminder")
	f.StringVar(&u.address, "address", "", "postal address `TEXT`")
	f.BoolVar(&u.paidOnce, "paid-once", false, "confirm that no period reported as perhaps paid twice was, or that the money was returned")
	u.on.Flags(f, session.AsOfRun)
}

// many reports whether the flags may change more than one subscription.
func (u *updateFlags) many() bool { return u.set.Changed("where") || u.prices != "" }

// collectionHelp is the help text for the --collection flag.
const collectionHelp = "`automatic` to charge the payment method, or manual if the customer pays by wire when asked"

// change returns the requested change without the amount, because the currency is not known yet.
func (u *updateFlags) change(p *program) (billing.Change, error) {
	f := u.set
	c := billing.Change{PaymentDay: screen.Given(f, "payment-day", u.day), Method: screen.Given(f, "payment-method", u.method),
		ReminderDays: screen.Given(f, "reminder-days", u.reminderDays), Address: screen.Given(f, "address", u.address),
		Collection: screen.Given(f, "collection", billing.Collection(u.collection)), SKU: screen.Given(f, "sku", u.sku),
		Quantity: screen.Given(f, "quantity", u.terms.quantity), Tax: u.terms.tax.change()}
	if err := u.terms.check(f); err != nil {
		return c, err
	}
	plan := c.SKU != nil || c.Quantity != nil || f.Changed("amount") || u.prices != ""
	discount := u.terms.discount != ""
	switch {
	case c == (billing.Change{}) && !plan && !discount:
		return c, screen.Usagef("%s: nothing to change; set at least one flag", p.Command)
	case u.early && c.PaymentDay == nil:
		return c, screen.Usagef("--early needs a new --payment-day")
	case !plan && (u.notify && !discount || !u.from.Value.IsZero()):
		return c, screen.Usagef("--from and --notify need a new --sku, --amount or --quantity, or --prices")
	case u.yes && !f.Changed("where") && u.prices == "" && !u.now:
		return c, screen.Usagef("--yes needs --where, --prices or --now")
	case f.Changed("key") && !u.now:
		return c, screen.Usagef("--key needs --now")
	case u.now && (u.many() || c.SKU == nil && !f.Changed("amount") || c != billing.Change{SKU: c.SKU} || discount || u.notify || !u.from.Value.IsZero()):
		return c, screen.Usagef("--now needs a new --sku or --amount, and cannot be combined with another change")
	case u.prices != "" && (c != (billing.Change{}) || discount || f.Changed("amount") || f.Changed("where")):
		return c, screen.Usagef("--prices cannot be combined with another change")
	}
	if c.Collection != nil {
		if err := billing.CheckCollection(*c.Collection); err != nil {
			return c, screen.Invalid(err)
		}
	}
	c.Early, c.From, c.Notify = u.early, u.from.Value, u.notify
	return c, cmp.Or(p.Walkable("date", u.on.Value), p.Walkable("from", u.from.Value))
}

// amounts sets the change's amount and discount, in the currency.
func (u *updateFlags) amounts(c *billing.Change, of money.Currency) (err error) {
	if u.set.Changed("amount") {
		c.Amount = new(money.Amount)
		if *c.Amount, err = screen.ParseMoney(u.amount, of); err != nil {
			return err
		}
	}
	c.Discount, err = u.terms.in(of)
	return err
}

func (p *program) subscriptionUpdate() *cobra.Command {
	var u updateFlags
	var others int // number of flags besides --paid-once
	c := session.Leaf("update "+subscriptionName, func(ctx context.Context, args []string) error {
		if u.paidOnce && others > 0 {
			return screen.Usagef("--paid-once cannot be combined with other flags")
		}
		if u.paidOnce {
			return p.answerDoubts(ctx, args[0])
		}
		change, err := u.change(p)
		if err != nil {
			return err
		}
		if u.many() {
			return p.updateMany(ctx, &u, change)
		}
		n, err := parseName(args[0])
		if err != nil {
			return err
		}
		return p.With(ctx, session.Need{Processor: change.Method != nil || u.now && u.yes}, func(s *session.Session) (err error) {
			if s.Engine, err = s.On(&u.on); err != nil {
				return err
			}
			old, err := s.Subscription(ctx, n)
			if err == nil {
				err = u.amounts(&change, old.Amount.Currency())
			}
			if err != nil {
				return err
			}
			if u.now {
				return p.upgrade(session.Keyed(ctx, u.key), s, old, upgrade.Order{SKU: change.SKU, Amount: change.Amount}, u.yes)
			}
			return p.updateSubscription(ctx, s, old, change)
		})
	})
	u.add(c.Flags())
	one, none := c.Args, session.Arguments()
	c.Args = func(cmd *cobra.Command, args []string) error {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Changed && f.Name != "paid-once" {
				others++
			}
		})
		if u.many() {
			return none(cmd, args)
		}
		return one(cmd, args)
	}
	return c
}

// updateMany applies the change to each subscription that --where or --prices selects.
func (p *program) updateMany(ctx context.Context, u *updateFlags, change billing.Change) (err error) {
	if change.Tax != nil {
		return p.changeTaxes(ctx, u, change)
	}
	var all *planChanges
	if u.prices != "" {
		all, err = p.readPrices(u.prices, change)
	} else {
		all, err = u.plan(change)
	}
	if err != nil {
		return err
	}
	return p.With(ctx, session.Need{}, func(s *session.Session) (err error) {
		if s.Engine, err = s.On(&u.on); err != nil {
			return err
		}
		return p.changePlans(ctx, s, all, u.yes)
	})
}

// answerDoubts records that the user has checked the subscription's periods that were perhaps paid
// twice.
func (p *program) answerDoubts(ctx context.Context, name string) error {
	n, err := parseName(name)
	if err != nil {
		return err
	}
	return p.With(ctx, session.Need{}, func(s *session.Session) error {
		answered, err := s.Engine.AnswerDoubts(ctx, n)
		if err == nil && answered == 0 {
			err = fmt.Errorf("subscription %s has no period that was perhaps paid twice: %w", n, billing.ErrState)
		}
		if err != nil {
			return err
		}
		p.Say("subscription %s: confirmed for %s", n, screen.Plural(answered, "period"))
		return p.JSON(view.Object{"answered", answered})
	})
}

// updateSubscription applies the change. If the payment method is new, it also tries the open
// period again. If charging is off, the next run tries that period.
func (p *program) updateSubscription(ctx context.Context, s *session.Session, old *billing.Subscription,
	c billing.Change) error {
	n := old.Name
	sub, err := s.Engine.UpdateSubscription(ctx, n, c)
	if err != nil {
		return err
	}
	var moved view.Object
	if c.PaymentDay != nil {
		moved = p.sayMoved(old, sub.Anchor, sub.AnchorPeriod)
	}
	if (sub.Open != nil || sub.Collect > 0) && c.Method != nil {
		results, after, err := s.Engine.CollectNow(ctx, n)
		if after != nil {
			sub = after
		}
		p.Deliver(ctx, s)
		if err != nil && !errors.Is(err, charging.ErrOff) {
			return err
		}
		p.sayResults(results)
	}
	p.sayChanged(old, sub, "updated")
	return p.JSON(append(view.Changed(old, sub), moved...))
}

// sayMoved prints the period's due date before and after a change of the payment day, and returns
// both dates as JSON members.
func (p *program) sayMoved(old *billing.Subscription, after civil.Date, period int) view.Object {
	before, err := old.Schedule().Due(period)
	if err != nil { // another process has changed the subscription meanwhile
		return nil
	}
	days := after.DaysSince(before)
	text := screen.Plural(days, "day") + " later"
	if days < 0 {
		text = screen.Plural(-days, "day") + " earlier"
	}
	p.Say("period %d: due date changed from %s to %s, %s", period, before, after, text)
	return view.Moved(before, after)
}

// subscriptionAction returns a command that calls do for one subscription on a business day. The
// action may end an open period.
func (p *program) subscriptionAction(name string,
	do func(*engine.Engine, context.Context, billing.Name) (*billing.Subscription, error)) *cobra.Command {
	var on session.BusinessDay
	c := p.subscriptionLeaf(name, session.Need{Processor: true}, func(ctx context.Context, s *session.Session, n billing.Name) error {
		e, err := s.On(&on)
		if err != nil {
			return err
		}
		old, err := s.Subscription(ctx, n)
		if err != nil {
			return err
		}
		sub, err := do(e, ctx, n)
		p.Deliver(ctx, s)
		if err != nil {
			return session.NotFound(err, "subscription "+n.String())
		}
		arrears, err := p.sayArrears(ctx, s, sub)
		if err != nil {
			return err
		}
		p.sayChanged(old, sub, "is "+statusNote(sub))
		return p.JSON(append(view.Changed(old, sub), arrears...))
	})
	on.Flags(c.Flags(), session.AsOfRun)
	return session.Checked(c, func([]string) error { return p.Walkable("date", on.Value) })
}

func (p *program) subscriptionCancel() *cobra.Command {
	var atEnd, collect bool
	c := p.subscriptionAction("cancel",
		func(e *engine.Engine, ctx context.Context, n billing.Name) (sub *billing.Subscription, err error) {
			if !collect {
				return e.Cancel(ctx, n, atEnd)
			}
			results, sub, err := e.CancelCollecting(ctx, n)
			p.sayResults(results)
			return sub, err
		})
	c.Flags().BoolVar(&atEnd, "at-period-end", false, "cancel when the current period ends; periods that are already due are still charged, and resume undoes this")
	c.Flags().BoolVar(&collect, "collect", false, "try each overdue period once, and write off only what remains unpaid")
	return session.Checked(c, func([]string) error {
		if atEnd && collect {
			return screen.Usagef("--collect cannot be combined with --at-period-end, which charges overdue periods anyway")
		}
		return nil
	})
}

// sayArrears prints the periods that the cancellation wrote off, if the subscription is canceled.
func (p *program) sayArrears(ctx context.Context, s *session.Session, sub *billing.Subscription) (view.Object, error) {
	if sub.Status != billing.CanceledSub {
		return nil, nil
	}
	list, sum, err := s.Engine.WrittenOff(ctx, sub.Name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	for _, x := range list {
		p.Say("period %d, due %s, %s: unpaid and written off", x.Period, view.Date(x.Due), x.Amount.Format())
	}
	p.Say("written off in total: %s", sum.Format())
	return view.WrittenOff(list, sum), nil
}

func (p *program) subscriptionSkip() *cobra.Command {
	until := screen.DateFlag()
	c := p.subscriptionAction("skip",
		func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
			if until.Value.IsZero() {
				return e.SkipParked(ctx, n)
			}
			return e.SkipUntil(ctx, n, until.Value)
		})
	c.Flags().Var(&until, "until", "skip every period due before this day, even if the subscription is active")
	return c
}

func (p *program) sayResults(results []engine.Result) {
	for _, r := range results {
		reason := ""
		if r.Reason != "" {
			reason = " (" + r.Reason + ")"
		}
		p.Say("period %d, due %s, %s: %s%s", r.Period, view.Date(r.Due), r.Amount.Format(), r.Outcome, reason)
	}
}
