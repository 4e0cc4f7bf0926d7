package httpapi

import (
	"errors"
	"net/http"

	"github.com/duesday/duesday/internal/tracking"
)

// serveHook takes an event. The answer 200 means: it is durable. After any other answer Stripe
// sends it again.
func (s *server) serveHook(w http.ResponseWriter, r *http.Request, h *Hook) error {
	if r.Method != http.MethodPost {
		return wrongMethod(w, http.MethodPost)
	}
	header := r.Header.Get("Stripe-Signature")
	if header == "" {
		return s.refuse(r, errUnsigned)
	}
	check, err := s.o.Verify(header, h.Secrets, s.o.Now()) // before the body of a stranger is read
	if err != nil {
		return s.refuseSignature(r, h, err)
	}
	buffer := s.buffer()
	if err := readInto(buffer, w, r, maxEvent); err != nil {
		s.recycle(buffer)
		return s.refuse(r, err)
	}
	if _, err = check(buffer.Bytes()); err != nil {
		s.recycle(buffer)
		return s.refuseSignature(r, h, err)
	}
	if s.o.Signed != nil {
		s.o.Signed(h.Path, true)
	}
	verdict, err := s.o.Inbox.Ingest(r.Context(), buffer.Bytes(),
		tracking.Origin{Connect: h.Connect, Source: tracking.FromWebhook})
	switch {
	case errors.Is(err, tracking.ErrBody), errors.Is(err, tracking.ErrEndpoint):
		return s.refuse(r, err)
	case err != nil: // Stripe sends it again after any error; the buffer may still be read
		s.logFailure(r, err)
		return errUnavailable
	}
	s.recycle(buffer)
	if verdict.Status == tracking.Quarantined || verdict.Status == tracking.Refused {
		s.o.Log.WarnContext(r.Context(), "httpapi: an event was not taken as it is", "route", routeOf(r), "event", shown(verdict.Event),
			"status", string(verdict.Status), "reason", shown(verdict.Reason))
	}
	send(w, http.StatusOK, verdict)
	return nil
}

var errUnsigned = &refusal{http.StatusBadRequest, "signature", "there is no Stripe-Signature"}

func (s *server) refuseSignature(r *http.Request, h *Hook, err error) error {
	if s.o.Signed != nil {
		s.o.Signed(h.Path, false)
	}
	return s.refuse(r, refusef(http.StatusBadRequest, "signature", "%v", err))
}

// refuse logs a refused event with its reason, without parts of the body.
func (s *server) refuse(r *http.Request, err error) error {
	_, f, _ := faultOf(err)
	if errors.Is(err, tracking.ErrBody) {
		f.Text = tracking.ErrBody.Error()
	}
	s.warn(r, routeOf(r)+" "+f.Code, "httpapi: refused an event", "route", routeOf(r), "code", f.Code, "error", f.Text)
	return err
}
