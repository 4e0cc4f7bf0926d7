package tracking

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Options are what a Service works with. Those that say so may be nil where nothing needs them.
type Options struct {
	Store        store.Store
	Tables       schema.Tables
	Installation string           // of the store: what is tagged with another one's id is not ours
	Own          string           // acct_… of our key
	Live         bool             // the mode of our key; events of the other mode are refused
	Now          func() time.Time // nil: time.Now
	Log          *slog.Logger     // nil: nothing is logged
	Decode       Decode           // needed by Ingest, DrainInbox and Rebuild
	Finder       Finder           // needed by DrainInbox and Register
	Seller       Seller           // needed by CreatePurchase and DrainInbox
	Settler      Settler          // takes events about billing's own payment intents; nil: they are ignored
	Shared       bool             // several processes may work on the store: jobs are claimed before they are done
	// EndedBy are the statuses of a Stripe subscription, of unpaid, paused and past_due, that end
	// it for the buyer. None: they are shown, and the buyer stays.
	EndedBy []string
	// Automations do what purchases ask for. What none of them takes is logged, which is an
	// automation too.
	Automations []Automation
}

// A Settler brings the open period of one of billing's subscriptions to what its payment
// intent has become. It returns nil when there is nothing to be done, too.
type Settler interface {
	Heard(ctx context.Context, account, subscription, intent string) error
}

// A Service follows what Stripe runs. It is safe for concurrent use, and any number of them,
// in any number of processes, may work on one store.
type Service struct {
	o                Options
	events, registry string        // names of tables
	salt             string        // of the ids of purchases
	wake             chan struct{} // holds one when something was put into the inbox or the actions

	mu        sync.Mutex
	merchants map[string]string // by registered Stripe account; guarded by mu
}

var (
	// ErrUnregistered: no such Stripe account is registered.
	ErrUnregistered = errors.New("this Stripe account is not registered")
	// ErrOther: what is asked for exists, and was asked for otherwise.
	ErrOther = errors.New("used before for something else")
)

// A FieldError says which field of an order or a registration is wrong, and what would be
// right.
type FieldError struct{ Field, Problem string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// ErrOtherStripe: the store follows another Stripe account, or the other mode.
var ErrOtherStripe = errors.New("this store follows another Stripe account or mode")

// Open returns a Service on a store. A store follows the connected accounts of one Stripe
// account in one mode, those it was opened with first: what is tested and what is real never
// meet.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, status := range o.EndedBy {
		if status != "unpaid" && status != "paused" && status != "past_due" {
			return nil, &FieldError{"ended_by", "want some of unpaid, paused and past_due"}
		}
	}
	if !isID(o.Own, "acct_") || o.Installation == "" {
		return nil, fmt.Errorf("tracking: want the Stripe account of the key and the store's installation, not %q and %q", o.Own, o.Installation)
	}
	s := &Service{o: o, events: o.Tables.Tracking.Events.Name, registry: o.Tables.Tracking.Registry.Name,
		wake: make(chan struct{}, 1), merchants: map[string]string{}}
	return s, s.pin(ctx)
}

// Pinned returns the Stripe account and mode that the store was opened with first, and
// store.ErrNotFound before that: for a start while Stripe cannot be asked.
func Pinned(ctx context.Context, s store.Store, t schema.Tables) (own string, live bool, err error) {
	it, err := s.Get(ctx, t.Tracking.Registry.Name, store.Key{PK: ownRow, SK: ownRow})
	return it.Str(schema.TrackedStripeAccount), it.Get(schema.TrackedLive).Bool(), err
}

// pin holds the store to the Stripe account and mode it was opened with first.
func (s *Service) pin(ctx context.Context) error {
	key := store.Key{PK: ownRow, SK: ownRow}
	return store.Retry(ctx, "tracking: the registry", func() error {
		it, err := s.o.Store.Get(ctx, s.registry, key)
		own, live := it.Str(schema.TrackedStripeAccount), it.Get(schema.TrackedLive).Bool()
		switch {
		case err == nil && (own != s.o.Own || live != s.o.Live):
			return fmt.Errorf("%w: it was opened with %s (%s), and the key is of %s (%s)", ErrOtherStripe, own, mode(live), s.o.Own, mode(s.o.Live))
		case err == nil:
			s.salt = it.Str(schema.TrackedSalt)
			return nil
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		s.salt = rand.Text()
		it = registryRow(ownRow, ownRow, store.Attribute{Name: schema.TrackedStripeAccount, Value: store.S(s.o.Own)},
			store.Attribute{Name: schema.TrackedLive, Value: store.Bool(s.o.Live)}, store.Attribute{Name: schema.TrackedSalt, Value: store.S(s.salt)})
		return s.commit(ctx, store.Put(s.registry, it, store.Absent()))
	})
}

func mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// now is the clock, in the resolution that is stored.
func (s *Service) now() time.Time { return s.o.Now().UTC().Truncate(time.Millisecond) }

func (s *Service) commit(ctx context.Context, writes ...store.Write) error {
	return s.o.Store.Commit(ctx, writes...)
}

// Wake holds one element when something was put into the inbox or the actions by this Service.
func (s *Service) Wake() <-chan struct{} { return s.wake }

func (s *Service) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}
