package stripefake

import (
	"context"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// An EventForm is the form of the events that the fake emits, or that an endpoint receives. At Stripe, each
// event destination sets its own form.
type EventForm string

const (
	SnapshotEvents EventForm = "snapshot" // API v1 events, which contain the changed object
	ThinEvents     EventForm = "thin"     // API v2 events, which only name the changed object; API v1 then lists no events
	BothEvents     EventForm = "both"     // a snapshot event and a thin event for each change; the thin event names the snapshot event
)

// Check returns an error unless f is empty or one of the three constants.
func (f EventForm) Check() error { return api.EventForm(f).Check() }

// An Event is a Stripe event that the fake created.
type Event struct {
	ID      string
	Type    string
	Account string
	Created time.Time // in UTC, truncated to seconds
	Body    []byte    // the JSON body of the event's webhooks
}

// Events returns all events of an account, oldest first: live-mode events if live is true, and
// test-mode events otherwise. The list includes events older than 30 days, which Stripe's API no longer
// returns. It renders the bodies for the given API version or, if version is empty, for the version
// that each event was created with.
func (f *Fake) Events(account string, live bool, version string) []Event {
	var list []Event
	for _, e := range f.api.Events(account, live, version) {
		list = append(list, Event(e))
	}
	return list
}

// SetEvents sets the form of all later events. It returns an error if the form does not pass
// EventForm.Check.
func (f *Fake) SetEvents(to EventForm) error { return f.api.SetEvents(api.EventForm(to)) }

// Related identifies the object that a thin event is about. The zero value means that the event is
// about no object.
type Related struct {
	ID   string `json:"id"`
	Type string `json:"type"` // payment_intent
	URL  string `json:"url"`  // /v1/payment_intents/pi_1
}

// EmitThin creates a thin event of any type, such as v2.core.account.updated, sends it to the endpoints
// that receive thin events, and returns its ID. The type must begin with v1. or v2., and the account must
// exist.
func (f *Fake) EmitThin(account string, live bool, typ string, about Related) (id string, err error) {
	return f.api.EmitThin(account, live, typ, api.Related(about))
}

// Resend sends an event again, without faults, to every endpoint that currently receives its type. It
// returns the number of endpoints, or an error if the event does not exist.
func (f *Fake) Resend(event string) (sent int, err error) { return f.api.Resend(event) }

// Flush tries to send every pending webhook once, without waiting for retry pauses or WebhookDelay.
// This includes webhooks that receivers cause in the meantime by sending requests to the fake. Flush
// returns the number of webhooks that are still pending, or an error if ctx ends first.
func (f *Fake) Flush(ctx context.Context) (left int, err error) { return f.api.Flush(ctx) }
