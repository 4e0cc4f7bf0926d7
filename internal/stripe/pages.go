package stripe

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"

	sdk "github.com/stripe/stripe-go/v86"
)

// pageSize is the most that Stripe gives at once.
const pageSize = 100

// page asks for one page, of what follows the id.
func page(at, after string) sdk.ListParams {
	p := sdk.ListParams{Limit: new(int64(pageSize)), Single: true, StripeAccount: account(at)}
	if after != "" {
		p.StartingAfter = &after
	}
	return p
}

// pages yields all that is on Stripe's pages, one after the other. An error comes last. What
// is no list is an error, not an empty one, and so is a page that does not lead on.
func pages[T any](fetch func(after string) *sdk.V1List[T], id func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for after := ""; ; {
			l := fetch(after)
			if l.Err() != nil {
				yield(none, l.Err())
				return
			}
			data := l.Data()
			if !isList(l) {
				yield(none, strange("a list", "the answer is no list"))
				return
			}
			for _, x := range data { // none is null: wholeList
				if !yield(x, nil) {
					return
				}
			}
			meta := l.Meta()
			if !meta.HasMore {
				return
			}
			last := ""
			if len(data) > 0 {
				last = id(data[len(data)-1])
			}
			if last == "" || last == after {
				yield(none, strange("a list", "there is said to be more of it, and no way there"))
				return
			}
			after = last
		}
	}
}

func isList[T any](l *sdk.V1List[T]) bool {
	r := l.LastResponse()
	if r == nil {
		return false
	}
	var body struct {
		Object string `json:"object"`
	}
	return json.Unmarshal(r.RawJSON, &body) == nil && body.Object == "list"
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
