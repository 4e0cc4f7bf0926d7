package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// The event protocol (docs/internals/tracking.md). In the normal case one commit holds all of
// it: the event, absent so far; its changed rows, unless somebody else has changed them meanwhile;
// and its effects. An event undecided by the stored rows is stored as received, with a row in the
// inbox, and decided after Stripe has its answer. A stored event may not be applied yet: its status
// says so, in the commit that applies it.

// An Origin says how an event came.
type Origin struct {
	Connect bool // to the endpoint for connected accounts: then it must name its account
	Source  Source
}

// A Verdict is the result of ingesting or replaying an event.
type Verdict struct {
	Event     string      `json:"event"`
	Status    EventStatus `json:"status"`
	Reason    string      `json:"reason,omitempty"`
	Duplicate bool        `json:"duplicate,omitempty"` // it was stored before; Status is the stored one
	Created   time.Time   `json:"-"`                   // when Stripe made it; zero of a duplicate
}

// Ingest stores an event whose signature has been verified. If it returns nil, the event is
// durable, and it has been applied or the inbox will apply it. It returns an ErrBody if the body is
// not an event, and ErrEndpoint if the event belongs to the other endpoint; neither is stored.
// After any other error the caller must ingest the event again.
func (in *intake) Ingest(ctx context.Context, body []byte, from Origin) (Verdict, error) {
	e, err := in.decode(body)
	if err != nil {
		return Verdict{}, err
	}
	e.Body, e.Source, e.Received = withoutSecrets(body), from.Source, in.now()
	told := e.StripeAccount
	e.StripeAccount = cmp.Or(told, in.o.Own)
	t := &turn{intake: in, e: &e}
	switch {
	case strings.HasPrefix(e.Type, "v2."):
		t.set(Ignored, "events of version 2 of the API are not followed")
	case e.Live != in.o.Live:
		t.set(Refused, "of the other mode")
	case told != "" && !isID(told, "acct_"):
		t.set(Refused, "of no account that can be")
	case from.Connect && told == "":
		return Verdict{}, fmt.Errorf("%w: it names no connected account, but this endpoint accepts only events from connected accounts", ErrEndpoint)
	case !from.Connect && told != "" && told != in.o.Own:
		return Verdict{}, fmt.Errorf("%w: it comes from a connected account, but this endpoint accepts only the platform's own events", ErrEndpoint)
	}
	if t.status != "" {
		return t.fileNew(ctx)
	}
	var v Verdict
	err = store.Retry(ctx, "event "+e.ID, func() error {
		t := &turn{intake: in, e: &e}
		err := t.decide(ctx)
		if errors.Is(err, errPoison) { // Stripe must not send it for ever: the inbox gives it up in the end
			why := secret.Short(err.Error())
			in.o.Log.Error("an event could not be applied; the inbox tries again", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why", why)
			err = t.later(pendingEvent, why, 0)
		}
		if err == nil {
			v, err = t.fileNew(ctx)
		}
		return err
	})
	return v, err
}

// decode reads a body. It returns an ErrBody if the body makes the reader panic.
func (in *intake) decode(body []byte) (e Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			in.o.Log.Error("a signed webhook body could not be decoded", "bytes", len(body), "panic", p)
			err = fmt.Errorf("%w: decoding it panicked", ErrBody)
		}
	}()
	return in.o.Decode(body)
}

// finish applies a stored event, unless it is final or has expired.
func (in *intake) finish(ctx context.Context, id string, by effort) error {
	return store.Retry(ctx, "event "+id, func() error {
		e, err := in.Event(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil
		case err != nil || e.Status.Final():
			return err
		}
		_, err = in.redo(ctx, e, by)
		return err
	})
}

// redo decides a stored event anew, in any status but refused: that is not for this store.
func (in *intake) redo(ctx context.Context, e *Event, by effort) (Verdict, error) {
	if e.Status == Refused {
		return Verdict{Event: e.ID, Status: e.Status, Reason: e.Reason, Duplicate: true}, nil
	}
	told, err := in.decode(e.Body)
	if err != nil {
		return Verdict{}, fmt.Errorf("%w: %w", outbox.ErrPermanent, err)
	}
	if told.Live != in.o.Live {
		return Verdict{}, fmt.Errorf("%w: the event has the other mode (test or live)", outbox.ErrPermanent)
	}
	e.Object, e.Type, e.ToldType, e.Twin = told.Object, told.Type, told.ToldType, cmp.Or(told.Twin, e.Twin)
	t := &turn{intake: in, e: e, by: by}
	defer t.end()
	if err := t.decide(ctx); err != nil {
		return Verdict{}, err
	}
	return t.file(ctx)
}
