package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Health sums up the latest messages of an endpoint.
type Health struct {
	Delivered time.Time // when a message was last delivered; zero: not among the latest
	Failed    time.Time // when an attempt last failed; zero: not among the latest
	Waiting   int       // messages that wait
	Dead      int       // messages that failed, of the latest that have ended
}

// Bounds of what Healths reads: ended messages of each endpoint, and rows of the queue.
const (
	latestEnded = 200
	mostInQueue = 2000
)

// Examine sets the Health of the endpoints. It reads at most the latest 200 messages of each that have ended, and 2,000 rows
// of the queue.
func (s *Service) Examine(ctx context.Context, endpoints ...*Endpoint) error {
	all := map[string]*Health{}
	for _, e := range endpoints {
		h := &Health{}
		e.Health, all[e.ID] = h, h
		for it, err := range s.o.Store.Query(ctx, store.Query{Table: s.table, Partition: recordPK(e.ID), Reverse: true, Limit: latestEnded}) {
			if err != nil {
				return fmt.Errorf("read the latest messages: %w", err)
			}
			m, _ := decodeMessage(it)
			if m.State == Failed {
				h.Dead++
			}
			h.note(m)
		}
	}
	left := mostInQueue
	for _, partition := range s.rows.Partitions() {
		for it, err := range s.o.Store.Query(ctx, store.Query{Table: s.o.Tables.Outbox.Name, Partition: partition, Limit: left}) {
			if err != nil {
				return fmt.Errorf("read the waiting messages: %w", err)
			}
			left--
			if m, _ := decodeMessage(it); it.Str(schema.Kind) == kindMessage && all[m.Endpoint] != nil {
				all[m.Endpoint].Waiting++
				all[m.Endpoint].note(m)
			}
		}
		if left == 0 { // as a limit, 0 reads all
			break
		}
	}
	return nil
}

// note takes the times of the message's attempts.
func (h *Health) note(m *Message) {
	if m.State == Delivered && m.Ended.After(h.Delivered) {
		h.Delivered = m.Ended
	}
	for _, a := range m.Attempts {
		if a.Code != "" && a.At.After(h.Failed) {
			h.Failed = a.At
		}
	}
}
