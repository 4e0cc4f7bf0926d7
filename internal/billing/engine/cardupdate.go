package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// How a card that a customer gives becomes what subscriptions are charged with. Whoever gives
// one later wins, by the time at which it was given; what has been taken over is seen again
// by later runs, and found done.

// CollectCards takes over the cards that customers have given by links since then (inclusive),
// for accounts and for subscriptions, and returns how many were new. It is a part of a
// payment run, which has passed the gate: subscriptions may go on to their next period. What
// could not be taken over is in the error, and done by a later call that sees it; a connected
// account that refuses us is no error.
func (e *Engine) CollectCards(ctx context.Context, since time.Time) (int, error) {
	w, ok := e.proc.(billing.Wallet)
	if !ok {
		return 0, nil
	}
	newest, err := e.newestCards(ctx, w, since)
	if errors.Is(err, billing.ErrRefused) || ctx.Err() != nil {
		return 0, err
	}
	failed := []error{err}
	n := 0
	for _, r := range slices.SortedFunc(maps.Keys(newest), func(a, b recipient) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.subscription, b.subscription), // the account before its subscriptions
			cmp.Compare(a.customer, b.customer), cmp.Compare(a.at, b.at))
	}) {
		taken, err := e.takeOver(ctx, newest[r])
		if taken {
			n++
		}
		if errors.Is(err, billing.ErrRefused) || ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return n, err
		}
		if err != nil && len(failed) <= maxFailed {
			failed = append(failed, fmt.Errorf("card given for %s: %w", r, err))
		}
	}
	return n, errors.Join(failed...)
}

// maxFailed is how many errors of CollectCards are told.
const maxFailed = 5

// A recipient is what a customer may give a card for.
type recipient struct{ account, subscription, at, customer string }

func (r recipient) String() string {
	if r.subscription == "" {
		return "account " + r.account
	}
	return "subscription " + r.account + "/" + r.subscription
}

// newestCards returns, by recipient, the card that was given last. What a place could not tell
// is in the error, beside what others did.
func (e *Engine) newestCards(ctx context.Context, w billing.Wallet, since time.Time) (map[recipient]billing.Setup, error) {
	places, err := e.Places(ctx)
	if err != nil {
		return nil, err
	}
	found, errs := make([][]billing.Setup, len(places)), make([]error, len(places))
	billing.AskEach(places, func(i int, at string) error {
		found[i], errs[i] = e.setups(ctx, w, billing.ListRequest{At: at, Since: since})
		return errs[i]
	})
	newest := map[recipient]billing.Setup{}
	var failed []error
	for i, at := range places {
		switch err := errs[i]; {
		case at != "" && errors.Is(err, billing.ErrAccountRefused):
			e.Log.WarnContext(ctx, "a connected account refuses to list cards", "connected", at)
			continue
		case err != nil && (errors.Is(err, billing.ErrRefused) || ctx.Err() != nil):
			return nil, err
		case err != nil:
			failed = append(failed, err)
			continue
		}
		for _, s := range found[i] {
			r := recipient{s.Account, s.Subscription, s.At, s.Customer}
			if was, ok := newest[r]; !ok || cmp.Or(s.Card.Made.Compare(was.Card.Made), cmp.Compare(s.ID, was.ID)) > 0 {
				newest[r] = s
			}
		}
	}
	return newest, errors.Join(failed...)
}

// setups lists one place. A listing that breaks off is begun anew.
func (e *Engine) setups(ctx context.Context, w billing.Wallet, r billing.ListRequest) (found []billing.Setup, err error) {
	for range billing.MaxSends {
		found, err = found[:0], nil
		for s, lerr := range w.Setups(ctx, r) {
			if lerr != nil {
				err = fmt.Errorf("listing the cards that customers have given: %w", lerr)
				break
			}
			if s.Installation != e.Opened.Installation || billing.CheckMethod(s.Card.Method) != nil || s.Card.Made.IsZero() {
				continue
			}
			s.At, s.Card.Made = r.At, s.Card.Made.UTC().Truncate(time.Millisecond) // as precise as it is stored
			found = append(found, s)
		}
		if err == nil || billing.Definite(err) || ctx.Err() != nil {
			break
		}
	}
	return found, err
}

