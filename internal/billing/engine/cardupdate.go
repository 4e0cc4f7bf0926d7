package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Cards returns the accounts' payment methods at the processor.
func (e *Engine) Cards() *wallet.Cards {
	return &wallet.Cards{Records: e.Records, Processor: e.proc,
		Check: func(ctx context.Context, account string) error {
			return e.Charging().CheckRollbackOf(ctx, account, false)
		}}
}

// Attach calls wallet.Cards.Attach. A new method takes effect for the subscriptions that have no
// method of their own. The next payment run tries an open period with the new method, and past_due
// subscriptions become active again. The same call finishes an interrupted Attach.
func (e *Engine) Attach(ctx context.Context, id string, t billing.Attachment) (*billing.Account, error) {
	a, err := e.Cards().Attach(ctx, id, t)
	if err != nil || !t.GivesMethod() {
		return a, err
	}
	if err := e.spread(call.After(ctx), id, urgency{true, call.Of(ctx).Repeats() != nil}); err != nil {
		const unfinished = "account %s has its payment method, but not all of its subscriptions could be told: %w; " +
			"attach again to finish"
		return a, fmt.Errorf(unfinished, id, err)
	}
	return a, nil
}

// A card update sets a card that a customer entered through a link as the method of an account or a
// subscription. The newest card wins. Later runs list the same cards again and find the updates
// done.

// CollectCards applies the card updates since the time, including that time, and returns the new
// cards. The rollback check must have passed, because subscriptions may advance to their next
// period. The error names the cards that CollectCards could not apply, but it leaves out connected
// accounts that refuse our key.
func (e *Engine) CollectCards(ctx context.Context, since time.Time) (taken []processor.Setup, err error) {
	w, ok := e.proc.(processor.Wallet)
	if !ok {
		return nil, nil
	}
	newest, err := e.Cards().Entered(ctx, w, since)
	if errors.Is(err, processor.ErrRefused) || ctx.Err() != nil {
		return nil, err
	}
	failed := []error{err}
	for _, g := range newest {
		isNew, err := e.takeOver(ctx, g)
		if isNew {
			taken = append(taken, g)
		}
		if errors.Is(err, processor.ErrRefused) || ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return taken, err
		}
		if err != nil && len(failed) <= maxFailed {
			failed = append(failed, fmt.Errorf("card entered for %s: %w", wallet.Target(g), err))
		}
	}
	return taken, errors.Join(failed...)
}

// maxFailed is the maximum number of errors that CollectCards returns.
const maxFailed = 5

// takeOver sets a card of the account's customer on the account or subscription, and reports
// whether the card was new.
func (e *Engine) takeOver(ctx context.Context, g processor.Setup) (taken bool, err error) {
	ctx = call.With(ctx, &call.Call{Actor: "stripe " + g.ID})
	if g.Subscription != "" {
		return e.takeOverOne(ctx, g)
	}
	a, err := account.Edit(ctx, e.Records, g.Account, func(now *billing.Account) error {
		if !now.Payer.Same(processor.Payer{At: g.At, Customer: g.Customer}) || !g.Card.Made.After(now.Given) {
			return billing.ErrUnchanged
		}
		now.Method, now.Given = g.Card.Method, g.Card.Made
		taken = true
		return nil
	})
	if err != nil || a.Method != g.Card.Method {
		return taken, billing.IgnoreNotFound(err)
	}
	return taken, e.spread(ctx, a.ID, urgency{}) // also for an old card, because a run may have died here
}

// takeOverOne does what takeOver does for a card that a customer entered for one subscription.
func (e *Engine) takeOverOne(ctx context.Context, g processor.Setup) (taken bool, err error) {
	n := billing.Name{Account: g.Account, ID: g.Subscription}
	err = e.changeAll(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		a, err := e.Account(ctx, g.Account)
		if err != nil {
			return nil, err
		}
		isNew := g.Card.Made.After(s.MethodGiven())
		if !a.Payer.Same(processor.Payer{At: g.At, Customer: g.Customer}) || s.Over() || (!isNew && s.Method != g.Card.Method) {
			return nil, billing.ErrUnchanged
		}
		if isNew {
			s.SetMethod(g.Card.Method, g.Card.Made)
			taken = true
		}
		writes, err := e.follow(ctx, s, choice{s.Method, s.MethodGiven(), a.Payer}, today, urgency{})
		if isNew && errors.Is(err, billing.ErrUnchanged) {
			err = nil
		}
		return append(writes, write{Write: a.UnchangedCheck(e.Table)}), err
	})
	return taken, billing.IgnoreNotFound(err)
}

