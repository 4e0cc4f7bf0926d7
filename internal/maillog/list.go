package maillog

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// A Log reads the mail of a store.
type Log struct {
	Store  store.Store
	Tables schema.Tables
	Now    func() time.Time
}

// A Filter selects mail. The zero Filter selects all ended mail.
type Filter struct {
	Account  string
	State    string
	From, To time.Time // of the creation: not before From, and before To; zero: any
}

// Keeps reports whether the filter selects the mail.
func (f Filter) Keeps(m *Mail) bool {
	return (f.Account == "" || m.Data[outbox.DataAccount] == f.Account) && (f.State == "" || m.State == f.State) &&
		!m.Created.Before(f.From) && (f.To.IsZero() || m.Created.Before(f.To))
}

// A list reads so many rows from a shard at first, and then four times as many each time, up to a most. A page of 100
// rows has about six of each shard.
const (
	rowsAtFirst = 8
	rowsAtMost  = 512
)

// List yields mail after the place, or from the start if place is "". Ended mail comes newest first. With the
// state Waiting or Held, List yields the outbox's rows, in the order in which they are due. It reads only the
// account's shard, but the caller applies the filter (Keeps), so it can limit how much it reads. Of ended mail with
// another state or account than the filter's, it yields the state and the place only. It omits rows that cannot be
// read, which outbox list reports.
func (l *Log) List(ctx context.Context, f Filter, place string) iter.Seq2[*Mail, error] {
	if queue := map[string]outbox.Queue{Waiting: outbox.Mail, Held: outbox.Held}[f.State]; queue != "" {
		rows := outbox.New(l.Store, l.Tables.Outbox, l.Now, nil, nil).On(queue).Partitions()
		return l.merged(ctx, store.Query{Table: l.Tables.Outbox.Name}, rows, Filter{}, place, strings.Compare)
	}
	shard := make([]uint32, 0, shards)
	for n := range uint32(shards) {
		if f.Account == "" || n == shardOf(f.Account) {
			shard = append(shard, n)
		}
	}
	now := l.Now()
	first, last := now.AddDate(0, 0, -Days), now.AddDate(0, 0, 1) // the clock that wrote a mail may be ahead
	if f.From.After(first) {
		first = f.From
	}
	if !f.To.IsZero() && f.To.Before(last) {
		last = f.To
	}
	q := store.Query{Table: l.Tables.RecurringPayments.Name, From: first.UTC().Format(stampLayout), To: last.UTC().Format(stampLayout), Reverse: true}
	return sequence.Flat(months(first, last, place), func(month time.Time) iter.Seq2[*Mail, error] {
		var rows []string
		for _, n := range shard {
			rows = append(rows, partition(month, n))
		}
		return l.merged(ctx, q, rows, f, place, func(a, b string) int { return strings.Compare(b, a) })
	})
}

// months yields the months from last back to first, from that of the place on.
func months(first, last time.Time, place string) iter.Seq[time.Time] {
	if at, err := time.Parse(monthLayout, place[:min(len(place), len(monthLayout))]); err == nil {
		last = at
	}
	return func(yield func(time.Time) bool) {
		first, last := first.UTC(), last.UTC()
		for m := time.Date(last.Year(), last.Month(), 1, 0, 0, 0, 0, time.UTC); m.AddDate(0, 1, 0).After(first); m = m.AddDate(0, -1, 0) {
			if !yield(m) {
				return
			}
		}
	}
}

// merged yields the mail in the partitions after the place, in the order of their sort keys. It does not decode
// records with another state or account than the filter's.
func (l *Log) merged(ctx context.Context, q store.Query, partitions []string, f Filter, place string, order func(a, b string) int) iter.Seq2[*Mail, error] {
	each := make([]iter.Seq2[*Mail, error], len(partitions))
	for i, p := range partitions {
		each[i] = sequence.Map(l.rows(ctx, q, p, place), func(it store.Item) (*Mail, error) {
			state := it.Str(schema.State)
			if f.State != "" && state != f.State || f.Account != "" && it.Get(schema.Data).Map().Str(outbox.DataAccount) != f.Account {
				return &Mail{State: state, Place: it.Str(schema.SK)}, nil
			}
			m, err := Decode(it)
			if err != nil || m.Kind == outbox.KindSum {
				err = sequence.ErrSkip
			}
			return m, err
		})
	}
	return sequence.Merge(each, func(a, b *Mail) int { return order(a.Place, b.Place) })
}

// rows yields the rows of a partition after the place.
func (l *Log) rows(ctx context.Context, q store.Query, partition, place string) iter.Seq2[store.Item, error] {
	q.Partition = partition
	return func(yield func(store.Item, error) bool) {
		for q.Limit = rowsAtFirst; ; q.Limit = min(4*q.Limit, rowsAtMost) {
			if place != "" {
				q.After = store.Cursor{Key: store.Key{PK: partition, SK: place}}
			}
			n := 0
			for it, err := range l.Store.Query(ctx, q) {
				if err != nil {
					yield(nil, fmt.Errorf("read the mail: %w", err))
					return
				}
				n, place = n+1, it.Str(schema.SK)
				if !yield(it, nil) {
					return
				}
			}
			if n < q.Limit {
				return
			}
		}
	}
}

// Find returns the mail with this ID, or store.ErrNotFound. For a mail that has not ended, it reads the queues.
func (l *Log) Find(ctx context.Context, id string) (*Mail, error) {
	pk, prefix, ok := keyOf(id)
	if !ok {
		return nil, fmt.Errorf("mail: %w", store.ErrNotFound)
	}
	for it, err := range l.Store.Query(ctx, store.Query{Table: l.Tables.RecurringPayments.Name, Partition: pk, Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("read the mail: %w", err)
		}
		if m, err := Decode(it); m.MailID == id && m.State != Waiting {
			return m, err
		}
	}
	for _, state := range []string{Waiting, Held} {
		for m, err := range l.List(ctx, Filter{State: state}, "") {
			if err != nil || m.MailID == id {
				return m, err
			}
		}
	}
	return nil, fmt.Errorf("mail: %w", store.ErrNotFound)
}

// IsState reports whether the text is a state.
func IsState(text string) bool { return slices.Contains(States(), text) }
