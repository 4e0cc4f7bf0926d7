package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
)

const (
	remoteTimeout = time.Minute
	remotePage    = "1000"  // rows of a list
	maxAnswer     = 8 << 20 // bytes
)

// A Remote is the poller.Ledger of a server elsewhere. It reads with an API key of scope read, and
// posts events and marks signed with the poll secret.
type Remote struct {
	base        string
	key, secret secret.Text
	now         func() time.Time
	client      *http.Client
}

// NewRemote returns the Remote at the base, such as https://pay.example.
func NewRemote(base string, key, pollSecret secret.Text, now func() time.Time) *Remote {
	return &Remote{strings.TrimRight(base, "/"), key, pollSecret, now, &http.Client{Timeout: remoteTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Ingest implements poller.Ledger. It returns ErrBody if the server does not accept the body as an
// event.
func (r *Remote) Ingest(ctx context.Context, body []byte, from tracking.Origin) (v tracking.Verdict, err error) {
	path := HookPath
	if from.Connect {
		path = ConnectPath
	}
	return v, r.do(ctx, http.MethodPost, path, body, &v)
}

func (r *Remote) SavePoll(ctx context.Context, stripeAccount string, p tracking.PollState) error {
	body, err := json.Marshal(httpapi.Mark{StripeAccount: stripeAccount, Through: p.Through, Checked: p.Checked, Next: p.Next,
		Quiet: p.Quiet, Error: p.Error, Thin: p.Thin})
	if err != nil {
		return err
	}
	return r.do(ctx, http.MethodPost, httpapi.PollPath, body, nil)
}

// Apply implements poller.Ledger. It always returns an error, because only the server compares
// objects.
func (r *Remote) Apply(context.Context, string, tracking.Object) (bool, error) {
	return false, errors.New("only the server can compare objects")
}

func (r *Remote) ConnectedAccounts(ctx context.Context) iter.Seq2[*tracking.ConnectedAccount, error] {
	type row struct {
		tracking.ConnectedAccount
		tracking.PollState           // beside the account, where a ConnectedAccount has it inside
		Merchant           string    `json:"id"`
		Created            time.Time `json:"created_at"`
		Updated            time.Time `json:"updated_at"`
	}
	return sequence.Map(pages[row](ctx, r, "/v1/merchants", url.Values{}), func(x row) (*tracking.ConnectedAccount, error) {
		a := &x.ConnectedAccount
		a.Polled, a.Merchant, a.Created, a.Updated = x.PollState, x.Merchant, x.Created, x.Updated
		return a, nil
	})
}

// Events implements poller.Ledger, for queries with a From and a To, without a subscription.
func (r *Remote) Events(ctx context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error] {
	query := url.Values{"from": {q.From.UTC().Format(time.RFC3339Nano)}, "to": {q.To.UTC().Format(time.RFC3339Nano)}}
	if q.StripeAccount != "" {
		query.Set("stripe_account", q.StripeAccount)
	}
	return pages[tracking.EventRow](ctx, r, "/v1/events", query)
}

// pages yields the rows of a list, to its end.
func pages[T any](ctx context.Context, r *Remote, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query.Set("limit", remotePage)
		for {
			var page struct {
				Data []T    `json:"data"`
				More bool   `json:"has_more"`
				Next string `json:"next_cursor"`
			}
			if err := r.do(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &page); err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, row := range page.Data {
				if !yield(row, nil) {
					return
				}
			}
			if !page.More || page.Next == "" {
				return
			}
			query.Set("cursor", page.Next)
		}
	}
}

// do sends the request, a signed one with a body, and reads the answer into the value, unless nil.
func (r *Remote) do(ctx context.Context, method, path string, body []byte, into any) error {
	q, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body == nil {
		q.Header.Set("Authorization", "Bearer "+r.key.Reveal())
	} else {
		q.Header.Set("Stripe-Signature", event.Sign(body, r.secret, r.now()))
	}
	a, err := r.client.Do(q)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s at %s: %w", q.URL.Path, q.URL.Host, e.Err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s at %s: %w", q.URL.Path, q.URL.Host, err)
	case a.StatusCode == http.StatusOK && (into == nil || len(text) <= maxAnswer && json.Unmarshal(text, into) == nil):
		return nil
	}
	var f struct{ Detail, Title, Code string }
	if json.Unmarshal(text, &f) != nil || a.StatusCode == http.StatusOK {
		f.Detail = "the answer did not come from duesday serve"
	}
	err = fmt.Errorf("%s at %s: status %d: %s", q.URL.Path, q.URL.Host, a.StatusCode, secret.Short(cmp.Or(f.Detail, f.Title, f.Code)))
	if f.Code == "body" || a.StatusCode == http.StatusRequestEntityTooLarge {
		err = fmt.Errorf("%w: %w", tracking.ErrBody, err)
	}
	return err
}
