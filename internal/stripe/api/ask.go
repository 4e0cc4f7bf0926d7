package api

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"
)

// pageSize is the longest page that Stripe gives.
const pageSize = "100"

// rawAnswer receives an answer as Stripe wrote it. The types of Stripe's library know one version
// of the API and leave out unknown members.
type rawAnswer struct{ sdk.APIResource }

// UnmarshalJSON implements json.Unmarshaler. The text is in the last response.
func (*rawAnswer) UnmarshalJSON([]byte) error { return nil }

// Ask sends a request and returns Stripe's answer unchanged, or an *Error. If key is empty, the
// request has no idempotency key.
func (c *Client) Ask(ctx context.Context, method, path, at, key string,
	form url.Values) (json.RawMessage, http.Header, error) {
	params := Params(at, key)
	params.Context = ctx
	if isV2(path) {
		params.StripeContext, params.StripeAccount = params.StripeAccount, nil
	}
	var a rawAnswer
	service := c.SDK.V1Events // all services share one backend and one API key
	if err := service.B.CallRaw(method, path, service.Key, []byte(form.Encode()), &params, &a); err != nil {
		return nil, nil, err
	}
	if a.LastResponse == nil {
		return nil, nil, Unusable("answer", "Stripe returned an empty answer")
	}
	return a.LastResponse.RawJSON, a.LastResponse.Header, nil
}

func isV2(path string) bool { return strings.HasPrefix(path, "/v2/") }

// Get fetches one object.
func (c *Client) Get(ctx context.Context, at, path string, query url.Values) (json.RawMessage, error) {
	raw, _, err := c.Ask(ctx, http.MethodGet, path, at, "", query)
	return raw, err
}

// Rows yields the objects on all pages of a list, unchanged. An error comes last. If answered is
// not nil, Rows calls it with the header of the first page. It yields an error if an answer is not
// a list, or if Stripe reports another page that Rows cannot request. Version 2 of the API returns
// the address of the next page, and Rows uses only its query.
func (c *Client) Rows(ctx context.Context, at, path string, query url.Values,
	answered func(http.Header)) iter.Seq2[json.RawMessage, error] {
	v2, link := isV2(path), "starting_after"
	if v2 {
		link = "page"
	}
	return func(yield func(json.RawMessage, error) bool) {
		query := maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set("limit", pageSize)
		for {
			raw, header, err := c.Ask(ctx, http.MethodGet, path, at, "", query)
			var list struct {
				Object string            `json:"object"`
				Data   []json.RawMessage `json:"data"`
				More   *bool             `json:"has_more"`
				Next   string            `json:"next_page_url"`
			}
			if err == nil && (json.Unmarshal(raw, &list) != nil || list.Data == nil ||
				!v2 && (list.Object != "list" || list.More == nil)) {
				err = Unusable("list", "Stripe returned an incomplete list")
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if answered != nil {
				answered(header)
				answered = nil
			}
			last := ""
			for _, row := range list.Data {
				if last, err = IDIn(row); err != nil {
					yield(nil, err)
					return
				}
				if !yield(row, nil) {
					return
				}
			}
			if v2 && list.Next == "" || !v2 && !*list.More {
				return
			}
			next := url.Values{}
			if !v2 {
				next = maps.Clone(query)
				next.Set(link, last)
			} else if u, err := url.Parse(list.Next); err == nil {
				next = u.Query()
			}
			if last == "" || next.Get(link) == query.Get(link) {
				yield(nil, Unusable("list", "Stripe reports another page, but no usable link to it"))
				return
			}
			query = next
		}
	}
}

// IDIn returns the ID of an object, or an error if the object has no ID.
func IDIn(raw json.RawMessage) (string, error) {
	var o struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &o) != nil || !IsID(o.ID, "") {
		return "", Unusable("list", "Stripe returned an object without an ID")
	}
	return o.ID, nil
}
