package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// An Events is Stripe, for events that a poller elsewhere tells of.
type Events interface {
	// Event returns the event of the account, "" for our own, as a poller.Lister lists it, or
	// tracking.ErrGone. Thin events are apart from the others.
	Event(ctx context.Context, at, id string, thin bool) ([]byte, error)
}

const (
	stripeKeeps = 30 * 24 * time.Hour // the time for which Stripe lists an event
	clockSlack  = 5 * time.Second     // Stripe's clock is known to a second, and an answer takes its time
)

// ask returns the event that the body names as Stripe has it: only Stripe is believed.
func (s *Server) ask(ctx context.Context, body []byte, connect bool) ([]byte, error) {
	e, err := event.Decode(body)
	if err != nil {
		return nil, err
	}
	at := ""
	if connect {
		if at = e.StripeAccount; at == "" {
			return nil, fmt.Errorf("%w: the event names no connected account", tracking.ErrEndpoint)
		}
	}
	if body, err = s.o.Events.Event(ctx, at, e.ID, e.Object.Thin); errors.Is(err, tracking.ErrGone) {
		err = fmt.Errorf("%w: Stripe has no event with this ID", tracking.ErrBody)
	}
	return body, err
}

// mark takes how far a poller elsewhere is. Lost events have the objects compared from there on.
func (s *Server) mark(ctx context.Context, stripeAccount string, p tracking.PollState) error {
	now := s.o.StripeNow()
	if p.Through.After(now.Add(clockSlack)) {
		return &tracking.FieldError{Field: "verified_through", Problem: "must not be later than Stripe's clock, which shows " +
			now.UTC().Format(time.RFC3339)}
	}
	a, err := s.o.Service.ConnectedAccount(ctx, stripeAccount)
	if err != nil {
		return err
	}
	told := a.Polled
	told.Through, told.Checked, told.Next, told.Quiet, told.Error = p.Through, p.Checked, p.Next, p.Quiet, p.Error
	told.Thin = told.Thin && p.Thin
	if was := a.Polled.Through; !was.IsZero() && was.Before(now.Add(-stripeKeeps)) && was.Before(told.Swept) {
		told.Swept = was
	}
	return s.o.Service.SavePoll(ctx, stripeAccount, told)
}

// An ownLedger is the Service for the poller of this process. What is told of events by an endpoint
// for webhooks is told of the poller's, too. As there, a panic is the error of one event.
type ownLedger struct {
	*tracking.Service
	tell func(ctx context.Context, connect bool, v tracking.Verdict)
	log  *slog.Logger
}

func (l ownLedger) Ingest(ctx context.Context, body []byte, from tracking.Origin) (v tracking.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.ErrorContext(ctx, "server: taking an event panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("taking the event panicked; the log has the stack") // the poller stores it, so it has no data
		}
	}()
	if v, err = l.Service.Ingest(ctx, body, from); err == nil {
		l.tell(ctx, from.Connect, v)
	}
	return v, err
}

// addPoller makes the poller. With a given secret, others poll, and it compares objects alone.
func (s *Server) addPoller(hooks *httpapi.Options) {
	if s.o.PollEvery == 0 && s.o.PollSecret.IsZero() {
		return
	}
	own := ownLedger{s.o.Service, func(ctx context.Context, connect bool, v tracking.Verdict) {
		hooks.Tell(ctx, s.hook(connect), true, v)
	}, s.o.Log}
	s.poller = poller.New(poller.Options{Ledger: own, Lister: s.o.Lister, Now: s.o.Now, Log: s.o.Log,
		Interval: s.o.PollEvery, NoRounds: s.o.PollEvery == 0})
}
