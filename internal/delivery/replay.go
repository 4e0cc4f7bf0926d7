package delivery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Filter selects messages. The zero Filter selects all.
type Filter struct {
	Endpoint    string    // ID
	ID          string    // of one message
	State       string    // Waiting, Delivered or Failed
	Brief       string    // Delivered or Failed: of messages in other states, only Place is set
	From, Until time.Time // time range of the events, without Until; zero: no limit
	Ended       time.Time // only messages that ended before this time; zero: no limit
}

func (f *Filter) selects(m *Message) bool {
	return (f.Endpoint == "" || m.Endpoint == f.Endpoint) && (f.ID == "" || m.ID == f.ID) && (f.State == "" || m.State == f.State) &&
		!m.Created.Before(f.From) && (f.Until.IsZero() || m.Created.Before(f.Until)) && (f.Ended.IsZero() || m.Ended.Before(f.Ended))
}

// Messages yields the selected messages whose Place is after the given one, or all if after is "". Ended
// messages come first, by endpoint, oldest first. An error ends the sequence.
func (s *Service) Messages(ctx context.Context, f Filter, after string) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		queries, err := s.queries(ctx, f)
		if err != nil {
			yield(nil, err)
			return
		}
		place, at, _ := strings.Cut(after, "|")
		for _, q := range queries { // in the order of their partitions
			switch strings.Compare(q.Partition, place) {
			case -1:
				continue
			case 0:
				q.After = store.Cursor{Key: store.Key{PK: place, SK: at}}
			}
			for it, err := range s.o.Store.Query(ctx, q) {
				if err != nil {
					yield(nil, fmt.Errorf("read the messages: %w", err))
					return
				}
				if it.Str(schema.Kind) != kindMessage { // an effect
					continue
				}
				m := &Message{Place: placeOf(it)}
				if f.Brief == "" || f.Brief == it.Str(schema.State) {
					if m, _ = decodeMessage(it); !f.selects(m) {
						continue
					}
				}
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

func (s *Service) queries(ctx context.Context, f Filter) (all []store.Query, err error) {
	for e, err := range s.All(ctx) {
		if err != nil {
			return nil, err
		}
		if f.State == Waiting || f.Endpoint != "" && f.Endpoint != e.ID {
			continue
		}
		q := store.Query{Table: s.table, Partition: recordPK(e.ID)}
		if !f.From.IsZero() {
			q.From = stamp(f.From)
		}
		if !f.Until.IsZero() {
			q.To = stamp(f.Until)
		}
		all = append(all, q)
	}
	if f.State == "" || f.State == Waiting {
		for _, partition := range s.rows.Partitions() {
			all = append(all, store.Query{Table: s.o.Tables.Outbox.Name, Partition: partition})
		}
	}
	return all, nil
}

// Replay makes the selected ended messages due now, with the same IDs. It returns their number, and the time
// before which ended messages are not kept. A waiting message becomes due only if the filter contains its ID.
// If Replay is interrupted, call it again to continue. It returns ErrState for a paused endpoint.
func (s *Service) Replay(ctx context.Context, f Filter) (n int, reaches time.Time, err error) {
	list, err := s.within(ctx, 0)
	if err != nil {
		return 0, reaches, err
	}
	reaches = s.now().AddDate(0, 0, -s.kept())
	if f.Endpoint != "" && !slices.ContainsFunc(list, func(e *Endpoint) bool { return e.ID == f.Endpoint }) {
		return 0, reaches, fmt.Errorf("endpoint %s: %w", secret.Short(f.Endpoint), store.ErrNotFound)
	}
	for _, e := range list { // before the first message is replayed
		of := f
		if of.Endpoint = e.ID; e.Paused.IsZero() || f.Endpoint != "" && f.Endpoint != e.ID {
			continue
		}
		for m, err := range s.Messages(ctx, of, "") {
			if err == nil && (m.State != Waiting || f.ID != "") {
				err = fmt.Errorf("endpoint %s is paused; resume it first: %w", e.ID, ErrState)
			}
			if err != nil {
				return 0, reaches, err
			}
		}
	}
	for m, err := range s.Messages(ctx, f, "") {
		switch {
		case err != nil:
			return n, reaches, err
		case m.State == Waiting && f.ID == "":
			continue
		}
		if err := s.replay(ctx, m); err != nil {
			return n, reaches, err
		}
		if n++; f.ID != "" {
			return n, reaches, nil
		}
	}
	if f.ID != "" {
		return 0, reaches, fmt.Errorf("message %s: %w, or no longer", secret.Short(f.ID), store.ErrNotFound)
	}
	return n, reaches, nil
}

// replay moves the message to the outbox, due now, unless another process has already done so.
func (s *Service) replay(ctx context.Context, m *Message) error {
	partition, sk, _ := strings.Cut(m.Place, "|")
	from := store.Delete(s.table, store.Key{PK: partition, SK: sk})
	if m.State == Waiting {
		from.Table = s.o.Tables.Outbox.Name
	}
	m.tries = 0
	row := m.waiting(s.o.Tables.Outbox.Name, s.now())
	if from.Table == row.Table && from.Key == s.o.Tables.Outbox.KeyOf(row.Item) {
		return nil
	}
	err := call.Commit(ctx, s.o.Store, from, row)
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}
