package web

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
)

const (
	listLines   = 100    // default limit of a page
	maxList     = 1000   // maximum limit of a page
	maxLooked   = 10_000 // rows read for one page
	maxStreamed = 1 << 30
)

// ListOptions describes a list. Keep and View are optional.
type ListOptions[T any] struct {
	Names []string // parameters beside limit and cursor
	Looks int      // rows that are read for one page; 0: maxLooked

	// Open returns the rows that the parameters select, after a row's place, or from the start if after is "".
	Open  func(values url.Values, after string) (iter.Seq2[T, error], error)
	Place func(T) string // the row's place, for the cursor
	Keep  func(T) bool   // whether to show the row; nil: show all
	View  func(T) any    // nil: the row itself
}

// List sends a page of rows as {data, has_more, next_cursor}. As JSON lines, it sends all rows unless the
// caller sets a limit.
func List[T any](s *Server, w http.ResponseWriter, r *Request, o ListOptions[T]) error {
	values, wrong := r.Values(append([]string{"limit", "cursor"}, o.Names...)...)
	of, after := listOf(r.URL.Path, values, r.Key), ""
	if values.Has("cursor") && wrong == nil { // a cursor is only valid with its filters
		after, wrong = s.unseal(of, values.Get("cursor"))
	}
	lines := wantsLines(r.Request)
	limit, most := listLines, maxList
	if lines {
		limit, most = 0, maxStreamed
	}
	if text := values.Get("limit"); values.Has("limit") {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > most {
			wrong = errors.Join(wrong, field.Wrong("limit", fmt.Sprintf("must be 1 to %d", most)))
		}
	}
	found, err := o.Open(values, after)
	if err = errors.Join(wrong, err); err != nil {
		return err
	}
	var end ending
	page := o.page(found, limit, &end, func(place string) string { return s.seal(of, place) })
	if lines {
		return stream(w, r, page, &end)
	}
	return gather(w, page, &end)
}

// page yields the rows to show, up to limit (0: all), and sets end if more follow.
func (o *ListOptions[T]) page(all iter.Seq2[T, error], limit int, end *ending, seal func(string) string) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		last := ""
		n, looked := 0, 0
		for v, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			keep := o.Keep == nil || o.Keep(v)
			if limit > 0 && (n == limit && keep || looked == cmp.Or(o.Looks, maxLooked)) {
				end.More, end.Next = true, seal(last)
				return
			}
			last = o.Place(v)
			if looked++; keep {
				shown := any(v)
				if o.View != nil {
					shown = o.View(v)
				}
				if n++; !yield(shown, nil) {
					return
				}
			}
		}
	}
}

// listOf identifies a list by its path, its filters and the key's merchant. A cursor is only valid for it.
func listOf(path string, values url.Values, k *key.Key) string {
	filters := url.Values{}
	for name, v := range values {
		if name != "limit" && name != "cursor" {
			filters[name] = v
		}
	}
	return path + "?" + filters.Encode() + "#" + k.Merchant
}

// seal returns the cursor for a place in a list. The cursor is encrypted, because the place can belong to a
// row that the key must not see.
func (s *Server) seal(list, place string) string {
	return base64.RawURLEncoding.EncodeToString(s.cursors.Seal(nil, nil, []byte(place), []byte(list)))
}

// unseal returns the place in a cursor from this list.
func (s *Server) unseal(list, cursor string) (place string, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil {
		b, err = s.cursors.Open(nil, nil, b, []byte(list))
	}
	if err != nil {
		return "", field.Wrong("cursor", "must be the next_cursor from a page of this list, requested with the same parameters and key")
	}
	return string(b), nil
}
