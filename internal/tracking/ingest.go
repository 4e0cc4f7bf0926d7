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
	switch {
	case strings.HasPrefix(e.Type, "v2."):
		return s.fileNew(ctx, &e, ignored("events of version 2 of the API are not followed"))
	case e.Live != s.o.Live:
		return s.fileNew(ctx, &e, decision{status: Refused, reason: "of the other mode"})
	case told != "" && !isID(told, "acct_"):
		return s.fileNew(ctx, &e, decision{status: Refused, reason: "of no account that can be"})
	case from.Connect && told == "":
		return Verdict{}, fmt.Errorf("%w: it names no connected account, but this endpoint accepts only events from connected accounts", ErrEndpoint)
	case !from.Connect && told != "" && told != s.o.Own:
		return Verdict{}, fmt.Errorf("%w: it comes from a connected account, but this endpoint accepts only the platform's own events", ErrEndpoint)
	}
	var v Verdict
	err = store.Retry(ctx, "event "+e.ID, func() error {
		d, err := s.decide(ctx, &e, fromStore)
		if errors.Is(err, errPoison) { // Stripe must not send it for ever: the inbox gives it up in the end
			s.o.Log.Error("an event could not be applied; the inbox tries again", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why",
				secret.Short(err.Error()))
			d, err = s.later(&e, pendingEvent, secret.Short(err.Error()), 0), nil
		}
		if err == nil {
			v, err = s.fileNew(ctx, &e, d)
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

const (
	bodyTooLarge = "its body was too large to be stored"
	largeBody    = 300 << 10 // bytes, compressed: a larger body may be too large for an item
)

// fileNew files an event that has just come. A stored event is a duplicate, even if its body
// differs. If a thin event of the same change was applied before, the caller must decide again.
func (s *Service) fileNew(ctx context.Context, e *Event, d decision) (Verdict, error) {
	v, err := s.file(ctx, e, d)
	if errors.Is(err, store.ErrTooLarge) {
		return s.fileSmaller(ctx, e, d, err)
	}
	if !store.Retryable(err) {
		return v, err
	}
	there, reading := s.eventOrMarker(ctx, e.ID)
	switch {
	case reading == nil && there.isMarker():
		e.was, e.Twin = there.was, there.Twin
		return Verdict{}, err
	case reading == nil:
		s.nudge() // it may be ours, if the answer to the commit was lost
		return Verdict{Event: e.ID, Status: there.Status, Reason: there.Reason, Duplicate: true}, nil
	case errors.Is(reading, store.ErrNotFound):
		return Verdict{}, err
	}
	return Verdict{}, reading
}

// fileSmaller files a too large event without its body, if that is not needed, or gives it up.
func (s *Service) fileSmaller(ctx context.Context, e *Event, d decision, tooLarge error) (Verdict, error) {
	packed, err := pack(nil, e.Body)
	switch {
	case err != nil:
		return Verdict{}, err
	case len(d.writes) > 0 && len(packed) < largeBody:
		return s.bury(ctx, e, "what it changes is too large to be stored")
	case e.Body == nil:
		return Verdict{}, tooLarge
	}
	e.Body = nil
	if !d.status.Final() { // the inbox could not read it
		return s.bury(ctx, e, bodyTooLarge)
	}
	d.reason = cmp.Or(d.reason, bodyTooLarge)
	return s.fileNew(ctx, e, d)
}

// bury files an event as dead. Its row in the inbox dies with it, for a person to see.
func (s *Service) bury(ctx context.Context, e *Event, reason string) (Verdict, error) {
	s.o.Log.Error("an event cannot be stored or applied; it is now a dead letter", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why", reason)
	return s.fileNew(ctx, e, decision{status: Dead, reason: reason, writes: []store.Write{s.pending(pendingEvent, e.ID, 0)}})
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
