package tracking

import (
	"cmp"
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

// The kinds of rows in the inbox, and the name of the id in their data.
const (
	pendingEvent    = "event"    // an event undecided so far
	pendingCharge   = "charge"   // an event about a payment intent of billing's
	pendingRefresh  = "refresh"  // <account>/<subscription> or <account>/<payment>/<dispute>: its state has to be fetched
	pendingPurchase = "purchase" // a purchase was begun: its objects have to be fetched
	pendingEndedBy  = "ended-by" // Options.EndedBy was changed: subscriptions are looked at
	pendingRelease  = "release"  // a Stripe account was registered: its quarantined events are released
	pendingID       = "id"
)

const (
	workers = 16 // of the inbox, and of the actions
	// settleWait gives the run behind a payment the time to settle it itself.
	settleWait = 10 * time.Second
	// releaseWait gives Register the time to release the quarantined events itself.
	releaseWait = 30 * time.Second
	// claimFor is longer than any automation takes.
	claimFor = 2 * time.Minute
	// forceTries is the number of tries after which the end of a split payment counts as cancelled.
	forceTries = 5
	lastTry    = 9 // tries before an effect's last: the schedule of package outbox
)

// DrainInbox works through the due rows. A failed row waits longer each time; after ten it is dead.
func (s *Service) DrainInbox(ctx context.Context) (outbox.Report, error) {
	return s.inbox().Drain(ctx, workers)
}

func (s *Service) inbox() *outbox.Outbox { return s.queue(outbox.Inbox, (*inboxWorker)(s)) }

// queue is the outbox of one queue. Of several processes each claims its rows.
func (s *Service) queue(l outbox.Queue, d outbox.Deliverer) *outbox.Outbox {
	o := outbox.New(s.o.Store, s.o.Tables.Outbox, s.now, d, nil).On(l)
	if s.o.Shared {
		o = o.Claiming(claimFor)
	}
	return o
}

// An inboxWorker is the deliverer of the inbox.
type inboxWorker Service

func (w *inboxWorker) Deliver(ctx context.Context, e outbox.Effect) error {
	s, id := (*Service)(w), e.Data[pendingID]
	by := askStripe
	if e.Tries >= forceTries {
		by = forced
	}
	switch e.Kind {
	case pendingEvent, pendingCharge:
		err := s.finish(ctx, id, by)
		if err != nil && ctx.Err() == nil {
			err = s.setback(ctx, id, e.Tries, err)
		}
		return err
	case pendingRefresh:
		at, of, _ := strings.Cut(id, "/")
		err := s.refresh(ctx, at, of, by)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrUnregistered) {
			return nil
		}
		return err
	case pendingEndedBy:
		return s.askEndedBy(ctx)
	case pendingRelease:
		return s.release(ctx, id)
	case pendingPurchase:
		return s.recoverPurchase(ctx, id)
	}
	return fmt.Errorf("%w: the inbox has no handler for %q", outbox.ErrPermanent, e.Kind)
}

// setback notes the error on the event, and its death after the last try.
func (s *Service) setback(ctx context.Context, id string, tries int, cause error) error {
	e, err := s.Event(ctx, id)
	if err != nil || e.Status.Final() {
		return cause
	}
	set := store.NewItem(store.Attribute{Name: schema.TrackedReason, Value: store.S(secret.Short(cause.Error()))})
	if tries >= lastTry || errors.Is(cause, outbox.ErrPermanent) {
		set.Set(schema.TrackedStatus, store.S(string(Dead)))
		s.o.Log.Error("an event failed too often and is now a dead letter", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why",
			secret.Short(cause.Error()))
	}
	err = s.commit(ctx, store.Update(s.events, store.Key{PK: e.ID}, set, nil, *e.was))
	if err != nil && !store.Retryable(err) {
		return errors.Join(cause, err)
	}
	return cause
}

// finish applies a stored event, unless it is final or has expired.
func (s *Service) finish(ctx context.Context, id string, by effort) error {
	return store.Retry(ctx, "event "+id, func() error {
		e, err := s.Event(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil
		case err != nil || e.Status.Final():
			return err
		}
		_, err = s.redo(ctx, e, by)
		return err
	})
}

// redo decides a stored event anew, in any status but refused: that is not for this store.
func (s *Service) redo(ctx context.Context, e *Event, by effort) (Verdict, error) {
	if e.Status == Refused {
		return Verdict{Event: e.ID, Status: e.Status, Reason: e.Reason, Duplicate: true}, nil
	}
	told, err := s.decode(e.Body)
	if err != nil {
		return Verdict{}, fmt.Errorf("%w: %w", outbox.ErrPermanent, err)
	}
	if told.Live != s.o.Live {
		return Verdict{}, fmt.Errorf("%w: the event has the other mode (test or live)", outbox.ErrPermanent)
	}
	e.Object, e.Type, e.ToldType, e.Twin = told.Object, told.Type, told.ToldType, cmp.Or(told.Twin, e.Twin)
	t := &turn{Service: s, e: e, by: by}
	defer t.end()
	if err := t.decide(ctx); err != nil {
		return Verdict{}, err
	}
	return t.file(ctx)
}

// Replay applies a stored event at once, in any status: dead, waiting, or applied, in which
// case it changes nothing more. It returns store.ErrNotFound if the event is not stored.
func (s *Service) Replay(ctx context.Context, id string) (v Verdict, err error) {
	err = store.Retry(ctx, "event "+id, func() error {
		e, err := s.Event(ctx, id)
		if err != nil {
			return err
		}
		by, dead := anew, e.Status == Dead
		if dead {
			by = forced
		}
		if v, err = s.redo(ctx, e, by); err == nil && dead {
			err = s.revive(ctx, id)
		}
		return err
	})
	return v, err
}

// revive takes the event's row out of the dead letters. The inbox finds nothing left to do.
func (s *Service) revive(ctx context.Context, id string) error {
	for _, kind := range []string{pendingEvent, pendingCharge} {
		err := s.inbox().Replay(ctx, kind+"/"+id)
		if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}
