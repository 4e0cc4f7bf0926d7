package httpapi

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// idForm matches Stripe's and Duesday's IDs.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

// A question is a request for a list.
type question struct {
	url.Values
	ctx   context.Context
	key   *key.Key
	after tracking.Mark
}

// merchant returns the parameter's merchant, or by default the key's. It returns an error if the key cannot
// see the merchant.
func (q *question) merchant() (string, error) {
	text := strings.ToLower(q.Get("merchant"))
	switch {
	case !q.Has("merchant"):
		return q.key.Merchant, nil
	case !tracking.IsUUID(text):
		return "", field.Wrong("merchant", "must be a merchant's UUID")
	case !q.key.Sees(text):
		return "", web.ErrMerchant
	}
	return text, nil
}

// rows contains a list's rows and an optional filter.
type rows[T any] struct {
	all  iter.Seq2[T, error]
	keep func(T) bool
}

// list returns a Handler that sends the rows that open finds. mark returns a row's place in the list. names are
// the list's parameters.
func list[T any](form func(T) view.Object, mark func(T) tracking.Mark, open func(*question) (rows[T], error), names ...string) web.Handler {
	return func(w http.ResponseWriter, r *web.Request) error {
		var found rows[T]
		looks := 0
		if q := r.URL.Query(); q.Has("source") || q.Has("status") { // each row costs a read of its own
			looks = 1000
		}
		return web.List(r.Server, w, r, web.ListOptions[T]{
			Names: names, Looks: looks,
			Open: func(values url.Values, after string) (iter.Seq2[T, error], error) {
				q := &question{Values: values, ctx: r.Context(), key: r.Key}
				if after != "" {
					if err := json.Unmarshal([]byte(after), &q.after); err != nil {
						return nil, err // unreachable: place encoded it
					}
				}
				var err error
				found, err = open(q)
				return found.all, err
			},
			Place: func(v T) string {
				text, _ := json.Marshal(mark(v)) // never fails: JSON can represent stored times
				return string(text)
			},
			Keep: func(v T) bool { return found.keep == nil || found.keep(v) },
			View: func(v T) any { return form(v) },
		})
	}
}
