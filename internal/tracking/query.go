package tracking

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Mark is the place of a row in a list, to go on after it. The zero Mark is the beginning.
type Mark struct {
	At            time.Time `json:"at"` // when it was created
	StripeAccount string    `json:"in,omitempty"`
	ID            string    `json:"id,omitempty"`
}

// cursor is the mark's place in a partition of an index, after the item of the key.
func (m Mark) cursor(partition, sort string, key store.Key) store.Cursor {
	if m == (Mark{}) {
		return store.Cursor{}
	}
	return store.Cursor{Key: key, Index: store.Key{PK: partition, SK: sort}}
}

// An EventQuery selects events: of a Stripe account, of a subscription, or all.
type EventQuery struct {
	StripeAccount, Subscription string    // at most one of them
	From, To                    time.Time // of publication: From inclusive, zero: 30 days ago; To exclusive, zero: no end
	After                       Mark      // of a row of the same query
	Limit                       int       // 0: all
	Whole                       bool      // read each event itself if its index has only ids and times
}

// An EventRow is an event as an index has it.
type EventRow struct {
	ID            string    `json:"id"`
	Type          string    `json:"type,omitempty"`
	StripeAccount string    `json:"stripe_account,omitempty"`
	Subscription  string    `json:"subscription,omitempty"`
	At            time.Time `json:"at"`
}

// Mark returns the row's place in the list.
func (r EventRow) Mark() Mark { return Mark{r.At, r.StripeAccount, r.ID} }

// Events yields stored events, the oldest first, from an index: an event of a moment ago may be
// missing. For all accounts it reads the time index day by day, which has only ids and times, from 400
// days ago on.
func (s *Service) Events(ctx context.Context, q EventQuery) iter.Seq2[EventRow, error] {
	if q.From.IsZero() {
		q.From = s.now().Add(-keep)
	}
	return func(yield func(EventRow, error) bool) {
		n := 0
		for it, err := range s.eventItems(ctx, q) {
			row := rowOf(it)
			if err == nil && q.Whole && row.Type == "" {
				it, err = s.o.Store.Get(ctx, s.events, store.Key{PK: row.ID})
				if errors.Is(err, store.ErrNotFound) {
					continue // expired meanwhile
				}
				row = rowOf(it)
			}
			if !yield(row, err) || err != nil {
				return
			}
			if n++; n == q.Limit {
				return
			}
		}
	}
}

// walked is how far back the time index is read. Only an unfinished event can be older: see Waiting.
const walked = 400 * 24 * time.Hour

// eventItems yields the rows of the events asked for, by the index that fits the query.
func (s *Service) eventItems(ctx context.Context, q EventQuery) iter.Seq2[store.Item, error] {
	index, partition, now := schema.AccountIndex, q.StripeAccount, s.now()
	if q.Subscription != "" {
		index, partition = schema.SubscriptionIndex, q.Subscription
	}
	if q.After.At.After(q.From) {
		q.From = q.After.At
	}
	first, end := now.Add(-walked), now.Add(keep) // Stripe's clock may be ahead of ours
	if partition != "" {
		first, end = q.From, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	if q.From.Before(first) {
		q.From = first
	}
	if q.To.IsZero() || q.To.After(end) {
		q.To = end
	}
	last := q.To.Add(-time.Millisecond)
	if last.Before(q.From) {
		return func(func(store.Item, error) bool) {}
	}
	key, after := store.Key{PK: q.After.ID}, stamp(q.After.At)
	if partition != "" {
		return s.o.Store.Query(ctx, store.Query{Table: s.events, Index: index, Partition: partition, From: stamp(q.From),
			To: stamp(last), After: q.After.cursor(partition, after, key)})
	}
	return func(yield func(store.Item, error) bool) {
		for day := q.From.UTC().Truncate(24 * time.Hour); !day.After(last); day = day.Add(24 * time.Hour) {
			date := day.Format(time.DateOnly)
			of := store.Query{Table: s.events, Index: schema.TimeIndex, Partition: date}
			if from := stamp(q.From); from[:len(date)] == date {
				of.From = from[len(date)+1:]
			}
			if to := stamp(last); to[:len(date)] == date {
				of.To = to[len(date)+1:]
			}
			if after[:len(date)] == date {
				of.After = q.After.cursor(date, after[len(date)+1:], key)
			}
			for it, err := range s.o.Store.Query(ctx, of) {
				if !yield(it, err) || err != nil {
					return
				}
			}
		}
	}
}

// Waiting yields the unfinished events: received, dead, and quarantined, in this order.
func (s *Service) Waiting(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		seen := map[string]bool{}
		show := func(id string) bool {
			if seen[id] {
				return true
			}
			seen[id] = true
			e, err := s.Event(ctx, id)
			if err != nil || e.Status.Final() { // applied meanwhile, or expired
				return true
			}
			e.Body = nil
			return yield(e, nil)
		}
		for e, err := range s.inbox().Waiting(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if (e.Kind == pendingEvent || e.Kind == pendingCharge) && !show(e.Data[pendingID]) {
				return
			}
		}
		for it, err := range s.o.Store.Query(ctx, store.Query{Table: s.registry, Partition: quarantineRows}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if _, id, ok := strings.Cut(it.Str(schema.SK), "#"); ok && !show(id) {
				return
			}
		}
	}
}

// tell adds a step for every change, by time.
func (s *Service) tell(ctx context.Context, t *Timeline) error {
	types := map[string]string{} // by event; "" if it has expired
	tell := func(id string, history []Change) error {
		for _, c := range history {
			if _, known := types[c.Event]; !known && c.Event != "" {
				e, err := s.Event(ctx, c.Event)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				if types[c.Event] = ""; err == nil {
					types[c.Event] = e.Type
				}
			}
			t.Steps = append(t.Steps, Step{At: c.At, About: id, What: c.What, Event: c.Event, Detail: types[c.Event]})
		}
		return nil
	}
	err := tell(t.Purchase.ID, t.Purchase.History)
	for _, p := range t.Payments {
		err = cmp.Or(err, tell(p.ID, p.History))
	}
	for _, sub := range t.Subscriptions {
		err = cmp.Or(err, tell(sub.ID, sub.History))
	}
	slices.SortStableFunc(t.Steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return err
}
