package api

import (
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

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

// payload returns the event as a webhook carries it, in the version; "": its own.
func (c *Call) payload(event object, version string) []byte {
	shown := event.Clone()
	if version != "" && version != event.Str("api_version") {
		shown["api_version"], shown["data"] = version, c.snapshot(event["_kept"].(*kept), version)
	}
	strip(shown)
	return shape.Encode(shown)
}

// accepted notes that the endpoint has the event. A copy counts once.
func accepted(event object, endpoint string) {
	waiting := event["_kept"].(*kept).waiting
	if waiting[endpoint] {
		delete(waiting, endpoint)
		event["pending_webhooks"] = event.Num("pending_webhooks") - 1
	}
}

// Resend sends an event again to every endpoint that gets its type now, as Stripe's dashboard
// does, and returns the number of these endpoints. No fault applies.
func (f *Fake) Resend(event string) (sent int, err error) {
	err = f.Act("event", event, func(c *Call, e object) error {
		for _, endpoint := range c.subscribed(e.Str("type")) {
			c.post.put(letter{event: e, endpoint: endpoint, payload: c.payload(e, endpoint.Str("api_version")),
				giveUp: c.time().Add(RetryFor)})
			sent++
		}
		return nil
	})
	return sent, err
}

// An Event is stripefake.Event.
type Event struct {
	ID      string
	Type    string
	Account string
	Created time.Time // UTC, in whole seconds
	Body    []byte
}

// Events returns all events of the account in the mode, however old, in the order of creation.
// Their bodies have the version; "": their own.
func (f *Fake) Events(account string, live bool, version string) []Event {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	c := f.System(f.In(account, live))
	var list []Event
	for _, e := range c.Space.All("event") {
		list = append(list, Event{e.ID(), e.Str("type"), account, time.Unix(e.Num("created"), 0).UTC(),
			c.payload(e, version)})
	}
	return list
}
