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

// A Ledger provides the methods of tracking.Service that the poller uses.
type Ledger interface {
	Ingest(ctx context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error)
	ConnectedAccounts(ctx context.Context) iter.Seq2[*tracking.ConnectedAccount, error]
	Events(ctx context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error]
	SavePoll(ctx context.Context, stripeAccount string, p tracking.PollState) error
	Apply(ctx context.Context, at string, o tracking.Object) (changed bool, err error)
}

// A Lister lists events and objects from Stripe.
type Lister interface {
	// ListEvents calls each for every event that the account created at or after since. It reads
	// all pages in Stripe's order, newest first. It returns the time of the first page by Stripe's
	// clock. The list is complete up to that time. If each returns an error, the listing stops.
	ListEvents(ctx context.Context, at string, since time.Time, each func(RawEvent) error) (now time.Time, err error)
	// ListThin lists the thin events in the same way. It returns ErrNoThin if Stripe does not list
	// thin events for this account.
	ListThin(ctx context.Context, at string, since time.Time, each func(RawEvent) error) error
	// ListObjects calls each for every subscription of the account, whatever its status, for every
	// schedule and payment intent created since then, and for every dispute that may have changed
	// since then. All objects show their current state and are Fetched. A payment that an invoice
	// created has the invoice's links, as with tracking.Finder.
	ListObjects(ctx context.Context, at string, since time.Time, each func(tracking.Object) error) error
	// ListFollowed calls each for every subscription created at or after since, whatever its status, for every
	// schedule, and for every payment intent, refund and dispute created since payments. All objects are Fetched.
	// now is Stripe's time. problem says why an import does not follow the subscription; "" if it does.
	ListFollowed(ctx context.Context, at string, since, payments, now time.Time, each func(o tracking.Object, problem string) error) error
}

// ErrNoThin is returned if Stripe does not list thin events for this account.
var ErrNoThin = errors.New("thin events cannot be listed for this account")

// A RawEvent is an event in the form in which Stripe lists it.
type RawEvent struct {
	ID      string
	Created time.Time
	Body    []byte // complete body; names a connected account in "account", or in "context" if thin
}

// Options configure a Poller. Ledger and Lister are required. The other fields have defaults.
type Options struct {
	Ledger Ledger
	Lister Lister // must respect Stripe's rate limits

	Now      func() time.Time // nil: time.Now
	Log      *slog.Logger     // nil: nothing is logged
	Interval time.Duration    // time between rounds; 0: 10 minutes
	MaxQuiet time.Duration    // longest time between rounds of a quiet account; 0: 6 hours
	Parallel int              // accounts processed in parallel; 0: 64
	Batch    int              // maximum missing events per account in memory; 0: 10000

	// NoRounds and NoSweeps leave the rounds or the sweeps to another poller. With NoSweeps, this
	// poller does not compare objects after lost events either.
	NoRounds, NoSweeps bool
}

const (
	day         = 24 * time.Hour
	stripeKeeps = 30 * day  // how long Stripe lists an event
	overlap     = time.Hour // time before an account's mark that each round lists again
	alarmAfter  = 20 * day  // age of an account's mark at which warn logs it
	maxHeld     = 64 << 20  // maximum bytes of missing events, over all accounts
	leastHeld   = 100       // missing events that each account may always hold
	maxFailures = 20        // maximum number of failures in a report
	hurry       = 10        // divides the interval after a failed round, because the service may be starting
)

// A Poller lists the events of every connected account, and ingests the missing ones, oldest first.
// It is safe for concurrent use, but two concurrent rounds do the same work twice.
type Poller struct {
	o       Options
	maxHeld int64
	held    atomic.Int64 // bytes of missing events in memory
}

// New returns a Poller. The caller starts it with Run, Round or Sweep.
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

// A Failure is the error of one account's round or sweep. A report contains the first 20.
type Failure struct {
	StripeAccount string
	Error         string
}

// connected returns the connected accounts. It includes a disconnected account only after a longer
// wait, because the event that reports its reconnection may be lost.
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

// inParallel calls do for each account, with up to Options.Parallel calls at a time, until ctx
// ends.
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

// atOf returns the account parameter for a request to Stripe, which is "" for our own account.
func atOf(a *tracking.ConnectedAccount) string {
	if a.Own {
		return ""
	}
	return a.StripeAccount
}

func byMark(a, b *tracking.ConnectedAccount) int { return a.Polled.Through.Compare(b.Polled.Through) }

// dayOf returns midnight UTC of the day.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(day) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }
