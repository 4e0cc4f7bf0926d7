package tracking

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// A Mark identifies a row in a list, so that the caller can continue after it. The zero Mark starts
// at the beginning of the list.
type Mark struct {
	At            time.Time `json:"at"` // creation time of the row
	StripeAccount string    `json:"in,omitempty"`
	ID            string    `json:"id,omitempty"`
}

// cursor returns the store cursor of the mark in an index partition. The argument key is the key of
// the marked item.
func (m Mark) cursor(partition, sort string, key store.Key) store.Cursor {
	if m == (Mark{}) {
		return store.Cursor{}
	}
	return store.Cursor{Key: key, Index: store.Key{PK: partition, SK: sort}}
}

// Mark returns the purchase's place in a list.
func (p *Purchase) Mark() Mark { return Mark{At: p.Created, ID: p.ID} }

// Mark returns the payment's place in a list.
func (p *Payment) Mark() Mark { return Mark{p.Created, p.StripeAccount, p.ID} }

// Purchases yields a merchant's purchases after the mark, newest first. It may miss a purchase that
// was created moments ago.
func (r *rows) Purchases(ctx context.Context, merchant string, after Mark) iter.Seq2[*Purchase, error] {
	return sequence.Map(r.items(ctx, &r.o.Tables.Tracking.Purchases, schema.AccountIndex, merchant,
		after.cursor(merchant, stamp(after.At), store.Key{PK: after.ID}), true),
		func(it store.Item) (*Purchase, error) { return from(it, (*Purchase).fields).whole() })
}

// Payments yields the payments to a merchant after the mark, newest first. It reads an index, so it
// may miss a payment stored moments ago.
func (r *rows) Payments(ctx context.Context, merchant string, after Mark) iter.Seq2[*Payment, error] {
	return sequence.Map(r.items(ctx, &r.o.Tables.Tracking.Payments, schema.AccountIndex, merchant,
		after.cursor(merchant, stamp(after.At), store.Key{PK: after.StripeAccount, SK: after.ID}), true),
		func(it store.Item) (*Payment, error) { return paymentOf(it), nil })
}

// An EventQuery selects the events of a Stripe account, of a subscription, or of all accounts.
type EventQuery struct {
	StripeAccount, Subscription string    // set at most one
	From, To                    time.Time // creation time; inclusive From, zero: 30 days ago; exclusive To, zero: no end
	After                       Mark      // mark of a row from the same query
	Limit                       int       // 0: all
	Whole                       bool      // also read the event itself if the index only has its ID and time
	Details                     bool      // read every event itself
	Newest                      bool      // newest first
}

// An EventRow contains the event fields that an index stores. Status, Reason and Source are only set if the event itself
// was read.
type EventRow struct {
	ID            string      `json:"id"`
	Type          string      `json:"type,omitempty"`
	StripeAccount string      `json:"stripe_account,omitempty"`
	Subscription  string      `json:"subscription,omitempty"`
	At            time.Time   `json:"at"`
	Status        EventStatus `json:"status,omitempty"`
	Reason        string      `json:"reason,omitempty"`
	Source        Source      `json:"source,omitempty"`
}

// Mark returns the row's place in the list.
func (r EventRow) Mark() Mark { return Mark{r.At, r.StripeAccount, r.ID} }

func rowOf(it store.Item) EventRow {
	at := cmp.Or(it.Str(schema.TrackedTimestamp), it.Str(schema.TrackedDate)+" "+it.Str(schema.TrackedTime))
	return EventRow{ID: it.Str(schema.TrackedID), Type: it.Str(schema.TrackedType), At: parseStamp(at),
		StripeAccount: it.Str(schema.TrackedStripeAccount), Subscription: it.Str(schema.TrackedSubscription),
		Status: EventStatus(it.Str(schema.TrackedStatus)), Reason: it.Str(schema.TrackedReason), Source: Source(it.Str(schema.TrackedSource))}
}

// Row returns the event as a list has it.
func (e *Event) Row() EventRow {
	return EventRow{e.ID, e.Type, e.StripeAccount, e.Subscription, e.Created, e.Status, e.Reason, e.Source}
}

// Events yields stored events, oldest first unless the query says otherwise. It reads an index, so it may miss an event stored
// moments ago. For all accounts it reads the time index day by day, at most 400 days back. That
// index only has IDs and times.
func (r *rows) Events(ctx context.Context, q EventQuery) iter.Seq2[EventRow, error] {
	q.From = cmp.Or(q.From, r.now().Add(-keep))
	return func(yield func(EventRow, error) bool) {
		n := 0
		for it, err := range r.eventItems(ctx, q) {
			row := rowOf(it)
			if err == nil && (q.Details || q.Whole && row.Type == "") {
				it, err = r.o.Store.Get(ctx, r.events, store.Key{PK: row.ID})
				if errors.Is(err, store.ErrNotFound) {
					continue // the event has expired meanwhile
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

// walked limits how far back Events reads the time index. Only an unfinished event can be older,
// and Waiting lists those.
const walked = 400 * 24 * time.Hour

// eventItems yields the index items that match the query. It chooses the account, subscription or
// time index by the fields that the query sets.
func (r *rows) eventItems(ctx context.Context, q EventQuery) iter.Seq2[store.Item, error] {
	index, partition, now := schema.AccountIndex, q.StripeAccount, r.now()
	if q.Subscription != "" {
		index, partition = schema.SubscriptionIndex, q.Subscription
	}
	if !q.Newest && q.After.At.After(q.From) {
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
	if q.Newest && q.After != (Mark{}) && q.After.At.Before(last) {
		last = q.After.At
	}
	if last.Before(q.From) {
		return func(func(store.Item, error) bool) {}
	}
	key, after := store.Key{PK: q.After.ID}, stamp(q.After.At)
	if partition != "" {
		return r.o.Store.Query(ctx, store.Query{Table: r.events, Index: index, Partition: partition, From: stamp(q.From),
			To: stamp(last), After: q.After.cursor(partition, after, key), Reverse: q.Newest})
	}
	var days []store.Query
	for day := q.From.UTC().Truncate(24 * time.Hour); !day.After(last); day = day.Add(24 * time.Hour) {
		date := day.Format(time.DateOnly)
		of := store.Query{Table: r.events, Index: schema.TimeIndex, Partition: date, Reverse: q.Newest}
		if from := stamp(q.From); from[:len(date)] == date {
			of.From = from[len(date)+1:]
		}
		if to := stamp(last); to[:len(date)] == date {
			of.To = to[len(date)+1:]
		}
		if after[:len(date)] == date {
			of.After = q.After.cursor(date, after[len(date)+1:], key)
		}
		days = append(days, of)
	}
	if q.Newest {
		slices.Reverse(days)
	}
	return sequence.Flat(slices.Values(days), func(of store.Query) iter.Seq2[store.Item, error] { return r.o.Store.Query(ctx, of) })
}

// A Timeline contains a purchase, its payments and its subscriptions, and lists their changes in
// order.
type Timeline struct {
	Purchase      *Purchase       `json:"purchase"`
	Payments      []*Payment      `json:"payments"`      // oldest first
	Subscriptions []*Subscription `json:"subscriptions"` // oldest first
	Steps         []Step          `json:"steps"`         // oldest first
}

// A Step is a single change in a Timeline.
type Step struct {
	At     time.Time `json:"at"`
	About  string    `json:"about"` // ID of the purchase, payment or subscription
	What   string    `json:"what"`
	Event  string    `json:"event,omitempty"`  // evt_… that caused the change
	Detail string    `json:"detail,omitempty"` // type of the event
}

// Timeline returns the history of a purchase by our own clock: the order, the events that changed
// the purchase, and the completed actions. It has no step for an event that changed nothing.
// Timeline returns store.ErrNotFound if the purchase does not exist.
func (r *rows) Timeline(ctx context.Context, id string) (*Timeline, error) {
	p, err := r.Purchase(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &r.o.Tables.Tracking
	timeline := &Timeline{Purchase: p, Payments: []*Payment{}, Subscriptions: []*Subscription{}}
	for it, err := range r.items(ctx, &t.Payments, schema.PurchaseIndex, p.ID, store.Cursor{}, false) {
		if err != nil {
			return nil, err
		}
		timeline.Payments = append(timeline.Payments, paymentOf(it))
	}
	for it, err := range r.items(ctx, &t.Subscriptions, schema.PurchaseIndex, p.ID, store.Cursor{}, false) {
		if err != nil {
			return nil, err
		}
		timeline.Subscriptions = append(timeline.Subscriptions, from(it, (*Subscription).fields))
	}
	return timeline, r.tell(ctx, timeline)
}

// tell adds a step for every change, sorted by time.
func (r *rows) tell(ctx context.Context, t *Timeline) error {
	types := map[string]string{} // event type by ID; "" if the event has expired
	tell := func(id string, history []Change) error {
		for _, c := range history {
			if _, known := types[c.Event]; !known && c.Event != "" {
				e, err := r.Event(ctx, c.Event)
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
