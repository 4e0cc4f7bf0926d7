package api

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// An EventForm is stripefake.EventForm. "" is SnapshotEvents for a fake, and any form for an endpoint.
type EventForm string

const (
	SnapshotEvents EventForm = "snapshot"
	ThinEvents     EventForm = "thin"
	BothEvents     EventForm = "both"
)

// Check returns an error unless the form is "" or one of the three.
func (f EventForm) Check() error {
	if f != "" && f != SnapshotEvents && f != ThinEvents && f != BothEvents {
		return fmt.Errorf("must be snapshot, thin or both (got %q)", string(f))
	}
	return nil
}

// has reports whether the form includes SnapshotEvents or ThinEvents.
func (f EventForm) has(one EventForm) bool { return f == one || f == BothEvents }

const (
	thinKind = "v2.core.event"
	thinTime = "2006-01-02T15:04:05.000Z"
	thinPage = 20 // events in a list without a limit
)

// thinless is the type of which Stripe has no thin form.
const thinless = "invoiceitem.updated"

func thinRoutes() []Route {
	return []Route{
		on("GET", "/v2/core/events", "created types object_id limit:int page", listThin),
		on("GET", "/v2/core/events/{id}", "", func(c *Call) (object, error) { return c.recent(thinKind) }),
	}
}

// EventForm returns the form in which events are made.
func (f *Fake) EventForm() EventForm {
	defer f.lock()()
	return cmp.Or(f.Options.Events, SnapshotEvents)
}

func (f *Fake) SetEvents(to EventForm) error {
	if err := to.Check(); err != nil {
		return shape.Invalid("", "form", "Invalid form "+err.Error())
	}
	defer f.lock()()
	f.Options.Events = to
	return nil
}

// emitThin makes a thin event and sends it. snapshot is the id of its twin, "": it has none.
func (c *Call) emitThin(typ string, related, changes any, snapshot string) object {
	members := object{"type": typ, "created": time.Unix(c.Now, 0).UTC().Format(thinTime), "context": nil, "reason": nil,
		"related_object": related, "changes": changes, "snapshot_event": shape.OrNil(snapshot),
		"_at": c.time().Unix(), "_kept": &kept{}}
	if c.Connected() {
		members["context"] = c.Space.Account
	}
	if c.id != "" {
		members["reason"] = object{"type": "request", "request": object{"id": c.id, "idempotency_key": c.key}}
	}
	prefix := "evt_test"
	if c.Space.Live {
		prefix = "evt"
	}
	e := c.Create(thinKind, prefix, members)
	for _, endpoint := range c.subscribed(typ, ThinEvents) {
		c.send(letter{event: e, endpoint: endpoint, payload: c.payload(e, "")})
	}
	return e
}

// related refers to the object of an event; nil if Stripe has no address for it.
func related(o object) any {
	kindName := o.Str("object")
	if kindName == "application" {
		return nil
	}
	return object{"id": o.ID(), "type": kindName, "url": "/v1/" + strings.ReplaceAll(kindName, ".", "/") + "s/" + o.ID()}
}

// changes returns the members that have changed, before and after; nil if the event has no previous.
func (k *kept) changes() any {
	if k.previous == nil {
		return nil
	}
	before := k.object.Clone()
	shape.PutBack(before, k.previous)
	return object{"before": k.previous.Clone().Strip(), "after": shape.Differences(k.object, before).Clone().Strip()}
}

func (f *Fake) EmitThin(account string, live bool, typ string, about Related) (id string, err error) {
	defer f.lock()()
	switch {
	case f.accounts[account] == nil:
		return "", shape.Missing("account", account, "account")
	case !strings.HasPrefix(typ, "v1.") && !strings.HasPrefix(typ, "v2."):
		return "", shape.Invalid("", "type", "Invalid type: must begin with v1. or v2.")
	}
	of := any(nil)
	if about != (Related{}) {
		of = object{"id": about.ID, "type": about.Type, "url": about.URL}
	}
	return f.System(f.In(account, live)).emitThin(typ, of, nil, "").ID(), nil
}

// Related is stripefake.Related.
type Related struct{ ID, Type, URL string }

// filterable is the version since which v2 lists events of any object, by type and time.
const filterable = "2025-10-29"

// listThin answers with a page of thin events, newest first.
func listThin(c *Call) (object, error) {
	after, err := c.turn()
	if err != nil {
		return nil, err
	}
	types, of, limit := c.Form.List("types"), c.Form.Str("object_id"), int64(thinPage)
	if c.Form.Has("limit") {
		limit = c.Num("limit")
	}
	inTime, err := c.span("created", momentOf)
	switch {
	case err != nil:
		return nil, err
	case c.Version < filterable && (c.Form.Has("types") || c.Form.Has("created")):
		return nil, shape.UnknownParam("types, created")
	case c.Version < filterable && of == "":
		return nil, shape.Missed("object_id")
	case limit < 1 || limit > pageMax:
		return nil, shape.Invalid("", "limit", "must be from 1 to "+strconv.Itoa(pageMax))
	case len(types) > maxTypes:
		return nil, shape.Invalid("", "types", "may have at most 20 types")
	}
	data, next, last := []any{}, any(nil), ""
	for _, e := range slices.Backward(c.Space.All(thinKind)) {
		if after != "" {
			if e.ID() == after {
				after = ""
			}
			continue
		}
		if !c.isRecent(e) || !inTime(e.Num("_created")) || of != "" && e.Sub("related_object").ID() != of ||
			len(types) > 0 && !slices.Contains(types, any(e.Str("type"))) {
			continue
		}
		if int64(len(data)) == limit {
			next = c.url + "?page=page_" + base64.RawURLEncoding.EncodeToString([]byte(last+"?"+c.query))
			break
		}
		data, last = append(data, e), e.ID()
	}
	return object{"data": data, "next_page_url": next, "previous_page_url": nil}, nil
}

// turn takes the filters out of the token of a further page, and returns the event before the page.
func (c *Call) turn() (after string, err error) {
	page := c.Form.Str("page")
	if page == "" {
		return "", nil
	}
	text, wrong := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(page, "page_"))
	after, c.query, _ = strings.Cut(string(text), "?")
	if wrong != nil || c.Space.Get(thinKind, after) == nil {
		return "", shape.Invalid("", "page", "must be a page of this list")
	}
	c.params, err = shape.ParseForm(c.query, "")
	c.Form = shape.Reading(c.params, nil)
	return after, err
}

// momentOf reads a time of API v2. Libraries send the seconds of v1 too.
func momentOf(v any, param string) (int64, error) {
	s, _ := v.(string)
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.Unix(), nil
	}
	return shape.WholeOf(v, param)
}

// isV2 reports whether the path is of API v2.
func isV2(path string) bool { return strings.HasPrefix(path, "/v2/") }

// v2Codes are the codes of v2 errors, by status; the others have their kind.
var v2Codes = map[int]string{400: "invalid_fields", 401: "unauthenticated", 403: "forbidden", 404: "not_found",
	409: "idempotency_error", 429: "rate_limit_exceeded"}

// v2Error returns the error in the form of API v2.
func v2Error(e *shape.Error) object {
	message := e.Message
	if e.Status == http.StatusBadRequest && e.Param != "" {
		message = "Some fields in the request were invalid: '" + e.Param + ": " + e.Message + "'"
	}
	return object{"error": object{"code": cmp.Or(v2Codes[e.Status], e.Kind), "message": message}}
}
