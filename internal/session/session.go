package session

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/meta"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/recipient"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/delivery/cause"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/stripe/api"
)

// Need describes the store and the processor that a command needs.
type Need struct {
	Create    bool // create the store if it does not exist
	Fill      bool // turn empty tables into a store
	Adopt     bool // turn a table that other tools filled into a store
	Processor bool
	Read      bool          // only read; also accepts a store that was moved elsewhere
	Take      bool          // write the default settings to an older store without any
	Alone     bool          // keep this machine's other processes out of the store
	Follows   bool          // the command follows Stripe, so compare the clock with Stripe's
	Shards    int           // shards per date in a new store; 0 keeps the store's number
	Lease     time.Duration // for a run's share on a shared store; 0 for the default
}

// A Session is an open store with its engine and, if the command needs it, the processor.
type Session struct {
	Store     store.Store
	Tables    schema.Tables
	Engine    *engine.Engine
	Processor processor.Charger // nil if not needed
	mail      *recipient.Directory
	numbers   *numbering.Numberer // by lease in serve alone: the holder may have ended when a command drains, once
	ledger    io.Closer           // closes the processor; nil if there is nothing to close
	Now       func() time.Time
	Post      *Post                      // nil if the session only reads
	Stripe    atomic.Pointer[api.Client] // client for charging or following; nil if not set
	Log       *slog.Logger
	Shared    bool // other processes may use the store at the same time
	Messages  *delivery.Service
	Linkless  atomic.Int64 // mails postponed since the last drain ended, for lack of a link
}

