package tracking

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An Event is one of Stripe's events.
type Event struct {
	ID            string    `json:"id"`             // evt_…
	Type          string    `json:"type"`           // such as payment_intent.succeeded
	StripeAccount string    `json:"stripe_account"` // acct_…, whose event it is; "" in a body means the account of our key
	Created       time.Time `json:"at"`
	Live          bool      `json:"-"`
	APIVersion    string    `json:"-"` // of the body; "" if it does not say
	Object        Object    `json:"-"`

	// The stored part.
	Merchant     string      `json:"account,omitempty"`      // UUID; "" while it is not known
	Subscription string      `json:"subscription,omitempty"` // sub_… of its object, or ""
	Status       EventStatus `json:"status"`
	Reason       string      `json:"reason,omitempty"` // of the status, for people; "" where it is plain
	Source       Source      `json:"source"`
	Received     time.Time   `json:"received"`         // when it came first, by our clock
	Applied      time.Time   `json:"applied,omitzero"` // when it was applied; zero while it is not
	Body         []byte      `json:"-"`                // as it was signed; nil in lists
}

// An EventStatus says how far the processing of an event is.
type EventStatus string

// The statuses of an event. An event expires only in a final one.
const (
	Received    EventStatus = "received"    // stored, and waits in the inbox
	Applied     EventStatus = "applied"     // final: merged into the tables, with its effects
	Ignored     EventStatus = "ignored"     // final: not followed here
	Refused     EventStatus = "refused"     // final: of the other mode, or of an impossible account
	Quarantined EventStatus = "quarantined" // of an unregistered account
	Dead        EventStatus = "dead"        // given up: for a person, who can replay it
)

// Final reports whether the event is processed, and may expire.
func (s EventStatus) Final() bool { return s == Applied || s == Ignored || s == Refused }

// A Source says how an event came here.
type Source string

// The sources of events.
const (
	FromWebhook Source = "webhook"
	FromPoll    Source = "poll"
)

// A Decode reads the body of an event, in any version of the API. Its errors are an ErrBody.
type Decode func(body []byte) (Event, error)

// ErrEndpoint: the event came to the endpoint for others.
var ErrEndpoint = errors.New("this event is for another endpoint")

// ErrBody: this is no event of Stripe's.
var ErrBody = errors.New("this is no event of Stripe's")

// keep is the time for which a final event is kept after its publication: as long as Stripe does.
const keep = 30 * 24 * time.Hour

func (e *Event) fields(c *codec) {
	text(c, schema.TrackedAccount, &e.Merchant)
	c.time(schema.TrackedApplied, &e.Applied)
	text(c, schema.TrackedID, &e.ID)
	c.flag(schema.TrackedLive, &e.Live)
	text(c, schema.TrackedReason, &e.Reason)
	c.time(schema.TrackedReceived, &e.Received)
	text(c, schema.TrackedSource, &e.Source)
	text(c, schema.TrackedStatus, &e.Status)
	text(c, schema.TrackedStripeAccount, &e.StripeAccount)
	text(c, schema.TrackedSubscription, &e.Subscription)
	c.time(schema.TrackedTimestamp, &e.Created)
	text(c, schema.TrackedType, &e.Type)
}

// item is the event as the published table has it, with the attributes of our own. Before
// its final status an event has no expiration: it must not vanish before it is applied.
func (e *Event) item() (store.Item, error) {
	var c codec
	e.fields(&c)
	at := stamp(e.Created)
	c.it.Set(schema.TrackedTimestamp, store.S(at))
	c.it.Set(schema.TrackedDate, store.S(at[:len("2020-01-01")]))
	c.it.Set(schema.TrackedTime, store.S(at[len("2020-01-01 "):]))
	if e.Status.Final() {
		c.it.Set(schema.TrackedExpiration, store.Int(e.Created.Add(keep).Unix()))
	}
	if len(e.Body) > 0 {
		body, err := pack(e.Body)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID, err)
		}
		c.it.Set(schema.TrackedBody, store.B(body))
	}
	return c.it, nil
}

func eventOf(it store.Item) (*Event, error) {
	e := from(it, (*Event).fields)
	body, err := unpack(it.Get(schema.TrackedBody).Bytes())
	if err != nil {
		return nil, fmt.Errorf("event %s: its body cannot be read: %w", e.ID, err)
	}
	e.Body = body
	return e, nil
}

func rowOf(it store.Item) EventRow {
	at := cmp.Or(it.Str(schema.TrackedTimestamp), it.Str(schema.TrackedDate)+" "+it.Str(schema.TrackedTime))
	return EventRow{ID: it.Str(schema.TrackedID), Type: it.Str(schema.TrackedType), At: parseStamp(at),
		StripeAccount: it.Str(schema.TrackedStripeAccount), Subscription: it.Str(schema.TrackedSubscription)}
}

// maxBody is the largest decoded body: more than any endpoint takes.
const maxBody = 4 << 20

// formatS2 begins a body compressed by S2. S2 took 8 us for 4.8 KB, at 2.6 to 1. Flate took
// 63 us, a quarter of the cost of an event, at 3.5 to 1.
const formatS2 = 1

func pack(body []byte) ([]byte, error) {
	if len(body) > maxBody {
		return nil, fmt.Errorf("a body of %d bytes: at most %d are stored", len(body), maxBody)
	}
	packed := make([]byte, 1+s2.MaxEncodedLen(len(body)))
	packed[0] = formatS2
	return packed[:1+len(s2.Encode(packed[1:], body))], nil
}

func unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	if packed[0] != formatS2 {
		return nil, fmt.Errorf("it is in format %d, which this Duesday does not know", packed[0])
	}
	if n, err := s2.DecodedLen(packed[1:]); err != nil || n > maxBody {
		return nil, errors.Join(err, fmt.Errorf("%d bytes are in it", n))
	}
	return s2.Decode(nil, packed[1:])
}

// A client secret lets its holder complete a payment. In Stripe's objects it is a member of this
// name, or part of an address: pi_…_secret_…, seti_…_secret_….
var (
	secretMember = regexp.MustCompile(`(?s)"client_secret"[ \t\r\n:]*"(\\.|[^"\\])*"`)
	secretPart   = regexp.MustCompile(`_secret_[A-Za-z0-9]*`)
)

// withoutSecrets returns the body without its client secrets. The rest stays as it is.
func withoutSecrets(body []byte) []byte {
	if !bytes.Contains(body, []byte("secret_")) && !bytes.Contains(body, []byte(`client_secret"`)) {
		return body
	}
	return secretPart.ReplaceAll(secretMember.ReplaceAll(body, []byte(`"client_secret":""`)), []byte("_secret_"))
}
