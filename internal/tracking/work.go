package tracking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// The kinds of what waits in the inbox, and the name under which its row has the id.
const (
	pendingEvent    = "event"    // an event that could not be decided at once
	pendingCharge   = "charge"   // an event about a payment intent of billing's
	pendingRefresh  = "refresh"  // <account>/<subscription>: its state at Stripe has to be asked for
	pendingPurchase = "purchase" // a purchase that was begun: what there is of it at Stripe
	pendingRelease  = "release"  // a Stripe account was registered: what was quarantined of it
	pendingID       = "id"
)

const (
	workers = 16 // of the inbox, and of the actions
	// settleWait gives the run that has confirmed a payment the time to settle it itself.
	settleWait = 10 * time.Second
	// releaseWait gives who registers an account the time to do the rest.
	releaseWait = 30 * time.Second
	// claimFor is longer than any automation takes.
	claimFor = 2 * time.Minute
	// forceTries are after how many tries, some hours, a split payment that is over, and whose
	// schedule does not tell how, is taken for cancelled.
	forceTries = 5
	maxTries   = 16 // commits in a row that others overtook
	lastTry    = 9  // tries before an effect's last: the schedule of package outbox
)

// again reports whether to decide anew, from what is stored by then.
func again(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown)
}

// Work deals with what waits in the inbox and is due: one drain. What cannot be dealt with now
// waits longer each time, and after ten times is dead.
func (s *Service) Work(ctx context.Context) (outbox.Report, error) {
	return s.inbox().Drain(ctx, workers)
}

func (s *Service) inbox() *outbox.Outbox {
	return s.lane(outbox.Inbox, (*inboxWorker)(s))
}

// lane is the outbox of one lane. Where several processes drain it, each claims what it takes.
func (s *Service) lane(l outbox.Lane, d outbox.Deliverer) *outbox.Outbox {
	o := outbox.New(s.o.Store, s.o.Tables.Outbox, s.now, d, nil).On(l)
	if s.o.Shared {
		o = o.Claiming(claimFor)
	}
	return o
}

// An inboxWorker is the deliverer of the inbox.
type inboxWorker Service

// Deliver implements outbox.Deliverer.
func (w *inboxWorker) Deliver(ctx context.Context, e outbox.Effect) (err error) {
	s, id := (*Service)(w), e.Data[pendingID]
	if e.Kind == pendingEvent || e.Kind == pendingCharge {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("applying it panicked: %v", p)
			}
			if err != nil && ctx.Err() == nil {
				err = s.setback(ctx, id, e.Tries, err)
			}
		}()
		_, err = s.finish(ctx, id, e.Tries >= forceTries)
		return err
	}
	at, sub, _ := strings.Cut(id, "/")
	switch e.Kind {
	case pendingRefresh:
		err := s.refreshSubscription(ctx, at, sub, e.Tries >= forceTries)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrUnregistered) {
			return nil
		}
		return err
	case pendingRelease:
		return s.release(ctx, id)
	case pendingPurchase:
		return s.recoverPurchase(ctx, id)
	}
	return fmt.Errorf("%w: nothing is done with a %q", outbox.ErrPermanent, e.Kind)
}

// setback notes on the event why it waits, and that it is dead when this was its last try.
func (s *Service) setback(ctx context.Context, id string, tries int, cause error) error {
	e, err := s.Event(ctx, id)
	if err != nil || e.Status.Final() {
		return cause
	}
	status := store.S(string(e.Status))
	set := store.NewItem(store.Attribute{Name: schema.TrackedReason, Value: store.S(short(cause.Error()))})
	if tries >= lastTry || errors.Is(cause, outbox.ErrPermanent) {
		set.Set(schema.TrackedStatus, store.S(string(Dead)))
		s.o.Log.Error("an event was given up", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why", short(cause.Error()))
	}
	err = s.commit(ctx, store.Update(s.events, store.Key{PK: e.ID}, set, nil, store.AttributeEquals(schema.TrackedStatus, status)))
	if err != nil && !again(err) {
		return errors.Join(cause, err)
	}
	return cause
}

// finish deals with an event that is stored, and asks Stripe for what it takes.
func (s *Service) finish(ctx context.Context, id string, force bool) (Verdict, error) {
	for range maxTries {
		e, err := s.Event(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound): // it has expired
			return Verdict{}, nil
		case err != nil:
			return Verdict{}, err
		case e.Status.Final():
			return Verdict{Event: id, Status: e.Status, Reason: e.Reason, Duplicate: true}, nil
		}
		v, err := s.redo(ctx, e, force)
		if !again(err) {
			return v, err
		}
	}
	return Verdict{}, fmt.Errorf("event %s: overtaken by others %d times", id, maxTries)
}

