package tracking

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Ledger is what the poller needs to know and to tell: a Service has it, and so has a client
// of one in another process.
type Ledger interface {
	ConnectedAccounts(ctx context.Context) iter.Seq2[*ConnectedAccount, error]
	Events(ctx context.Context, q EventQuery) iter.Seq2[EventRow, error]
	SavePoll(ctx context.Context, stripeAccount string, p PollState) error
	Apply(ctx context.Context, at string, o Object) (changed bool, err error)
}

var _ Ledger = (*Service)(nil)

// A Sender sends the bodies of events to the webhook endpoint. It is called from several
// goroutines, and puts its own limit on how long it takes.
type Sender interface {
	// Send signs the body and posts it: with connect, to the endpoint for connected accounts. It
	// returns nil only when the answer was 2xx, and so the event is durable.
	Send(ctx context.Context, connect bool, body []byte) error
}

// PollOptions are what a Poller works with. Ledger, Sender and Lister are needed; what is zero
// of the others has the default.
type PollOptions struct {
	Ledger Ledger
	Sender Sender
	Lister Lister // keeps to Stripe's rates by itself

	Now      func() time.Time // nil: time.Now
	Log      *slog.Logger     // nil: nothing is logged
	Interval time.Duration    // from round to round; 0: 10 minutes
	Overlap  time.Duration    // how far before its mark an account is asked for once more; 0: an hour
	MaxQuiet time.Duration    // the longest that a quiet account is left alone; 0: 6 hours
	Parallel int              // accounts at a time; 0: 64
	Batch    int              // missing events of one account that are held at a time; 0: 10000
}

const (
	stripeKeeps  = 30 * 24 * time.Hour // for how long Stripe lists an event
	alarmAfter   = 20 * 24 * time.Hour // without a round that got through to an account
	maxHeld      = 64 << 20            // bytes of missing events, over all accounts
	leastHeld    = 100                 // missing events that an account may hold whatever the others do
	maxFailures  = 20                  // that a report names
	maxErrorText = 300                 // bytes of an error that is stored
)

// A Poller finds the events that never came, and has them come: it lists the events of every
// connected account, and sends those that are not stored to the webhook endpoint, oldest
// first. It is safe for concurrent use; two rounds at a time do the same work twice.
type Poller struct {
	o       PollOptions
	maxHeld int64
	held    atomic.Int64 // bytes of missing events in memory
}

// NewPoller returns a Poller. It does nothing yet.
func NewPoller(o PollOptions) *Poller {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Interval = cmp.Or(o.Interval, 10*time.Minute)
	o.Overlap = cmp.Or(o.Overlap, time.Hour)
	o.MaxQuiet = max(o.Interval, cmp.Or(o.MaxQuiet, 6*time.Hour))
	o.Parallel = max(1, cmp.Or(o.Parallel, 64))
	o.Batch = max(1, cmp.Or(o.Batch, 10_000))
	return &Poller{o: o, maxHeld: maxHeld}
}

// A PollReport says what one round did.
type PollReport struct {
	Accounts int           `json:"accounts"` // that were asked for
	Skipped  int           `json:"skipped"`  // connected, and left alone because they are quiet
	Listed   int           `json:"listed"`   // events that Stripe told of
	Missing  int           `json:"missing"`  // of them, not stored
	Sent     int           `json:"sent"`     // of these, sent and taken
	Failed   int           `json:"failed"`   // accounts whose round did not get through
	Failures []PollFailure `json:"failures,omitempty"`
	Lost     []PollGap     `json:"lost,omitempty"` // what Stripe does not list any more
	// Through: every event of every connected account before it is stored, but for what is Lost.
	// Zero: there is an account that no round has got through to yet, or none at all.
	Through time.Time `json:"verified_through,omitzero"`
}

// A PollFailure says why an account's round did not get through. A report has the first 20.
type PollFailure struct {
	StripeAccount string `json:"stripe_account"`
	Error         string `json:"error"`
}

// A PollGap is a time that nobody can list an account's events of: the poller came too late.
// Its objects were compared as a sweep does it, and the account's mark moves on once that has
// got through.
type PollGap struct {
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
	report PollReport // guarded by mu
}

// Round asks for the events of every connected account whose time has come, or with all of
// every one, and sends what is missing. What goes wrong with one account is in the report, and
// stops no other. The error is that of reading the registry, or of ctx; then some accounts
// were not asked for, and the next round asks for them.
func (p *Poller) Round(ctx context.Context, all bool) (PollReport, error) {
	r := &round{p: p, now: p.o.Now()}
	accounts, err := p.connected(ctx)
	if err != nil {
		return PollReport{}, err
	}
	var due, rest []*ConnectedAccount
	for _, a := range accounts {
		if all || p.isDue(a.Polled, r.now) {
			due = append(due, a)
		} else {
			rest = append(rest, a)
		}
	}
	// Whoever is behind comes first: a round that is cut short has done what matters most.
	slices.SortStableFunc(due, func(a, b *ConnectedAccount) int { return a.Polled.Through.Compare(b.Polled.Through) })
	from := r.now
	for _, a := range due {
		if since := r.since(a); r.isShort(since) && since.Before(from) {
			from = since
		}
	}
	r.stored = sync.OnceValues(func() (map[string]struct{}, error) { return r.readDays(ctx, from) })
	r.report.Skipped = len(rest)
	p.inParallel(ctx, due, r.poll)
	accounts = slices.DeleteFunc(accounts, func(a *ConnectedAccount) bool { return a.Status == Disconnected && a.Polled.Error != "" })
	r.report.Through = throughOf(accounts) // of those that let us in
	r.warn(accounts)
	return r.report, context.Cause(ctx)
}

// connected returns the accounts: also those that have let go of us, which are asked now and
// then, since the event of their coming back may be lost.
func (p *Poller) connected(ctx context.Context) ([]*ConnectedAccount, error) {
	var list []*ConnectedAccount
	now := p.o.Now()
	for a, err := range p.o.Ledger.ConnectedAccounts(ctx) {
		if err != nil {
			return nil, fmt.Errorf("poll: read the connected accounts: %w", err)
		}
		if a.Status == Disconnected && now.Before(later(a.Polled.Next, a.Updated.Add(p.o.MaxQuiet))) {
			continue
		}
		list = append(list, a)
	}
	return list, nil
}

// isDue reports whether an account's time has come. One that is further away than any can be
// was set by a clock that was wrong.
func (p *Poller) isDue(s PollState, now time.Time) bool {
	return !s.Next.After(now) || s.Next.After(now.Add(p.o.MaxQuiet))
}

// warn tells people while there is time: what Stripe has forgotten nobody can list.
func (r *round) warn(accounts []*ConnectedAccount) {
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
func throughOf(accounts []*ConnectedAccount) time.Time {
	if len(accounts) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(accounts, func(a, b *ConnectedAccount) int { return a.Polled.Through.Compare(b.Polled.Through) }).Polled.Through
}

// inParallel does it for each account, so many at a time, until ctx ends.
func (p *Poller) inParallel(ctx context.Context, accounts []*ConnectedAccount, do func(context.Context, *ConnectedAccount)) {
	next := make(chan *ConnectedAccount)
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
func atOf(a *ConnectedAccount) string {
	if a.Own {
		return ""
	}
	return a.StripeAccount
}
