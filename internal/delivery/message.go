package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An Event is one thing that has happened. Data has the ids of what it is about, and the version of the
// noun.
type Event struct {
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// The kinds of the queue's rows, and the keys of their data.
const (
	kindEffect  = "effect"  // what a commit has caused; becomes a message for each endpoint
	kindMessage = "message" // one event for one endpoint

	dataEvents   = "events"   // of an effect: its Events as JSON
	dataEndpoint = "endpoint" // id
	dataType     = "type"
	dataData     = "data"     // Event.Data as JSON
	dataAttempts = "attempts" // one a line, oldest first
)

// Effect returns the row of what a commit causes, for that commit, or none if no endpoint wants any of the
// events. id tells the effect from others of the same time.
func (s *Service) Effect(ctx context.Context, id string, events ...Event) ([]store.Write, error) {
	if len(events) == 0 {
		return nil, nil
	}
	list, err := s.cached(ctx)
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
		return nil, err // unreachable: the data are texts and numbers
	}
	now := s.now()
	return []store.Write{outbox.Write(s.o.Tables.Outbox.Name, outbox.Effect{Queue: outbox.Deliveries, Kind: kindEffect,
		ID: id + "@" + stamp(now), Due: now, Created: now, Data: map[string]string{dataEvents: string(text)}})}, nil
}

// The states of a message.
const (
	Waiting   = "waiting"
	Delivered = "delivered"
	Failed    = "failed" // it was given up: a dead letter
)

// A Message is one event for one endpoint. Its ID and body never change.
type Message struct {
	ID       string
	Endpoint string
	Type     string
	Data     json.RawMessage
	Created  time.Time // when the event happened
	State    string
	Due      time.Time // of the next attempt, while it waits
	Ended    time.Time // when it was delivered or given up
	Attempts []Attempt // oldest first, the last twenty

	tries int    // since it was made or replayed
	Place string // in the list of Messages
}

// An Attempt is one request.
type Attempt struct {
	At     time.Time
	Status int    // of the answer; 0: none came
	Millis int64  // how long it took
	Code   string // why it failed, such as timeout; "" if it succeeded
}

const mostAttempts = 20

// messageID is derived from its cause: a repeated fan-out makes the same messages.
func messageID(effect, kind, endpoint string) string {
	sum := sha256.Sum256([]byte(effect + "\x00" + kind + "\x00" + endpoint))
	return "msg_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
}

// body returns what is sent: a pure function of what never changes.
func (m *Message) body() ([]byte, error) {
	return json.Marshal(struct {
		Type      string          `json:"type"`
		Timestamp string          `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}{m.Type, stamp(m.Created), m.Data})
}

func (m *Message) data() map[string]string {
	lines := make([]string, len(m.Attempts))
	for i, a := range m.Attempts {
		lines[i] = fmt.Sprintf("%s %d %d %s", stamp(a.At), a.Status, a.Millis, a.Code)
	}
	return map[string]string{dataEndpoint: m.Endpoint, dataType: m.Type, dataData: string(m.Data),
		dataAttempts: strings.Join(lines, "\n")}
}

// waiting returns the message's row in the outbox.
func (m *Message) waiting(table string, due time.Time) store.Write {
	return outbox.Write(table, outbox.Effect{Queue: outbox.Deliveries, ID: m.ID, Kind: kindMessage, Due: due, Created: m.Created,
		Data: m.data(), Tries: m.tries, Error: m.Last().Code})
}

// Last returns the last attempt, or the zero Attempt.
func (m *Message) Last() (a Attempt) {
	if n := len(m.Attempts); n > 0 {
		a = m.Attempts[n-1]
	}
	return a
}

// recordPK is the partition of an endpoint's ended messages.
func recordPK(endpoint string) string { return "DELIVERIES#" + endpoint }

func (m *Message) recordKey() store.Key {
	return store.Key{PK: recordPK(m.Endpoint), SK: stamp(m.Created) + "#" + m.ID}
}

// record returns the put of the message's record, in the table of the recurring payments.
func (m *Message) record(table string, days int) store.Write {
	key, data := m.recordKey(), store.Item(nil)
	for name, text := range m.data() {
		data.Set(name, store.S(text))
	}
	return store.Put(table, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(key.PK)}, store.Attribute{Name: schema.SK, Value: store.S(key.SK)},
		store.Attribute{Name: schema.CreatedDate, Value: store.S(stamp(m.Created))},
		store.Attribute{Name: schema.Data, Value: store.M(data)},
		store.Attribute{Name: schema.EndedDate, Value: store.S(stamp(m.Ended))},
		store.Attribute{Name: schema.Kind, Value: store.S(kindMessage)},
		store.Attribute{Name: schema.State, Value: store.S(m.State)},
		store.Attribute{Name: schema.TTL, Value: store.Int(m.Ended.AddDate(0, 0, days).Unix())}))
}

// decodeMessage reads a row of the outbox or a record.
func decodeMessage(it store.Item) (*Message, error) {
	m := &Message{State: it.Str(schema.State), Place: it.Str(schema.PK) + "|" + it.Str(schema.SK)}
	e, err := outbox.Decode(it) // a record has the form of a row
	if m.State == "" {
		m.State, m.Due = Waiting, e.Due
	} else {
		m.Ended, _ = time.Parse(stampLayout, it.Str(schema.EndedDate))
	}
	m.ID, m.Created, m.tries = e.ID, e.Created, e.Tries
	m.Endpoint, m.Type, m.Data = e.Data[dataEndpoint], e.Data[dataType], json.RawMessage(e.Data[dataData])
	for line := range strings.Lines(e.Data[dataAttempts]) {
		var a Attempt
		var at string
		_, _ = fmt.Sscan(line, &at, &a.Status, &a.Millis, &a.Code) // a success has no code
		a.At, _ = time.Parse(stampLayout, at)
		m.Attempts = append(m.Attempts, a)
	}
	if err == nil && (e.Kind != kindMessage || m.Endpoint == "" || !json.Valid(m.Data)) {
		err = fmt.Errorf("message %s is unreadable", m.ID)
	}
	return m, err
}
