package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/field"
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
	if verdict.Status == tracking.Quarantined || verdict.Status == tracking.Refused {
		s.o.Log.WarnContext(r.Context(), "httpapi: an event was not taken as it is", "route", routeOf(r), "event", shown(verdict.Event),
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

var errUnsigned = &refusal{http.StatusBadRequest, codeSignature, "there is no Stripe-Signature"}

// refuse logs a refused event with its reason, without parts of the body.
func (s *server) refuse(r *http.Request, err error) error {
	_, f, _ := faultOf(err)
	if errors.Is(err, tracking.ErrBody) {
		f.Text = tracking.ErrBody.Error()
	}
	s.warn(r, routeOf(r)+" "+f.Code, "httpapi: refused an event", "route", routeOf(r), "code", f.Code, "error", f.Text)
	return err
}

// PollPath takes the marks of pollers elsewhere.
const PollPath = "/hooks/poll"

// Poll is what pollers may do, by the secret that signs; they may post events to every hook.
type Poll struct {
	Own   secret.Text // of the poller in this process, which has its events from Stripe
	Given secret.Text // of pollers elsewhere, which may also post their marks to PollPath

	// Event returns the event that the body names as Stripe has it: a poller elsewhere tells of nothing
	// by itself. Mark takes how far a poller is with a Stripe account. Both are needed with Given.
	Event func(ctx context.Context, body []byte, connect bool) ([]byte, error)
	Mark  func(ctx context.Context, stripeAccount string, p tracking.PollState) error
}

// A Mark is the body of a request to PollPath: how far a poller is with a Stripe account.
type Mark struct {
	StripeAccount string    `json:"stripe_account"`
	Through       time.Time `json:"verified_through,omitzero"` // every event before it is stored here
	Checked       time.Time `json:"checked,omitzero"`          // the last round
	Next          time.Time `json:"next,omitzero"`
	Quiet         int       `json:"quiet,omitempty"` // rounds in a row without a new event
	Error         string    `json:"error,omitempty"` // why the last round failed
	Thin          bool      `json:"thin,omitempty"`  // the round knew of the account's thin events
}

// signed reads a signed body into the buffer, and returns the place of the secret that signed it. An
// errUnsigned, or a refusal with the code signature, says that none has.
func (s *server) signed(b *bytes.Buffer, w http.ResponseWriter, r *http.Request, secrets []secret.Text,
	most int64) (which int, err error) {
	header := r.Header.Get("Stripe-Signature")
	if header == "" {
		return 0, errUnsigned
	}
	check, err := s.o.Verify(header, secrets, s.o.Now())
	if err == nil { // else the body of a stranger is not read
		if err := readInto(b, w, r, most); err != nil {
			return 0, err
		}
		which, err = check(b.Bytes())
	}
	if err != nil {
		return 0, refusef(http.StatusBadRequest, codeSignature, "%v", err)
	}
	return which, nil
}

func (s *server) servePoll(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return wrongMethod(w, http.MethodPost)
	}
	var body bytes.Buffer
	var m Mark
	_, err := s.signed(&body, w, r, []secret.Text{s.o.Poll.Given}, maxForm)
	if err == nil {
		err = decodeStrict(body.Bytes(), &m)
	}
	if err == nil && !idForm.MatchString(m.StripeAccount) {
		err = field.Wrong("stripe_account", "must be the id of a Stripe account, acct_…")
	}
	if err == nil && m.Quiet < 0 {
		err = field.Wrong("quiet", "must be the number of rounds without a new event")
	}
	if err != nil {
		return s.refuse(r, err)
	}
	err = s.o.Poll.Mark(r.Context(), m.StripeAccount, tracking.PollState{Through: m.Through.UTC(), Checked: m.Checked.UTC(),
		Next: m.Next.UTC(), Quiet: m.Quiet, Error: shown(m.Error), Thin: m.Thin})
	if err == nil {
		send(w, http.StatusOK, m)
	}
	return err
}
