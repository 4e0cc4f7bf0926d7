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

// idForm is the common form of Stripe's ids and ours.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

// A question is a request for a list.
type question struct {
	url.Values
	ctx   context.Context
	key   *key.Key
	after tracking.Mark
}

// merchant returns the merchant of the parameter; a key of one merchant asks for that alone.
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

// A row has a place in its list.
type row interface{ Mark() tracking.Mark }

// The rows of a list, and which of them are shown; nil: all.
type rows[T row] struct {
	all  iter.Seq2[T, error]
	keep func(T) bool
}

// list answers with the views of the rows that open finds, by the parameters of those names.
func list[T row](form func(T) view.Object, open func(*question) (rows[T], error), names ...string) web.Handler {
	return func(w http.ResponseWriter, r *web.Request) error {
		var found rows[T]
		return web.List(r.Server, w, r, web.ListOptions[T]{
			Names: names,
			Open: func(values url.Values, after string) (iter.Seq2[T, error], error) {
				q := &question{Values: values, ctx: r.Context(), key: r.Key}
				if after != "" {
					if err := json.Unmarshal([]byte(after), &q.after); err != nil {
						return nil, err // the place was sealed by place
					}
				}
				var err error
				found, err = open(q)
				return found.all, err
			},
			Place: place[T],
			Keep:  func(v T) bool { return found.keep == nil || found.keep(v) },
			View:  func(v T) any { return form(v) },
		})
	}
}

func place[T row](v T) string {
	text, _ := json.Marshal(v.Mark()) // a stored time has a JSON form
	return string(text)
}
