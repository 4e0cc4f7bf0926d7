package event

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/tracking"
)

// Decode reads an event from a webhook or a list of the API, in any version from 2020-08-27 on. It
// finds the links between objects under their old and their new names. It is a tracking.Decode.
//
// A thin event names its object and does not contain it: of Object, Kind, ID and Thin are set. Its
// type v1.X becomes X, and ToldType keeps the told one. The url of the object is not read: a path is
// made of its type and id alone.
//
// The caller must have verified the signature. An unusable member of the event itself is an ErrBody,
// which names the member and repeats nothing of it. An unusable member of the object is zero.
func Decode(body []byte) (tracking.Event, error) {
	r := jsonReader{text: body}
	if r.peek() != '{' {
		return tracking.Event{}, fmt.Errorf("%w: it must be a JSON object", tracking.ErrBody)
	}
	e := readEnvelope(&r)
	if !r.end() {
		return tracking.Event{}, fmt.Errorf("%w: it is incomplete, not JSON, or nested too deep", tracking.ErrBody)
	}
	if problem := e.problem(); problem != "" {
		return tracking.Event{}, fmt.Errorf("%w: %s", tracking.ErrBody, problem)
	}
	return e.event(), nil
}

// The values of the member object in the two forms of events.
const (
	snapshotEvent = "event"         // has the object
	thinEvent     = "v2.core.event" // names it
)

// An envelope is the part of an event in use.
type envelope struct {
	form, id, kind, version string
	created                 time.Time
	account                 string
	noAccount               bool   // the member account is missing or null
	context                 string // of a thin event: acct_…, or a path whose last part is it, as org_…/acct_…
	snapshot                string // of a thin event: the snapshot event of the same change
	live, liveKnown         bool
	object                  wire
	objectKnown             bool
	related, relatedID      string // kind and id of a thin event's object
}

func readEnvelope(r *jsonReader) envelope {
	e := envelope{noAccount: true}
	for name := range r.members() {
		switch string(name) {
		case "object":
			e.form = r.str()
		case "id":
			e.id = r.id()
		case "type":
			e.kind = r.str()
		case "created":
			e.created = r.instant()
		case "account":
			e.noAccount = r.null()
			e.account = r.id()
		case "context":
			e.context = r.str()
		case "livemode":
			e.live, e.liveKnown = r.flag()
		case "api_version":
			e.version = r.word()
		case "data":
			e.objectKnown = false
			for range r.member("object") {
				e.objectKnown = r.peek() == '{'
				e.object = readWire(r)
			}
		case "snapshot_event":
			e.snapshot = r.link()
		case "related_object":
			e.related, e.relatedID = readRelated(r)
		}
	}
	return e
}

// readRelated takes the member related_object of a thin event.
func readRelated(r *jsonReader) (kind, id string) {
	for name := range r.members() {
		switch string(name) {
		case "type":
			kind = r.word()
		case "id":
			id = r.id()
		}
	}
	return kind, id
}

// problem names an unusable member and its right form; "" if there is none.
func (e *envelope) problem() string {
	thin := e.form == thinEvent
	switch {
	case !thin && e.form != snapshotEvent:
		return "object must be event or v2.core.event"
	case !api.IsID(e.id, "evt_"):
		return "id must be evt_…"
	case !isType(e.kind):
		return "type must be an event type, such as payment_intent.succeeded"
	case e.created.IsZero() && thin:
		return "created must be a time such as 2026-01-31T12:00:00Z"
	case e.created.IsZero():
		return "created must be Unix seconds"
	case !e.noAccount && !api.IsID(e.account, "acct_"):
		return "account must be acct_… or absent"
	case !e.liveKnown && (!thin || strings.HasPrefix(e.kind, "v1.")):
		return "livemode must be true or false"
	case !e.objectKnown && !thin:
		return "data.object must be an object"
	}
	return ""
}

// isType reports whether the text can be a type, such as v2.core.account[identity].updated.
func isType(text string) bool {
	return text != "" && len(text) <= 255 && !strings.ContainsFunc(text, func(c rune) bool {
		return !strings.ContainsRune("._-[]", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z')
	})
}

func (e *envelope) event() tracking.Event {
	out := tracking.Event{ID: e.id, Type: e.kind, StripeAccount: e.account, Created: e.created, Live: e.live,
		APIVersion: e.version}
	if e.form == thinEvent {
		return e.thin(out)
	}
	if e.kind == "payment_intent.payment_failed" {
		e.object.declined = true // even if the object does not say so
	}
	out.Object = e.object.object()
	out.Subscription = out.Object.Subscription
	return out
}

// thin completes a thin event. One whose context names no account is of no account that can be.
func (e *envelope) thin(out tracking.Event) tracking.Event {
	out.Object = tracking.Object{Kind: e.related, ID: e.relatedID, Thin: true}
	out.StripeAccount = cmp.Or(out.StripeAccount, id(e.context[strings.LastIndexByte(e.context, '/')+1:]))
	if api.IsID(e.snapshot, "evt_") {
		out.Twin = e.snapshot
	}
	if v1, ok := strings.CutPrefix(e.kind, "v1."); ok {
		out.Type, out.ToldType = v1, e.kind
	}
	if out.Object.Kind == tracking.KindSubscription {
		out.Subscription = out.Object.ID
	}
	return out
}
