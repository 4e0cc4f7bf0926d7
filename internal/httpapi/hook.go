package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// serveHook takes an event. The answer 200 means: it is durable. After any other answer Stripe
// sends it again.
func (s *server) serveHook(w http.ResponseWriter, r *http.Request, h *hook) error {
	if r.Method != http.MethodPost {
		return wrongMethod(w, http.MethodPost)
	}
	if r.Header.Get("Stripe-Signature") == "" { // before the body of a caller without a secret is read
		return s.refuse(r, errUnsigned)
	}
	buffer := s.buffer()
	err := readInto(buffer, w, r, maxEvent)
	if err != nil {
		s.recycle(buffer)
		return s.refuse(r, err)
	}
	from, err := s.verify(r, h, buffer.Bytes())
	if err != nil {
		s.recycle(buffer)
		return s.refuse(r, err)
	}
	verdict, err := s.o.Inbox.Ingest(r.Context(), buffer.Bytes(), from)
	switch {
	case errors.Is(err, tracking.ErrBody), errors.Is(err, tracking.ErrEndpoint):
		return s.refuse(r, err)
	case err != nil: // Stripe sends it again after any error; the buffer may still be read
		s.logFailure(r, err)
		return errUnavailable
	}
	s.recycle(buffer)
	if verdict.Status == tracking.Quarantined || verdict.Status == tracking.Refused {
		s.o.Log.Warn("httpapi: an event was not taken as it is", "route", routeOf(r), "event", shown(verdict.Event),
			"status", string(verdict.Status), "reason", shown(verdict.Reason))
	}
	send(w, http.StatusOK, verdict)
	return nil
}

var errUnsigned = &refusal{http.StatusBadRequest, "signature", "there is no Stripe-Signature"}

// verify returns the origin of the event, by the secret of its signature.
func (s *server) verify(r *http.Request, h *hook, body []byte) (tracking.Origin, error) {
	which, err := s.o.Verify(r.Header.Get("Stripe-Signature"), body, h.Secrets, s.o.Now())
	if err != nil {
		return tracking.Origin{}, refusef(http.StatusBadRequest, "signature", "%v", err)
	}
	from := tracking.Origin{Connect: h.Connect, Source: tracking.FromWebhook}
	if which == h.poll {
		from.Source = tracking.FromPoll
	}
	return from, nil
}

// refuse logs a refused event with its reason, without parts of the body.
func (s *server) refuse(r *http.Request, err error) error {
	_, f, _ := faultOf(err)
	if errors.Is(err, tracking.ErrBody) {
		f.Text = tracking.ErrBody.Error()
	}
	s.o.Log.Warn("httpapi: refused an event", "route", routeOf(r), "remote", r.RemoteAddr, "code", f.Code, "error", f.Text)
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

const sendTimeout = 30 * time.Second // for an event to be taken

// SenderOptions say where a Sender sends, and how it signs.
type SenderOptions struct {
	// The whole addresses of the two endpoints, such as http://127.0.0.1:8080/webhooks/stripe.
	// One may be missing.
	Platform, Connect string
	// Sign returns the Stripe-Signature of a body for the endpoint, as of now.
	Sign func(connect bool, body []byte) string
	HTTP *http.Client // nil: a client without a proxy
}

// A Sender puts events to the endpoints of a server, signed. It is safe for concurrent use.
type Sender struct{ o SenderOptions }

// NewSender returns a Sender. It sends nothing yet.
func NewSender(o SenderOptions) (*Sender, error) {
	if o.Sign == nil || (o.Platform == "" && o.Connect == "") {
		return nil, errors.New("a sender needs an endpoint, and something to sign with")
	}
	for _, address := range []string{o.Platform, o.Connect} {
		if address == "" {
			continue
		}
		if err := checkAddress(address); err != nil {
			return nil, fmt.Errorf("the address of an endpoint: %w", err)
		}
	}
	o.HTTP = plain(o.HTTP)
	return &Sender{o}, nil
}

// Send posts the event to the endpoint for connected accounts if connect is set, and to the one for
// our own account otherwise. It returns nil after a 2xx: the event is durable there. Any other
// answer is a StatusError.
func (s *Sender) Send(ctx context.Context, connect bool, body []byte) error {
	address, name := s.o.Platform, "for our own account"
	if connect {
		address, name = s.o.Connect, "for connected accounts"
	}
	if address == "" {
		return fmt.Errorf("there is no endpoint %s", name)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", jsonType)
	r.Header.Set("Stripe-Signature", s.o.Sign(connect, body))
	response, err := s.o.HTTP.Do(r)
	if err != nil {
		return noAnswer(address, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusRequestEntityTooLarge { // nor will it ever be taken
		return fmt.Errorf("%w: %w", tracking.ErrBody, readFault(response))
	}
	if response.StatusCode/100 != 2 {
		return readFault(response)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxFault)) // for the connection to be used again
	return nil
}
