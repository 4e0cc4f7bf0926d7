package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// The event protocol (docs/design.md, Following Stripe). In the normal case one commit has all
// of it: the event, absent so far; what it changes, if nobody else has meanwhile; the effects of
// every edge that was crossed. An event that cannot be decided from what is stored is stored as
// received, with a row in the inbox, and dealt with after Stripe has its answer. That an event
// is stored says nothing: only its status says that it was applied, and it is in the commit that
// applies it.

// An Origin says how an event came.
type Origin struct {
	Connect bool // to the Connect endpoint: then it says of which connected account it is
	Source  Source
}

// A Verdict says what became of an event that was handed in.
type Verdict struct {
	Event     string      `json:"event"`
	Status    EventStatus `json:"status"`
	Reason    string      `json:"reason,omitempty"`
	Duplicate bool        `json:"duplicate,omitempty"` // it was stored before; Status is what became of it then
}

// Take takes in an event whose signature has been verified. When it returns nil the event is
// stored, durably, and will be dealt with, or has been. ErrBody: it is no event. ErrEndpoint: it
// belongs to the other endpoint, and must not be in the way when it comes there. Any other error:
// nothing is known to be stored, and it has to be handed in again.
func (s *Service) Take(ctx context.Context, body []byte, from Origin) (Verdict, error) {
	e, err := s.decode(body)
	if err != nil {
		return Verdict{}, err
	}
	e.Body, e.Source, e.Received = withoutSecrets(body), from.Source, s.now()
	given := e.StripeAccount
	if given == "" {
		e.StripeAccount = s.o.Own
	}
	switch {
	case e.Live != s.o.Live:
		return s.file(ctx, &e, Refused, "of the other mode")
	case from.Connect && given == "":
		return Verdict{}, fmt.Errorf("%w: it is of no connected account, and this endpoint is for those", ErrEndpoint)
	case !from.Connect && given != "" && given != s.o.Own:
		return Verdict{}, fmt.Errorf("%w: it is of a connected account, and this endpoint is for our own", ErrEndpoint)
	case !isID(e.StripeAccount, "acct_"):
		return s.file(ctx, &e, Refused, "of no account that can be")
	case s.settles(&e):
		return s.file(ctx, &e, Received, "for billing to settle", s.pending(pendingCharge, e.ID, settleWait))
	}
	e.Account, err = s.customerOf(ctx, e.StripeAccount)
	switch {
	case errors.Is(err, ErrUnregistered) && e.StripeAccount == s.o.Own && e.Object.Tag.Purchase == "":
		return s.file(ctx, &e, Ignored, ownSellsNothing)
	case errors.Is(err, ErrUnregistered):
		v, err := s.file(ctx, &e, Quarantined, "the Stripe account is not registered", s.quarantine(e.StripeAccount, e.ID)...)
		if errors.Is(err, store.ErrConflict) { // it is, since a moment ago
			return s.admit(ctx, &e)
		}
		return v, err
	case err != nil:
		return Verdict{}, err
	}
	return s.admit(ctx, &e)
}

const ownSellsNothing = "our own account sells nothing here"

// decode reads a body that may be poison to the reader.
func (s *Service) decode(body []byte) (e Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Log.Error("a body that was signed cannot be read", "bytes", len(body), "panic", p)
			err = fmt.Errorf("%w: reading it panicked", ErrBody)
		}
	}()
	return s.o.Decode(body)
}

// settles reports whether the event is about a payment intent of billing's.
func (s *Service) settles(e *Event) bool {
	return e.Object.Kind == KindPayment && e.Object.Tag.Charge && e.Object.Tag.Installation == s.o.Installation && s.o.Settler != nil
}

