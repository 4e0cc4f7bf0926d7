package poller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// A Report says what one round did.
type Report struct {
	Accounts int       `json:"accounts"` // that were asked for
	Skipped  int       `json:"skipped"`  // connected, and left alone because they are quiet
	Listed   int       `json:"listed"`   // events that Stripe told of
	Missing  int       `json:"missing"`  // of them, not stored
	Sent     int       `json:"sent"`     // of these, sent and taken
	Failed   int       `json:"failed"`   // accounts whose round did not get through
	Failures []Failure `json:"failures,omitempty"`
	Lost     []Gap     `json:"lost,omitempty"` // what Stripe does not list any more
	// Through: every event of every connected account before it is stored, but for what is Lost.
	// Zero: there is an account that no round has got through to yet, or none at all.
	Through time.Time `json:"verified_through,omitzero"`
}

// A Failure says why an account's round did not get through. A report has the first 20.
type Failure struct {
	StripeAccount string `json:"stripe_account"`
	Error         string `json:"error"`
}

// A Gap is a time that nobody can list an account's events of: the poller came too late.
// Its objects were compared as a sweep does it, and the account's mark moves on once that has
// got through.
type Gap struct {
	StripeAccount string    `json:"stripe_account"`
	From          time.Time `json:"from"`    // inclusive
	To            time.Time `json:"to"`      // exclusive
	Changed       int       `json:"changed"` // objects that no event had told of as they are
}

// A round is one round under way.
type round struct {
	p      *Poller
	now    time.Time                           // by our clock, when it began
	stored func() (map[string]struct{}, error) // ids of the events of all accounts in its short windows

	mu     sync.Mutex
	report Report // guarded by mu
}

// Round asks for the events of every connected account whose time has come, or with all of
// every one, and sends what is missing. What goes wrong with one account is in the report, and
// stops no other. The error is that of reading the registry, or of ctx; then some accounts
// were not asked for, and the next round asks for them.
func (p *Poller) Round(ctx context.Context, all bool) (Report, error) {
	r := &round{p: p, now: p.o.Now()}
	accounts, err := p.connected(ctx)
	if err != nil {
		return Report{}, err
	}
	var due, rest []*tracking.ConnectedAccount
	for _, a := range accounts {
		if all || p.isDue(a.Polled, r.now) {
			due = append(due, a)
		} else {
			rest = append(rest, a)
		}
	}
	// Whoever is behind comes first: a round that is cut short has done what matters most.
	slices.SortStableFunc(due, func(a, b *tracking.ConnectedAccount) int { return a.Polled.Through.Compare(b.Polled.Through) })
	from := r.now
	for _, a := range due {
		if since := r.since(a); r.isShort(since) && since.Before(from) {
			from = since
		}
	}
	r.stored = sync.OnceValues(func() (map[string]struct{}, error) { return r.readDays(ctx, from) })
	r.report.Skipped = len(rest)
	p.inParallel(ctx, due, r.poll)
	accounts = slices.DeleteFunc(accounts, func(a *tracking.ConnectedAccount) bool {
		return a.Status == tracking.Disconnected && a.Polled.Error != ""
	})
	r.report.Through = throughOf(accounts) // of those that let us in
	r.warn(accounts)
	return r.report, context.Cause(ctx)
}

// connected returns the accounts: also those that have let go of us, which are asked now and
// then, since the event of their coming back may be lost.
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

// isDue reports whether an account's time has come. One that is further away than any can be
// was set by a clock that was wrong.
func (p *Poller) isDue(s tracking.PollState, now time.Time) bool {
	return !s.Next.After(now) || s.Next.After(now.Add(p.o.MaxQuiet))
}

// warn tells people while there is time: what Stripe has forgotten nobody can list.
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
		r.p.o.Log.Warn("events have not been verified for more than 20 days, and Stripe keeps them for 30",
			"accounts", late, "oldest", which, "verified_through", oldest)
	}
}

// throughOf returns the oldest mark.
func throughOf(accounts []*tracking.ConnectedAccount) time.Time {
	if len(accounts) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(accounts, func(a, b *tracking.ConnectedAccount) int { return a.Polled.Through.Compare(b.Polled.Through) }).Polled.Through
}

// inParallel does it for each account, so many at a time, until ctx ends.
func (p *Poller) inParallel(ctx context.Context, accounts []*tracking.ConnectedAccount, do func(context.Context, *tracking.ConnectedAccount)) {
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

// atOf is how Stripe is asked about the account.
func atOf(a *tracking.ConnectedAccount) string {
	if a.Own {
		return ""
	}
	return a.StripeAccount
}
