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
	Path    string        // such as /webhooks/stripe; no other route has it
	Connect bool          // events of connected accounts come to it
	Secrets []secret.Text // Stripe's valid signing secrets, any number of them
}

// A hook has all secrets: those of Stripe, then the given one of pollers.
type hook struct {
	Hook
	all []secret.Text
}

func (s *server) serveHook(h *hook) web.Handler {
	return func(w http.ResponseWriter, r *web.Request) error { return s.take(w, r, h) }
}

// take takes an event. The answer 200 says that it is durable; else Stripe sends it again.
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
	case err != nil: // Stripe sends it again after any error; the buffer may still be read
		r.Failed(err)
		return web.ErrUnavailable
	}
	s.recycle(buffer)
	s.o.Tell(r.Context(), h.Hook, polled, verdict)
	web.Send(w, http.StatusOK, verdict)
	return nil
}

// Tell passes an event that the inbox has accepted to Taken, and logs the event if it was not
// applied.
func (o *Options) Tell(ctx context.Context, h Hook, polled bool, v tracking.Verdict) {
	if o.Taken != nil {
		o.Taken(h, polled, v)
	}
	if v.Status == tracking.Quarantined || v.Status == tracking.Refused {
		o.Log.WarnContext(ctx, "httpapi: an event was stored but not applied", "route", h.Path, "event", web.Shown(v.Event), "status",
			string(v.Status), "reason", web.Shown(v.Reason))
	}
}

// tellSigned tells of a signature that was to be Stripe's.
func (s *server) tellSigned(h *hook, good bool) {
	if s.o.Signed != nil {
		s.o.Signed(h.Path, good)
	}
}

// ingest takes the event; polled: by a poller elsewhere.
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

// refuse logs a refused event with its reason, without parts of the body.
func (s *server) refuse(r *web.Request, err error) error {
	p, _ := r.ProblemOf(err)
	text := p.Error()
	if errors.Is(err, tracking.ErrBody) {
		text = tracking.ErrBody.Error()
	}
	r.Server.Warn(r.Request, r.Pattern+" "+p.Code+" "+text, "httpapi: refused an event", "route", r.Pattern, "code", p.Code, "error", text)
	return err
}
