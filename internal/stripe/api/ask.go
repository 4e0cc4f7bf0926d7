package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	sdk "github.com/stripe/stripe-go/v86"
)

// PageSize is the most that Stripe gives at once.
const PageSize = 100

// An asked is the answer to a request that is read as it was written, and not by the types of
// Stripe's library: those know one version of the API, and leave out what they do not know.
type asked struct{ sdk.APIResource }

// UnmarshalJSON implements json.Unmarshaler. All is in the last response.
func (*asked) UnmarshalJSON([]byte) error { return nil }

// Ask sends a request, and returns the answer as it was written. A key of "" is none. Its
// errors are those of the sender.
func (c *Client) Ask(ctx context.Context, method, path, at, key string, form url.Values) (json.RawMessage, http.Header, error) {
	params := &sdk.Params{Context: ctx, StripeAccount: Account(at)}
	if key != "" {
		params.IdempotencyKey = &key
	}
	var a asked
	service := c.SDK.V1Events // all services have the same way and key
	if err := service.B.CallRaw(method, path, service.Key, []byte(form.Encode()), params, &a); err != nil {
		return nil, nil, err
	}
	if a.LastResponse == nil {
		return nil, nil, Unusable("an answer", "it is empty")
	}
	return a.LastResponse.RawJSON, a.LastResponse.Header, nil
}

// A wholeList is where Stripe's library reads an answer into. The library trusts that a list
// has no null in it; and one without its data, or without a word on whether there is more, is
// no empty one.
type wholeList struct{ sdk.LastResponseSetter }

var errNotWhole = errors.New("a list that is not whole")

// UnmarshalJSON implements json.Unmarshaler.
func (w wholeList) UnmarshalJSON(raw []byte) error {
	var what struct {
		Object any             `json:"object"`
		Data   json.RawMessage `json:"data"`
		More   *bool           `json:"has_more"`
	}
	if json.Unmarshal(raw, &what) == nil { // else the library says what is wrong
		var data []json.RawMessage
		err := json.Unmarshal(what.Data, &data)
		isNull := func(x json.RawMessage) bool { return string(x) == "null" }
		if slices.ContainsFunc(data, isNull) || what.Object == "list" && (err != nil || data == nil || what.More == nil) {
			return errNotWhole
		}
	}
	return json.Unmarshal(raw, w.LastResponseSetter)
}
