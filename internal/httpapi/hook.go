package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

// A Hook is an endpoint for Stripe's events.
type Hook struct {
	Path    string        // such as /hooks/stripe; unique
	Connect bool          // receives the events of connected accounts
	Secrets []secret.Text // Stripe's valid signing secrets
}

// A hook holds all valid secrets: Stripe's, then Poll.Given if it is set.
type hook struct {
	Hook
	all []secret.Text
}

// take receives an event. It responds with 200 once the event is durable. Otherwise, Stripe sends it again.
func (s *server) take(w http.ResponseWriter, r *web.Request, h *hook) error {
	if r.Method != http.MethodPost {
		return web.WrongMethod(w, http.MethodPost)
	}
	buffer := s.buffer()
	which, err := s.signed(buffer, w, r, h.all, maxEvent)
	polled := which == len(h.Secrets)
	if err != nil {
		s.recycle(buffer)
		if f, ok := errors.AsType[*web.Problem](err); ok && f.Code == codeSignature && f != errUnsigned {
			s.tellSigned(h, false)
		}
		return s.refuse(r, err)
	}
	if !polled {
		s.tellSigned(h, true)
	}
	verdict, err := s.ingest(r.Context(), h, polled, buffer.Bytes())
	switch {
	case errors.Is(err, tracking.ErrBody), errors.Is(err, tracking.ErrEndpoint):
		return s.refuse(r, err)
	case err != nil: // Stripe sends the event again; the inbox may still read the buffer
		r.Failed(err)
		return web.ErrUnavailable
	}
	s.recycle(buffer)
	s.o.Tell(r.Context(), h.Hook, polled, verdict)
	web.Send(w, http.StatusOK, verdict)
	return nil
}

// Tell passes the verdict on a stored event to Taken, and logs an event that was not applied.
func (o *Options) Tell(ctx context.Context, h Hook, polled bool, v tracking.Verdict) {
	if o.Taken != nil {
		o.Taken(h, polled, v)
	}
	if v.Status == tracking.Quarantined || v.Status == tracking.Refused {
		o.Log.WarnContext(ctx, "httpapi: an event was stored but not applied", "route", h.Path, "event", web.Shown(v.Event), "status",
			string(v.Status), "reason", web.Shown(v.Reason))
	}
}

// tellSigned reports whether Stripe's signature of an event was valid.
func (s *server) tellSigned(h *hook, good bool) {
	if s.o.Signed != nil {
		s.o.Signed(h.Path, good)
	}
}

// ingest ingests the event. polled means that a poller on another machine sent it.
func (s *server) ingest(ctx context.Context, h *hook, polled bool, body []byte) (v tracking.Verdict, err error) {
	from := tracking.Origin{Connect: h.Connect, Source: tracking.FromWebhook}
	if polled {
		from.Source = tracking.FromPoll
		if body, err = s.o.Poll.Event(ctx, body, h.Connect); err != nil {
			return v, err
		}
	}
	return s.o.Inbox.Ingest(ctx, body, from)
}

// refuse logs why an event was rejected, without any part of the body.
func (s *server) refuse(r *web.Request, err error) error {
	p, _ := r.ProblemOf(err)
	text := p.Error()
	if errors.Is(err, tracking.ErrBody) {
		text = tracking.ErrBody.Error()
	}
	r.Server.Warn(r.Request, r.Pattern+" "+p.Code+" "+text, "httpapi: rejected an event", "route", r.Pattern, "code", p.Code, "error", text)
	return err
}
