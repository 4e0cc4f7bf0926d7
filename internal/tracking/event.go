package tracking

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An Event is a Stripe event.
type Event struct {
	ID            string    `json:"id"`                  // evt_…
	Type          string    `json:"type"`                // such as payment_intent.succeeded
	ToldType      string    `json:"told_type,omitempty"` // Stripe's own type name of a version 1 thin event
	Twin          string    `json:"twin,omitempty"`      // evt_… of the same change in the other form; "" if unknown
	StripeAccount string    `json:"stripe_account"`      // acct_…, the source; "" in a body means our own account
	Created       time.Time `json:"at"`
	Live          bool      `json:"-"`
	APIVersion    string    `json:"-"` // API version of the body; "" if the body does not name one
	Object        Object    `json:"-"`

	// The fields below are stored.
	Merchant     string      `json:"account,omitempty"`      // UUID; "" while unknown
	Subscription string      `json:"subscription,omitempty"` // sub_… that the object belongs to, or ""
	Status       EventStatus `json:"status"`
	Reason       string      `json:"reason,omitempty"` // explains the status to people; "" if it is obvious
	Source       Source      `json:"source"`
	Received     time.Time   `json:"received"`         // time of the first arrival, by our clock
	Applied      time.Time   `json:"applied,omitzero"` // time of the final decision; zero before that
	Body         []byte      `json:"-"`                // the signed body, without client secrets; nil in lists
	Erased       string      `json:"-"`                // SHA-256 of a body that was erased; "" if it was not

	fetched string // JSON of the Object fetched for an applied thin event

	was *store.Condition // holds while the stored item is unchanged; nil if there is no item
}

// An EventStatus is the processing status of an event.
type EventStatus string

// These are the statuses of an event. An event only expires after it reaches a final status. If an
// item has no status, which older builds may have left, Duesday reads it as received, and a replay
// applies it.
const (
	Received    EventStatus = "received"    // stored, waiting in the inbox
	Applied     EventStatus = "applied"     // final: merged into the tables, with its effects
	Ignored     EventStatus = "ignored"     // final: not followed here
	Refused     EventStatus = "refused"     // final: from the other mode or an invalid account
	Quarantined EventStatus = "quarantined" // from an unregistered account
	Dead        EventStatus = "dead"        // dead letter; an operator can replay it
)

// Final reports whether the event is fully processed and may expire.
func (s EventStatus) Final() bool { return s == Applied || s == Ignored || s == Refused }

// A Source identifies how Duesday received an event.
type Source string

// The sources of events.
const (
	FromWebhook Source = "webhook"
	FromPoll    Source = "poll"
)

// A Verdict is the result of ingesting or replaying an event.
type Verdict struct {
	Event     string      `json:"event"`
	Status    EventStatus `json:"status"`
	Reason    string      `json:"reason,omitempty"`
	Duplicate bool        `json:"duplicate,omitempty"` // the event was already stored; Status is its stored status
	Created   time.Time   `json:"-"`                   // creation time in Stripe; zero for a duplicate
}

// A Decode parses an event body from any API version. Every error it returns wraps ErrBody.
type Decode func(body []byte) (Event, error)

// ErrEndpoint is returned if the event belongs to the other webhook endpoint.
var ErrEndpoint = errors.New("this event belongs to the other webhook endpoint")

// ErrNotApplied is returned if a replayed event cannot be applied, at least not yet.
var ErrNotApplied = errors.New("the event was not applied")

// ErrBody is returned if the body is not a Stripe event.
var ErrBody = errors.New("the body is not a Stripe event")

var (
	// errPoison is returned if the event or a stored row is faulty and the store itself works.
	errPoison = errors.New("it cannot be applied")
	// errUndecided is returned if Stripe's answer is not sufficient, at least not yet.
	errUndecided = errors.New("what Stripe tells does not decide it yet")
)

// keep is how long a final event is stored, which is how long Stripe lists it. During that time
// Duesday recognizes a copy as a duplicate.
const keep = 30 * 24 * time.Hour

// names reports whether the event is thin and its object must be fetched. For an invoice, an
// invoice payment or a charge, only the types below report what no other event reports.
func (e *Event) names() bool {
	if !e.Object.Thin || e.Object.ID == "" {
		return false
	}
	switch e.Object.Kind {
	case KindPayment, KindSubscription, KindSchedule, KindRefund, KindDispute:
		return true
	case KindInvoice:
		return e.Type == "invoice.paid"
	case KindInvoicePayment:
		return e.Type == "invoice_payment.paid"
	case KindCharge:
		return e.Type == "charge.refunded"
	}
	return false
}

// isMarker reports whether the item is only a marker for an event that has not arrived.
func (e *Event) isMarker() bool { return e.Type == "" }

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
	text(c, schema.TrackedToldType, &e.ToldType)
	text(c, schema.TrackedTwin, &e.Twin)
	text(c, schema.TrackedType, &e.Type)
	text(c, schema.TrackedFetched, &e.fetched)
}

