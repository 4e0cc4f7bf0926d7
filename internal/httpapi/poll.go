package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

// PollPath is the path to which pollers on other machines send their marks.
const PollPath = "/hooks/poll"

// Poll lets pollers on other machines post events to every hook, and their marks to PollPath.
type Poll struct {
	Given secret.Text // signs their requests; zero: no pollers

	// Event reads the event that the body names from Stripe, so a poller cannot invent events. Mark stores
	// a poller's progress. Both are required with Given.
	Event func(ctx context.Context, body []byte, connect bool) ([]byte, error)
	Mark  func(ctx context.Context, stripeAccount string, p tracking.PollState) error
}

// A Mark is the body of a request to PollPath. It reports a poller's progress with a Stripe
// account.
type Mark struct {
	StripeAccount string    `json:"stripe_account"`
	Through       time.Time `json:"verified_through,omitzero"` // every event before it is stored here
	Checked       time.Time `json:"checked,omitzero"`          // when the last round ran
	Next          time.Time `json:"next,omitzero"`
	Quiet         int       `json:"quiet,omitempty"` // rounds in a row without a new event
	Error         string    `json:"error,omitempty"` // why the last round failed
	Thin          bool      `json:"thin,omitempty"`  // the round knew of the account's thin events
}

// signed reads the body into b, and returns the index of the secret that signed it. If no secret did, it
// returns errUnsigned or a Problem with codeSignature.
func (s *server) signed(b *bytes.Buffer, w http.ResponseWriter, r *web.Request, secrets []secret.Text,
	most int64) (which int, err error) {
	header := r.Header.Get("Stripe-Signature")
	if header == "" {
		return 0, errUnsigned
	}
	check, err := s.o.Verify(header, secrets, s.o.Now())
	if err == nil { // otherwise, do not read a stranger's body
		if err := web.ReadBody(b, w, r.Request, most); err != nil {
			return 0, err
		}
		which, err = check(b.Bytes())
	}
	if err != nil {
		return 0, &web.Problem{Status: http.StatusBadRequest, Code: codeSignature, Title: titleSignature, Detail: err.Error()}
	}
	return which, nil
}

func (s *server) servePoll(w http.ResponseWriter, r *web.Request) error {
	if r.Method != http.MethodPost {
		return web.WrongMethod(w, http.MethodPost)
	}
	var body bytes.Buffer
	var m Mark
	_, err := s.signed(&body, w, r, []secret.Text{s.o.Poll.Given}, web.MaxForm)
	if err == nil {
		err = web.Decode(body.Bytes(), &m)
	}
	if err == nil && !idForm.MatchString(m.StripeAccount) {
		err = field.Wrong("stripe_account", "must be a Stripe account ID, acct_…")
	}
	if err == nil && m.Quiet < 0 {
		err = field.Wrong("quiet", "must be zero or more")
	}
	if err != nil {
		return s.refuse(r, err)
	}
	err = s.o.Poll.Mark(r.Context(), m.StripeAccount, tracking.PollState{Through: m.Through.UTC(), Checked: m.Checked.UTC(),
		Next: m.Next.UTC(), Quiet: m.Quiet, Error: web.Shown(m.Error), Thin: m.Thin})
	if err == nil {
		web.Send(w, http.StatusOK, m)
	}
	return err
}
