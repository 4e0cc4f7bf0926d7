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
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Filter selects messages. The zero Filter selects all.
type Filter struct {
	Endpoint    string    // id
	ID          string    // of one message
	State       string    // Waiting, Delivered or Failed
	From, Until time.Time // of the event: from From to before Until; zero: no bound
}

func (f *Filter) selects(m *Message) bool {
	return (f.Endpoint == "" || m.Endpoint == f.Endpoint) && (f.ID == "" || m.ID == f.ID) && (f.State == "" || m.State == f.State) &&
		!m.Created.Before(f.From) && (f.Until.IsZero() || m.Created.Before(f.Until))
}

// Messages yields the messages that the filter selects, after that Place; "": from the start. Those that
// wait come first, then those of each endpoint, oldest first. If it yields an error, the error comes last.
func (s *Service) Messages(ctx context.Context, f Filter, after string) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		list, err := s.Endpoints(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		var queries []store.Query
		if f.State == "" || f.State == Waiting {
			for _, partition := range s.rows.Partitions() {
				queries = append(queries, store.Query{Table: s.o.Tables.Outbox.Name, Partition: partition})
			}
		}
		slices.SortFunc(list, func(a, b *Endpoint) int { return strings.Compare(a.ID, b.ID) })
		for _, e := range list {
			if f.State != Waiting && (f.Endpoint == "" || f.Endpoint == e.ID) {
				queries = append(queries, s.ended(e.ID, f))
			}
		}
		place, at, _ := strings.Cut(after, "|")
		for _, q := range queries {
			if after != "" && isBefore(q.Partition, place) {
				continue
			}
			if q.Partition == place {
				q.After = store.Cursor{Key: store.Key{PK: place, SK: at}}
			}
			for it, err := range s.o.Store.Query(ctx, q) {
				if err != nil {
					yield(nil, fmt.Errorf("read the messages: %w", err))
					return
				}
				m, err := decodeMessage(it)
				if err != nil && it.Str(schema.Kind) != kindMessage || !f.selects(m) { // an effect, or of a newer version
					continue
				}
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// isBefore reports whether Messages yields the partition a before b: the outbox comes first. The endpoint of
// b may be gone.
func isBefore(a, b string) bool {
	records := recordPK("")
	if is := strings.HasPrefix(a, records); is != strings.HasPrefix(b, records) {
		return !is
	}
	return a < b
}

// ended returns the query of an endpoint's ended messages.
func (s *Service) ended(endpoint string, f Filter) store.Query {
	q := store.Query{Table: s.table, Partition: recordPK(endpoint)}
	if !f.From.IsZero() {
		q.From = stamp(f.From)
	}
	if !f.Until.IsZero() {
		q.To = stamp(f.Until)
	}
	return q
}

// Replay makes the ended messages that the filter selects due now, under the same ids, and returns their
// number and the time before which no message is kept. A waiting message is made due now only if the
// filter has its ID. If it is interrupted, a repeated call continues. A paused endpoint is ErrState.
func (s *Service) Replay(ctx context.Context, f Filter) (n int, reaches time.Time, err error) {
	days, err := s.keep(ctx)
	if err != nil {
		return 0, reaches, err
	}
	reaches = s.now().AddDate(0, 0, -days)
	list, err := s.latest(ctx)
	if err != nil {
		return 0, reaches, err
	}
	endpoint := func(id string) (e *Endpoint, err error) {
		i := slices.IndexFunc(list, func(e *Endpoint) bool { return e.ID == id })
		switch {
		case i < 0:
			return nil, fmt.Errorf("endpoint %s: %w", secret.Short(id), store.ErrNotFound)
		case !list[i].Paused.IsZero():
			return nil, fmt.Errorf("endpoint %s is paused; resume it first: %w", id, ErrState)
		}
		return list[i], nil
	}
	if f.Endpoint != "" {
		if _, err := endpoint(f.Endpoint); err != nil {
			return 0, reaches, err
		}
	}
	for m, err := range s.Messages(ctx, f, "") {
		if err == nil && (m.State != Waiting || f.ID != "") {
			if _, err = endpoint(m.Endpoint); err == nil {
				err = s.replay(ctx, m)
			}
			if err == nil {
				n++
			}
		}
		if err != nil {
			return n, reaches, err
		}
	}
	if n == 0 && f.ID != "" {
		return 0, reaches, fmt.Errorf("message %s: %w; ended messages are kept for %d days", secret.Short(f.ID), store.ErrNotFound, days)
	}
	return n, reaches, nil
}

// replay moves the message to the outbox, due now. If another process was faster, the message is there.
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

// Backlog returns the rows that wait, as outbox.Outbox.Backlog does.
func (s *Service) Backlog(ctx context.Context, most int) (outbox.Backlog, error) {
	return s.rows.Backlog(ctx, most)
}
