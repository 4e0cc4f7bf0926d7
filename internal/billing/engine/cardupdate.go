package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/cardupdate"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// Cards returns the accounts' payment methods at the processor.
func (e *Engine) Cards() *wallet.Cards {
	return &wallet.Cards{Records: e.Records, Processor: e.proc,
		Check: func(ctx context.Context, account string) error {
			return e.Charging().CheckRollbackOf(ctx, account, false)
		}}
}

// cardUpdates returns the service that applies new payment methods.
func (e *Engine) cardUpdates() *cardupdate.Service[write] {
	return &cardupdate.Service[write]{Records: e.Records, Cards: e.Cards(), Processor: e.proc, Follow: e.follow, Plain: plain,
		Change: func(ctx context.Context, n billing.Name, d cardupdate.Decision[write]) (*billing.Subscription, error) {
			return e.change(ctx, n, decision(d))
		}}
}

// Attach calls cardupdate.Service.Attach.
func (e *Engine) Attach(ctx context.Context, id string, t billing.Attachment) (*billing.Account, error) {
	return e.cardUpdates().Attach(ctx, id, t)
}

// CollectCards calls cardupdate.Service.Collect.
func (e *Engine) CollectCards(ctx context.Context, since time.Time) ([]processor.Setup, error) {
	return e.cardUpdates().Collect(ctx, since)
}

// KeepOwn calls cardupdate.Service.KeepOwn.
func (e *Engine) KeepOwn(ctx context.Context, account string) ([]billing.Name, error) {
	return e.cardUpdates().KeepOwn(ctx, account)
}

// follow applies the choice to the subscription. It returns ErrUnchanged if nothing differs.
func (e *Engine) follow(ctx context.Context, s *billing.Subscription, c cardupdate.Choice, today civil.Date,
	u cardupdate.Urgency) ([]write, error) {
	unchanged := billing.ErrUnchanged
	if o := s.Open; o != nil && (!o.Tried(c.Method) || !o.Payer.Same(c.Payer)) {
		unchanged = e.retry(ctx, s, c.Method, c.Payer, today)
		if unchanged != nil && !errors.Is(unchanged, billing.ErrUnchanged) {
			return nil, unchanged
		}
	}
	switch {
	case s.NextOpen() != nil, s.Requested == billing.RequestCancel, s.Collection == billing.ByWire:
	case s.Status == billing.PastDue && u.Asked && !u.Repeated:
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
func (e *Engine) failedWith(ctx context.Context, s *billing.Subscription, c cardupdate.Choice, u cardupdate.Urgency) (bool, error) {
	p, err := e.RecordOf(ctx, s.Name, s.Period-1)
	if err != nil || u.Asked && p.Ended.Before(c.Given) {
		return false, billing.IgnoreNotFound(err)
	}
	if n := len(p.Attempts); n > 0 {
		before := func(a billing.Attempt) bool { return a.Method == c.Method && !a.At.Before(c.Given) }
		return p.Attempts[n-1].Method == c.Method || slices.ContainsFunc(p.Attempts, before), nil
	}
	return p.Ending == billing.EndFailed && p.Ended.After(c.Given), nil
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
	if moved && s.Beside() {
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