// admit applies an event of an account that is registered, or puts it into the inbox.
func (s *Service) admit(ctx context.Context, e *Event) (Verdict, error) {
	var err error
	if e.Account == "" {
		if e.Account, err = s.customerOf(ctx, e.StripeAccount); err != nil {
			return Verdict{}, err
		}
	}
	if strings.HasPrefix(e.Type, "account.application.") {
		return s.file(ctx, e, Received, "to be looked at", s.pending(pendingEvent, e.ID, 0))
	}
	for range maxTries {
		a := &application{s: s, at: e.StripeAccount, account: e.Account, event: e.ID}
		f, err := a.try(ctx, e.Object)
		if errors.Is(err, errPoison) { // it must not be handed in for ever: the inbox gives it up in the end
			s.o.Log.Error("an event cannot be applied", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why", short(err.Error()))
			return s.file(ctx, e, Received, short(err.Error()), s.pending(pendingEvent, e.ID, 0))
		}
		if err != nil {
			return Verdict{}, err
		}
		if f.need.id != "" {
			return s.file(ctx, e, Received, "Stripe has to be asked for "+f.need.kind+" "+f.need.id, s.pending(pendingEvent, e.ID, 0))
		}
		var writes []store.Write
		if f.status == Applied {
			e.Subscription = a.about(e.Subscription)
			if writes, err = a.writes(); err != nil {
				return Verdict{}, err
			}
		}
		v, err := s.file(ctx, e, f.status, f.reason, writes...)
		if !again(err) {
			return v, err
		}
	}
	return Verdict{}, fmt.Errorf("event %s: overtaken by others %d times", e.ID, maxTries)
}

// errPoison: the fault is with what is told or stored, and the store works.
var errPoison = errors.New("it cannot be applied")

// try is take, of what may be poison.
func (a *application) try(ctx context.Context, o Object) (f finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v", errPoison, p)
		}
	}()
	return a.take(ctx, o)
}

// about is the subscription that the event is about, as far as is known.
func (a *application) about(told string) string {
	switch {
	case told != "":
		return told
	case a.subscription != nil:
		return a.subscription.ID
	case a.payment != nil:
		return a.payment.Subscription
	}
	return ""
}

// file stores the event, absent so far, and what goes with it, in one commit. One that is stored
// already is a duplicate, whatever it says now.
func (s *Service) file(ctx context.Context, e *Event, status EventStatus, reason string, others ...store.Write) (Verdict, error) {
	e.Status, e.Reason = status, reason
	if status.Final() {
		e.Applied = s.now()
	}
	it, err := e.item()
	if err != nil {
		return Verdict{}, err
	}
	err = s.commit(ctx, append([]store.Write{store.Put(s.events, it, store.Absent())}, others...)...)
	switch {
	case err == nil:
		if len(others) > 0 {
			s.nudge()
		}
		return Verdict{Event: e.ID, Status: status, Reason: reason}, nil
	case errors.Is(err, store.ErrTooLarge) && len(others) > 0 && len(it.Get(schema.TrackedBody).Bytes()) < largeBody:
		return s.bury(ctx, e, "what it changes is too large to be stored")
	case errors.Is(err, store.ErrTooLarge) && e.Body != nil:
		if e.Body, reason = nil, cmp.Or(reason, bodyTooLarge); !status.Final() { // it could not be read again
			return s.bury(ctx, e, bodyTooLarge)
		}
		return s.file(ctx, e, status, reason, others...)
	case !again(err):
		return Verdict{}, err
	}
	there, reading := s.Event(ctx, e.ID)
	switch {
	case reading == nil:
		s.nudge() // it may be ours, whose answer was lost
		return Verdict{Event: e.ID, Status: there.Status, Reason: there.Reason, Duplicate: true}, nil
	case errors.Is(reading, store.ErrNotFound):
		return Verdict{}, err
	}
	return Verdict{}, reading
}

const (
	bodyTooLarge = "its body was too large to be stored"
	largeBody    = 300 << 10 // bytes, compressed: from here on it is the body that an item has no room for
)

// bury files an event that nothing can be done about, for a person to see.
func (s *Service) bury(ctx context.Context, e *Event, reason string) (Verdict, error) {
	s.o.Log.Error("an event was given up", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why", reason)
	return s.file(ctx, e, Dead, reason, s.pending(pendingEvent, e.ID, 0)) // the row dies with it, and is seen
}

// Event returns the event as it is stored, or store.ErrNotFound.
func (s *Service) Event(ctx context.Context, id string) (*Event, error) {
	if !isID(id, "evt_") {
		return nil, fmt.Errorf("event %q: %w", id, store.ErrNotFound)
	}
	it, err := s.o.Store.Get(ctx, s.events, store.Key{PK: id})
	if err != nil {
		return nil, err
	}
	return eventOf(it)
}

// settle makes an event that was waiting final, with what it changes, in one commit.
func (s *Service) settle(ctx context.Context, e *Event, f finding, others ...store.Write) error {
	before := e.Status
	e.Status, e.Reason, e.Applied = f.status, f.reason, time.Time{}
	if f.status.Final() {
		e.Applied = s.now()
	}
	it, err := e.item()
	if err != nil {
		return err
	}
	return s.commit(ctx, append([]store.Write{store.Put(s.events, it, store.AttributeEquals(schema.TrackedStatus, store.S(string(before))))}, others...)...)
}
