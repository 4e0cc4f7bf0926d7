package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// A Ledger is the poller's part of tracking.Service.
type Ledger interface {
	Ingest(ctx context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error)
	ConnectedAccounts(ctx context.Context) iter.Seq2[*tracking.ConnectedAccount, error]
	Events(ctx context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error]
	SavePoll(ctx context.Context, stripeAccount string, p tracking.PollState) error
	Apply(ctx context.Context, at string, o tracking.Object) (changed bool, err error)
}

// A Lister lists events and objects from Stripe.
type Lister interface {
	// ListEvents calls each for every event of the account since then, inclusive, all pages, in
	// Stripe's order: the newest first. It returns the time of the first page by Stripe's clock;
	// the list has all events before it. An error of each ends the list.
	ListEvents(ctx context.Context, at string, since time.Time, each func(RawEvent) error) (now time.Time, err error)
	// ListThin is ListEvents of the thin events. It returns ErrNoThin if Stripe has no such list.
	ListThin(ctx context.Context, at string, since time.Time, each func(RawEvent) error) error
	// ListObjects calls each for every subscription of the account, in any state, every schedule
	// and payment intent made since then, and every dispute that may have changed since then, as
	// they are now: all Fetched. A payment made by an invoice has the invoice's links, as
	// tracking.Finder has them.
	ListObjects(ctx context.Context, at string, since time.Time, each func(tracking.Object) error) error
}

// ErrNoThin: Stripe lists no thin events of this account.
var ErrNoThin = errors.New("thin events cannot be listed for this account")

// A RawEvent is an event as Stripe lists it.
type RawEvent struct {
	ID      string
	Created time.Time
	Body    []byte // whole, with "account" filled in for a connected account's; "context" if thin
}

// Options configure a Poller. Ledger and Lister are needed; the others have defaults.
type Options struct {
	Ledger Ledger
	Lister Lister // must keep to Stripe's rates

	Now      func() time.Time // nil: time.Now
	Log      *slog.Logger     // nil: nothing is logged
	Interval time.Duration    // from round to round; 0: 10 minutes
	MaxQuiet time.Duration    // longest wait of a quiet account; 0: 6 hours
	Parallel int              // accounts at a time; 0: 64
	Batch    int              // most missing events of one account in memory; 0: 10000

	// Another poller does the rounds, or the sweeps: then no lost time is compared here either.
	NoRounds, NoSweeps bool
}

const (
	day         = 24 * time.Hour
	stripeKeeps = 30 * day  // the time for which Stripe lists an event
	overlap     = time.Hour // listed again before an account's mark
	alarmAfter  = 20 * day  // without a successful round of an account
	maxHeld     = 64 << 20  // bytes of missing events, over all accounts
	leastHeld   = 100       // missing events always allowed to an account
	maxFailures = 20        // named in a report
	hurry       = 10        // divides the interval after a failed round: the service may be about to start
)

// A Poller lists the events of every connected account, and ingests missing ones, oldest first. It is
// safe for concurrent use; two rounds at a time do the same work twice.
type Poller struct {
	o       Options
	maxHeld int64
	held    atomic.Int64 // bytes of missing events in memory
}

// New returns a Poller. It does nothing yet.
func New(o Options) *Poller {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Interval = cmp.Or(o.Interval, 10*time.Minute)
	o.MaxQuiet = max(o.Interval, cmp.Or(o.MaxQuiet, 6*time.Hour))
	o.Parallel = max(1, cmp.Or(o.Parallel, 64))
	o.Batch = max(1, cmp.Or(o.Batch, 10_000))
	return &Poller{o: o, maxHeld: maxHeld}
}

// A Failure says why an account's round failed. A report has the first 20.
type Failure struct {
	StripeAccount string `json:"stripe_account"`
	Error         string `json:"error"`
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

func (p *Poller) readIDs(ctx context.Context, q tracking.EventQuery, each func(id string)) error {
	for e, err := range p.o.Ledger.Events(ctx, q) {
		if err != nil {
			return fmt.Errorf("read the stored events: %w", err)
		}
		each(e.ID)
	}
	return nil
}

// atOf is the account in a request to Stripe: "" for our own.
func atOf(a *tracking.ConnectedAccount) string {
	if a.Own {
		return ""
	}
	return a.StripeAccount
}

func byMark(a, b *tracking.ConnectedAccount) int { return a.Polled.Through.Compare(b.Polled.Through) }

// dayOf is midnight in UTC.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(day) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }
