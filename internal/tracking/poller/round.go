package poller

import (
	"context"
	"fmt"
	"slices"
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

// A Failure says why an account's round failed. A report has the first 20.
type Failure struct {
	StripeAccount string `json:"stripe_account"`
	Error         string `json:"error"`
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

// Round lists the events of every due account, or of every account if all is set, and sends the
// missing ones. The failure of one account is in the report, and stops no other. Round returns an
// error only if it cannot read the registry, or if ctx ends; the next round asks for the rest.
func (p *Poller) Round(ctx context.Context, all bool) (Report, error) {
	r := &round{p: p, now: p.o.Now()}
	accounts, err := p.connected(ctx)
	if err != nil {
		return Report{}, err
	}
	due := slices.Clone(accounts)
	if !all {
		due = slices.DeleteFunc(due, func(a *tracking.ConnectedAccount) bool { return !p.isDue(a.Polled, r.now) })
	}
	// The account furthest behind comes first: a round may be cut short.
	slices.SortStableFunc(due, byMark)
	from := r.now
	for _, a := range due {
		if since := r.since(a); r.isShort(since) && since.Before(from) {
			from = since
		}
	}
	r.stored = sync.OnceValues(func() (map[string]struct{}, error) { return r.readDays(ctx, from) })
	r.thin = slices.ContainsFunc(accounts, func(a *tracking.ConnectedAccount) bool { return a.Polled.Thin })
	r.report.Skipped = len(accounts) - len(due)
	p.inParallel(ctx, due, r.poll)
	accounts = slices.DeleteFunc(accounts, func(a *tracking.ConnectedAccount) bool {
		return a.Status == tracking.Disconnected && a.Polled.Error != ""
	})
	if len(accounts) > 0 { // connected ones: the oldest mark
		r.report.Through = slices.MinFunc(accounts, byMark).Polled.Through
	}
	r.warn(accounts)
	return r.report, context.Cause(ctx)
}

// connected returns the accounts; disconnected ones seldom: the event of a reconnection may be lost.
func (p *Poller) connected(ctx context.Context) ([]*tracking.ConnectedAccount, error) {
	var list []*tracking.ConnectedAccount
	now := p.o.Now()
	for a, err := range p.o.Ledger.ConnectedAccounts(ctx) {
		if err != nil {
			return nil, fmt.Errorf("poll: read the connected accounts: %w", err)
		}
		if a.Status == tracking.Disconnected && now.Before(later(a.Polled.Next, a.Updated.Add(p.o.MaxQuiet))) {
			continue
		}
		list = append(list, a)
	}
	return list, nil
}

// isDue reports whether an account is due. A time beyond MaxQuiet was set by a wrong clock.
func (p *Poller) isDue(s tracking.PollState, now time.Time) bool {
	return !s.Next.After(now) || s.Next.After(now.Add(p.o.MaxQuiet))
}

// warn logs late accounts: soon Stripe will not list their events any more.
func (r *round) warn(accounts []*tracking.ConnectedAccount) {
	late, oldest := 0, r.now
	var which string
	for _, a := range accounts {
		mark := a.Polled.Through
		if mark.IsZero() {
			mark = a.Created
		}
		if r.now.Sub(mark) > alarmAfter {
			late++
			if mark.Before(oldest) {
				oldest, which = mark, a.StripeAccount
			}
		}
	}
	if late > 0 {
		r.p.o.Log.Warn("events have not been verified for more than 20 days; Stripe deletes them after 30",
			"accounts", late, "oldest", which, "verified_through", oldest)
	}
}

func byMark(a, b *tracking.ConnectedAccount) int { return a.Polled.Through.Compare(b.Polled.Through) }

// inParallel calls do for each account, Parallel at a time, until ctx ends.
func (p *Poller) inParallel(ctx context.Context, accounts []*tracking.ConnectedAccount,
	do func(context.Context, *tracking.ConnectedAccount)) {
	next := make(chan *tracking.ConnectedAccount)
	var running sync.WaitGroup
	for range min(p.o.Parallel, len(accounts)) {
		running.Go(func() {
			for a := range next {
				if ctx.Err() == nil {
					do(ctx, a)
				}
			}
		})
	}
	for _, a := range accounts {
		next <- a
	}
	close(next)
	running.Wait()
}

// atOf is the account in a request to Stripe: "" for our own.
func atOf(a *tracking.ConnectedAccount) string {
	if a.Own {
		return ""
	}
	return a.StripeAccount
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

func (p *Poller) readIDs(ctx context.Context, q tracking.EventQuery, each func(id string)) error {
	for e, err := range p.o.Ledger.Events(ctx, q) {
		if err != nil {
			return fmt.Errorf("read the stored events: %w", err)
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
