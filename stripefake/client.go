package stripefake

import (
	"bytes"
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

// A Control controls a fake over HTTP, as the methods of Fake do.
type Control struct {
	Base string       // http://127.0.0.1:12111
	HTTP *http.Client // nil: http.DefaultClient
}

// do sends a control request, and decodes the answer into out unless that is nil.
func (c Control) do(ctx context.Context, method, path string, in, out any) error {
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
		return fmt.Errorf("%s %s: the answer is not the fake's: %w", method, path, err)
	}
	return nil
}

const maxAnswer = 16 << 20 // bytes

// send returns the response, which is a 200.
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
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(r)
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

// Identity asks who is there.
func (c Control) Identity(ctx context.Context) (id Identity, err error) {
	if err = c.do(ctx, http.MethodGet, "", nil, &id); err == nil && id.Fake != "stripefake" {
		err = errors.New("what answers is no fake of Stripe")
	}
	return id, err
}

// Now returns the fake's clock.
func (c Control) Now(ctx context.Context) (time.Time, error) {
	return c.clock(ctx, http.MethodGet, nil)
}

// SetNow sets the fake's clock.
func (c Control) SetNow(ctx context.Context, t time.Time) (time.Time, error) {
	return c.clock(ctx, http.MethodPost, clockForm{Now: &t})
}

// Advance moves the fake's clock, and returns it.
func (c Control) Advance(ctx context.Context, d time.Duration) (time.Time, error) {
	return c.clock(ctx, http.MethodPost, clockForm{Advance: new(duration(d))})
}

func (c Control) clock(ctx context.Context, method string, in any) (time.Time, error) {
	var out clockForm
	err := c.do(ctx, method, "clock", in, &out)
	if err == nil && out.Now == nil {
		err = errors.New("the answer is not the fake's: it has no time")
	}
	if err != nil {
		return time.Time{}, err
	}
	return *out.Now, nil
}

// Faults returns the faults in effect.
func (c Control) Faults(ctx context.Context) (Faults, error) {
	var out faultsForm
	err := c.do(ctx, http.MethodGet, "faults", nil, &out)
	return out.over(Faults{}), err
}

// SetFaults replaces all faults.
func (c Control) SetFaults(ctx context.Context, f Faults) error {
	return c.do(ctx, http.MethodPost, "faults", formOfFaults(f), nil)
}

// Requests returns what was answered so far.
func (c Control) Requests(ctx context.Context) (list []Count, err error) {
	return list, c.do(ctx, http.MethodGet, "requests", nil, &list)
}

// Ledger reads the ledger. An error ends it.
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

// Authenticate is the customer of a payment intent or setup intent that requires it.
func (c Control) Authenticate(ctx context.Context, id string, ok bool) error {
	return c.do(ctx, http.MethodPost, "intents/"+id+"/authenticate", okForm{&ok}, nil)
}

// Finish ends the processing of a payment intent.
func (c Control) Finish(ctx context.Context, id string, ok bool) error {
	return c.do(ctx, http.MethodPost, "intents/"+id+"/finish", okForm{&ok}, nil)
}

// FinishRefund is the bank's answer to a refund.
func (c Control) FinishRefund(ctx context.Context, id string, ok bool) error {
	return c.do(ctx, http.MethodPost, "refunds/"+id+"/finish", okForm{&ok}, nil)
}

// Dispute has a payment intent disputed, and returns the dispute's id.
func (c Control) Dispute(ctx context.Context, intent, reason string) (string, error) {
	var out struct {
		ID string `json:"id"`
	}
	err := c.do(ctx, http.MethodPost, "disputes", disputeForm{Intent: intent, Reason: reason}, &out)
	return out.ID, err
}

// CloseDispute decides a dispute: won or lost.
func (c Control) CloseDispute(ctx context.Context, id, status string) error {
	return c.do(ctx, http.MethodPost, "disputes/"+id, disputeForm{Status: status}, nil)
}

// Connect connects an account to the platform; "": DefaultAccount.
func (c Control) Connect(ctx context.Context, id, platform string) error {
	return c.do(ctx, http.MethodPost, "accounts", accountForm{ID: id, Platform: platform}, nil)
}

// Disconnect has a connected account leave its platform.
func (c Control) Disconnect(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, "accounts/"+id+"/disconnect", struct{}{}, nil)
}

// SetVersion makes it the account's default version of the API.
func (c Control) SetVersion(ctx context.Context, id, version string) error {
	return c.do(ctx, http.MethodPost, "accounts/"+id, accountForm{Version: version}, nil)
}

// Revoke has the key answered 401 from now on.
func (c Control) Revoke(ctx context.Context, key string) error {
	return c.do(ctx, http.MethodPost, "keys/revoke", keyForm{key}, nil)
}

// Restore takes Revoke back.
func (c Control) Restore(ctx context.Context, key string) error {
	return c.do(ctx, http.MethodPost, "keys/restore", keyForm{key}, nil)
}

// Roll gives a webhook endpoint a new secret, and returns it.
func (c Control) Roll(ctx context.Context, endpoint string) (string, error) {
	var out struct {
		Secret string `json:"secret"`
	}
	err := c.do(ctx, http.MethodPost, "webhook_endpoints/"+endpoint+"/roll", struct{}{}, &out)
	return out.Secret, err
}

// Resend sends an event to all endpoints again, and returns how many these are.
func (c Control) Resend(ctx context.Context, event string) (int, error) {
	var out struct {
		Sent int `json:"sent"`
	}
	err := c.do(ctx, http.MethodPost, "events/"+event+"/resend", struct{}{}, &out)
	return out.Sent, err
}

// Flush tries every waiting webhook once, and returns how many wait still.
func (c Control) Flush(ctx context.Context) (int, error) {
	var out struct {
		Waiting int `json:"waiting"`
	}
	err := c.do(ctx, http.MethodPost, "webhooks/flush", struct{}{}, &out)
	return out.Waiting, err
}