// yields reports whether the subscription's own method must give way to the account's method, which
// the account received at the time given. The own method gives way if it is older and fails. It
// fails if the subscription is past_due, or if the last attempt before that time was declined with
// the own method or its fallback.
func yields(s *billing.Subscription, method string, given time.Time) bool {
	if s.Method == "" || method == s.Method || s.Over() || !given.After(cmp.Or(s.MethodGiven(), s.Created)) {
		return false
	}
	if o := s.Open; o != nil && o.Tried(s.Method) && len(o.Attempts) > 0 {
		last := o.Attempts[len(o.Attempts)-1]
		return (last.Method == s.Method || o.ByFallback()) && last.At.Before(given)
	}
	return s.Status == billing.PastDue && s.NextOpen() == nil
}

// KeepOwn returns the account's subscriptions that a new account card would not pay for, because
// they have a payment method of their own that has not failed.
func (e *Engine) KeepOwn(ctx context.Context, account string) (names []billing.Name, err error) {
	for s, err := range e.GetSubscriptionsByAccount(ctx, account) {
		if errors.As(err, new(*billing.IllegibleError)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if s.Method != "" && !s.Over() && !yields(s, "", e.Now()) {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// spread applies the account's method to its subscriptions that have no working method of their
// own. A second call changes nothing, unless a person requests it. Then spread also makes the
// subscriptions active that are past_due with this same method.
func (e *Engine) spread(ctx context.Context, account string, u urgency) error {
	var failed []error
	for listed, err := range e.GetSubscriptionsByAccount(ctx, account) {
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		if listed.Open == nil && listed.Status != billing.PastDue && (listed.Method != "" || listed.Status != billing.ParkedState) {
			continue
		}
		err := e.changeAll(ctx, listed.Name, func(s *billing.Subscription, today civil.Date) ([]write, error) {
			a, err := e.Account(ctx, account)
			if err != nil {
				return nil, err
			}
			c := choice{a.Method, a.Given, a.Payer}
			failing := a.Method != "" && yields(s, a.Method, a.Given)
			if failing {
				s.Method = ""
			}
			if s.Method != "" { // the subscription keeps its method, but an intent of another customer cannot use it
				c.method, c.given = s.Method, s.MethodGiven()
			}
			if s.Over() || c.method == "" || s.Method != "" && (s.Open == nil || s.Open.Payer.Same(a.Payer)) {
				return nil, billing.ErrUnchanged
			}
			writes, err := e.follow(ctx, s, c, today, u)
			if failing && errors.Is(err, billing.ErrUnchanged) {
				err = nil
			}
			return append(writes, write{Write: a.UnchangedCheck(e.Table)}), err
		})
		if errors.Is(err, processor.ErrRefused) || (err != nil && ctx.Err() != nil) {
			return err
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// changeAll calls change again while a past_due subscription has more due dates to void than one
// commit can hold. If decide returns ErrUnchanged, changeAll writes nothing and returns no error.
func (e *Engine) changeAll(ctx context.Context, n billing.Name, decide decision) error {
	for {
		s, err := e.change(ctx, n, decide)
		if errors.Is(err, billing.ErrUnchanged) {
			return nil
		}
		if err != nil || s.Status != billing.PastDue || s.NextOpen() != nil {
			return err
		}
	}
}

// A choice is the method and payer that a subscription's charges use from now on.
type choice struct {
	method string
	given  time.Time // zero if not known
	payer  processor.Payer
}

// An urgency tells who makes a choice.
type urgency struct {
	asked    bool // a person requests it, perhaps with the same method as before
	repeated bool // the request continues an earlier one, and must not undo what has failed since
}

// follow applies the choice to the subscription. It returns ErrUnchanged if nothing differs.
func (e *Engine) follow(ctx context.Context, s *billing.Subscription, c choice, today civil.Date,
	u urgency) ([]write, error) {
	unchanged := billing.ErrUnchanged
	if o := s.Open; o != nil && (!o.Tried(c.method) || !o.Payer.Same(c.payer)) {
		unchanged = e.retry(ctx, s, c.method, c.payer, today)
		if unchanged != nil && !errors.Is(unchanged, billing.ErrUnchanged) {
			return nil, unchanged
		}
	}
	switch {
	case s.NextOpen() != nil, s.Requested == billing.RequestCancel, s.Collection == billing.ByWire:
	case s.Status == billing.PastDue && u.asked && !u.repeated:
		return e.revive(ctx, s, c, today)
	case s.Status == billing.PastDue:
		failed, err := e.failedWith(ctx, s, c, u)
		if err != nil {
			return nil, err
		}
		if !failed {
			return e.revive(ctx, s, c, today)
		}
	case s.Status == billing.ParkedState && s.Parked == billing.NoMethod:
		return e.unpark(s, today)
	}
	return nil, unchanged
}

// unpark makes a parked subscription active and deletes its record. The run on its due date charges
// the period.
func (e *Engine) unpark(s *billing.Subscription, today civil.Date) ([]write, error) {
	due, err := s.Due()
	if err != nil {
		return nil, err
	}
	s.Status, s.Parked = billing.Active, ""
	s.Reschedule(due, today)
	return []write{e.dropRecord(s, s.Period)}, nil
}

// failedWith reports whether the previous period failed with the choice. Its last attempt must have
// used the choice, or an attempt after the choice and before the account's fallback must have. A
// period that the customer did not authenticate has no attempt, so the time of the choice decides
// then.
func (e *Engine) failedWith(ctx context.Context, s *billing.Subscription, c choice, u urgency) (bool, error) {
	p, err := e.RecordOf(ctx, s.Name, s.Period-1)
	if err != nil || u.asked && p.Ended.Before(c.given) {
		return false, billing.IgnoreNotFound(err)
	}
	if n := len(p.Attempts); n > 0 {
		before := func(a billing.Attempt) bool { return a.Method == c.method && !a.At.Before(c.given) }
		return p.Attempts[n-1].Method == c.method || slices.ContainsFunc(p.Attempts, before), nil
	}
	return p.Ending == billing.EndFailed && p.Ended.After(c.given), nil
}

// retry makes the next run try the open period with the method. It looks up the previous attempt
// before it changes the method and the attempt number. A new method can save a failing period until
// the processor has cancelled its intent. An intent of another customer or Stripe account cannot
// use the method, so retry cancels the intent, and the run binds another. retry returns
// ErrUnchanged if the period ends or the outcome of its intent is unknown.
func (e *Engine) retry(ctx context.Context, s *billing.Subscription, method string, p processor.Payer,
	today civil.Date) error {
	o := s.Open
	if o.ByWire() {
		return billing.ErrUnchanged
	}
	moved := !o.Payer.Same(p)
	if moved && s.Collecting() {
		return billing.ErrUnchanged // the period fails with the old method, and a person's request collects it again
	}
	in, err := e.proc.Lookup(ctx, o.Ref)
	final := in.State == processor.Canceled || in.State == processor.Succeeded || in.State == processor.Processing
	if err == nil && moved && s.Requested == billing.RequestNone && !final {
		in, err = e.proc.Cancel(ctx, o.Ref)
		if err == nil && in.State == processor.Canceled {
			o.State = "" // retry cancelled the intent for the new payer, and the period does not end
		}
	}
	if err != nil {
		return fmt.Errorf("subscription %s: %w; nothing was changed", s.Name, err)
	}
	switch {
	case in.State == processor.Canceled && s.Ending(), moved && in.State != processor.Canceled:
		return billing.ErrUnchanged
	case moved:
		o.Payer = p
	}
	o.Overtaken = !billing.AttemptRan(o, in) // another worker may be about to send that attempt
	noteDecline(o, in, o.Attempt, o.Method)
	o.Use(method)
	o.Base, o.State, o.Retry = in.Latest, "", civil.Date{}
	o.Attempt++
	s.Advance(today)
	return nil
}
