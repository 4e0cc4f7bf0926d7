package tracking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// An inbox processes waiting work, mainly undecided events.
type inbox struct {
	*intake
	*shop
}

// DrainInbox processes the due rows. A failed row waits longer after each attempt, and is a dead
// letter after ten.
func (b *inbox) DrainInbox(ctx context.Context) (outbox.Report, error) {
	return b.queued().Drain(ctx, workers)
}

func (b *inbox) queued() *outbox.Outbox { return b.queue(outbox.Inbox, b.deliver) }

func (b *inbox) deliver(ctx context.Context, e outbox.Effect) error {
	id, by := e.Data[pendingID], askStripe
	if e.Tries >= forceTries {
		by = forced
	}
	switch e.Kind {
	case pendingEvent, pendingCharge:
		err := b.finish(ctx, id, by)
		if err != nil && ctx.Err() == nil {
			err = b.setback(ctx, id, e.Tries, err)
		}
		return err
	case pendingRefresh:
		at, of, _ := strings.Cut(id, "/")
		err := b.refresh(ctx, at, of, by)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrUnregistered) {
			return nil
		}
		return err
	case pendingEndedBy:
		return b.askEndedBy(ctx)
	case pendingRelease:
		return b.release(ctx, id)
	case pendingPurchase:
		return b.recoverPurchase(ctx, id)
	}
	return fmt.Errorf("%w: the inbox has no handler for %q", outbox.ErrPermanent, e.Kind)
}

// setback stores the error on the event, and marks the event dead after its last attempt.
func (b *inbox) setback(ctx context.Context, id string, tries int, cause error) error {
	e, err := b.Event(ctx, id)
	if err != nil || e.Status.Final() {
		return cause
	}
	why := secret.Short(cause.Error())
	set := store.NewItem(attribute(schema.TrackedReason, why))
	if tries >= lastTry || errors.Is(cause, outbox.ErrPermanent) {
		set.Set(schema.TrackedStatus, store.S(string(Dead)))
		b.o.Log.Error("an event failed too often and is now a dead letter", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why", why)
	}
	err = b.commit(ctx, store.Update(b.events, store.Key{PK: e.ID}, set, nil, *e.was))
	if err != nil && !store.Retryable(err) {
		return errors.Join(cause, err)
	}
	return cause
}

// Replay applies a stored event immediately, whatever its status. Replaying an applied event
// changes nothing more. Replay returns store.ErrNotFound if the event is not stored, and ErrNotApplied if the event itself
// is why it could not be applied.
func (b *inbox) Replay(ctx context.Context, id string) (v Verdict, err error) {
	err = store.Retry(ctx, "event "+id, func() error {
		e, err := b.Event(ctx, id)
		if err != nil {
			return err
		}
		by, dead := anew, e.Status == Dead
		if dead {
			by = forced
		}
		if v, err = b.redo(ctx, e, by); err == nil && dead {
			err = b.revive(ctx, id)
		}
		return err
	})
	if errors.Is(err, errPoison) || errors.Is(err, errUndecided) || errors.Is(err, outbox.ErrPermanent) {
		err = fmt.Errorf("%w: %w", ErrNotApplied, err)
	}
	return v, err
}

// revive removes the event's row from the dead letters. The inbox then finds nothing left to do for
// it.
func (b *inbox) revive(ctx context.Context, id string) error {
	for _, kind := range []string{pendingEvent, pendingCharge} {
		err := b.queued().Replay(ctx, kind+"/"+id)
		if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// Waiting yields the unfinished events: those in the inbox, and then the quarantined ones.
func (b *inbox) Waiting(ctx context.Context) iter.Seq2[*Event, error] {
	both := []iter.Seq2[*Event, error]{b.Undecided(ctx, ""), b.Quarantined(ctx, Mark{})}
	return sequence.Flat(slices.Values(both), func(of iter.Seq2[*Event, error]) iter.Seq2[*Event, error] { return of })
}

// Undecided yields the received and the dead events that are in the inbox and whose ID is after the given one, by ID.
func (b *inbox) Undecided(ctx context.Context, after string) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		var ids []string
		for e, err := range b.queued().Waiting(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if id := e.Data[pendingID]; (e.Kind == pendingEvent || e.Kind == pendingCharge) && id > after {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if !b.unfinished(ctx, id, yield) {
				return
			}
		}
	}
}

// Quarantined yields the events of unregistered Stripe accounts after the mark, by account and ID.
func (b *inbox) Quarantined(ctx context.Context, after Mark) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		q := store.Query{Table: b.accounts, Partition: quarantineRows}
		if after.ID != "" {
			q.After = store.Cursor{Key: store.Key{PK: quarantineRows, SK: after.StripeAccount + "#" + after.ID}}
		}
		for it, err := range b.o.Store.Query(ctx, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			if _, id, ok := strings.Cut(it.Str(schema.SK), "#"); ok && !b.unfinished(ctx, id, yield) {
				return
			}
		}
	}
}

// unfinished yields the event without its body, unless it was applied meanwhile or has expired.
func (b *inbox) unfinished(ctx context.Context, id string, yield func(*Event, error) bool) bool {
	switch e, err := b.Event(ctx, id); {
	case errors.Is(err, store.ErrNotFound) || err == nil && e.Status.Final():
		return true
	case err != nil:
		yield(nil, err)
		return false
	default:
		e.Body = nil
		return yield(e, nil)
	}
}

// TakeEndedBy queues a check of the subscriptions that were past due, unpaid or paused before
// Options.EndedBy got its current value. Further calls do nothing until the setting changes.
func (b *inbox) TakeEndedBy(ctx context.Context) error {
	return store.Retry(ctx, "ended-by", func() error {
		now := strings.Join(slices.Sorted(slices.Values(b.o.EndedBy)), ",")
		it, err := b.o.Store.Get(ctx, b.accounts, store.Key{PK: ownRow, SK: endedByRow})
		if err = ignoreNotFound(err); err != nil || it.Str(schema.TrackedStatus) == now {
			return err
		}
		return b.commit(ctx, store.Put(b.accounts, registryRow(ownRow, endedByRow, attribute(schema.TrackedStatus, now))),
			b.pending(pendingEndedBy, now, 0))
	})
}

// askEndedBy queues a fetch for each active subscription whose last known Stripe status is in
// Options.EndedBy. It reads the subscriptions through the merchant index because the runtime policy
// does not allow scans.
func (b *inbox) askEndedBy(ctx context.Context) error {
	merchants := map[string]bool{}
	for a, err := range b.ConnectedAccounts(ctx) {
		if err != nil {
			return err
		}
		merchants[a.Merchant] = true
	}
	for merchant := range merchants {
		for it, err := range b.items(ctx, &b.o.Tables.Tracking.Subscriptions, schema.AccountIndex, merchant, store.Cursor{}, false) {
			if err != nil {
				return err
			}
			sub := from(it, (*Subscription).fields)
			if sub.Status != SubscriptionActive || !slices.Contains(b.o.EndedBy, sub.Detail) {
				continue
			}
			if err := b.commit(ctx, b.pending(pendingRefresh, sub.StripeAccount+"/"+sub.ID, 0)); err != nil {
				return err
			}
		}
	}
	return nil
}
