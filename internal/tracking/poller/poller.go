package poller

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// A Ledger is what the poller needs to know and to tell: a Service has it, and so has a client
// of one in another process.
type Ledger interface {
	ConnectedAccounts(ctx context.Context) iter.Seq2[*tracking.ConnectedAccount, error]
	Events(ctx context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error]
	SavePoll(ctx context.Context, stripeAccount string, p tracking.PollState) error
	Apply(ctx context.Context, at string, o tracking.Object) (changed bool, err error)
}

// A Sender sends the bodies of events to the webhook endpoint. It is called from several
// goroutines, and puts its own limit on how long it takes.
type Sender interface {
	// Send signs the body and posts it: with connect, to the endpoint for connected accounts. It
	// returns nil only when the answer was 2xx, and so the event is durable.
	Send(ctx context.Context, connect bool, body []byte) error
}

// A Lister lists what there is at Stripe.
type Lister interface {
	// ListEvents calls each for every event of the account since then, inclusive, all pages, in
	// Stripe's order: the newest first. It returns the time by Stripe's clock when the first page
	// was answered: what happened before it is in the list. An error of each ends it.
	ListEvents(ctx context.Context, at string, since time.Time, each func(RawEvent) error) (now time.Time, err error)
	// ListObjects calls each for every subscription of the account, in whatever state, and every
	// schedule and payment intent made since then, as they are now: all Seen. A payment that an invoice
	// made has the invoice's links, as of tracking.Finder.Payment.
	ListObjects(ctx context.Context, at string, since time.Time, each func(tracking.Object) error) error
}

// A RawEvent is an event as Stripe lists it.
type RawEvent struct {
	ID      string
	Created time.Time
	Body    []byte // whole, with "account" filled in for a connected account's
}

// Options are what a Poller works with. Ledger, Sender and Lister are needed; what is zero
// of the others has the default.
type Options struct {
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
	o       Options
	maxHeld int64
	held    atomic.Int64 // bytes of missing events in memory
}

// New returns a Poller. It does nothing yet.
func New(o Options) *Poller {
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