// item returns the event as the published table stores it, with Duesday's additional attributes. It
// sets no expiration before the final status, so that the store cannot delete an unfinished event.
// item returns an error if the event has no status.
func (e *Event) item() (store.Item, error) {
	if e.Status == "" {
		return nil, fmt.Errorf("event %s: %w: it has no status", e.ID, errPoison)
	}
	c := codec{it: make(store.Item, 0, 20)} // room for every attribute
	e.fields(&c)
	at := stamp(e.Created)
	c.it.Set(schema.TrackedTimestamp, store.S(at))
	c.it.Set(schema.TrackedDate, store.S(at[:len("2020-01-01")]))
	c.it.Set(schema.TrackedTime, store.S(at[len("2020-01-01 "):]))
	if e.Status.Final() {
		c.it.Set(schema.TrackedExpiration, store.Int(e.expiration().Unix()))
	}
	if hash, err := hex.DecodeString(e.Erased); err == nil && len(hash) > 0 {
		c.it.Set(schema.TrackedBody, store.B(append([]byte{formatErased}, hash...)))
	} else if len(e.Body) > 0 {
		room := packing.Get().(*[]byte)
		body, err := pack(*room, e.Body)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID, err)
		}
		c.it.Set(schema.TrackedBody, store.B(body))
		if *room = body; cap(body) <= 64<<10 {
			packing.Put(room)
		}
	}
	return c.it, nil
}

// expiration returns the time when the store may delete the event. It adds keep to the creation
// time, or to the time of receipt if that is later.
func (e *Event) expiration() time.Time {
	if e.Received.After(e.Created) {
		return e.Received.Add(keep)
	}
	return e.Created.Add(keep)
}

func eventOf(it store.Item) (*Event, error) {
	e := from(it, (*Event).fields)
	packed := it.Get(schema.TrackedBody).Bytes()
	if len(packed) > 0 && packed[0] == formatErased {
		packed, e.Erased = nil, hex.EncodeToString(packed[1:])
	}
	body, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("event %s: cannot decode its stored body: %w", e.ID, err)
	}
	e.Body = body
	was := store.AttributeEquals(schema.TrackedStatus, store.S(string(e.Status)))
	switch {
	case e.isMarker():
		was = store.AttributeEquals(schema.TrackedTwin, store.S(e.Twin))
	case e.Status == "":
		e.Status, was = Received, store.AttributeAbsent(schema.TrackedStatus)
	}
	e.was = &was
	return e, nil
}

// maxBody is the maximum size of a decoded body. No endpoint accepts a body of that size.
const maxBody = 4 << 20

// formatS2 is the first byte of a body compressed with S2. S2 took 8 us for 4.8 KB, at 2.6 to 1.
// Flate took 63 us, a quarter of the cost of an event, at 3.5 to 1.
const formatS2 = 1

// packing is a pool of buffers for pack, each at most 64 KiB.
var packing = sync.Pool{New: func() any { return new([]byte) }}

// pack compresses the body into room if room is large enough, and allocates otherwise.
func pack(room, body []byte) ([]byte, error) {
	if len(body) > maxBody {
		return nil, fmt.Errorf("the body has %d bytes; the maximum is %d", len(body), maxBody)
	}
	room = slices.Grow(room[:0], 1+s2.MaxEncodedLen(len(body)))
	packed := append(room, formatS2)
	return packed[:1+len(s2.Encode(packed[1:cap(packed)], body))], nil
}

func unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	if packed[0] != formatS2 {
		return nil, fmt.Errorf("the body has format %d, which this version of Duesday cannot read", packed[0])
	}
	if n, err := s2.DecodedLen(packed[1:]); err != nil || n > maxBody {
		return nil, errors.Join(err, fmt.Errorf("the body decodes to %d bytes; the maximum is 4 MiB", n))
	}
	return s2.Decode(nil, packed[1:])
}

// A client secret lets its holder complete a payment. Stripe's objects contain it as a member with
// this name, or as part of an address such as pi_…_secret_… or seti_…_secret_….
var (
	secretMember = []byte(`"client_secret"`)
	secretPart   = []byte("_secret_")
)

// withoutSecrets returns the body with its client secrets removed and the rest unchanged. It
// searches by hand because two regular expressions took a tenth of the cost of a payment's event.
func withoutSecrets(body []byte) []byte {
	if !bytes.Contains(body, secretPart[1:len("_secret")]) { // both patterns contain this text
		return body
	}
	return cutAfter(cutAfter(body, secretMember, textMember), secretPart, func(rest []byte) (int, string) {
		return len(rest) - len(bytes.TrimLeft(rest, alphanumeric)), ""
	})
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// cutAfter returns the body with some bytes replaced after each mark. The function of receives the
// rest of the body, and returns the number of bytes to replace and the replacement.
func cutAfter(body, mark []byte, of func(rest []byte) (n int, by string)) []byte {
	var out []byte
	for {
		at := bytes.Index(body, mark)
		if at < 0 {
			return append(out, body...)
		}
		at += len(mark)
		n, by := of(body[at:])
		out, body = append(append(out, body[:at]...), by...), body[at+n:]
	}
}

// textMember returns the length of a text member's value, including the punctuation before it, and
// an empty text as its replacement.
func textMember(rest []byte) (n int, by string) {
	value := bytes.TrimLeft(rest, " \t\r\n:")
	if len(value) == 0 || value[0] != '"' {
		return 0, ""
	}
	for i := 1; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '"':
			return len(rest) - len(value) + i + 1, `:""`
		}
	}
	return 0, ""
}

// DecodeEvent reads a stored event with its body.
func DecodeEvent(it store.Item) (*Event, error) { return eventOf(it) }