// redo applies the stored event, whatever its status, in one commit with the new status.
func (s *Service) redo(ctx context.Context, e *Event, force bool) (Verdict, error) {
	if e.Status == Refused { // it is not for this store, whoever asks
		return Verdict{Event: e.ID, Status: e.Status, Reason: e.Reason, Duplicate: true}, nil
	}
	told, err := s.decode(e.Body)
	if err != nil {
		return Verdict{}, fmt.Errorf("%w: %w", outbox.ErrPermanent, err)
	}
	if told.Live != s.o.Live {
		return Verdict{}, fmt.Errorf("%w: it is of the other mode", outbox.ErrPermanent)
	}
	e.Object = told.Object
	f, others, err := s.examine(ctx, e, force)
	if err != nil {
		return Verdict{}, err
	}
	if err := s.settle(ctx, e, f, others...); err != nil {
		return Verdict{}, err
	}
	if len(others) > 0 {
		s.nudge()
	}
	return Verdict{Event: e.ID, Status: f.status, Reason: f.reason}, nil
}

func (s *Service) examine(ctx context.Context, e *Event, force bool) (f finding, others []store.Write, err error) {
	if s.settles(e) {
		tag := e.Object.Tag
		if err := s.o.Settler.Heard(ctx, tag.ChargeAccount, tag.ChargeSubscription, e.Object.ID); err != nil {
			return f, nil, err
		}
		return finding{status: Applied, reason: "settled by billing"}, nil, nil
	}
	account, err := s.customerOf(ctx, e.StripeAccount)
	if errors.Is(err, ErrUnregistered) && e.StripeAccount == s.o.Own && e.Object.Tag.Purchase == "" {
		return ignored(ownSellsNothing), nil, nil
	}
	if errors.Is(err, ErrUnregistered) {
		return finding{status: Quarantined, reason: "the Stripe account is not registered"}, s.quarantine(e.StripeAccount, e.ID), nil
	}
	if err != nil {
		return f, nil, err
	}
	e.Account = account
	if strings.HasPrefix(e.Type, "account.application.") {
		f, err := s.lookAt(ctx, e.StripeAccount)
		return f, nil, err
	}
	a := &application{s: s, at: e.StripeAccount, account: account, event: e.ID, force: force}
	if f, err = a.decide(ctx, e.Object); errors.Is(err, ErrGone) {
		return ignored("Stripe has no such object any more"), nil, nil
	}
	if err != nil || f.status != Applied {
		return f, nil, err
	}
	e.Subscription = a.about(e.Subscription)
	others, err = a.writes()
	return f, others, err
}

// lookAt finds out whether the account lets us in: which of two events that say so came last is
// not known.
func (s *Service) lookAt(ctx context.Context, stripeAccount string) (finding, error) {
	status := Connected
	err := s.o.Finder.Connected(ctx, stripeAccount)
	switch {
	case errors.Is(err, ErrDisconnected):
		status = Disconnected
		s.o.Log.Warn("a Stripe account has disconnected", "account", stripeAccount)
	case err != nil:
		return finding{}, err
	}
	_, err = s.connection(ctx, stripeAccount, status)
	return finding{status: Applied, reason: string(status)}, err
}

// Replay deals with a stored event at once, whatever became of it before: one that was given up,
// one that waits, or one that was applied, which then changes nothing that it has not changed.
// It returns store.ErrNotFound for one that is not stored.
func (s *Service) Replay(ctx context.Context, id string) (Verdict, error) {
	for range maxTries {
		e, err := s.Event(ctx, id)
		if err != nil {
			return Verdict{}, err
		}
		dead := e.Status == Dead
		v, err := s.redo(ctx, e, dead)
		if again(err) {
			continue
		}
		if err == nil && dead {
			err = s.revive(ctx, id)
		}
		return v, err
	}
	return Verdict{}, fmt.Errorf("event %s: overtaken by others %d times", id, maxTries)
}

// revive takes the event's row out of the dead letters, of whichever kind it is: the inbox finds
// that there is nothing left to do.
func (s *Service) revive(ctx context.Context, id string) error {
	for _, kind := range []string{pendingEvent, pendingCharge} {
		err := s.inbox().Replay(ctx, kind+"/"+id)
		if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// maxReason is how many bytes of a reason are kept.
const maxReason = 300

// short makes an error's text fit to be kept and shown.
func short(text string) string {
	text = secret.Clean(text)
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}
