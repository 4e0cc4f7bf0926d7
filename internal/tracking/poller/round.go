package poller

import (
	"context"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// A Report is the result of one round.
type Report struct {
	Accounts int // accounts whose events were listed
	Skipped  int // connected accounts not due yet because they are quiet
	Listed   int // events that Stripe listed
	Missing  int // listed events that were not stored
	Sent     int // missing events that are now durable
	Failed   int // accounts whose round failed
	Failures []Failure
	Lost     []Gap // periods whose events Stripe has deleted
	// Duesday stores every event that a connected account created before Through, except those in
	// Lost. Through is zero if there is no account, or if an account has not had a successful
	// round.
	Through time.Time
}

// A Gap is a period whose events Stripe deleted before the poller could list them. The poller
// compares the account's objects instead, as in a sweep, and then advances the account's mark.
type Gap struct {
	StripeAccount string
	From          time.Time // inclusive
	To            time.Time // exclusive
	Changed       int       // objects that differed from the stored rows
}

// A round holds the state of a running round.
type round struct {
	p      *Poller
	now    time.Time                           // start of the round by our clock
	stored func() (map[string]struct{}, error) // IDs of all accounts' stored events within the short window
	thin   bool                                // at least one account has sent thin events

	mu     sync.Mutex
	report Report // guarded by mu
}

// since returns the time from which to list an account's events. The mark uses Stripe's clock, so
// an error of our clock cannot skip an event. The first round of each day starts a day earlier to
// find late events.
func (r *round) since(a *tracking.ConnectedAccount) time.Time {
	through := a.Polled.Through
	if through.IsZero() || a.Polled.Thin && a.Polled.Checked.IsZero() { // no round has listed its thin events yet
		return time.Unix(0, 0).UTC() // Stripe limits its list to 30 days anyway
	}
	if !r.isDaily(a) {
		return through.Add(-overlap)
	}
	return earlier(through, dayOf(r.now)).Add(-day)
}

// isDaily reports whether the account is due for its first round of the day. That is the case if
// its last successful round was on another day.
func (r *round) isDaily(a *tracking.ConnectedAccount) bool {
	return !dayOf(a.Polled.Checked).Equal(dayOf(r.now))
}

// asksThin reports whether the round lists the account's thin events. An account that has sent a
// thin event is asked in every round. If another account has sent a thin event, the poller
// asks for this account's once a day, because Duesday may have missed all of its webhooks.
func (r *round) asksThin(a *tracking.ConnectedAccount) bool {
	return a.Polled.Thin || r.thin && r.isDaily(a)
}

// shortWindow is the longest period for which a round reads all accounts' stored events together
// through the time index. It covers what the first round of a day lists. For a longer period the
// round reads the account index.
const shortWindow = 2 * day

func (r *round) isShort(since time.Time) bool { return r.now.Sub(since) <= shortWindow }

// readDays reads the IDs of all accounts' stored events from the given time on, one day at a time,
// through the time index. It may miss events stored later, so leaveOut checks again.
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

// A span holds the IDs of one account's stored events within a few days. Stripe lists the newest
// events first, so a round needs one span after the other and keeps only one in memory.
type span struct {
	p       *Poller
	account string
	from    time.Time // inclusive start; the span covers spanLength
	ids     map[string]struct{}
}

const spanLength = 5 * day

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
