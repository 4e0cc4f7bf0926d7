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
	largeBody    = 300 << 10 // compressed bytes; a larger body may not fit into an item
)

// fileNew stores an event that has just arrived. If an event with its ID is already stored, the new
// one is a duplicate, even if its body differs. If a thin event has already applied the same
// change, fileNew returns an error and the caller must decide the event again.
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
		t.nudge() // our own commit may have stored it if only the reply was lost
		return Verdict{Event: there.ID, Status: there.Status, Reason: there.Reason, Duplicate: true}, nil
	case errors.Is(reading, store.ErrNotFound):
		return Verdict{}, err
	}
	return Verdict{}, reading
}

// fileSmaller stores an oversized event without its body if the body is not needed. Otherwise it
// makes the event a dead letter.
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
	if !t.status.Final() { // the inbox needs the body to decide the event
		return t.bury(ctx, bodyTooLarge)
	}
	t.reason = cmp.Or(t.reason, bodyTooLarge)
	return t.fileNew(ctx)
}

// bury stores an event as a dead letter. Its inbox row becomes a dead letter too, so that an
// operator sees it.
func (t *turn) bury(ctx context.Context, reason string) (Verdict, error) {
	t.o.Log.Error("an event cannot be stored or applied; it is now a dead letter", "event", t.e.ID, "type", t.e.Type, "account", t.e.StripeAccount, "why", reason)
	_ = t.later(pendingEvent, reason, 0)
	t.status = Dead
	return t.fileNew(ctx)
}

// file stores the turn's event, if there is one, and the writes of its decision in one commit. The
// commit fails if the stored event has changed since it was read.
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
			if t.o.Erases != nil && len(filed.Body) > 0 { // until then, the body is needed
				if is, err := t.o.Erases(ctx, filed.StripeAccount, filed.Body); err != nil {
					return Verdict{}, err
				} else if is {
					filed.erase()
				}
			}
		}
		it, err := filed.item()
		if err != nil {
			return Verdict{}, err
		}
		writes = append([]store.Write{store.Put(t.events, it, *cmp.Or(filed.was, new(store.Absent())))}, writes...)
	}
	if len(writes) > 0 {
		if err := t.commit(ctx, writes...); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{Event: filed.ID, Status: filed.Status, Reason: filed.Reason, Created: filed.Created}, nil
}
