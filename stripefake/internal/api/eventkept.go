package api

import (
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// kept is what an event is about, as it was, so that it can be told later in any version.
type kept struct {
	object, previous object          // previous: as emit has it
	waiting          map[string]bool // the endpoints, by id, that were to get it and have not accepted it
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

// payload is the event as a webhook carries it, in the version; "": in its own.
func (c *Call) payload(event object, version string) []byte {
	shown := event.Clone()
	if version != "" && version != event.Str("api_version") {
		shown["api_version"], shown["data"] = version, c.snapshot(event["_kept"].(*kept), version)
	}
	strip(shown)
	return shape.Encode(shown)
}

// accepted notes that the endpoint has the event, however often it got it.
func accepted(event object, endpoint string) {
	waiting := event["_kept"].(*kept).waiting
	if waiting[endpoint] {
		delete(waiting, endpoint)
		event["pending_webhooks"] = event.Num("pending_webhooks") - 1
	}
}

// Resend sends an event once more to every endpoint that its type is sent to now, as the
// dashboard and the command line of Stripe do, and returns how many these are. No fault drops or
// doubles it.
func (f *Fake) Resend(event string) (sent int, err error) {
	err = f.Act("event", event, func(c *Call, e object) error {
		for _, endpoint := range c.subscribed(e.Str("type")) {
			c.post.put(letter{event: e, endpoint: endpoint, payload: c.payload(e, endpoint.Str("api_version")), giveUp: c.time().Add(RetryFor)})
			sent++
		}
		return nil
	})
	return sent, err
}

// An Event is one that the fake has made.
type Event struct {
	ID      string
	Type    string
	Account string    // whose it is
	Created time.Time // UTC, in whole seconds
	Body    []byte    // as a webhook carries it
}

// Events returns all events of the account in the mode, however old, in the order in which they
// were made, with bodies in the version; "": in that of each event.
func (f *Fake) Events(account string, live bool, version string) []Event {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	c := f.System(f.In(account, live))
	var list []Event
	for _, e := range c.Space.All("event") {
		list = append(list, Event{e.ID(), e.Str("type"), account, time.Unix(e.Num("created"), 0).UTC(), c.payload(e, version)})
	}
	return list
}
