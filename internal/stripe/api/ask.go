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

// Ask sends a request and returns the answer as Stripe wrote it, or an *Error. An empty key is none.
func (c *Client) Ask(ctx context.Context, method, path, at, key string,
	form url.Values) (json.RawMessage, http.Header, error) {
	params := Params(at, key)
	params.Context = ctx
	if strings.HasPrefix(path, "/v2/") {
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

// Get asks for one object.
func (c *Client) Get(ctx context.Context, at, path string, query url.Values) (json.RawMessage, error) {
	raw, _, err := c.Ask(ctx, http.MethodGet, path, at, "", query)
	return raw, err
}

// Rows yields the objects on all pages of a list, as Stripe wrote them. An error comes last.
// answered, unless nil, gets the header of the first page. An answer other than a list is an error,
// and so is a page from which no other follows although Stripe says so.
func (c *Client) Rows(ctx context.Context, at, path string, query url.Values,
	answered func(http.Header)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		query := maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set("limit", pageSize)
		for after := ""; ; {
			if after != "" {
				query.Set("starting_after", after)
			}
			raw, header, err := c.Ask(ctx, http.MethodGet, path, at, "", query)
			var list struct {
				Object string            `json:"object"`
				Data   []json.RawMessage `json:"data"`
				More   *bool             `json:"has_more"`
			}
			if err == nil && (json.Unmarshal(raw, &list) != nil || list.Object != "list" || list.Data == nil ||
				list.More == nil) {
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
			switch {
			case !*list.More:
				return
			case last == "" || last == after:
				yield(nil, Unusable("list", "Stripe reports another page, but no usable link to it"))
				return
			}
			after = last
		}
	}
}

// RowsV2 is Rows of version 2 of the API. Of the address of the next page the query alone is used.
func (c *Client) RowsV2(ctx context.Context, at, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		query := maps.Clone(query)
		query.Set("limit", pageSize)
		for {
			raw, _, err := c.Ask(ctx, http.MethodGet, path, at, "", query)
			var list struct {
				Data []json.RawMessage `json:"data"`
				Next string            `json:"next_page_url"`
			}
			if err == nil && (json.Unmarshal(raw, &list) != nil || list.Data == nil) {
				err = Unusable("list", "Stripe returned an incomplete list")
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, row := range list.Data {
				if !yield(row, nil) {
					return
				}
			}
			if list.Next == "" {
				return
			}
			next, err := url.Parse(list.Next)
			if err != nil || len(list.Data) == 0 || !next.Query().Has("page") ||
				next.Query().Get("page") == query.Get("page") {
				yield(nil, Unusable("list", "Stripe reports another page, but no usable link to it"))
				return
			}
			query = next.Query()
		}
	}
}

// IDIn returns the id of an object, or an error if it has none.
func IDIn(raw json.RawMessage) (string, error) {
	var o struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &o) != nil || !IsID(o.ID, "") {
		return "", Unusable("list", "Stripe returned an object without an ID")
	}
	return o.ID, nil
}
