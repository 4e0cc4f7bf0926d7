package tracking

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Options configure a Service. Decode, Finder and Seller may be nil if no call needs them.
type Options struct {
	Store        store.Store
	Tables       schema.Tables
	Installation string           // of the store: objects tagged with another id are not ours
	Own          string           // acct_… of our key
	Live         bool             // the mode of our key; events of the other mode are refused
	Now          func() time.Time // nil: time.Now
	Log          *slog.Logger     // nil: nothing is logged
	Decode       Decode           // needed by Ingest, DrainInbox and Rebuild
	Finder       Finder           // needed by DrainInbox and Register
	Seller       Seller           // needed by CreatePurchase and DrainInbox
	Settler      Settler          // takes events about billing's own payment intents; nil: they are ignored
	Shared       bool             // several processes may use the store: each claims a job before doing it
	// EndedBy lists the statuses of a Stripe subscription, of unpaid, paused and past_due, at
	// which it ends for the buyer. The others are only shown.
	EndedBy []string
	// UnsubscribeAfter is how long an unsubscribe may be withdrawn by another subscription; 0: not at all.
	UnsubscribeAfter time.Duration
	// Automations do the actions of purchases. An action without one is logged, and done.
	Automations []Automation
}

// A Settler settles the open period of one of billing's subscriptions by its payment intent, if any.
type Settler interface {
	Heard(ctx context.Context, account, subscription, intent string) error
}

// A Service ingests events, applies them and delivers their effects. It is safe for concurrent
// use, and any number of them, in any number of processes, may use one store.
type Service struct {
	o                Options
	events, registry string        // names of tables
	salt             string        // of the ids of purchases
	wake             chan struct{} // holds one when something was put into the inbox or the actions
	merchants        sync.Map      // by registered Stripe account
	thin             sync.Map      // by registered Stripe account that has sent a thin event
	seed             maphash.Seed
	asking           [64]chan struct{} // by payment: holds one while one of its events asks Stripe
}

var (
	// ErrUnregistered: no such Stripe account is registered.
	ErrUnregistered = errors.New("the Stripe account is not registered")
	// ErrOther: the key or the Stripe account was used before, for another order or merchant.
	ErrOther = errors.New("already used for another order or merchant")
	// ErrStripeKey: Stripe refuses our key, or it lacks a permission. The request was not carried out.
	ErrStripeKey = errors.New("the key of this installation is refused by Stripe")
)

// A FieldError says which field of an order or a registration is wrong, and how.
type FieldError = field.Error

// ErrOtherStripe: the store follows another Stripe account, or the other mode.
var ErrOtherStripe = errors.New("this store belongs to another Stripe account or mode")

// Open returns a Service on a store. A store follows the connected accounts of one Stripe
// account in one mode, those it was opened with first: test and live data never mix.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for _, status := range o.EndedBy {
		if status != "unpaid" && status != "paused" && status != "past_due" {
			return nil, field.Wrong("ended_by", "must contain only unpaid, paused or past_due")
		}
	}
	if !isID(o.Own, "acct_") || o.Installation == "" {
		return nil, fmt.Errorf("tracking: the key's Stripe account and the store's installation must be set "+
			"(got %q and %q)", o.Own, o.Installation)
	}
	s := &Service{o: o, events: o.Tables.Tracking.Events.Name, registry: o.Tables.Tracking.Registry.Name,
		wake: make(chan struct{}, 1), seed: maphash.MakeSeed()}
	for i := range s.asking {
		s.asking[i] = make(chan struct{}, 1)
	}
	return s, s.pin(ctx)
}

// Pinned returns the Stripe account and mode of the store's first opening, or
// store.ErrNotFound. It serves a start while Stripe does not answer.
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
			return fmt.Errorf("%w: it was first opened with %s (%s), but the key belongs to %s (%s)", ErrOtherStripe, own, mode(live),
				s.o.Own, mode(s.o.Live))
		case err == nil:
			s.salt = it.Str(schema.TrackedSalt)
			return nil
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		s.salt = rand.Text()
		it = registryRow(ownRow, ownRow, store.Attribute{Name: schema.TrackedStripeAccount, Value: store.S(s.o.Own)},
			store.Attribute{Name: schema.TrackedLive, Value: store.Bool(s.o.Live)}, store.Attribute{Name: schema.TrackedSalt,
				Value: store.S(s.salt)})
		return s.commit(ctx, store.Put(s.registry, it, store.Absent()))
	})
}

// CursorKey returns the key that encrypts the cursors of lists of this store, in every process.
func (s *Service) CursorKey() [32]byte { return sha256.Sum256([]byte("cursor " + s.salt)) }

func mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// now is the clock, in the stored resolution.
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
