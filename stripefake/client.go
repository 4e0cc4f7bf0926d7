package stripefake

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
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// A Control is a client for the control API of a fake in another process. Use Do for the endpoints
// that no method of Control covers.
type Control struct {
	Base string       // the fake's URL: http://127.0.0.1:12111
	HTTP *http.Client // the default is http.DefaultClient
}

// Do sends a control request, such as POST "accounts" with the body {"id":"acct_1"}. The body is
// the JSON form of in, unless in is nil. Do decodes the response into out, unless out is nil. If
// the fake refuses the request, Do returns the fake's error.
func (c Control) Do(ctx context.Context, method, path string, in, out any) error {
	res, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, path, err)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: the reply is not from stripefake: %w", method, path, err)
	}
	return nil
}

const maxAnswer = 16 << 20 // bytes

// send returns the response if its status is 200, and otherwise the fake's error.
func (c Control) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Base, "/")+"/_fake/"+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		r.Header.Set("Content-Type", jsonType)
	}
	res, err := cmp.Or(c.HTTP, http.DefaultClient).Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	var told errorForm
	text, err := io.ReadAll(io.LimitReader(res.Body, api.MaxBody))
	if err == nil && json.Unmarshal(text, &told) == nil && told.Error != "" {
		return nil, errors.New(told.Error)
	}
	return nil, fmt.Errorf("%s %s: %s", method, path, res.Status)
}

// Identity returns the fake's API version, time and endpoints. It returns an error if the server at Base
// is not stripefake.
func (c Control) Identity(ctx context.Context) (id Identity, err error) {
	if err = c.Do(ctx, http.MethodGet, "", nil, &id); err == nil && id.Fake != "stripefake" {
		err = errors.New("the server at this address is not stripefake")
	}
	return id, err
}

// Now returns the current time of the fake's clock.
func (c Control) Now(ctx context.Context) (time.Time, error) {
	clock, err := c.Clock(ctx)
	return clock.Now, err
}

// Clock returns the time and speed of the fake's clock.
func (c Control) Clock(ctx context.Context) (Clock, error) { return c.clock(ctx, http.MethodGet, nil) }

// SetNow sets the fake's clock to t, as Fake.SetNow does, and returns the new time.
func (c Control) SetNow(ctx context.Context, t time.Time) (time.Time, error) {
	clock, err := c.clock(ctx, http.MethodPost, clockForm{Now: &t})
	return clock.Now, err
}

// Advance moves the fake's clock by d, as Fake.Advance does, and returns the new time.
func (c Control) Advance(ctx context.Context, d time.Duration) (time.Time, error) {
	clock, err := c.clock(ctx, http.MethodPost, clockForm{Advance: new(duration(d))})
	return clock.Now, err
}

// SetSpeed sets the speed of the fake's clock, as Fake.SetSpeed does.
func (c Control) SetSpeed(ctx context.Context, speed int) error {
	_, err := c.clock(ctx, http.MethodPost, clockForm{Speed: &speed})
	return err
}

func (c Control) clock(ctx context.Context, method string, in any) (out Clock, err error) {
	if err = c.Do(ctx, method, "clock", in, &out); err == nil && out.Now.IsZero() {
		err = errors.New("the server is not stripefake: its reply has no time")
	}
	return out, err
}

// Faults returns the current faults.
func (c Control) Faults(ctx context.Context) (Faults, error) {
	var f Faults
	err := c.Do(ctx, http.MethodGet, "faults", nil, formOf(&f))
	return f, err
}

// SetFaults replaces all faults with f, as Fake.SetFaults does.
func (c Control) SetFaults(ctx context.Context, f Faults) error {
	return c.Do(ctx, http.MethodPost, "faults", formOf(&f), nil)
}

// FailNext makes the next requests to an endpoint fail, as Fake.FailNext does.
func (c Control) FailNext(ctx context.Context, endpoint string, status int, code string, times int) error {
	return c.Do(ctx, http.MethodPost, "fail", failForm{endpoint, status, code, times}, nil)
}

// Requests returns the last 10,000 requests that the fake has answered, oldest first.
func (c Control) Requests(ctx context.Context) (list []Request, err error) {
	return list, c.Do(ctx, http.MethodGet, "requests", nil, &list)
}

// Counts returns the number of responses for each endpoint and status, sorted by both.
func (c Control) Counts(ctx context.Context) (list []Count, err error) {
	return list, c.Do(ctx, http.MethodGet, "counts", nil, &list)
}

// Ledger returns an iterator over the entries of the fake's ledger. If a request fails, the iterator yields
// the error and ends.
func (c Control) Ledger(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		res, err := c.send(ctx, http.MethodGet, "ledger", nil)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer res.Body.Close()
		for lines := json.NewDecoder(res.Body); ; {
			var e Entry
			switch err := lines.Decode(&e); {
			case err == io.EOF:
				return
			case err != nil:
				yield(Entry{}, fmt.Errorf("GET ledger: %w", err))
				return
			case !yield(e, nil):
				return
			}
		}
	}
}
