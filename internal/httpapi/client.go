package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

const (
	callTimeout = 65 * time.Second // for an answer, or for each next part of a list: longer than a server takes
	maxAnswer   = 16 << 20         // bytes of an answer, or of a line of a list
	dialTimeout = 5 * time.Second
)

// A Client has the methods of the tracking.Service behind a server elsewhere, with the same errors
// by errors.Is and errors.As. Any other error is a StatusError, or there was no answer: the outcome
// of the request is then unknown. It is safe for concurrent use.
type Client struct {
	base    string // without a slash at the end
	key     secret.Text
	http    *http.Client
	timeout time.Duration
}

// NewClient returns a client of the server at the base address, such as
// http://127.0.0.1:8080. It sends nothing yet. With no http.Client it has one of its own,
// which uses no proxy. No redirect is followed, since the key would go with it.
func NewClient(base string, key secret.Text, h *http.Client) (*Client, error) {
	if err := checkAddress(base); err != nil {
		return nil, fmt.Errorf("the server's address: %w", err)
	}
	if key.IsZero() {
		return nil, errors.New("the API key of the server is needed")
	}
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: plain(h), timeout: callTimeout}, nil
}

// checkAddress wants an http or https address and nothing in it but a place. Its errors do
// not repeat the address: it may have a password.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return errors.New("want http://HOST:PORT or https://HOST, without user and query")
	}
	return nil
}

func plain(h *http.Client) *http.Client {
	if h == nil {
		dialer := net.Dialer{Timeout: dialTimeout}
		h = &http.Client{Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, MaxIdleConns: 256, MaxIdleConnsPerHost: 256,
			IdleConnTimeout: idleTimeout / 2, DisableCompression: true, // given up before the server does
		}}
	}
	own := *h
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// CreatePurchase does the same as the method of tracking.Service. Without an answer the order may
// have been carried out: repeat it with the same key.
func (c *Client) CreatePurchase(ctx context.Context, o tracking.Order) (*tracking.Created, error) {
	if !idempotencyForm.MatchString(o.Key) {
		return nil, field.Wrong("key", "want 1 to 255 printable ASCII characters")
	}
	f, err := call[createdForm](ctx, c, http.MethodPost, "/v1/purchases", o, idempotencyHeader, o.Key)
	if err != nil {
		return nil, err
	}
	return f.created()
}

// Purchases does the same as the method of tracking.Service.
func (c *Client) Purchases(ctx context.Context, account string) iter.Seq2[*tracking.Purchase, error] {
	return list(ctx, c, "/v1/purchases?"+url.Values{"account": {account}}.Encode(), same[tracking.Purchase])
}

// Timeline does the same as the method of tracking.Service.
func (c *Client) Timeline(ctx context.Context, purchase string) (*tracking.Timeline, error) {
	return one[tracking.Timeline](ctx, c, http.MethodGet, "/v1/purchases/%s", purchase)
}

// Payments does the same as the method of tracking.Service.
func (c *Client) Payments(ctx context.Context, account string) iter.Seq2[*tracking.Payment, error] {
	return list(ctx, c, "/v1/payments?"+url.Values{"account": {account}}.Encode(), same[tracking.Payment])
}

// Payment does the same as the method of tracking.Service.
func (c *Client) Payment(ctx context.Context, stripeAccount, id string) (*tracking.Payment, error) {
	return one[tracking.Payment](ctx, c, http.MethodGet, "/v1/payments/%s/%s", stripeAccount, id)
}

// Events does the same as the method of tracking.Service.
func (c *Client) Events(ctx context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error] {
	values := url.Values{"stripe_account": {q.StripeAccount}, "subscription": {q.Subscription},
		"from": {formatInstant(q.From)}, "to": {formatInstant(q.To)}}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Whole {
		values.Set("whole", "true")
	}
	maps.DeleteFunc(values, func(_ string, v []string) bool { return v[0] == "" })
	return list(ctx, c, "/internal/events?"+values.Encode(), func(r *tracking.EventRow) tracking.EventRow { return *r })
}

func formatInstant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Waiting does the same as the method of tracking.Service.
func (c *Client) Waiting(ctx context.Context) iter.Seq2[*tracking.Event, error] {
	return list(ctx, c, "/internal/events/waiting", (*eventForm).event)
}

