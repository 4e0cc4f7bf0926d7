package api

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	eventHorizon = 30 * 24 * time.Hour // how long events are listed, by the fake's clock
	maxTypes     = 20                  // in one list of events
)

func eventRoutes() []Route {
	return []Route{
		on("GET", "/v1/events", ListParams+"created type types delivery_success:bool", listEvents),
		on("GET", "/v1/events/{id}", "", func(c *Call) (object, error) { return c.recent("event") }),
	}
}

// recent finds the event that the path names, unless it is too old to be shown.
func (c *Call) recent(kindName string) (object, error) {
	o, err := c.Find(kindName, c.ID, "id")
	if err == nil && !c.isRecent(o) {
		return nil, shape.Missing(kindName, c.ID, "id")
	}
	return o, err
}

// Emit makes the events of a change, and sends them to the endpoints that subscribe to their type.
// previous has the changed members as they were; nil unless the type is one of …updated. A fault
// may lose the change: then no event in any form has it.
func (c *Call) Emit(typ string, o object, previous object) {
	if c.chance(c.faults.EventLosses) {
		return
	}
	form, k, twin := cmp.Or(c.Options.Events, SnapshotEvents), c.keep(o, previous), ""
	if form.has(SnapshotEvents) {
		twin = c.emitSnapshot(typ, k)
	}
	if form.has(ThinEvents) && typ != thinless {
		c.emitThin("v1."+typ, related(o), k.changes(), twin)
	}
}

// emitSnapshot sends an event with the object in the account's default version. It returns its id.
func (c *Call) emitSnapshot(typ string, kept *kept) string {
	version := c.defaultVersion(c.Space.Account)
	members := object{"api_version": version, "type": typ, "request": object{"id": shape.OrNil(c.id),
		"idempotency_key": shape.OrNil(c.key)}, "pending_webhooks": int64(0), "data": c.snapshot(kept, version),
		"_at": c.time().Unix(), "_kept": kept}
	if c.Connected() {
		members["account"] = c.Space.Account
	}
	e := c.Create("event", "evt", members)
	targets := c.subscribed(typ, SnapshotEvents)
	e["pending_webhooks"] = int64(len(targets))
	for _, endpoint := range targets {
		kept.waiting[endpoint.ID()] = true
		c.send(letter{event: e, endpoint: endpoint, payload: c.payload(e, endpoint.Str("api_version"))})
	}
	return e.ID()
}

// snapshot returns the data of an event in the version, as text, because an event never changes.
func (c *Call) snapshot(k *kept, version string) json.RawMessage {
	old, o, previous := *c, k.object, k.previous
	old.Version = version
	data := object{"object": old.render(o, nil)}
	switch {
	case previous == nil:
	case version >= shape.Clover: // objects are shown as they are kept
		data["previous_attributes"] = previous.Clone().Strip()
	default: // the members that differ in that version's shape
		before := o.Clone()
		shape.PutBack(before, previous)
		data["previous_attributes"] = shape.Differences(old.render(before, nil), data.Sub("object"))
	}
	return shape.Encode(data)
}

// send hands a webhook to the post office. Faults may drop, double or delay it.
func (c *Call) send(l letter) {
	if c.chance(c.faults.WebhookDrops) {
		return
	}
	l.giveUp = c.time().Add(RetryFor)
	if most := c.faults.WebhookDelay; most > 0 {
		l.due = c.Options.Real().Add(time.Duration(c.dice.Int64N(int64(most) + 1)))
	}
	c.post.put(l)
	if c.chance(c.faults.WebhookCopies) {
		c.post.put(l)
	}
}

// subscribed returns the endpoints that get the type in the form: the account's own, and the
// Connect endpoints of its platform. A live Connect endpoint gets events of both modes. After an
// account has disconnected, its platform gets the event of that alone.
func (c *Call) subscribed(typ string, form EventForm) []object {
	var list []object
	collect := func(s *Space, connect bool) {
		for _, e := range s.All("webhook_endpoint") {
			types := e.List("enabled_events")
			if e.Yes("_connect") == connect && !e.Yes("deleted") && e.Str("status") == "enabled" &&
				(e["_events"] == "" || EventForm(e.Str("_events")).has(form)) &&
				(slices.Contains(types, any("*")) || slices.Contains(types, any(typ))) {
				list = append(list, e)
			}
		}
	}
	collect(c.Space, false)
	if c.Connected() && (strings.TrimPrefix(typ, "v1.") == appDeauthorized || !c.accounts[c.Space.Account].gone) {
		platform := c.accounts[c.Space.Account].platform
		collect(c.In(platform, c.Space.Live), true)
		if !c.Space.Live {
			collect(c.In(platform, true), true)
		}
	}
	return list
}

