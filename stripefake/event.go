package stripefake

import (
	"context"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// An EventForm is the form in which the fake makes events, or in which an endpoint gets them. At
// Stripe an event destination sets it.
type EventForm string

const (
	SnapshotEvents EventForm = "snapshot" // events of API v1, which contain the object
	ThinEvents     EventForm = "thin"     // events of API v2, which refer to the object; the v1 list is empty
	BothEvents     EventForm = "both"     // a snapshot and a thin event for each change; the thin one refers to the snapshot
)

// Check returns an error unless the form is empty or one of the three.
func (f EventForm) Check() error { return api.EventForm(f).Check() }

// An Event is a Stripe event that the fake created.
type Event struct {
	ID      string
	Type    string
	Account string
	Created time.Time // UTC, in whole seconds
	Body    []byte    // JSON, as a webhook carries it
}

// Events returns all events of the account and mode in the order in which the fake made them,
// including events too old for Stripe's API. The bodies have the shape of the given API version. If
// version is empty, each body has the API version of its own event.
func (f *Fake) Events(account string, live bool, version string) []Event {
	var list []Event
	for _, e := range f.api.Events(account, live, version) {
		list = append(list, Event(e))
	}
	return list
}

// SetEvents changes the form in which the fake makes events from now on.
func (f *Fake) SetEvents(to EventForm) error { return f.api.SetEvents(api.EventForm(to)) }

// Related refers to the object of a thin event. The zero value refers to none.
type Related struct {
	ID   string `json:"id"`
	Type string `json:"type"` // payment_intent
	URL  string `json:"url"`  // /v1/payment_intents/pi_1
}

// EmitThin makes a thin event of any type, such as v2.core.account.updated, and sends it to the
// endpoints that receive thin events. It returns the event's id.
func (f *Fake) EmitThin(account string, live bool, typ string, about Related) (id string, err error) {
	return f.api.EmitThin(account, live, typ, api.Related(about))
}

// Resend sends an event again, without faults, to every endpoint that receives its type now. It
// returns the number of these endpoints.
func (f *Fake) Resend(event string) (sent int, err error) { return f.api.Resend(event) }

// Flush tries every waiting webhook once, including delayed webhooks and webhooks that a receiver's
// requests cause meanwhile. It returns the number of webhooks that still wait, or an error if ctx
// ends.
func (f *Fake) Flush(ctx context.Context) (left int, err error) { return f.api.Flush(ctx) }
