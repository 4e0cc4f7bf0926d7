package demo

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// A life makes the people of a demo act. It follows from its seed alone: it decides in the order
// of the book, by the outcomes of earlier days, and never by the order of concurrent results.
type life struct {
	random *rand.Rand
	joins  map[civil.Date][]billing.NewSubscription // by the day on which they begin
	people []*subscriber                            // joined so far

	byName map[billing.Name]*subscriber
}

// A subscriber is a subscription from the view of its customer.
type subscriber struct {
	name     billing.Name
	paysCash bool       // by transfer, before the job comes
	resumes  civil.Date // zero: not paused
	troubled bool       // was told of a failed payment
}

// newLife makes up the book: seven in ten begin on the first day, the others in the first two thirds.
func newLife(seed uint64, accounts int, first, last civil.Date) *life {
	l := &life{random: rand.New(rand.NewPCG(seed, 0x64756573646179)), joins: map[civil.Date][]billing.NewSubscription{},
		byName: map[billing.Name]*subscriber{}}
	for number := range accounts {
		begins := first
		if l.random.IntN(10) >= 7 {
			begins = first.AddDays(l.random.IntN(1 + last.DaysSince(first)*2/3))
		}
		l.joins[begins] = append(l.joins[begins], newAccount(l.random, 1+number, begins)...)
	}
	return l
}

// notice tells the subscriber the outcome of a payment.
func (l *life) notice(r engine.Result) {
	if s := l.byName[billing.Name{Account: r.Account, ID: r.ID}]; s != nil {
		s.troubled = r.Outcome != engine.OutcomePaid && r.Outcome != engine.OutcomeSkipped
	}
}

// day lets people join and act on the day.
func (l *life) day(ctx context.Context, e *engine.Engine, today civil.Date, month *Month) error {
	if joining := l.joins[today]; len(joining) > 0 {
		if _, err := bulk.Create(ctx, e.Records, joining); err != nil {
			return err
		}
		for _, n := range joining {
			s := &subscriber{name: billing.Name{Account: n.Account, ID: n.ID}, paysCash: l.random.IntN(100) == 0}
			l.people, l.byName[s.name] = append(l.people, s), s
		}
		month.Joined += len(joining)
	}
	for _, s := range l.people {
		err := l.act(ctx, e, s, today, month)
		if errors.Is(err, billing.ErrState) || errors.Is(err, store.ErrNotFound) || unanswered(err) {
			continue // the subscription has ended, for example, or the answer is missing: they give up for today
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unanswered reports whether the processor has given no answer. It may be told to have faults.
func unanswered(err error) bool {
	return errors.Is(err, processor.ErrUnknown) || errors.Is(err, processor.ErrNotExecuted)
}

// act lets one subscriber act on one day. dice are parts of 10,000; most throws mean no action.
func (l *life) act(ctx context.Context, e *engine.Engine, s *subscriber, today civil.Date, month *Month) error {
	dice := l.random.IntN(10_000)
	switch {
	case !s.resumes.IsZero():
		if today.Before(s.resumes) {
			return nil
		}
		sub, err := e.Resume(ctx, s.name)
		if !unanswered(err) {
			s.resumes = civil.Date{}
		}
		return month.change(sub, err)
	case s.paysCash:
		return l.payOutside(ctx, e, s, today, month)
	case s.troubled && dice < 400: // gives another card
		return l.newCard(ctx, e, s, month)
	case dice < 8:
		return month.change(e.Cancel(ctx, s.name, false))
	case dice < 14:
		return month.change(e.Cancel(ctx, s.name, true))
	case dice < 28:
		_, err := e.Pause(ctx, s.name)
		if err == nil {
			s.resumes = today.AddDays(10 + l.random.IntN(40))
			month.Changes++
		}
		return err
	case dice < 44:
		return l.newPrice(ctx, e, s, month)
	case dice < 54:
		return l.newCard(ctx, e, s, month)
	}
	return nil
}

func (l *life) newCard(ctx context.Context, e *engine.Engine, s *subscriber, month *Month) error {
	sub, err := e.UpdateSubscription(ctx, s.name, billing.Change{Method: new("pm_card_visa")})
	if err != nil {
		return err
	}
	month.Changes++
	s.troubled = false
	if sub.Open == nil {
		return nil
	}
	results, _, err := e.CollectNow(ctx, s.name)
	for _, r := range results {
		l.notice(r)
		err = errors.Join(err, month.add(r))
	}
	return err
}

// newPrice raises the price by a tenth. Of thousandths the last digit must be 0 for card networks.
func (l *life) newPrice(ctx context.Context, e *engine.Engine, s *subscriber, month *Month) error {
	sub, err := e.Subscription(ctx, s.name)
	if err != nil {
		return err
	}
	minor := sub.Amount.Minor() + sub.Amount.Minor()/10
	if sub.Amount.Currency().Exponent() == 3 {
		minor -= minor % 10
	}
	amount := new(money.New(minor, sub.Amount.Currency()))
	return month.change(e.UpdateSubscription(ctx, s.name, billing.Change{Amount: amount}))
}

// payOutside records a transfer on the payment's due day.
func (l *life) payOutside(ctx context.Context, e *engine.Engine, s *subscriber, today civil.Date, month *Month) error {
	sub, err := e.Subscription(ctx, s.name)
	if err != nil || sub.Open != nil || sub.Status != billing.Active {
		return err
	}
	if due, err := sub.Due(); err != nil || due.After(today) {
		return err
	}
	if _, err = e.CreateReceipt(ctx, s.name, engine.ManualPayment{Note: "bank transfer"}); err == nil {
		month.Outside++
	}
	return err
}