// isRecent goes by the fake's clock, not by the test clock of the event's object.
func (c *Call) isRecent(event object) bool {
	return time.Unix(event.Num("_at"), 0).After(c.time().Add(-eventHorizon))
}

func listEvents(c *Call) (object, error) {
	types, one := c.Form.List("types"), c.Form.Str("type")
	switch {
	case c.Form.Has("types") && one != "":
		return nil, shape.OnlyOne("type", "type, types")
	case len(types) > maxTypes:
		return nil, shape.Invalid("", "types", "You may specify at most 20 types.")
	case c.Form.Has("types") && len(types) == 0:
		return nil, shape.Invalid("", "types", "Invalid array: types must be a list: types[]=…")
	}
	delivered := c.Flag("delivery_success")
	prefix, wildcard := strings.CutSuffix(one, "*")
	return c.List("event", func(e object) bool {
		typ := e.Str("type")
		return c.isRecent(e) && (len(types) == 0 || slices.Contains(types, any(typ))) &&
			(one == "" || one == typ || wildcard && strings.HasPrefix(typ, prefix)) &&
			(!c.Form.Has("delivery_success") || delivered == (e.Num("pending_webhooks") == 0))
	})
}

// kept is the object of an event as it was, so that any version of the event can be made later.
type kept struct {
	object, previous object          // previous: as emit has it
	waiting          map[string]bool // by id: endpoints that have not accepted it yet
}

func (c *Call) keep(o, previous object) *kept {
	k := &kept{o.Clone(), previous.Clone(), map[string]bool{}}
	if previous == nil {
		k.previous = nil
	}
	c.gather(k.object, o.Str("object"))
	c.gather(k.previous, o.Str("object"))
	return k
}

// payload returns the event as a webhook carries it, in the version; "": its own. A thin one has no
// version, and its changes have to be asked for.
func (c *Call) payload(event object, version string) []byte {
	shown := event.Clone()
	if event.Str("object") == thinKind {
		delete(shown, "changes")
	} else if version != "" && version != event.Str("api_version") {
		shown["api_version"], shown["data"] = version, c.snapshot(event["_kept"].(*kept), version)
	}
	return shape.Encode(shown.Strip())
}

// accepted notes that the endpoint has the event. A copy counts once.
func accepted(event object, endpoint string) {
	waiting := event["_kept"].(*kept).waiting
	if waiting[endpoint] {
		delete(waiting, endpoint)
		event["pending_webhooks"] = event.Num("pending_webhooks") - 1
	}
}

func (f *Fake) Resend(event string) (sent int, err error) {
	for kindName, form := range map[string]EventForm{"event": SnapshotEvents, thinKind: ThinEvents} {
		err = f.Act(kindName, event, func(c *Call, e object) error {
			for _, endpoint := range c.subscribed(e.Str("type"), form) {
				c.post.put(letter{event: e, endpoint: endpoint, payload: c.payload(e, endpoint.Str("api_version")),
					giveUp: c.time().Add(RetryFor)})
				sent++
			}
			return nil
		})
		if err == nil {
			return sent, nil
		}
	}
	return 0, shape.Missing("event", event, "id")
}

// An Event is stripefake.Event.
type Event struct {
	ID, Type, Account string
	Created           time.Time
	Body              []byte
}

func (f *Fake) Events(account string, live bool, version string) (list []Event) {
	defer f.lock()()
	c := f.System(f.In(account, live))
	for _, e := range append(c.Space.All("event"), c.Space.All(thinKind)...) {
		list = append(list, Event{e.ID(), e.Str("type"), account, time.Unix(shape.MadeAt(e), 0).UTC(), c.payload(e, version)})
	}
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Compare(a.ID[len(a.ID)-10:], b.ID[len(b.ID)-10:]) })
	return list
}