// Event does the same as the method of tracking.Service.
func (c *Client) Event(ctx context.Context, id string) (*tracking.Event, error) {
	f, err := one[eventForm](ctx, c, http.MethodGet, "/internal/events/%s", id)
	if err != nil {
		return nil, err
	}
	return f.event(), nil
}

// Rebuild does the same as the method of tracking.Service.
func (c *Client) Rebuild(ctx context.Context, stripeAccount string) (*tracking.Rebuilt, error) {
	return one[tracking.Rebuilt](ctx, c, http.MethodGet, "/internal/accounts/%s/rebuild", stripeAccount)
}

// Replay does the same as the method of tracking.Service.
func (c *Client) Replay(ctx context.Context, id string) (tracking.Verdict, error) {
	v, err := one[tracking.Verdict](ctx, c, http.MethodPost, "/internal/events/%s/replay", id)
	if err != nil {
		return tracking.Verdict{}, err
	}
	return *v, nil
}

// ConnectedAccounts does the same as the method of tracking.Service.
func (c *Client) ConnectedAccounts(ctx context.Context) iter.Seq2[*tracking.ConnectedAccount, error] {
	return list(ctx, c, "/internal/accounts", same[tracking.ConnectedAccount])
}

// Register does the same as the method of tracking.Service.
func (c *Client) Register(ctx context.Context, account, stripeAccount string) (*tracking.ConnectedAccount, error) {
	return call[tracking.ConnectedAccount](ctx, c, http.MethodPost, "/internal/accounts",
		registerForm{account, stripeAccount})
}

// SavePoll does the same as the method of tracking.Service.
func (c *Client) SavePoll(ctx context.Context, stripeAccount string, p tracking.PollState) error {
	if !idForm.MatchString(stripeAccount) {
		return tracking.ErrUnregistered
	}
	_, err := call[doneForm](ctx, c, http.MethodPut, "/internal/accounts/"+stripeAccount+"/poll", p)
	return err
}

// Apply does the same as the method of tracking.Service.
func (c *Client) Apply(ctx context.Context, at string, o tracking.Object) (changed bool, err error) {
	f, err := call[appliedForm](ctx, c, http.MethodPost, "/internal/objects", applyForm{at, o})
	if err != nil {
		return false, err
	}
	return f.Changed, nil
}

// Jobs does the same as the method of tracking.Service.
func (c *Client) Jobs(ctx context.Context) iter.Seq2[tracking.WaitingJob, error] {
	return list(ctx, c, "/internal/jobs", func(j *tracking.WaitingJob) tracking.WaitingJob { return *j })
}

// ReplayJob does the same as the method of tracking.Service.
func (c *Client) ReplayJob(ctx context.Context, id string) error {
	_, err := call[doneForm](ctx, c, http.MethodPost, "/internal/jobs/replay", jobForm{id})
	return err
}

func same[T any](v *T) *T { return v }

// one asks for the one with the ids in the path. An id that fits in no path is nothing's.
func one[T any](ctx context.Context, c *Client, method, path string, ids ...any) (*T, error) {
	for _, id := range ids {
		if !idForm.MatchString(id.(string)) {
			return nil, fmt.Errorf("%.64q: %w", id, store.ErrNotFound)
		}
	}
	return call[T](ctx, c, method, fmt.Sprintf(path, ids...), nil)
}

// call sends one request and reads its one answer.
func call[T any](ctx context.Context, c *Client, method, path string, form any, header ...string) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.send(ctx, method, path, form, header...)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return nil, readFault(response)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, noAnswer(c.base, err)
	}
	v := new(T)
	if readView(v, func(view any) error { return json.Unmarshal(text, view) }) != nil {
		return nil, noAnswer(c.base, errors.New("the answer is none of this API"))
	}
	return v, nil
}

// send sends a request with the header, which is names and values.
func (c *Client) send(ctx context.Context, method, path string, form any, header ...string) (*http.Response, error) {
	var body io.Reader
	if form != nil {
		text, err := json.Marshal(View(form))
		if err != nil {
			return nil, fmt.Errorf("the request cannot be written: %w", err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key.Reveal())
	if form != nil {
		r.Header.Set("Content-Type", jsonType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, noAnswer(c.base, err)
	}
	return response, nil
}

// noAnswer is the error of a request whose outcome is unknown.
func noAnswer(base string, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // it repeats the request
		err = wrapped.Err
	}
	return fmt.Errorf("no answer of the server at %s: %w", base, err)
}
