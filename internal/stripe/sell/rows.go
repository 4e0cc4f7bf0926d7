package sell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
)

func (t Tracker) get(ctx context.Context, at, path string, query url.Values) (json.RawMessage, error) {
	raw, _, err := t.api.Ask(ctx, http.MethodGet, path, at, "", query)
	return raw, err
}

// rows yields what is on all pages of a list, as it was written. An error comes last. answered
// Is called with the header of the first page, unless it is nil.
func (t Tracker) rows(ctx context.Context, at, path string, query url.Values, answered func(http.Header)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		query := cloned(query)
		query.Set("limit", strconv.Itoa(api.PageSize))
		for after := ""; ; {
			if after != "" {
				query.Set("starting_after", after)
			}
			raw, header, err := t.api.Ask(ctx, http.MethodGet, path, at, "", query)
			var list struct {
				Object string            `json:"object"`
				Data   []json.RawMessage `json:"data"`
				More   bool              `json:"has_more"`
			}
			if err == nil && (json.Unmarshal(raw, &list) != nil || list.Object != "list") {
				err = api.Unusable("a list", "the answer is no list")
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
				if last, err = idIn(row); err != nil {
					yield(nil, err)
					return
				}
				if !yield(row, nil) {
					return
				}
			}
			switch {
			case !list.More:
				return
			case last == "" || last == after:
				yield(nil, api.Unusable("a list", "there is said to be more of it, and no way there"))
				return
			}
			after = last
		}
	}
}

func cloned(v url.Values) url.Values {
	c := make(url.Values, len(v)+2)
	maps.Copy(c, v)
	return c
}

// idIn reads the id of an object, which has to be one.
func idIn(raw json.RawMessage) (string, error) {
	var o struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &o) != nil || !api.IsID(o.ID, "") {
		return "", api.Unusable("a list", "there is something in it without an id")
	}
	return o.ID, nil
}

// seenAs reads an object as Stripe has it now: of the kind, and with the id unless that is "".
func seenAs(kind, id string, raw json.RawMessage) (tracking.Object, error) {
	o, err := event.DecodeObject(raw)
	switch {
	case err != nil:
		return tracking.Object{}, api.Unusable("an object", "the answer is none: %v", err)
	case o.Kind != kind || o.ID == "" || id != "" && o.ID != id:
		return tracking.Object{}, api.Unusable("an object", "a %s %s was asked for, and a %s %q came", kind, id, o.Kind, o.ID)
	}
	o.Seen = true
	return o, nil
}

// idOfEither reads a link: an id, or the object itself.
func idOfEither(raw json.RawMessage) string {
	var id string
	if json.Unmarshal(raw, &id) == nil {
		return id
	}
	id, err := idIn(raw)
	if err != nil {
		return ""
	}
	return id
}

// isObject reports whether a link was expanded.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// asTracked says what an error means in the words of package tracking: ErrDisconnected where the account
// has let go of us, ErrGone where the object is not there, and else nothing.
func asTracked(err error) error {
	f, ok := errors.AsType[*api.Error](err)
	switch {
	case !ok:
		return err
	case f.Disconnected():
		return fmt.Errorf("%w: %s", tracking.ErrDisconnected, f.Text)
	case f.Verdict == api.Gone, f.Verdict == api.PayerGone:
		return fmt.Errorf("%w: %s", tracking.ErrGone, f.Text)
	}
	return err
}
