package stripefake

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

const (
	eventHorizon = 30 * 24 * time.Hour // how long events are listed, by the fake's clock
	maxTypes     = 20                  // that a list of events can be asked for
)

func eventRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/events", params: listParams + "created type types delivery_success", do: listEvents},
		{method: "GET", path: "/v1/events/{id}", do: func(c *call) (object, error) {
			o, err := c.find("event", c.path["id"], "id")
			if err == nil && !c.isRecent(o) {
				err = missing("event", c.path["id"], "id")
			}
			return o, err
		}},
	}
}

// emit makes the event of a change of the object: an event object with a snapshot, in the
// account's default version, and what has to be sent to webhook endpoints; or nothing at all,
// as the faults are. previous are the members that have changed, as they were, as differences
// gives them; nil unless the type is one of …updated.
func (c *call) emit(typ string, o object, previous object) {
	if c.chance(c.faults.EventLosses) {
		return
	}
	version, kept := c.defaultVersion(c.space.account), c.keep(o, previous)
	members := object{
		"api_version": version, "type": typ, "request": object{"id": orNil(c.id), "idempotency_key": orNil(c.key)}, "pending_webhooks": int64(0),
		"data": c.snapshot(kept, version), "_at": c.time().Unix(), "_kept": kept,
	}
	if c.connected() {
		members["account"] = c.space.account
	}
	e := c.create("event", "evt", members)
	targets := c.subscribed(typ)
	e["pending_webhooks"] = int64(len(targets))
	for _, endpoint := range targets {
		kept.waiting[endpoint.id()] = true
		c.send(letter{event: e, endpoint: endpoint, payload: c.payload(e, endpoint.str("api_version"))})
	}
}

// snapshot is the data of an event in the version, as text: an event never changes.
func (c *call) snapshot(k *kept, version string) json.RawMessage {
	old, o, previous := *c, k.object, k.previous
	old.version = version
	data := object{"object": old.render(o, nil)}
	switch {
	case previous == nil:
	case version >= clover: // objects are shown as they are kept
		p := previous.clone()
		strip(p)
		data["previous_attributes"] = p
	default: // what has changed for that version is seen only when both are in its shape
		before := o.clone()
		putBack(before, previous)
		data["previous_attributes"] = differences(old.render(before, nil), data.sub("object"))
	}
	return encode(data)
}

// send hands a webhook to the post, or drops or doubles it, as the faults are.
func (c *call) send(l letter) {
	if c.chance(c.faults.WebhookDrops) {
		return
	}
	l.giveUp = c.time().Add(retryFor)
	if most := c.faults.WebhookDelay; most > 0 {
		l.due = c.o.Real().Add(time.Duration(c.dice.Int64N(int64(most) + 1)))
	}
	c.post.put(l)
	if c.chance(c.faults.WebhookCopies) {
		c.post.put(l)
	}
}

// subscribed returns the endpoints that the type is sent to: those of the account, and the
// Connect endpoints of its platform. A live Connect endpoint gets events of both modes. Once
// the account has disconnected, the platform hears of nothing else.
func (c *call) subscribed(typ string) []object {
	var list []object
	collect := func(s *space, connect bool) {
		for _, e := range s.all("webhook_endpoint") {
			if e.yes("_connect") == connect && wants(e, typ) {
				list = append(list, e)
			}
		}
	}
	collect(c.space, false)
	if c.connected() && (typ == appDeauthorized || !c.accounts[c.space.account].gone) {
		platform := c.accounts[c.space.account].platform
		collect(c.in(platform, c.space.live), true)
		if !c.space.live {
			collect(c.in(platform, true), true)
		}
	}
	return list
}

func wants(endpoint object, typ string) bool {
	if endpoint.yes("deleted") || endpoint.str("status") != "enabled" {
		return false
	}
	types := endpoint.list("enabled_events")
	return slices.Contains(types, any("*")) || slices.Contains(types, any(typ))
}

// isRecent goes by when the event was made, not by the test clock of what it is about.
func (c *call) isRecent(event object) bool {
	return time.Unix(event.num("_at"), 0).After(c.time().Add(-eventHorizon))
}

func listEvents(c *call) (object, error) {
	types, one := c.form.list("types"), c.form.str("type")
	switch {
	case c.form.has("types") && one != "":
		return nil, invalid("", "type", "You may only specify one of these parameters: type, types.")
	case len(types) > maxTypes:
		return nil, invalid("", "types", "You may specify at most 20 types.")
	case c.form.has("types") && len(types) == 0:
		return nil, invalid("", "types", "Invalid array: types has to be a list: types[]=…")
	}
	delivered, err := c.flag("delivery_success")
	if err != nil {
		return nil, err
	}
	return c.list("event", func(e object) bool {
		typ := e.str("type")
		prefix, wildcard := strings.CutSuffix(one, "*")
		switch {
		case !c.isRecent(e),
			len(types) > 0 && !slices.Contains(types, any(typ)),
			wildcard && !strings.HasPrefix(typ, prefix),
			!wildcard && one != "" && one != typ,
			c.form.has("delivery_success") && delivered != (e.num("pending_webhooks") == 0):
			return false
		}
		return true
	})
}