// takeOver gives a card to the account or the subscription that it was given for, and reports
// whether it was new there. One of another customer than the account has is nobody's.
func (e *Engine) takeOver(ctx context.Context, g billing.Setup) (taken bool, err error) {
	if g.Subscription != "" {
		return e.takeOverOne(ctx, g)
	}
	a, err := e.changeAccount(ctx, g.Account, func(now *billing.Account) error {
		if !now.Payer.Same(billing.Payer{At: g.At, Customer: g.Customer}) || !g.Card.Made.After(now.Given) {
			return billing.ErrUnchanged
		}
		now.Method, now.Given = g.Card.Method, g.Card.Made
		taken = true
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil || a.Method != g.Card.Method {
		return taken, err
	}
	_, err = e.spread(ctx, a.ID, false) // also when it is not new: a run may have died here
	return taken, err
}

func (e *Engine) takeOverOne(ctx context.Context, g billing.Setup) (taken bool, err error) {
	_, err = e.changeAll(ctx, billing.Name{Account: g.Account, ID: g.Subscription}, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
		a, err := e.Account(ctx, g.Account)
		if err != nil {
			return nil, err
		}
		isNew := g.Card.Made.After(s.MethodGiven())
		if !a.Payer.Same(billing.Payer{At: g.At, Customer: g.Customer}) || s.Over() || (!isNew && s.Method != g.Card.Method) {
			return nil, billing.ErrUnchanged
		}
		if isNew {
			s.SetMethod(g.Card.Method, g.Card.Made)
			taken = true
		}
		writes, err := e.follow(ctx, s, choice{s.Method, s.MethodGiven(), a.Payer}, today, false)
		if isNew && errors.Is(err, billing.ErrUnchanged) {
			err = nil
		}
		return append(writes, a.UnchangedCheck(e.Table)), err
	})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return taken, err
}

// spread lets the account's method take effect for its subscriptions without one of their
// own, and returns for how many it did. Doing it again changes nothing, unless it is told to
// be urgent: then those are active again that went past_due with this very method, too.
func (e *Engine) spread(ctx context.Context, account string, urgent bool) (int, error) {
	n := 0
	var failed []error
	for seen, err := range e.GetSubscriptionsByAccount(ctx, account) {
		if err != nil {
			return n, errors.Join(append(failed, err)...)
		}
		if seen.Open == nil && (seen.Method != "" || seen.Status != billing.PastDue && seen.Status != billing.ParkedState) {
			continue
		}
		changed := false
		_, err := e.changeAll(ctx, seen.Name, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
			a, err := e.Account(ctx, account)
			if err != nil {
				return nil, err
			}
			if s.Over() {
				return nil, billing.ErrUnchanged
			}
			if s.Method != "" { // only who pays with it has changed: an intent of another customer cannot take it
				if s.Open == nil || s.Open.Payer.Same(a.Payer) {
					return nil, billing.ErrUnchanged
				}
				writes, err := e.follow(ctx, s, choice{s.Method, s.MethodGiven(), a.Payer}, today, urgent)
				changed = changed || err == nil
				return append(writes, a.UnchangedCheck(e.Table)), err
			}
			if a.Method == "" {
				return nil, billing.ErrUnchanged
			}
			writes, err := e.follow(ctx, s, choice{a.Method, a.Given, a.Payer}, today, urgent)
			changed = changed || err == nil
			return append(writes, a.UnchangedCheck(e.Table)), err
		})
		if changed && err == nil {
			n++
		}
		if err != nil {
			if errors.Is(err, billing.ErrRefused) || ctx.Err() != nil {
				return n, err
			}
			failed = append(failed, err)
		}
	}
	return n, errors.Join(failed...)
}

