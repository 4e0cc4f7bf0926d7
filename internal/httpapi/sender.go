package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

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
		if _, err := checkAddress(address); err != nil {
			return nil, fmt.Errorf("the address of an endpoint: %w", err)
		}
	}
	o.HTTP = plain(o.HTTP)
	return &Sender{o}, nil
}

// Send puts the event to the endpoint for connected accounts, or to the other one. It returns
// nil after a 2xx: the event is durable there. Any other answer is a StatusError.
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
