// Package engine charges subscriptions: the charge protocol, and operators' requests. Package job runs it
// daily. It keeps the product's promise: at most one successful charge per subscription period,
// and every period ends paid, failed, void or visibly parked.
//
// It does not know the storage engine, the processor, the mail (see outbox) or the command line.
//
// # Files
//
//   - next.go: decisions of the charge protocol; execute.go: their execution
//   - intent.go, settle.go, retry.go: actions of the protocol; result.go: their results
//   - notice.go: reminders and other notices; sums.go: sums of money
//   - forecast.go: future results for dry runs and reports
//   - request.go, chargeperiod.go: operators' requests; manual.go: manual payments
//   - reconcile.go: recovery of a store that went back in time
//   - cardupdate.go: payment methods and their changes
package engine

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/meta"
	"github.com/duesday/duesday/internal/billing/proof"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/dryrun"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Config contains the settings for a store that has none of its own.
type Config struct {
	settings.Settings // nil RetryDays, nil DebitRetries and zero CatchUp select the defaults
}

// DefaultConfig returns the settings of an installation that has not set any.
func DefaultConfig() Config {
	return Config{Settings: settings.Default()}
}

// Options configure an Engine.
type Options struct {
	Store     store.Store
	Tables    schema.Tables
	Processor processor.Charger // nil for an engine that only reads
	Now       func() time.Time  // the real clock or a test clock
	Config    Config
	Log       *slog.Logger      // nil discards
	Witnesses []billing.Witness // witnesses of the clock; none for a test clock

	// KeepSettings stores the settings of Config when Open creates a new store. Otherwise, a new
	// store has no settings.
	KeepSettings bool
	// Program is the version of this Duesday. Other versions name it when they refuse a store that
	// this version created.
	Program string

	// Shards is the number of index partitions per date in a new store, from 1 to MaxShards. For an
	// existing store, Shards must equal the store's number. 0 selects the store's own number, or 1
	// for a new store.
	Shards int
	// Lease is the time after which other processes take over a silent worker's share of a run; 0
	// if there are none.
	Lease time.Duration
	// ReadOnly also opens a store that was moved to another place.
	ReadOnly bool
	// Making specifies what Open does if the store has no META item.
	Making billing.Making
}

// DefaultLease is the default for Options.Lease on a shared store.
const DefaultLease = 2 * time.Minute

// An Engine is Duesday's billing half over one store. It is safe for concurrent use, and several
// engines can use one store.
type Engine struct {
	*billing.Records
	Sharing worker.Sharing // how processes share a run's work

	proc  processor.Charger
	cfg   Config // includes the store's settings, if there are any
	locks *worker.Locks
	day   civil.Date // business day for people's requests; zero means the clock's day
	hold  bool       // holds mail that may have been delivered before
}

// On returns an engine that handles people's requests on the business day, as a run does. A zero
// day means the clock's day.
func (e *Engine) On(day civil.Date) *Engine {
	on := *e
	on.day = day
	return &on
}

// Dry returns an engine whose requests change nothing: its commits stay in memory, and its processor answers
// as if each payment succeeded.
func (e *Engine) Dry() *Engine {
	on, r := *e, *e.Records
	r.Store = dryrun.NewStore(e.Store, e.Tables.All())
	on.Records, on.proc, on.locks, on.Sharing.Claims = &r, dryrun.Charger(e.proc), new(worker.Locks), nil
	return &on
}

// Open returns an engine for the store. It creates the store's META item if there is none and
// Options.Making allows it. It returns charging.ErrOtherProcessor if the store was charged through
// another processor account.
func Open(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{Records: billing.NewRecords(o.Store, o.Tables, o.Now, o.Log), proc: o.Processor, cfg: o.Config,
		Sharing: worker.Sharing{Lease: o.Lease, Ticker: time.NewTicker}, locks: new(worker.Locks)}
	e.Sharing.Claims, _ = o.Store.(store.Claimer)
	e.Witnesses = o.Witnesses
	e.Shared = o.Lease != 0 || e.Sharing.Claims != nil
	usual := settings.Default()
	if e.cfg.RetryDays == nil {
		e.cfg.RetryDays = usual.RetryDays
	}
	if e.cfg.DebitRetries == nil {
		e.cfg.DebitRetries = usual.DebitRetries
	}
	e.cfg.CatchUp = cmp.Or(e.cfg.CatchUp, usual.CatchUp)
	made := meta.Options{Making: o.Making, Shards: o.Shards, Program: o.Program, ReadOnly: o.ReadOnly}
	if o.KeepSettings {
		made.First = settings.First(e.Records, o.Config.Settings)
	}
	if err := meta.Open(ctx, e.Records, made); err != nil {
		return nil, err
	}
	if err := e.readSettings(ctx, o.ReadOnly); err != nil {
		return nil, err
	}
	if err := e.Charging().Pin(ctx, o.ReadOnly); err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		if err := meta.Upgrade(ctx, e.Records, o.Lease == 0); err != nil {
			return nil, err
		}
	}
	history.Keep(e.Records)
	// A shared store is filled by store migrate, when no older build is at work, or by store adopt.
	if err := lookup.Open(ctx, e.Records, !o.ReadOnly && o.Lease == 0 && o.Making != billing.MakeAdopted); err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		meta.Expire(e.Records)
	}
	return e, nil
}

// Charging returns the store's charging switch and the checks that precede a charge.
func (e *Engine) Charging() *charging.Control {
	return &charging.Control{Records: e.Records, Processor: e.proc}
}

// Verify audits the whole store; see package audit.
func (e *Engine) Verify(ctx context.Context) (*audit.Report, error) { return e.Audit(ctx, nil) }

// Audit audits the whole store, as Verify does. It calls progress, unless nil, with the number of
// items, rows and charges that it has read.
func (e *Engine) Audit(ctx context.Context, progress func(int64)) (*audit.Report, error) {
	return audit.Verify(ctx, e.Records, e.proc, audit.Options{ReceiptMonths: e.cfg.ReceiptMonths, Progress: progress})
}

// Refunds returns the refund service.
func (e *Engine) Refunds() *refund.Service { return refund.New(e.Records, e.proc, e.reversed) }

// Prove collects all information about one period, and changes nothing.
func (e *Engine) Prove(ctx context.Context, n billing.Name, period int) (*proof.Proof, error) {
	return proof.Of(ctx, e.Records, e.proc, n, period, e.cfg.ReceiptMonths)
}
