package tracking

import (
	"errors"
	"time"
)

// An Event is something that Stripe has told.
type Event struct {
	ID            string // evt_…
	Type          string // such as payment_intent.succeeded
	StripeAccount string // acct_…, whose event it is; "" in a body means the account of our key
	Created       time.Time
	Live          bool
	APIVersion    string // that the body is written in; "" where it does not say
	Object        Object

	// What is known of an event that is stored.
	Account      string // UUID of the customer account; "" while it is not known
	Subscription string // sub_… that it is about, or ""
	Status       EventStatus
	Reason       string // of the status, for people; "" where it is plain
	Source       Source
	Received     time.Time // when it came first, by our clock
	Applied      time.Time // when it was applied; zero while it is not
	Body         []byte    // as it was signed; nil in lists
}

// An EventStatus says what became of an event.
type EventStatus string

// The statuses of an event. Those that are not final carry no expiration: they stay until
// they are.
const (
	Received    EventStatus = "received"    // stored, and not yet applied: something has to be asked, or was in the way
	Applied     EventStatus = "applied"     // final: what it says is in the tables, with its effects
	Ignored     EventStatus = "ignored"     // final: it says nothing that is followed here
	Refused     EventStatus = "refused"     // final: of the other mode, or of an account it cannot be of
	Quarantined EventStatus = "quarantined" // of an account that is not registered
	Dead        EventStatus = "dead"        // given up: for a person, who can replay it
)

// Final reports whether nothing more will become of it by itself, so that it may expire.
func (s EventStatus) Final() bool { return s == Applied || s == Ignored || s == Refused }

// A Source says how an event came here.
type Source string

// The sources of events.
const (
	FromWebhook Source = "webhook"
	FromPoll    Source = "poll"
)

// A Decode reads the body of an event, in whatever version it is written. Its errors are an
// ErrBody.
type Decode func(body []byte) (Event, error)

// ErrBody: this is no event of Stripe's.
var ErrBody = errors.New("this is no event of Stripe's")