// changeAll is change, repeated while a past_due subscription has more due dates to void than
// one commit takes. errAsIs from decide writes nothing and is no error.
func (e *Engine) changeAll(ctx context.Context, n billing.Name, decide func(*billing.Subscription, civil.Date) ([]store.Write, error)) (*billing.Subscription, error) {
	for {
		s, err := e.change(ctx, n, decide)
		if errors.Is(err, billing.ErrUnchanged) {
			return s, nil
		}
		if err != nil || s.Status != billing.PastDue || s.Open != nil {
			return s, err
		}
	}
}

// A choice is with what, since when, and from whom a subscription is to be charged.
type choice struct {
	method string
	given  time.Time // zero: not known
	payer  billing.Payer
}

// follow has the subscription charged by the choice from now on, as far as that makes a
// difference: errAsIs when it makes none. urgent is a person's word for a method that was
// there before.
func (e *Engine) follow(ctx context.Context, s *billing.Subscription, c choice, today civil.Date, urgent bool) ([]store.Write, error) {
	switch o := s.Open; {
	case o != nil && o.Method == c.method && o.Payer.Same(c.payer):
	case o != nil:
		return nil, e.retry(ctx, s, c.method, c.payer, today)
	case s.Status == billing.PastDue:
		failed, err := e.failedWith(ctx, s, c)
		if err != nil {
			return nil, err
		}
		if urgent || !failed {
			return e.reactivate(s, today)
		}
	case s.Status == billing.ParkedState && s.Parked == noMethod:
		return e.unpark(s, today)
	}
	return nil, billing.ErrUnchanged
}

// noMethod is why a subscription is parked that came due before anybody gave it a method.
const noMethod = "no payment method"

// unpark takes up a period that only waited for a method: it is charged by the next run.
func (e *Engine) unpark(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
	due, err := s.Due()
	if err != nil {
		return nil, err
	}
	s.Status, s.Parked = billing.Active, ""
	s.Reschedule(due, today)
	return []store.Write{store.Delete(e.Table, billing.PeriodKey(s.Name, s.Period))}, nil
}

// failedWith reports whether the period before, which failed, was last tried with the choice.
// One that nobody authenticated has no attempt to tell it by.
func (e *Engine) failedWith(ctx context.Context, s *billing.Subscription, c choice) (bool, error) {
	it, err := e.Store.Get(ctx, e.Table, billing.PeriodKey(s.Name, s.Period-1))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p, err := billing.DecodePeriod(it)
	if err != nil {
		return false, err
	}
	if n := len(p.Attempts); n > 0 {
		return p.Attempts[n-1].Method == c.method, nil
	}
	return p.Ending == billing.EndFailed && p.Ended.After(c.given), nil
}

// retry has the open period tried with the method at once: method and attempt are rewritten,
// after a look at what the attempt before has come to. A period that was failing is rescued,
// until its intent is gone. An intent of another customer, or at another place, cannot take
// the method: it is cancelled, so that the run binds one that can. errAsIs: the period ends,
// or what its intent will come to is not known yet.
func (e *Engine) retry(ctx context.Context, s *billing.Subscription, method string, p billing.Payer, today civil.Date) error {
	o := s.Open
	moved := !o.Payer.Same(p)
	in, err := e.proc.Lookup(ctx, o.Ref)
	if err == nil && moved && s.Requested == billing.RequestNone && in.State != billing.Canceled && in.State != billing.Succeeded && in.State != billing.Processing {
		in, err = e.proc.Cancel(ctx, o.Ref)
		if err == nil && in.State == billing.Canceled {
			o.State = "" // by us, and not because the period ends
		}
	}
	if err != nil {
		return fmt.Errorf("subscription %s: %w; nothing was changed", s.Name, err)
	}
	switch {
	case in.State == billing.Canceled && s.Ending(), moved && in.State != billing.Canceled:
		return billing.ErrUnchanged
	case moved:
		o.Payer = p
	}
	o.Overtaken = !billing.AttemptRan(o, in) // somebody may be about to make that attempt
	o.Method, o.Base, o.State, o.Retry = method, in.Latest, "", civil.Date{}
	o.Attempt++
	s.NextPayment = today
	return nil
}
