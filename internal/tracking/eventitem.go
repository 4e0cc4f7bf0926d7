package tracking

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// keep is how long an event is kept once nothing more will become of it: as long as Stripe
// keeps it, counted from when it was published.
const keep = 30 * 24 * time.Hour

// maxBody is how large a stored body may become when it is read: more than any that is taken in.
const maxBody = 4 << 20

// item is the event as the published table has it, and what we know of it. One that is not
// final has no expiration: it must not vanish before it has been dealt with.
func (e *Event) item() (store.Item, error) {
	var w writer
	at := stamp(e.Created)
	w.text(schema.TrackedAccount, e.Account)
	w.time(schema.TrackedApplied, e.Applied)
	if len(e.Body) > 0 {
		body, err := pack(e.Body)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID, err)
		}
		w.it.Set(schema.TrackedBody, store.B(body))
	}
	w.text(schema.TrackedDate, at[:len("2020-01-01")])
	if e.Status.Final() {
		w.number(schema.TrackedExpiration, e.Created.Add(keep).Unix())
	}
	w.text(schema.TrackedID, e.ID)
	w.text(schema.TrackedReason, e.Reason)
	w.time(schema.TrackedReceived, e.Received)
	w.text(schema.TrackedSource, string(e.Source))
	w.text(schema.TrackedStatus, string(e.Status))
	w.text(schema.TrackedStripeAccount, e.StripeAccount)
	w.text(schema.TrackedSubscription, e.Subscription)
	w.text(schema.TrackedTime, at[len("2020-01-01 "):])
	w.text(schema.TrackedTimestamp, at)
	w.text(schema.TrackedType, e.Type)
	return w.it, nil
}

func eventOf(it store.Item) (*Event, error) {
	e := &Event{ID: it.Str(schema.TrackedID), Type: it.Str(schema.TrackedType), StripeAccount: it.Str(schema.TrackedStripeAccount),
		Created: parseStamp(it.Str(schema.TrackedTimestamp)), Account: it.Str(schema.TrackedAccount), Subscription: it.Str(schema.TrackedSubscription),
		Status: EventStatus(it.Str(schema.TrackedStatus)), Reason: it.Str(schema.TrackedReason), Source: Source(it.Str(schema.TrackedSource)),
		Received: parseStamp(it.Str(schema.TrackedReceived)), Applied: parseStamp(it.Str(schema.TrackedApplied))}
	body, err := unpack(it.Get(schema.TrackedBody).Bytes())
	if err != nil {
		return nil, fmt.Errorf("event %s: its body cannot be read: %w", e.ID, err)
	}
	e.Body = body
	return e, nil
}

// rowOf reads what an index projects of an event.
func rowOf(it store.Item) EventRow {
	at := it.Str(schema.TrackedTimestamp)
	if at == "" {
		at = it.Str(schema.TrackedDate) + " " + it.Str(schema.TrackedTime)
	}
	return EventRow{ID: it.Str(schema.TrackedID), Type: it.Str(schema.TrackedType), StripeAccount: it.Str(schema.TrackedStripeAccount),
		Subscription: it.Str(schema.TrackedSubscription), At: parseStamp(at)}
}

// Compressors are large; there is one for each event that is being stored.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	return w
}}

func pack(body []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(body) / 2)
	w, ok := packers.Get().(*flate.Writer)
	if !ok {
		return nil, errors.New("no compressor") // unreachable: the pool holds nothing else
	}
	defer packers.Put(w)
	w.Reset(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	r := flate.NewReader(bytes.NewReader(packed))
	body, err := io.ReadAll(io.LimitReader(r, maxBody))
	return body, errors.Join(err, r.Close())
}

// secretMember is a member of Stripe's objects that lets whoever has it complete a payment.
const secretMember = `"client_secret"`

// withoutSecrets returns the body with the client secrets taken out of it: they are nobody's to
// keep. What the body says otherwise stays as it is.
func withoutSecrets(body []byte) []byte {
	if !bytes.Contains(body, []byte(secretMember)) {
		return body
	}
	out := make([]byte, 0, len(body))
	for {
		i := bytes.Index(body, []byte(secretMember))
		if i < 0 {
			return append(out, body...)
		}
		i += len(secretMember)
		out = append(out, body[:i]...)
		body = body[i:]
		rest := bytes.TrimLeft(body, " \t\r\n:")
		if len(rest) == 0 || rest[0] != '"' {
			continue // null, or no member of an object
		}
		end := closing(rest)
		if end < 0 {
			return append(out, body...) // unreachable: the body was valid JSON
		}
		out = append(out, `:""`...)
		body = rest[end:]
	}
}

// closing returns where the JSON string at the beginning of text ends, or -1.
func closing(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
