package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

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
	s.o.Log.WarnContext(r.Context(), "httpapi: refused an event", "route", routeOf(r), "remote", r.RemoteAddr, "code", f.Code, "error", f.Text)
	return err
}

func (s *server) buffer() *bytes.Buffer {
	if b, ok := s.bodies.Get().(*bytes.Buffer); ok {
		return b
	}
	return new(bytes.Buffer)
}

// recycle keeps an unused buffer for the next event, unless a large event has grown it.
func (s *server) recycle(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		b.Reset()
		s.bodies.Put(b)
	}
}

// readInto reads the body of a request, whole or not at all.
func readInto(b *bytes.Buffer, w http.ResponseWriter, r *http.Request, most int64) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refusef(http.StatusUnsupportedMediaType, "encoding", "the body is encoded (%s): want it plain", e)
	}
	if r.ContentLength > most {
		return tooLarge(w, most)
	}
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, most)); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return tooLarge(w, most)
		}
		return refusef(http.StatusBadRequest, "broken", "the body broke off")
	}
	return nil
}

// tooLarge has the connection closed: the rest of the body is not waited for.
func tooLarge(w http.ResponseWriter, most int64) error {
	w.Header().Set("Connection", "close")
	return refusef(http.StatusRequestEntityTooLarge, "too_large", "the body is larger than %d bytes", most)
}
