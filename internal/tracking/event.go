package tracking

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An Event is one of Stripe's events.
type Event struct {
	ID            string    `json:"id"`                  // evt_…
	Type          string    `json:"type"`                // such as payment_intent.succeeded
	ToldType      string    `json:"told_type,omitempty"` // of a thin event of version 1, in Stripe's words
	Twin          string    `json:"twin,omitempty"`      // evt_… of the same change in the other form; "" if not known
	StripeAccount string    `json:"stripe_account"`      // acct_…, whose event it is; "" in a body means the account of our key
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

	fetched string // of a thin event that was applied: the Object that was fetched for it, as JSON

	was *store.Condition // holds while the stored item is as it was read; nil: there is none
}

// An EventStatus says how far the processing of an event is.
type EventStatus string

// The statuses of an event. An event expires only in a final one. An item without a status, which
// older builds may have left, is read as received: replay applies it.
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

// A Verdict is the result of ingesting or replaying an event.
type Verdict struct {
	Event     string      `json:"event"`
	Status    EventStatus `json:"status"`
	Reason    string      `json:"reason,omitempty"`
	Duplicate bool        `json:"duplicate,omitempty"` // it was stored before; Status is the stored one
	Created   time.Time   `json:"-"`                   // when Stripe made it; zero of a duplicate
}

// A Decode reads the body of an event, in any version of the API. Its errors are an ErrBody.
type Decode func(body []byte) (Event, error)

// ErrEndpoint: the event came to the endpoint for others.
var ErrEndpoint = errors.New("this event belongs to the other webhook endpoint")

// ErrBody: this is no event of Stripe's.
var ErrBody = errors.New("the body is not a Stripe event")

var (
	// errPoison: the fault is in the event or in a stored row; the store works.
	errPoison = errors.New("it cannot be applied")
	// errUndecided: Stripe was asked, and does not tell enough, or not yet.
	errUndecided = errors.New("what Stripe tells does not decide it yet")
)

// keep is how long a final event is kept: as long as Stripe does. So long a copy is a duplicate.
const keep = 30 * 24 * time.Hour

// names reports whether it is a thin event whose object has to be fetched. Of an invoice, its
// payment and a charge, only these events tell what no other event does.
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

// isMarker reports whether a stored event has not come itself.
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

// item is the event as the published table has it, with the attributes of our own. Before its final
// status an event has no expiration: it must not vanish. One without a status is an error.
func (e *Event) item() (store.Item, error) {
	if e.Status == "" {
		return nil, fmt.Errorf("event %s: %w: it has no status", e.ID, errPoison)
	}
	c := codec{it: make(store.Item, 0, 20)} // all attributes
	e.fields(&c)
	at := stamp(e.Created)
	c.it.Set(schema.TrackedTimestamp, store.S(at))
	c.it.Set(schema.TrackedDate, store.S(at[:len("2020-01-01")]))
	c.it.Set(schema.TrackedTime, store.S(at[len("2020-01-01 "):]))
	if e.Status.Final() {
		c.it.Set(schema.TrackedExpiration, store.Int(e.expiration().Unix()))
	}
	if len(e.Body) > 0 {
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

// expiration is keep after the event was published or, if it came late, after it was received.
func (e *Event) expiration() time.Time {
	if e.Received.After(e.Created) {
		return e.Received.Add(keep)
	}
	return e.Created.Add(keep)
}

func eventOf(it store.Item) (*Event, error) {
	e := from(it, (*Event).fields)
	body, err := unpack(it.Get(schema.TrackedBody).Bytes())
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

// maxBody is the largest decoded body: more than any endpoint takes.
const maxBody = 4 << 20

// formatS2 begins a body compressed by S2. S2 took 8 us for 4.8 KB, at 2.6 to 1. Flate took
// 63 us, a quarter of the cost of an event, at 3.5 to 1.
const formatS2 = 1

// packing has rooms for pack, of 64 KiB at most.
var packing = sync.Pool{New: func() any { return new([]byte) }}

// pack compresses the body into room, if it is large enough.
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

// A client secret lets its holder complete a payment. In Stripe's objects it is a member of this
// name, or part of an address: pi_…_secret_…, seti_…_secret_….
var (
	secretMember = []byte(`"client_secret"`)
	secretPart   = []byte("_secret_")
)

// withoutSecrets returns the body without its client secrets. The rest stays as it is. It looks for
// them by hand, since two expressions took a tenth of the cost of a payment's event.
func withoutSecrets(body []byte) []byte {
	if !bytes.Contains(body, secretPart[1:len("_secret")]) { // in both
		return body
	}
	return cutAfter(cutAfter(body, secretMember, textMember), secretPart, func(rest []byte) (int, string) {
		return len(rest) - len(bytes.TrimLeft(rest, alphanumeric)), ""
	})
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// cutAfter returns the body in which, after each mark, as many bytes as of says are replaced.
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

// textMember returns the length of a text member's value with the marks before it, and an empty text.
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
