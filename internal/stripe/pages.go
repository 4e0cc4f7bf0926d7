package stripe

import (
	"encoding/json"
	"iter"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/stripe/api"
)

// page asks for one page, of what follows the id.
func page(at, after string) sdk.ListParams {
	p := sdk.ListParams{Limit: new(int64(api.PageSize)), Single: true, StripeAccount: api.Account(at)}
	if after != "" {
		p.StartingAfter = &after
	}
	return p
}

// pages yields all that is on Stripe's pages, one after the other. An error comes last. What
// Is no list is an error, not an empty one, and so is a page that does not lead on.
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
				yield(none, api.Unusable("a list", "the answer is no list"))
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
				yield(none, api.Unusable("a list", "there is said to be more of it, and no way there"))
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
