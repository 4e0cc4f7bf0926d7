package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// A Hook is an endpoint for Stripe's events.
type Hook struct {
	Path    string        // such as /webhooks/stripe; no other route has it
	Connect bool          // events of connected accounts come to it
	Secrets []secret.Text // Stripe's valid signing secrets, any number of them
}

// A hook has all secrets: those of Stripe, then that of the own poller, then the given one.
type hook struct {
	Hook
	all    []secret.Text
	closed bool // to everybody outside
}

func newHook(h Hook, p *Poll) *hook {
	return &hook{h, slices.Concat(h.Secrets, []secret.Text{p.Own, p.Given}), len(h.Secrets) == 0 && !p.Own.IsZero() &&
		p.Given.IsZero()}
}

// serveHook takes an event. The answer 200 says that it is durable; else Stripe sends it again.
func (s *server) serveHook(w http.ResponseWriter, r *http.Request, h *hook) error {
	if r.Method != http.MethodPost {
		return wrongMethod(w, http.MethodPost)
	}
	buffer := s.buffer()
	which, err := s.signed(buffer, w, r, h.all, maxEvent)
	by := which - len(h.Secrets) // less than 0: Stripe
	if err != nil {
		s.recycle(buffer)
		if h.closed {
			return errNoRoute
		}
		if f, ok := errors.AsType[*refusal](err); ok && f.code == codeSignature && f != errUnsigned {
			s.tellSigned(h, false)
		}
		return s.refuse(r, err)
	}
	if by < 0 {
		s.tellSigned(h, true)
	}
	verdict, err := s.ingest(r.Context(), h, by, buffer.Bytes())
	switch {
	case errors.Is(err, tracking.ErrBody), errors.Is(err, tracking.ErrEndpoint):
		return s.refuse(r, err)
	case err != nil: // Stripe sends it again after any error; the buffer may still be read
		s.logFailure(r, err)
		return errUnavailable
	}
	s.recycle(buffer)
	if s.o.Taken != nil {
		s.o.Taken(h.Hook, by >= byOwnPoller, verdict)
	}
	if verdict.Status == tracking.Quarantined || verdict.Status == tracking.Refused {
		s.o.Log.WarnContext(r.Context(), "httpapi: an event was stored but not applied", "route", routeOf(r), "event", shown(verdict.Event),
			"status", string(verdict.Status), "reason", shown(verdict.Reason))
	}
	send(w, http.StatusOK, verdict)
	return nil
}

// tellSigned tells of a signature that was to be Stripe's.
func (s *server) tellSigned(h *hook, good bool) {
	if s.o.Signed != nil {
		s.o.Signed(h.Path, good)
	}
}

const (
	byOwnPoller   = 0
	byGivenPoller = 1
)

// ingest takes the event by the secret's place behind those of Stripe.
func (s *server) ingest(ctx context.Context, h *hook, by int, body []byte) (v tracking.Verdict, err error) {
	from := tracking.Origin{Connect: h.Connect, Source: tracking.FromWebhook}
	if by >= byOwnPoller {
		from.Source = tracking.FromPoll
	}
	if by == byGivenPoller {
		if body, err = s.o.Poll.Event(ctx, body, h.Connect); err != nil {
			return v, err
		}
	}
	return s.o.Inbox.Ingest(ctx, body, from)
}

var errUnsigned = &refusal{http.StatusBadRequest, codeSignature, "the Stripe-Signature header is missing"}

// refuse logs a refused event with its reason, without parts of the body.
func (s *server) refuse(r *http.Request, err error) error {
	_, f, _ := faultOf(err)
	if errors.Is(err, tracking.ErrBody) {
		f.Text = tracking.ErrBody.Error()
	}
	s.warn(r, routeOf(r)+" "+f.Code+" "+f.Text, "httpapi: refused an event", "route", routeOf(r), "code", f.Code, "error", f.Text)
	return err
}