// With opens the store and the processor that n describes, calls do, and closes both.
func (p *Program) With(ctx context.Context, n Need, do func(*Session) error) (err error) {
	s, err := p.Open(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}

// Open opens the configured store with its engine, and the processor if n requires it.
func (p *Program) Open(ctx context.Context, n Need) (*Session, error) {
	place, err := p.Place()
	if err != nil {
		return nil, err
	}
	s := &Session{Log: p.Logger()}
	if s.Tables, err = TablesAt(place); err != nil {
		return nil, err
	}
	if !n.Read {
		if s.Post, err = p.NewPost(); err != nil {
			return nil, err
		}
	}
	if n.Create {
		if err = p.MayMake(ctx, place, s.Tables, billing.MakeNew); err != nil {
			return nil, err
		}
	}
	opens := n
	opens.Create = n.Create && (p.Lasting || !place.Shared()) // a mistyped table must not become a new store
	s.Store, err = p.OpenStore(ctx, place, s.Tables, opens)
	s.Now = p.Now // the store may have its own clock
	switch {
	case errors.Is(err, store.ErrMissing):
		return nil, p.Missing()
	case errors.Is(err, storeurl.ErrURL):
		return nil, screen.Invalid(err)
	case err != nil:
		return nil, err
	}
	if n.Processor {
		if err = p.OpenProcessor(s, n.Read); err != nil {
			return nil, errors.Join(err, s.Store.Close())
		}
	}
	o := engine.Options{Store: s.Store, Tables: s.Tables, Processor: s.Processor, Now: p.Now, Config: engine.DefaultConfig(),
		Log: s.Log, Shards: n.Shards, ReadOnly: n.Read, Making: n.making(), KeepSettings: true,
		Program: BuildVersion().Text()}
	if p.Clock == nil || p.follows { // a test clock matches no other clock
		o.Witnesses = s.witnesses(n.Follows)
	}
	if s.Shared = place.Shared(); s.Shared {
		o.Lease = cmp.Or(n.Lease, engine.DefaultLease)
	}
	if c := call.Of(ctx); c != nil {
		c.Table, c.Now = s.Tables.RecurringPayments.Name, p.Now
	}
	s.Engine, err = engine.Open(ctx, o)
	switch {
	case errors.Is(err, billing.ErrNoStore) && n.making() != billing.MakeNever:
		return nil, errors.Join(err, s.Close())
	case errors.Is(err, store.ErrMissing): // on DynamoDB, the first read detects a missing table
		return nil, errors.Join(p.Missing(), s.Close())
	case err != nil:
		return nil, errors.Join(p.explain(err), s.Close())
	}
	s.mail, s.numbers = recipients(&p.Config, s.Engine.Cards()), numbering.New(s.Engine.Records, s.Shared && p.Lasting)
	s.Messages = s.deliveries()
	cause.Of(s.Engine.Records, s.Messages)
	if n.Take {
		if err := p.takeSettings(ctx, s); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if n.Read {
		p.warnMoved(ctx, s)
	}
	return s, nil
}

func (p *Program) warnMoved(ctx context.Context, s *Session) {
	if meta, err := s.Engine.Meta(ctx); err == nil && meta.Moved != "" { // another store charges
		p.Warn("this store is not live; it was moved to: %s", meta.Moved)
	}
}

// MayMake returns an error if the place has tables of other tools that a command with this making
// must not take over.
func (p *Program) MayMake(ctx context.Context, place storeurl.Place, t schema.Tables, making billing.Making) error {
	if !place.Shared() {
		return nil
	}
	s, err := p.OpenStore(ctx, place, t, Need{})
	if err != nil {
		return err
	}
	records := billing.NewRecords(s, t, p.Now, nil)
	err = meta.MayMake(ctx, records, making)
	if errors.Is(err, store.ErrMissing) && !errors.Is(err, billing.ErrNoStore) { // no table exists yet
		err = nil
	}
	if err == nil && making == billing.MakeNew {
		if _, is := records.Meta(ctx); is != nil { // an empty table may belong to another program
			err = refuseOthers(ctx, place, t)
		}
	}
	return errors.Join(err, s.Close())
}

// refuseOthers returns an error if a table with one of Duesday's names exists but does not match
// the schema.
func refuseOthers(ctx context.Context, place storeurl.Place, t schema.Tables) error {
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return err
	}
	found, err := dynamotable.Look(ctx, client, t.All())
	return cmp.Or(err, dynamotable.Refused(found...))
}

// OpenStore opens the store without its engine. If the store's other processes use a test clock,
// the program uses that clock, too.
func (p *Program) OpenStore(ctx context.Context, place storeurl.Place, t schema.Tables, n Need) (store.Store, error) {
	o := storeurl.Options{Tables: t.All(), Revision: schema.Revision, Names: schema.Names(), Now: p.Now, Create: n.Create,
		Holder: p.Command, Logger: p.Logger(), Version: BuildVersion().Text(), Alone: n.Alone, Lasting: p.Lasting,
		Reads: n.Read, CacheBytes: cmp.Or(p.cache, p.Config.CacheBytes)}
	if p.Clock != nil && place.Folder != "" { // package folder combines the two clocks
		o.Clock, o.Now = p.Clock.String(), p.Machine()
	}
	s, err := place.Open(ctx, o)
	if clocked, ok := s.(interface{ Clock() *clock.Clock }); ok && clocked.Clock().Test() {
		p.Clock, p.Now = clocked.Clock(), clocked.Clock().Now
		p.LogClock.Store(p.Clock)
		if p.Config.Live() {
			return nil, errors.Join(screen.Usagef("the processes of %s run by a test clock, but the processor is live", p.Config.Store),
				s.Close())
		}
	}
	return s, err
}

func (n Need) making() billing.Making {
	switch {
	case n.Adopt:
		return billing.MakeAdopted
	case n.Create || n.Fill:
		return billing.MakeNew
	}
	return billing.MakeNever
}

func recipients(c *config.Config, cards *wallet.Cards) *recipient.Directory {
	return &recipient.Directory{Cards: cards, CardURL: c.CardURL, NoLinks: noPages(c)}
}

// Close closes the processor and the store.
func (s *Session) Close() error {
	if s.ledger == nil {
		return s.Store.Close()
	}
	return errors.Join(s.ledger.Close(), s.Store.Close())
}

// takeSettings writes the default settings to an older store that has none.
func (p *Program) takeSettings(ctx context.Context, s *Session) error {
	now, err := settings.Read(ctx, s.Engine.Records)
	if err != nil || now.Version > 0 {
		return err
	}
	if _, err = settings.Change(ctx, s.Engine.Records, func(*settings.Settings) error { return nil }); err == nil {
		p.Warn("this store had no settings, so it now has the defaults; see %s", p.Hint("settings show"))
	}
	return err
}

// Account returns the account, or an error that names the account if it does not exist.
func (s *Session) Account(ctx context.Context, id string) (*billing.Account, error) {
	a, err := s.Engine.Account(ctx, id)
	return a, NotFound(err, "account "+id)
}

// Subscription returns the subscription, or an error that names the subscription if it does not
// exist.
func (s *Session) Subscription(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	sub, err := s.Engine.Subscription(ctx, n)
	return sub, NotFound(err, "subscription "+n.String())
}

// deliveries returns the deliveries to endpoints.
func (s *Session) deliveries() *delivery.Service {
	return delivery.New(delivery.Options{Store: s.Store, Tables: s.Tables, Now: s.Now, Log: s.Log,
		Days: func(ctx context.Context) (int, error) {
			now, err := settings.Read(ctx, s.Engine.Records)
			return now.DeliveryDays, err
		}})
}

// Keys returns the API keys in the session's store.
func (s *Session) Keys(now func() time.Time) *key.Ring {
	return key.New(key.Options{Store: s.Store, Table: s.Tables.RecurringPayments.Name, Now: now, Log: s.Log})
}

// ReadOnce limits the cache of the next store that the program opens. A command that reads
// everything once does not benefit from a large cache.
func (p *Program) ReadOnce() { p.cache = min(64<<20, p.Config.CacheBytes) }
