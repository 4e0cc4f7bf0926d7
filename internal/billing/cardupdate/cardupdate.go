// Package cardupdate applies a new payment method of an account, or a card that a customer entered
// through a link, to the subscriptions that it pays for.
//
// It does not charge anything: the next payment run tries an open period with the new method.
package cardupdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// A Decision changes a subscription in memory, and returns the other writes of the commit.
type Decision[W any] func(s *billing.Subscription, today civil.Date) ([]W, error)

// A Service applies new methods. W is one of the other writes of a subscription's commit.
type Service[W any] struct {
	*billing.Records
	Cards     *wallet.Cards
	Processor processor.Charger
	// Change commits a decision once.
	Change func(context.Context, billing.Name, Decision[W]) (*billing.Subscription, error)
	// Follow has a subscription use the choice, in memory. It returns billing.ErrUnchanged if
	// nothing differs.
	Follow func(context.Context, *billing.Subscription, Choice, civil.Date, Urgency) ([]W, error)
	Plain  func(...store.Write) []W
}

// Attach calls wallet.Cards.Attach. A new method takes effect for the subscriptions that have no
// method of their own. The next payment run tries an open period with the new method, and past_due
// subscriptions become active again. The same call finishes an interrupted Attach.
func (e *Service[W]) Attach(ctx context.Context, id string, t billing.Attachment) (*billing.Account, error) {
	a, err := e.Cards.Attach(ctx, id, t)
	if err != nil || !t.GivesMethod() {
		return a, err
	}
	if err := e.spread(call.After(ctx), id, Urgency{true, call.Of(ctx).Repeats() != nil}); err != nil {
		const unfinished = "account %s has its payment method, but not all of its subscriptions could be told: %w; " +
			"attach again to finish"
		return a, fmt.Errorf(unfinished, id, err)
	}
	return a, nil
}

// A card update sets a card that a customer entered through a link as the method of an account or a
// subscription. The newest card wins. Later runs list the same cards again and find the updates
// done.

// Collect applies the card updates since the time, including that time, and returns the new
// cards. The rollback check must have passed, because subscriptions may advance to their next
// period. The error names the cards that Collect could not apply, but it leaves out connected
// accounts that refuse our key.
func (e *Service[W]) Collect(ctx context.Context, since time.Time) (taken []processor.Setup, err error) {
	w, ok := e.Processor.(processor.Wallet)
	if !ok {
		return nil, nil
	}
	newest, err := e.Cards.Entered(ctx, w, since)
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

// maxFailed is the maximum number of errors that Collect returns.
const maxFailed = 5

// takeOver sets a card of the account's customer on the account or subscription, and reports
// whether the card was new.
func (e *Service[W]) takeOver(ctx context.Context, g processor.Setup) (taken bool, err error) {
	ctx = call.With(ctx, &call.Call{Actor: "stripe " + g.ID})
	if g.Subscription != "" {
		return e.takeOverOne(ctx, g)
	}
	a, err := account.Edit(ctx, e.Records, g.Account, func(now *billing.Account) error {
		if !now.Payer.Same(processor.Payer{At: g.At, Customer: g.Customer}) || !g.Card.Made.After(now.Given) || now.Erased() != "" {
			return billing.ErrUnchanged
		}
		now.Method, now.Given = g.Card.Method, g.Card.Made
		taken = true
		return nil
	})
	if err != nil || a.Method != g.Card.Method {
		return taken, billing.IgnoreNotFound(err)
	}
	return taken, e.spread(ctx, a.ID, Urgency{}) // also for an old card, because a run may have died here
}

// takeOverOne does what takeOver does for a card that a customer entered for one subscription.
func (e *Service[W]) takeOverOne(ctx context.Context, g processor.Setup) (taken bool, err error) {
	n := billing.Name{Account: g.Account, ID: g.Subscription}
	err = e.changeAll(ctx, n, func(s *billing.Subscription, today civil.Date) ([]W, error) {
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
		writes, err := e.Follow(ctx, s, Choice{s.Method, s.MethodGiven(), a.Payer}, today, Urgency{})
		if isNew && errors.Is(err, billing.ErrUnchanged) {
			err = nil
		}
		return append(writes, e.Plain(a.UnchangedCheck(e.Table))...), err
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
func (e *Service[W]) KeepOwn(ctx context.Context, account string) (names []billing.Name, err error) {
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
func (e *Service[W]) spread(ctx context.Context, account string, u Urgency) error {
	var failed []error
	for listed, err := range e.GetSubscriptionsByAccount(ctx, account) {
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		if listed.Open == nil && listed.Status != billing.PastDue && (listed.Method != "" || listed.Status != billing.ParkedState) {
			continue
		}
		err := e.changeAll(ctx, listed.Name, func(s *billing.Subscription, today civil.Date) ([]W, error) {
			a, err := e.Account(ctx, account)
			if err != nil {
				return nil, err
			}
			c := Choice{a.Method, a.Given, a.Payer}
			failing := a.Method != "" && yields(s, a.Method, a.Given)
			if failing {
				s.Method = ""
			}
			if s.Method != "" { // the subscription keeps its method, but an intent of another customer cannot use it
				c.Method, c.Given = s.Method, s.MethodGiven()
			}
			if s.Over() || c.Method == "" || s.Method != "" && (s.Open == nil || s.Open.Payer.Same(a.Payer)) {
				return nil, billing.ErrUnchanged
			}
			writes, err := e.Follow(ctx, s, c, today, u)
			if failing && errors.Is(err, billing.ErrUnchanged) {
				err = nil
			}
			return append(writes, e.Plain(a.UnchangedCheck(e.Table))...), err
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
func (e *Service[W]) changeAll(ctx context.Context, n billing.Name, decide Decision[W]) error {
	for {
		s, err := e.Change(ctx, n, decide)
		if errors.Is(err, billing.ErrUnchanged) {
			return nil
		}
		if err != nil || s.Status != billing.PastDue || s.NextOpen() != nil {
			return err
		}
	}
}

// A Choice is the method and payer that a subscription's charges use from now on.
type Choice struct {
	Method string
	Given  time.Time // zero if not known
	Payer  processor.Payer
}

// An Urgency tells who makes a Choice.
type Urgency struct {
	Asked    bool // a person requests it, perhaps with the same method as before
	Repeated bool // the request continues an earlier one, and must not undo what has failed since
}
