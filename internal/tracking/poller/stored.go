package poller

import (
	"context"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// shortWindow is the longest time of which the events of all accounts are read together, by the
// time index: as much as the first round of a day lists. For a longer time an account's events
// are read by the account index.
const shortWindow = 2 * 24 * time.Hour

const day = 24 * time.Hour

func (r *round) isShort(since time.Time) bool { return r.now.Sub(since) <= shortWindow }

// readDays reads the ids of the stored events of all accounts since then, a day at a time, by the
// time index. Later events may be missing: leaveOut looks once more.
func (r *round) readDays(ctx context.Context, from time.Time) (map[string]struct{}, error) {
	ids := map[string]struct{}{}
	to := r.now.Add(time.Hour) // Stripe's clock may be ahead of ours
	for at := from; at.Before(to); at = dayOf(at).Add(day) {
		q := tracking.EventQuery{From: at, To: dayOf(at).Add(day)}
		if to.Before(q.To) {
			q.To = to
		}
		if err := r.p.readIDs(ctx, q, func(id string) { ids[id] = struct{}{} }); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (p *Poller) readIDs(ctx context.Context, q tracking.EventQuery, each func(id string)) error {
	for e, err := range p.o.Ledger.Events(ctx, q) {
		if err != nil {
			return fmt.Errorf("read which events are stored: %w", err)
		}
		each(e.ID)
	}
	return nil
}

// dayOf is midnight in UTC.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(day) }

// A span holds the ids of one account's stored events of some days. Stripe lists the newest events
// first, so spans are needed one after the other, and only one is in memory.
type span struct {
	p       *Poller
	account string
	from    time.Time // inclusive; spanLength long
	ids     map[string]struct{}
}

const spanLength = 5 * day

// has reports whether the event is stored.
func (s *span) has(ctx context.Context, e RawEvent) (bool, error) {
	if from := e.Created.UTC().Truncate(spanLength); s.ids == nil || !s.from.Equal(from) {
		ids := map[string]struct{}{}
		q := tracking.EventQuery{StripeAccount: s.account, From: from, To: from.Add(spanLength)}
		if err := s.p.readIDs(ctx, q, func(id string) { ids[id] = struct{}{} }); err != nil {
			return false, err
		}
		s.from, s.ids = from, ids
	}
	_, ok := s.ids[e.ID]
	return ok, nil
}
