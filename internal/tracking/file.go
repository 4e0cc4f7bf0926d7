package tracking

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/duesday/duesday/internal/store"
)

const (
	bodyTooLarge = "its body was too large to be stored"
	largeBody    = 300 << 10 // bytes, compressed: a larger body may be too large for an item
)

// fileNew files an event that has just come. A stored event is a duplicate, even if its body
// differs. If a thin event of the same change was applied before, the caller must decide again.
func (t *turn) fileNew(ctx context.Context) (Verdict, error) {
	v, err := t.file(ctx)
	if errors.Is(err, store.ErrTooLarge) {
		return t.fileSmaller(ctx, err)
	}
	if !store.Retryable(err) {
		return v, err
	}
	there, reading := t.eventOrMarker(ctx, t.e.ID)
	switch {
	case reading == nil && there.isMarker():
		t.e.was, t.e.Twin = there.was, there.Twin
		return Verdict{}, err
	case reading == nil:
		t.nudge() // it may be ours, if the answer to the commit was lost
		return Verdict{Event: there.ID, Status: there.Status, Reason: there.Reason, Duplicate: true}, nil
	case errors.Is(reading, store.ErrNotFound):
		return Verdict{}, err
	}
	return Verdict{}, reading
}

// fileSmaller files a too large event without its body, if that is not needed, or gives it up.
func (t *turn) fileSmaller(ctx context.Context, tooLarge error) (Verdict, error) {
	packed, err := pack(nil, t.e.Body)
	switch {
	case err != nil:
		return Verdict{}, err
	case len(t.writes) > 0 && len(packed) < largeBody:
		return t.bury(ctx, "what it changes is too large to be stored")
	case t.e.Body == nil:
		return Verdict{}, tooLarge
	}
	t.e.Body = nil
	if !t.status.Final() { // the inbox could not read it
		return t.bury(ctx, bodyTooLarge)
	}
	t.reason = cmp.Or(t.reason, bodyTooLarge)
	return t.fileNew(ctx)
}

// bury files an event as dead. Its row in the inbox dies with it, for a person to see.
func (t *turn) bury(ctx context.Context, reason string) (Verdict, error) {
	t.o.Log.Error("an event cannot be stored or applied; it is now a dead letter", "event", t.e.ID, "type", t.e.Type, "account", t.e.StripeAccount, "why", reason)
	_ = t.later(pendingEvent, reason, 0)
	t.status = Dead
	return t.fileNew(ctx)
}

// file stores the event, if there is one, and the writes of its decision in one commit. The event's row
// must be as it was read.
func (t *turn) file(ctx context.Context) (Verdict, error) {
	writes, filed := t.writes, Event{}
	if t.e != nil {
		if err := t.noteThin(ctx, t.e, t.status); err != nil {
			return Verdict{}, err
		}
		filed = *t.e
		if filed.Twin != "" && filed.ToldType == "" && t.status.Final() {
			t.reason = cmp.Or(t.reason, "the same as "+filed.Twin+", which came before")
		}
		filed.Status, filed.Reason, filed.Applied = t.status, t.reason, time.Time{}
		if t.status.Final() {
			filed.Applied = t.now()
		}
		it, err := filed.item()
		if err != nil {
			return Verdict{}, err
		}
		condition := store.Absent()
		if filed.was != nil {
			condition = *filed.was
		}
		writes = append([]store.Write{store.Put(t.events, it, condition)}, writes...)
	}
	if len(writes) > 0 {
		if err := t.commit(ctx, writes...); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{Event: filed.ID, Status: filed.Status, Reason: filed.Reason, Created: filed.Created}, nil
}
