package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/refund"
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
	return Config{RetryDays: []int{1, 3, 5, 7}, CatchUp: billing.DefaultCatchUp, ReceiptMonths: 6, ActionDays: 14}
}

// Options are what an Engine works with.
type Options struct {
	Store     store.Store
	Tables    schema.Tables
	Processor billing.Processor // nil: an engine that only reads
	Now       func() time.Time  // the real clock, or a test's
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

// An Engine is the billing half of Duesday over one store. It is safe for concurrent
// use, and any number of engines may work on one store: no promise depends on there
// being one.
type Engine struct {
	*billing.Records
	proc  billing.Processor
	cfg   Config
	lease time.Duration
	locks keyedLocks
}

// Open returns an engine over the store, and makes the store's META item when it has none
// and Options.Making lets it. It asks an Identified processor whose account it is:
// ErrOtherProcessor when the store was charged with another.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Shards < 0 || o.Shards > billing.MaxShards {
		return nil, fmt.Errorf("%d shards per date: want 1 to %d", o.Shards, billing.MaxShards)
	}
	e := &Engine{Records: billing.NewRecords(o.Store, o.Tables, o.Now, o.Log), proc: o.Processor, cfg: o.Config, lease: o.Lease}
	e.Shared = o.Lease != 0
	if e.cfg.RetryDays == nil {
		e.cfg.RetryDays = DefaultConfig().RetryDays
	}
	if e.cfg.CatchUp == 0 {
		e.cfg.CatchUp = DefaultConfig().CatchUp
	}
	var err error
	for range store.MaxTries { // a lost reply or a twin that made it first: read again
		if e.Opened, err = e.Meta(ctx); !errors.Is(err, store.ErrNotFound) {
			break
		}
		if making := e.makeMeta(ctx, o.Making, max(1, o.Shards)); making != nil && !store.Retryable(making) {
			err = making
			break
		}
	}
	switch {
	case err != nil:
		return nil, err
	case o.Shards != 0 && o.Shards != e.Opened.Shards:
		return nil, fmt.Errorf("the store has %d shards per date, not %d: they are set when it is made; store copy changes them", e.Opened.Shards, o.Shards)
	case e.Opened.Moved != "" && !o.ReadOnly:
		return nil, fmt.Errorf("%w: %s", billing.ErrMoved, e.Opened.Moved)
	}
	if err := e.pin(ctx, o.ReadOnly); err != nil {
		return nil, err
	}
	return e, nil
}

// Verify audits the whole store; see package audit.
func (e *Engine) Verify(ctx context.Context) (*audit.Report, error) {
	return audit.Verify(ctx, e.Records, e.proc, e.cfg.ReceiptMonths)
}

// Refunds returns the service that gives money back.
func (e *Engine) Refunds() *refund.Service { return refund.New(e.Records, e.proc) }
