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
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// actions delivers the effects of purchases to the automations.
type actions struct{ *rows }

// Deliver passes due jobs to the automations. A purchase is fulfilled when every automation has
// completed the job.
func (w *actions) Deliver(ctx context.Context) (outbox.Report, error) {
	return w.queued().Drain(ctx, workers)
}

func (w *actions) queued() *outbox.Outbox { return w.queue(outbox.Actions, w.do) }

// A WaitingJob is a job that is not complete yet.
type WaitingJob struct {
	ID       string    `json:"id"`
	Action   Action    `json:"action"`
	Purchase string    `json:"purchase"`
	Due      time.Time `json:"due,omitzero"`    // time of the next attempt
	Tries    int       `json:"tries,omitempty"` // number of failed attempts
	Error    string    `json:"error,omitempty"` // error of the last attempt
	Dead     bool      `json:"dead,omitempty"`  // dead letter; ReplayJob retries it
}

// Jobs yields the incomplete jobs. Dead jobs come last.
func (w *actions) Jobs(ctx context.Context) iter.Seq2[WaitingJob, error] {
	return sequence.Map(w.queued().Waiting(ctx), func(e outbox.Effect) (WaitingJob, error) {
		j := WaitingJob{ID: e.ID, Action: Action(e.Kind), Purchase: e.Data[pendingID], Due: e.Due, Tries: e.Tries,
			Error: e.Error, Dead: e.Dead}
		if j.Dead {
			j.Due = time.Time{}
		}
		return j, nil
	})
}

// ReplayJob makes a dead job due now and resets its attempts. It returns store.ErrNotFound if there
// is no such job.
func (w *actions) ReplayJob(ctx context.Context, id string) error {
	err := w.queued().Replay(ctx, id)
	if err == nil {
		w.nudge()
	}
	return err
}

func (w *actions) do(ctx context.Context, e outbox.Effect) error {
	action := Action(e.Kind)
	if action != ActionFulfil && action != ActionUnsubscribe {
		return fmt.Errorf("%w: there is no action named %q", outbox.ErrPermanent, e.Kind)
	}
	p, err := w.Purchase(ctx, e.Data[pendingID])
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: purchase %s does not exist", outbox.ErrPermanent, e.Data[pendingID])
	}
	if err != nil {
		return err
	}
	ready := Asked
	if action == ActionUnsubscribe {
		if e.Created.Before(p.Unsubscribe.Asked) { // this row's unsubscribe was withdrawn; a later request has its own row
			return nil
		}
		if p, err = w.beginUnsubscribe(ctx, p); err != nil {
			return err
		}
		ready = Begun
	}
	if p.effect(action).State != ready { // done, or withdrawn
		return nil
	}
	j := p.job(action)
	automations := slices.DeleteFunc(slices.Clone(w.o.Automations), func(a Automation) bool { return !a.Takes(action) })
	if len(automations) == 0 {
		w.o.Log.Warn("no automation accepts this action, so it is only logged", "id", j.ID, "action", action, "purchase",
			p.ID, "account", p.Merchant, "reason", j.Reason)
		_, err = w.done(ctx, p, logAutomation, action, true)
		return err
	}
	for i, a := range automations {
		last := i == len(automations)-1
		if !p.applied(a.Name(), action) {
			if err := a.Do(ctx, j); err != nil {
				w.o.Log.Warn("an automation could not complete a job", "job", j.ID, "automation", a.Name(), "tries", e.Tries+1, "why",
					secret.Short(err.Error()))
				return fmt.Errorf("%s for purchase %s with %s: %w", action, p.ID, a.Name(), err)
			}
		} else if !last {
			continue
		}
		if p, err = w.done(ctx, p, a.Name(), action, last); err != nil {
			return err
		}
	}
	return nil
}

// logAutomation is the automation name recorded for an action that no automation accepts and that
// is only logged.
const logAutomation = "log"

// beginUnsubscribe marks the unsubscribe as begun, unless it was withdrawn. A begun unsubscribe
// cannot be withdrawn, because an automation may have done it even if this process dies.
func (w *actions) beginUnsubscribe(ctx context.Context, p *Purchase) (*Purchase, error) {
	return w.changePurchase(ctx, p, func(p *Purchase) (bool, []store.Write) {
		begins := p.Unsubscribe.State == Asked
		if begins {
			p.Unsubscribe.State = Begun
		}
		return begins, nil
	})
}

// done records on the purchase that the automation completed the action. After the last automation
// the action is done, and the same commit requests an unsubscribe that was waiting for it.
func (w *actions) done(ctx context.Context, p *Purchase, automation string, a Action, last bool) (*Purchase, error) {
	var told []store.Write
	if last && w.o.Told != nil {
		var err error
		if told, err = w.o.Told(ctx, a, p); err != nil {
			return nil, err
		}
	}
	return w.changePurchase(ctx, p, func(p *Purchase) (changed bool, with []store.Write) {
		e, now := p.effect(a), w.now()
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
			with = append(with, w.ask(p, ActionUnsubscribe))
		}
		return true, append(with, told...)
	})
}
