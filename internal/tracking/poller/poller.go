package poller

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/secret"
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

// Run does a round at once, and then every Interval. After the first round, and then every MaxQuiet,
// it sweeps the accounts that are due for it. It returns nil when ctx ends. A failed round or sweep is
// logged and tried again.
func (p *Poller) Run(ctx context.Context) error {
	sweeps := time.NewTimer(0)
	defer sweeps.Stop()
	for ctx.Err() == nil {
		rounds := time.NewTimer(p.o.Interval) // from the start of a round: a long one does not delay the next
		if !p.o.NoRounds && !p.turn(ctx) {
			rounds.Reset(p.o.Interval / hurry)
		}
		select {
		case <-sweeps.C:
			if p.o.NoSweeps || p.sweepTurn(ctx) {
				sweeps.Reset(p.o.MaxQuiet)
			} else {
				sweeps.Reset(0) // with the next round
			}
		default:
		}
		select {
		case <-ctx.Done():
		case <-rounds.C:
		}
		rounds.Stop()
	}
	return nil
}

// turn does one round. It reports its success.
func (p *Poller) turn(ctx context.Context) bool {
	r, err := p.Round(ctx, false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.o.Log.Error("a polling round failed; the poller tries again", "error", secret.Short(err.Error()))
	case r.Sent > 0 || r.Failed > 0:
		p.o.Log.Info("the poller fetched events that webhooks had not delivered", "accounts", r.Accounts, "listed", r.Listed,
			"missing", r.Missing, "sent", r.Sent, "failed", r.Failed, "verified_through", r.Through)
	default:
		p.o.Log.Debug("no event is missing", "accounts", r.Accounts, "skipped", r.Skipped, "listed", r.Listed,
			"verified_through", r.Through)
	}
	return err == nil
}

// sweepTurn does one sweep. It reports its success.
func (p *Poller) sweepTurn(ctx context.Context) bool {
	r, err := p.Sweep(ctx, false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.o.Log.Error("a sweep failed; the poller tries again", "error", secret.Short(err.Error()))
	case r.Untold > 0 || r.Failed > 0:
		p.o.Log.Warn("a sweep found objects that had changed without an event", "accounts", r.Accounts, "objects", r.Objects, "changed",
			r.Changed, "without an event", r.Untold, "failed", r.Failed)
	default:
		p.o.Log.Debug("a sweep found no object that had changed without an event", "changed", r.Changed, "accounts", r.Accounts, "objects", r.Objects)
	}
	return err == nil
}
