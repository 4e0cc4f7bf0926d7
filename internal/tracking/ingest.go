package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
func (s *Service) Ingest(ctx context.Context, body []byte, from Origin) (Verdict, error) {
	e, err := s.decode(body)
	if err != nil {
		return Verdict{}, err
	}
	e.Body, e.Source, e.Received = withoutSecrets(body), from.Source, s.now()
	told := e.StripeAccount
	e.StripeAccount = cmp.Or(told, s.o.Own)
	t := &turn{Service: s, e: &e}
	switch {
	case strings.HasPrefix(e.Type, "v2."):
		t.set(Ignored, "events of version 2 of the API are not followed")
	case e.Live != s.o.Live:
		t.set(Refused, "of the other mode")
	case told != "" && !isID(told, "acct_"):
		t.set(Refused, "of no account that can be")
	case from.Connect && told == "":
		return Verdict{}, fmt.Errorf("%w: it names no connected account, but this endpoint accepts only events from connected accounts", ErrEndpoint)
	case !from.Connect && told != "" && told != s.o.Own:
		return Verdict{}, fmt.Errorf("%w: it comes from a connected account, but this endpoint accepts only the platform's own events", ErrEndpoint)
	}
	if t.status != "" {
		return t.fileNew(ctx)
	}
	var v Verdict
	err = store.Retry(ctx, "event "+e.ID, func() error {
		t := &turn{Service: s, e: &e}
		err := t.decide(ctx)
		if errors.Is(err, errPoison) { // Stripe must not send it for ever: the inbox gives it up in the end
			why := secret.Short(err.Error())
			s.o.Log.Error("an event could not be applied; the inbox tries again", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why", why)
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
func (s *Service) decode(body []byte) (e Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Log.Error("a signed webhook body could not be decoded", "bytes", len(body), "panic", p)
			err = fmt.Errorf("%w: decoding it panicked", ErrBody)
		}
	}()
	return s.o.Decode(body)
}

// Event returns the stored event, or store.ErrNotFound.
func (s *Service) Event(ctx context.Context, id string) (*Event, error) {
	e, err := s.eventOrMarker(ctx, id)
	if err == nil && e.isMarker() {
		return nil, fmt.Errorf("event %s has not arrived, only its other form %s: %w", id, e.Twin, store.ErrNotFound)
	}
	return e, err
}

// eventOrMarker is Event, or the marker in its place.
func (s *Service) eventOrMarker(ctx context.Context, id string) (*Event, error) {
	if !isID(id, "evt_") {
		return nil, fmt.Errorf("event %q: %w", id, store.ErrNotFound)
	}
	it, err := s.o.Store.Get(ctx, s.events, store.Key{PK: id})
	if err != nil {
		return nil, err
	}
	return eventOf(it)
}
