package sell

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
)

// fetched reads an object as Stripe has it now. It must be of the kind, and have the id unless
// that is empty.
func fetched(kind, id string, raw json.RawMessage) (tracking.Object, error) {
	o, err := event.DecodeObject(raw)
	switch {
	case err != nil:
		return tracking.Object{}, api.Unusable("an object", "the answer is none: %v", err)
	case o.Kind != kind || o.ID == "" || id != "" && o.ID != id:
		return tracking.Object{}, api.Unusable("an object", "a %s %s was asked for, and a %s %q came", kind, id, o.Kind, o.ID)
	}
	o.Fetched = true
	return o, nil
}

// linkedID returns the id in a link, which is an id or the object itself.
func linkedID(raw json.RawMessage) string {
	var id string
	if json.Unmarshal(raw, &id) == nil {
		return id
	}
	id, err := api.IDIn(raw)
	if err != nil {
		return ""
	}
	return id
}

// isObject reports whether a link was expanded.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// asTracked returns an error in the words of package tracking: ErrDisconnected if the account has
// disconnected, ErrGone if the object is not there, and any other error as it is.
func asTracked(err error) error {
	e, ok := errors.AsType[*api.Error](err)
	switch {
	case !ok:
		return err
	case e.Disconnected():
		return fmt.Errorf("%w: %s", tracking.ErrDisconnected, e.Text)
	case e.Verdict == api.Gone, e.Verdict == api.PayerGone:
		return fmt.Errorf("%w: %s", tracking.ErrGone, e.Text)
	}
	return err
}
