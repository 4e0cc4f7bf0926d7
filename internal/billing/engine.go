package billing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Config is the policy of an installation. The zero value of a field means its default,
// but for ReceiptMonths, where zero keeps receipts for ever, and ActionDays, where zero waits
// for ever.
type Config struct {
	RetryDays     []int // days after the first decline on which it is tried again; default 1, 3, 5, 7
	CatchUp       int   // missed periods charged in one run before a subscription is parked; default 3
	ReceiptMonths int   // until a receipt expires; DefaultConfig has 6
	ActionDays    int   // that a customer has to authenticate a payment; then it has failed; DefaultConfig has 14

	// CardURL is the merchant's own page for giving a card, with {account} and {subscription}
	// in it; "" for the processor's.
	CardURL string

	// NoLinks says that the processor has no pages for customers: mail goes out without links.
	NoLinks bool
}

// DefaultConfig returns the policy of an installation that says nothing.
func DefaultConfig() Config {
	return Config{RetryDays: []int{1, 3, 5, 7}, CatchUp: 3, ReceiptMonths: 6, ActionDays: 14}
}

// Options are what an Engine works with.
type Options struct {
	Store     store.Store
	Tables    schema.Tables
	Processor Processor        // nil: an engine that only reads
	Now       func() time.Time // the real clock, or a test's
	Config    Config
	Log       *slog.Logger // nil discards

	// Shards is how many partitions of an index share a date, 1 to MaxShards, in a store
	// that is made now; 0 takes what the store has, and 1 for a new one.
	Shards int
	// Lease is how long a worker may be silent before others take over its share of a
	// run, on a store that several processes share; 0 for a store of this process alone.
	Lease time.Duration
	// ReadOnly opens a store that has been moved to another place, too.
	ReadOnly bool
	// Making says what to do about a store that has no META item.
	Making Making
}

// DefaultLease is Options.Lease for a shared store.
const DefaultLease = 2 * time.Minute

// ErrMoved: the store, or the subscription, has been copied to another store, which charges
// from now on.
var ErrMoved = errors.New("moved to another store")

// An Engine is the billing half of Duesday over one store. It is safe for concurrent
// use, and any number of engines may work on one store: no promise depends on there
// being one.
type Engine struct {
	store  store.Store
	tables schema.Tables
	table  string // recurring payments
	outbox string
	proc   Processor
	now    func() time.Time
	cfg    Config
	log    *slog.Logger
	meta   Meta
	lease  time.Duration
	locks  keyedLocks
}

// Open returns an engine over the store, and makes the store's META item when it has none
// and Options.Making lets it. It asks an Identified processor whose account it is:
// ErrOtherProcessor when the store was charged with another.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Shards < 0 || o.Shards > MaxShards {
		return nil, fmt.Errorf("%d shards per date: want 1 to %d", o.Shards, MaxShards)
	}
	e := &Engine{store: o.Store, tables: o.Tables, table: o.Tables.RecurringPayments.Name, outbox: o.Tables.Outbox.Name,
		proc: o.Processor, lease: o.Lease, now: func() time.Time { return o.Now().UTC().Truncate(time.Millisecond) }, cfg: o.Config, log: o.Log}
	if e.cfg.RetryDays == nil {
		e.cfg.RetryDays = DefaultConfig().RetryDays
	}
	if e.cfg.CatchUp == 0 {
		e.cfg.CatchUp = DefaultConfig().CatchUp
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	var err error
	for range maxTries { // a lost reply or a twin that made it first: read again
		if e.meta, err = e.readMeta(ctx); !errors.Is(err, store.ErrNotFound) {
			break
		}
		if making := e.makeMeta(ctx, o.Making, max(1, o.Shards)); making != nil && !again(making) {
			err = making
			break
		}
	}
	switch {
	case err != nil:
		return nil, err
	case o.Shards != 0 && o.Shards != e.meta.Shards:
		return nil, fmt.Errorf("the store has %d shards per date, not %d: they are set when it is made; store copy changes them", e.meta.Shards, o.Shards)
	case e.meta.Moved != "" && !o.ReadOnly:
		return nil, fmt.Errorf("%w: %s", ErrMoved, e.meta.Moved)
	}
	if err := e.pin(ctx, o.ReadOnly); err != nil {
		return nil, err
	}
	return e, nil
}

// Today returns the clock's day in UTC.
func (e *Engine) Today() civil.Date { return civil.Of(e.now()) }

// load returns the subscription as it stands, or store.ErrNotFound.
func (e *Engine) load(ctx context.Context, n Name) (*Subscription, error) {
	it, err := e.store.Get(ctx, e.table, n.key())
	if err != nil {
		return nil, err
	}
	s, err := decodeSubscription(it)
	switch {
	case err != nil:
		return nil, &illegible{err}
	case s.moved:
		return nil, fmt.Errorf("subscription %s was %w", n, ErrMoved)
	}
	return s, nil
}

// illegible is the error of an item that is there and cannot be read: another tool has written
// it. Asking again changes nothing, and it concerns nobody else.
type illegible struct{ error }

func (e *illegible) Unwrap() error { return e.error }

// put commits the subscription if it is still as it was read, together with the other
// writes. After an error s must be read again.
func (e *Engine) put(ctx context.Context, s *Subscription, others ...store.Write) error {
	s.shards = e.meta.Shards
	w := s.write(e.table)
	err := e.store.Commit(ctx, append([]store.Write{w}, others...)...)
	if errors.Is(err, store.ErrUnknown) { // all or nothing: what stands there tells which
		if now, lerr := e.load(ctx, s.Name); lerr == nil && now.raw.Equal(w.Item) {
			err = nil
		}
	}
	if err == nil {
		s.raw = w.Item
	}
	return err
}

// again reports whether the error of a commit means: read again and decide anew. A lost
// reply is only left here when the item is not as it was written: nothing landed, or
// somebody has gone on from it.
func again(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown)
}

// maxTries bounds how often one step is decided anew before the job gives the row up
// for this run; only livelock or a broken store comes near it.
const maxTries = 32
