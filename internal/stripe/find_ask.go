package stripe

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

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/tracking"
)

// An asked is the answer to a request that is read as it was written, and not by the types of
// Stripe's library: those know one version of the API, and leave out what they do not know.
type asked struct{ sdk.APIResource }

// UnmarshalJSON implements json.Unmarshaler. All is in the last response.
func (*asked) UnmarshalJSON([]byte) error { return nil }

// ask sends a request, and returns the answer as it was written. A key of "" is none. Its
// errors are those of the sender.
func (t Tracker) ask(ctx context.Context, method, path, at, key string, form url.Values) (json.RawMessage, http.Header, error) {
	params := &sdk.Params{Context: ctx, StripeAccount: account(at)}
	if key != "" {
		params.IdempotencyKey = &key
	}
	var a asked
	service := t.p.client.V1Events // all services have the same way and key
	if err := service.B.CallRaw(method, path, service.Key, []byte(form.Encode()), params, &a); err != nil {
		return nil, nil, err
	}
	if a.LastResponse == nil {
		return nil, nil, strange("an answer", "it is empty")
	}
	return a.LastResponse.RawJSON, a.LastResponse.Header, nil
}

func (t Tracker) get(ctx context.Context, at, path string, query url.Values) (json.RawMessage, error) {
	raw, _, err := t.ask(ctx, http.MethodGet, path, at, "", query)
	return raw, err
}

// rows yields what is on all pages of a list, as it was written. An error comes last. answered
// is called with the header of the first page, unless it is nil.
func (t Tracker) rows(ctx context.Context, at, path string, query url.Values, answered func(http.Header)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		query := cloned(query)
		query.Set("limit", strconv.Itoa(pageSize))
		for after := ""; ; {
			if after != "" {
				query.Set("starting_after", after)
			}
			raw, header, err := t.ask(ctx, http.MethodGet, path, at, "", query)
			var list struct {
				Object string            `json:"object"`
				Data   []json.RawMessage `json:"data"`
				More   bool              `json:"has_more"`
			}
			if err == nil && (json.Unmarshal(raw, &list) != nil || list.Object != "list") {
				err = strange("a list", "the answer is no list")
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
				yield(nil, strange("a list", "there is said to be more of it, and no way there"))
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
	if json.Unmarshal(raw, &o) != nil || !isID(o.ID, "") {
		return "", strange("a list", "there is something in it without an id")
	}
	return o.ID, nil
}

// seenAs reads an object as Stripe has it now: of the kind, and with the id unless that is "".
func seenAs(kind, id string, raw json.RawMessage) (tracking.Object, error) {
	o, err := objectOf(raw)
	switch {
	case err != nil:
		return tracking.Object{}, strange("an object", "the answer is none: %v", err)
	case o.Kind != kind || o.ID == "" || id != "" && o.ID != id:
		return tracking.Object{}, strange("an object", "a %s %s was asked for, and a %s %q came", kind, id, o.Kind, o.ID)
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
	f, ok := errors.AsType[*failure](err)
	switch {
	case !ok:
		return err
	case f.hasLetGo():
		return fmt.Errorf("%w: %s", tracking.ErrDisconnected, f.text)
	case f.verdict == gone, f.verdict == payerGone:
		return fmt.Errorf("%w: %s", tracking.ErrGone, f.text)
	}
	return err
}

// hasLetGo reports whether a connected account refuses us for good, or did a moment ago. A key
// without the permission for one request, or a mode that the account does not have yet, is
// something else.
func (f *failure) hasLetGo() bool {
	return f.verdict == accountRefused && (f.answer.status == 0 || f.answer.cuts())
}
