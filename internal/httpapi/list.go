package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/tracking"
)

const (
	listLines   = 100    // of a list in one object, where nobody says
	maxList     = 1000   // of a list in one object
	maxLooked   = 10_000 // rows read for one page of a list in one object
	maxStreamed = 1 << 30
)

// A question is a request for a list.
type question struct {
	url.Values
	ctx   context.Context
	key   *key.Key
	after tracking.Mark
}

// merchant returns the merchant of the parameter account; a key of one merchant asks for that alone.
func (q *question) merchant() (string, error) {
	text := strings.ToLower(q.Get("account"))
	switch {
	case text == "":
		return q.key.Merchant, nil
	case !tracking.IsUUID(text):
		return "", field.Wrong("account", "must be a merchant's UUID")
	case !q.key.Sees(text):
		return "", errMerchant
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

// list answers with a page of the rows that open finds, by the parameters of those names beside limit
// and cursor. As lines it is whole unless the caller sets a limit.
func list[T row](s *server, open func(*question) (rows[T], error), names ...string) handler {
	return func(w http.ResponseWriter, r *http.Request, k *key.Key) error {
		values, err := params(r, append([]string{"limit", "cursor"}, names...)...)
		if err != nil {
			return err
		}
		lines := wantsLines(r)
		limit, most := listLines, maxList
		if lines {
			limit, most = 0, maxStreamed
		}
		if text := values.Get("limit"); values.Has("limit") {
			if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > most {
				return field.Wrong("limit", fmt.Sprintf("must be 1 to %d", most))
			}
		}
		q := &question{Values: values, ctx: r.Context(), key: k}
		of, cursor := listOf(r.URL.Path, values, k), values.Get("cursor")
		if values.Has("cursor") {
			if q.after, err = s.unseal(of, cursor); err != nil {
				return err
			}
		}
		found, err := open(q)
		if err != nil {
			return err
		}
		var end ending
		page := found.page(limit, &end, func(m tracking.Mark) string { return s.seal(of, m) })
		if lines {
			return stream(s, w, r, page, &end)
		}
		return gather(w, page, &end)
	}
}

// page yields the rows to be shown, up to limit; 0 is all. It fills in the end.
func (x rows[T]) page(limit int, end *ending, seal func(tracking.Mark) string) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		var last tracking.Mark
		n, looked := 0, 0
		for v, err := range x.all {
			if err != nil {
				yield(nil, err)
				return
			}
			keep := x.keep == nil || x.keep(v)
			if limit > 0 && (n == limit && keep || looked == maxLooked) {
				end.More, end.Next = true, seal(last)
				return
			}
			last = v.Mark()
			if looked++; keep {
				if n++; !yield(v, nil) {
					return
				}
			}
		}
	}
}

// listOf names a list with its filters and what the key may see of it: a cursor is valid in it alone.
func listOf(path string, values url.Values, k *key.Key) string {
	filters := url.Values{}
	for name, v := range values {
		if name != "limit" && name != "cursor" {
			filters[name] = v
		}
	}
	return path + "?" + filters.Encode() + "#" + k.Merchant
}

// seal returns the cursor of a place in a list. It is encrypted: the place may be that of a row which
// the key does not see.
func (s *server) seal(list string, m tracking.Mark) string {
	text, _ := json.Marshal(m) // a stored time has a JSON form
	return base64.RawURLEncoding.EncodeToString(s.cursors.Seal(nil, nil, text, []byte(list)))
}

// unseal returns the place of a cursor that this list gave.
func (s *server) unseal(list, cursor string) (m tracking.Mark, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil {
		b, err = s.cursors.Open(nil, nil, b, []byte(list))
	}
	if err != nil || json.Unmarshal(b, &m) != nil {
		return m, field.Wrong("cursor", "must be the next_cursor from a page of this list, requested with the same parameters and key")
	}
	return m, nil
}
