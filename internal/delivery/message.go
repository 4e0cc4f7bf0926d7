package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An Event is something that happened. Data contains IDs, and the version of the changed object.
type Event struct {
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// Kinds of the queue's rows, and the keys of their data.
const (
	kindEffect  = "effect"  // a commit's events; becomes messages
	kindMessage = "message" // one event for one endpoint

	dataEvents  = "events"  // an effect's Events as JSON
	dataMessage = "message" // a Message as JSON
)

// Effect returns the row that a commit must also write for its events, or none if no endpoint receives them.
// id must be unique among effects at the same time.
func (s *Service) Effect(ctx context.Context, id string, events ...Event) ([]store.Write, error) {
	if len(events) == 0 {
		return nil, nil
	}
	list, err := s.within(ctx, fresh)
	if err != nil {
		return nil, err
	}
	events = slices.DeleteFunc(slices.Clone(events), func(x Event) bool {
		return !slices.ContainsFunc(list, func(e *Endpoint) bool { return e.Wants(x.Type) })
	})
	if len(events) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(events)
	if err != nil {
		return nil, err // unreachable: the data contains only strings and numbers
	}
	now := s.now()
	return []store.Write{outbox.Write(s.o.Tables.Outbox.Name, outbox.Effect{Queue: outbox.Deliveries, Kind: kindEffect,
		ID: id + "@" + stamp(now), Due: now, Created: now, Data: map[string]string{dataEvents: string(text)}})}, nil
}

// States of a message.
const (
	Waiting   = "waiting"
	Delivered = "delivered"
	Failed    = "failed" // a dead letter
)

// A Message is one event for one endpoint. Its ID and body never change.
type Message struct {
	ID       string          `json:"-"`
	Endpoint string          `json:"endpoint"`
	Type     string          `json:"type"`
	Data     json.RawMessage `json:"data"`
	Created  time.Time       `json:"-"` // when the event happened
	State    string          `json:"-"`
	Due      time.Time       `json:"-"`                  // of the next attempt, while it waits
	Ended    time.Time       `json:"-"`                  // when it was delivered or failed
	Attempts []Attempt       `json:"attempts,omitempty"` // the last twenty, oldest first
	Place    string          `json:"-"`                  // in the list of Messages

	tries int // since it was created or replayed
}

// An Attempt is one request.
type Attempt struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"` // of the response; 0: no response
	Millis int64     `json:"ms"`               // duration
	Code   string    `json:"code,omitempty"`   // why it failed, such as timeout; "" if it succeeded
}

const mostAttempts = 20

// messageID derives the ID from the message's cause, so a repeated fan-out creates the same messages. earlier
// is the number of preceding events of the same kind in the effect.
func messageID(effect, kind, endpoint string, earlier int) string {
	cause := effect + "\x00" + kind + "\x00" + endpoint
	if earlier > 0 {
		cause += "\x00" + strconv.Itoa(earlier)
	}
	sum := sha256.Sum256([]byte(cause))
	return "msg_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
}

// body returns the request body, which is the same in each attempt.
func (m *Message) body() ([]byte, error) {
	return json.Marshal(struct {
		Type      string          `json:"type"`
		Timestamp string          `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}{m.Type, stamp(m.Created), m.Data})
}

// waiting returns the message's row in the outbox.
func (m *Message) waiting(table string, due time.Time) store.Write {
	text, _ := json.Marshal(m) // never fails: Data is JSON
	return outbox.Write(table, outbox.Effect{Queue: outbox.Deliveries, ID: m.ID, Kind: kindMessage, Due: due, Created: m.Created,
		Data: map[string]string{dataMessage: string(text)}, Tries: m.tries, Error: m.Last().Code})
}

// Last returns the last attempt, or the zero Attempt.
func (m *Message) Last() (a Attempt) {
	if n := len(m.Attempts); n > 0 {
		a = m.Attempts[n-1]
	}
	return a
}

// recordPK returns the partition of an endpoint's ended messages.
func recordPK(endpoint string) string { return "DELIVERIES#" + endpoint }

// record returns the put of an ended message into the recurring payments table. It is the message's row with
// a different key and the outcome.
func (m *Message) record(table string, days int) store.Write {
	it := m.waiting(table, m.Created).Item
	it.Set(schema.PK, store.S(recordPK(m.Endpoint))) // the sort key is <created>#<id>
	it.Set(schema.EndedDate, store.S(stamp(m.Ended)))
	it.Set(schema.State, store.S(m.State))
	it.Set(schema.TTL, store.Int(m.Ended.AddDate(0, 0, days).Unix()))
	return store.Put(table, it)
}

func placeOf(it store.Item) string { return it.Str(schema.PK) + "|" + it.Str(schema.SK) }

// decodeMessage decodes an outbox row or a record.
func decodeMessage(it store.Item) (*Message, error) {
	e, err := outbox.Decode(it)
	m := &Message{ID: e.ID, Created: e.Created, State: it.Str(schema.State), Place: placeOf(it), tries: e.Tries}
	if m.State == "" {
		m.State, m.Due = Waiting, e.Due
	} else {
		m.Ended, _ = time.Parse(stampLayout, it.Str(schema.EndedDate))
	}
	if err == nil {
		err = json.Unmarshal([]byte(e.Data[dataMessage]), m)
	}
	if err == nil && (m.Endpoint == "" || len(m.Data) == 0) {
		err = fmt.Errorf("message %s has no endpoint or no data", m.ID)
	}
	return m, err
}
