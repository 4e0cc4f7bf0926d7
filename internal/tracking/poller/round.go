package poller

import (
	"context"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// A Report is the result of one round.
type Report struct {
	Accounts int       `json:"accounts"` // asked
	Skipped  int       `json:"skipped"`  // connected, and left alone as they are quiet
	Listed   int       `json:"listed"`   // events from Stripe
	Missing  int       `json:"missing"`  // of them, not stored
	Sent     int       `json:"sent"`     // of these, sent and durable
	Failed   int       `json:"failed"`   // accounts whose round failed
	Failures []Failure `json:"failures,omitempty"`
	Lost     []Gap     `json:"lost,omitempty"` // times not listed by Stripe any more
	// Every event of every connected account before Through is stored, except those Lost. It is
	// zero if there is no account, or one without a successful round.
	Through time.Time `json:"verified_through,omitzero"`
}

// A Gap is a time of which Stripe does not list an account's events any more: the poller came too
// late. The account's objects are compared, as by a sweep; then its mark moves on.
type Gap struct {
	StripeAccount string    `json:"stripe_account"`
	From          time.Time `json:"from"`    // inclusive
	To            time.Time `json:"to"`      // exclusive
	Changed       int       `json:"changed"` // objects unlike the stored events
}

// A round is one round under way.
type round struct {
	p      *Poller
	now    time.Time                           // by our clock, when it began
	stored func() (map[string]struct{}, error) // ids of the events of all accounts in its short windows
	thin   bool                                // an account has sent thin events

	mu     sync.Mutex
	report Report // guarded by mu
}

// since is the start of an account's listing. The mark is by Stripe's clock, so no clock of ours can
// make it skip an event. The first round of a day starts a day earlier, for late events.
func (r *round) since(a *tracking.ConnectedAccount) time.Time {
	through := a.Polled.Through
	if through.IsZero() || a.Polled.Thin && a.Polled.Checked.IsZero() { // nobody has read its thin events yet
		return time.Unix(0, 0).UTC() // Stripe ends its list by itself after 30 days
	}
	if !r.isDaily(a) {
		return through.Add(-overlap)
	}
	return earlier(through, dayOf(r.now)).Add(-day)
}

// isDaily reports whether the account's last successful round was on another day.
func (r *round) isDaily(a *tracking.ConnectedAccount) bool {
	return !dayOf(a.Polled.Checked).Equal(dayOf(r.now))
}

// asksThin reports whether the account's thin events are listed: in each round if it has sent one,
// and once a day if another account has, since all of its webhooks may be lost.
func (r *round) asksThin(a *tracking.ConnectedAccount) bool {
	return a.Polled.Thin || r.thin && r.isDaily(a)
}

// shortWindow is the longest time of which the events of all accounts are read together, by the time
// index: as much as the first round of a day lists. A longer time is read by the account index.
const shortWindow = 2 * day

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

// A span holds the ids of one account's stored events of some days. Stripe lists the newest events
// first, so spans are needed one after the other, and only one is in memory.
type span struct {
	p       *Poller
	account string
	from    time.Time // inclusive; spanLength long
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
