package tracking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// An Action is work for other systems.
type Action string

// The actions. The first comes before the second, each at most once for a purchase.
const (
	ActionFulfil      Action = "fulfil"
	ActionUnsubscribe Action = "unsubscribe"
)

// A Job is one action for one purchase. It may be handed over more than once, under one ID.
type Job struct {
	ID            string    `json:"id"` // the same for every repetition
	Action        Action    `json:"action"`
	Purchase      string    `json:"purchase"`
	Merchant      string    `json:"account"`
	StripeAccount string    `json:"stripe_account"`
	Kind          Kind      `json:"kind"`
	Key           string    `json:"key,omitempty"` // the order's, from the caller of CreatePurchase
	Reason        string    `json:"reason"`        // the cause: paid pi_…, active sub_…, canceled sub_…
	At            time.Time `json:"at"`            // of the cause
}

// An Automation does jobs. It must be safe for concurrent use, and must limit its own time. A job
// failing with outbox.ErrPermanent is not tried again.
type Automation interface {
	Name() string        // recorded on the purchase
	Takes(a Action) bool // whether it does such jobs at all
	Do(ctx context.Context, j Job) error
}

// Deliver hands due jobs to the automations. A purchase is fulfilled when all have done the job.
func (s *Service) Deliver(ctx context.Context) (outbox.Report, error) {
	return s.actions().Drain(ctx, workers)
}

func (s *Service) actions() *outbox.Outbox { return s.queue(outbox.Actions, (*actor)(s)) }

// A WaitingJob is a job not done yet.
type WaitingJob struct {
	ID       string    `json:"id"`
	Action   Action    `json:"action"`
	Purchase string    `json:"purchase"`
	Due      time.Time `json:"due,omitzero"`    // when it is tried next
	Tries    int       `json:"tries,omitempty"` // failed ones
	Error    string    `json:"error,omitempty"` // why the last one did
	Dead     bool      `json:"dead,omitempty"`  // given up; a person can replay it
}

// Jobs yields the jobs not done yet; dead ones come last.
func (s *Service) Jobs(ctx context.Context) iter.Seq2[WaitingJob, error] {
	return read(s.actions().Waiting(ctx), func(e outbox.Effect) (WaitingJob, error) {
		j := WaitingJob{ID: e.ID, Action: Action(e.Kind), Purchase: e.Data[pendingID], Due: e.Due, Tries: e.Tries,
			Error: e.Error, Dead: e.Dead}
		if j.Dead {
			j.Due = time.Time{}
		}
		return j, nil
	})
}

// ReplayJob makes a dead job due now, with all its tries, or returns store.ErrNotFound.
func (s *Service) ReplayJob(ctx context.Context, id string) error {
	err := s.actions().Replay(ctx, id)
	if err == nil {
		s.nudge()
	}
	return err
}

// An actor is the deliverer of the actions.
type actor Service

func (w *actor) Deliver(ctx context.Context, e outbox.Effect) error {
	s, action := (*Service)(w), Action(e.Kind)
	if action != ActionFulfil && action != ActionUnsubscribe {
		return fmt.Errorf("%w: there is no action named %q", outbox.ErrPermanent, e.Kind)
	}
	p, err := s.Purchase(ctx, e.Data[pendingID])
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: purchase %s does not exist", outbox.ErrPermanent, e.Data[pendingID])
	}
	if err != nil {
		return err
	}
	ready := Asked
	if action == ActionUnsubscribe {
		if e.Created.Before(p.Unsubscribe.Asked) { // of one that was withdrawn; that asked for since has its own row
			return nil
		}
		if p, err = s.beginUnsubscribe(ctx, p); err != nil {
			return err
		}
		ready = Begun
	}
	if p.effect(action).State != ready { // done, or withdrawn
		return nil
	}
	j := p.job(action)
	automations := slices.DeleteFunc(slices.Clone(s.o.Automations), func(a Automation) bool { return !a.Takes(action) })
	if len(automations) == 0 {
		s.o.Log.Warn("no automation accepts this action, so it is only logged", "id", j.ID, "action", action, "purchase",
			p.ID, "account", p.Merchant, "reason", j.Reason)
		_, err = s.done(ctx, p, logAutomation, action, true)
		return err
	}
	for i, a := range automations {
		last := i == len(automations)-1
		if !p.applied(a.Name(), action) {
			if err := a.Do(ctx, j); err != nil {
				s.o.Log.Warn("an automation could not complete a job", "job", j.ID, "automation", a.Name(), "tries", e.Tries+1, "why",
					secret.Short(err.Error()))
				return fmt.Errorf("%s for purchase %s with %s: %w", action, p.ID, a.Name(), err)
			}
		} else if !last {
			continue
		}
		if p, err = s.done(ctx, p, a.Name(), action, last); err != nil {
			return err
		}
	}
	return nil
}

// logAutomation is the name of the log, which takes an action if no automation does.
const logAutomation = "log"

func (p *Purchase) effect(a Action) *Effect {
	if a == ActionUnsubscribe {
		return &p.Unsubscribe
	}
	return &p.Fulfilment
}

func (p *Purchase) job(a Action) Job {
	e := p.effect(a)
	return Job{ID: string(a) + "/" + p.ID, Action: a, Purchase: p.ID, Merchant: p.Merchant,
		StripeAccount: p.StripeAccount, Kind: p.Kind, Key: p.Order.Key, Reason: e.Reason, At: e.Asked}
}

func (p *Purchase) applied(automation string, a Action) bool {
	return slices.ContainsFunc(p.Automations, func(d Done) bool { return d.Automation == automation && d.Action == a })
}

// beginUnsubscribe records that the unsubscribe begins, unless it was withdrawn. From then on it is
// not withdrawn: it may have been done, even if this process dies.
func (s *Service) beginUnsubscribe(ctx context.Context, p *Purchase) (*Purchase, error) {
	return s.changePurchase(ctx, p, func(p *Purchase) (bool, []store.Write) {
		begins := p.Unsubscribe.State == Asked
		if begins {
			p.Unsubscribe.State = Begun
		}
		return begins, nil
	})
}

// done records an automation on the purchase. With the last one the action is done, and a waiting
// unsubscribe is asked for in the same commit.
func (s *Service) done(ctx context.Context, p *Purchase, automation string, a Action, last bool) (*Purchase, error) {
	return s.changePurchase(ctx, p, func(p *Purchase) (changed bool, with []store.Write) {
		e, now := p.effect(a), s.now()
		if !p.applied(automation, a) {
			p.Automations = append(p.Automations, Done{Automation: automation, Action: a, At: now})
			p.History = remember(p.History, Change{At: now, What: string(a) + ": " + automation})
			changed = true
		}
		if !last || e.State == DoneWith {
			return changed, nil
		}
		e.State, e.Done = DoneWith, now
		p.Fulfilled = p.Fulfilled || a == ActionFulfil
		if a == ActionFulfil && p.Unsubscribe.State == Waits {
			p.Unsubscribe.State, p.Unsubscribe.Asked = Asked, now
			with = append(with, s.ask(p, ActionUnsubscribe))
		}
		return true, with
	})
}
