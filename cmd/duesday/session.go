package main

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
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/config"
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

// need describes the store and processor of a command.
type need struct {
	create    bool // the store, when there is none
	fill      bool // make a store of empty tables
	adopt     bool // make a store of a table filled by other tools
	processor bool
	read      bool          // only reads: also from a store moved elsewhere
	take      bool          // gives an older store the default settings
	alone     bool          // keeps other processes of this machine out of the store
	follows   bool          // Stripe will be followed: its clock is compared with ours
	shards    int           // per date, of a new store; 0 takes it as it is
	lease     time.Duration // of a share of a run on a shared store; 0 is the default
}

// A session is an open store with its engine, and the processor if the command needs it.
type session struct {
	store     store.Store
	tables    schema.Tables
	engine    *engine.Engine
	processor processor.Charger // nil: not needed
	ledger    io.Closer         // closes the processor; nil: nothing to close
	now       func() time.Time
	post      *post                      // nil of a session that only reads
	stripe    atomic.Pointer[api.Client] // that charges or is followed; nil: not yet, or none
	log       *slog.Logger
	shared    bool         // other processes may work on the store at the same time
	linkless  atomic.Int64 // mails put off, since the last drain's end, for want of their link
}

// with opens the store and processor of the need, calls do and closes both.
func (p *program) with(ctx context.Context, n need, do func(*session) error) (err error) {
	s, err := p.open(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return do(s)
}

// open opens the store of the settings with its engine, and the processor if the need has one.
func (p *program) open(ctx context.Context, n need) (*session, error) {
	place, err := p.place()
	if err != nil {
		return nil, err
	}
	s := &session{now: p.now, log: p.logger()}
	if s.tables, err = tablesAt(place); err != nil {
		return nil, err
	}
	if !n.read {
		if s.post, err = p.newPost(); err != nil {
			return nil, err
		}
	}
	if n.create {
		if err = p.mayMake(ctx, place, s.tables, billing.MakeNew); err != nil {
			return nil, err
		}
	}
	opens := n
	opens.create = n.create && (p.lasting || !place.Shared()) // a mistyped table must not be a new store
	s.store, err = p.openStore(ctx, place, s.tables, opens)
	s.now = p.now
	switch {
	case errors.Is(err, store.ErrMissing):
		return nil, p.missing()
	case errors.Is(err, storeurl.ErrURL):
		return nil, screen.Invalid(err)
	case err != nil:
		return nil, err
	}
	if n.processor {
		if err = p.openProcessor(s, n.read); err != nil {
			return nil, errors.Join(err, s.store.Close())
		}
	}
	o := engine.Options{Store: s.store, Tables: s.tables, Processor: s.processor, Now: p.now, Config: policy(&p.cfg),
		Log: s.log, Shards: n.shards, ReadOnly: n.read, Making: n.making(), KeepSettings: true,
		Program: buildVersion().text()}
	if p.clock == nil || p.follows { // a test clock agrees with no other
		o.Witnesses = s.witnesses(n.follows)
	}
	if s.shared = place.Shared(); s.shared {
		o.Lease = cmp.Or(n.lease, engine.DefaultLease)
	}
	s.engine, err = engine.Open(ctx, o)
	switch {
	case errors.Is(err, billing.ErrNoStore) && n.making() != billing.MakeNever:
		return nil, errors.Join(err, s.close())
	case errors.Is(err, store.ErrMissing): // on DynamoDB the first read shows that a table is missing
		return nil, errors.Join(p.missing(), s.close())
	case err != nil:
		return nil, errors.Join(p.explain(err), s.close())
	}
	if n.take {
		if err := p.takeSettings(ctx, s); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	if n.read {
		if meta, err := s.engine.Meta(ctx); err == nil && meta.Moved != "" { // another store charges
			p.Warn("this store is not live; it was moved to: %s", meta.Moved)
		}
	}
	return s, nil
}

// mayMake refuses tables of other tools that a command of that making may not take over.
func (p *program) mayMake(ctx context.Context, place storeurl.Place, t schema.Tables, making billing.Making) error {
	if !place.Shared() {
		return nil
	}
	s, err := p.openStore(ctx, place, t, need{})
	if err != nil {
		return err
	}
	records := billing.NewRecords(s, t, p.now, nil)
	err = billing.MayMake(ctx, records, making)
	if errors.Is(err, store.ErrMissing) && !errors.Is(err, billing.ErrNoStore) { // there is no table yet
		err = nil
	}
	if err == nil && making == billing.MakeNew {
		if _, is := records.Meta(ctx); is != nil { // an empty table may be another program's, too
			err = refuseOthers(ctx, place, t)
		}
	}
	return errors.Join(err, s.Close())
}

// refuseOthers returns an error if tables of those names are there and are not as ours are.
func refuseOthers(ctx context.Context, place storeurl.Place, t schema.Tables) error {
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return err
	}
	found, err := dynamotable.Look(ctx, client, t.All())
	return cmp.Or(err, dynamotable.Refused(found...))
}

// openStore opens the store without its engine. The program then lives by the clock of its processes.
func (p *program) openStore(ctx context.Context, place storeurl.Place, t schema.Tables, n need) (store.Store, error) {
	o := storeurl.Options{Tables: t.All(), Revision: schema.Revision, Names: schema.Names(), Now: p.now, Create: n.create,
		Holder: p.command, Logger: p.logger(), Version: buildVersion().text(), Alone: n.alone, Lasting: p.lasting,
		Reads: n.read, CacheBytes: cmp.Or(p.cache, p.cfg.CacheBytes)}
	if p.clock != nil && place.Folder != "" { // package folder makes the clock of both
		o.Clock, o.Now = p.clock.String(), p.machine()
	}
	s, err := place.Open(ctx, o)
	if clocked, ok := s.(interface{ Clock() *clock.Clock }); ok && clocked.Clock().Test() {
		p.clock, p.now = clocked.Clock(), clocked.Clock().Now
		p.logClock.Store(p.clock)
		if p.cfg.Live() {
			return nil, errors.Join(screen.Usagef("the processes of %s run by a test clock, but the processor is live", p.cfg.Store),
				s.Close())
		}
	}
	return s, err
}

// withSide opens the store at the place without its engine, calls do and closes the store.
func (p *program) withSide(ctx context.Context, place storeurl.Place, create, alone bool,
	do func(move.Side) error) (err error) {
	var side move.Side
	if side.Tables, err = tablesAt(place); err != nil {
		return err
	}
	if side.Store, err = p.openStore(ctx, place, side.Tables, need{create: create, alone: alone}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, side.Store.Close()) }()
	return do(side)
}

func (n need) making() billing.Making {
	switch {
	case n.adopt:
		return billing.MakeAdopted
	case n.create || n.fill:
		return billing.MakeNew
	}
	return billing.MakeNever
}

func policy(c *config.Config) engine.Config {
	return engine.Config{Settings: settings.Default(), CardURL: c.CardURL, NoLinks: noPages(c)}
}

func (s *session) close() error {
	if s.ledger == nil {
		return s.store.Close()
	}
	return errors.Join(s.ledger.Close(), s.store.Close())
}

// takeSettings gives a store of an older Duesday the default settings.
func (p *program) takeSettings(ctx context.Context, s *session) error {
	now, err := settings.Read(ctx, s.engine.Records)
	if err != nil || now.Version > 0 {
		return err
	}
	if _, err = settings.Change(ctx, s.engine.Records, func(*settings.Settings) error { return nil }); err == nil {
		p.Warn("this store had no settings, so it now has the defaults; see %s", p.hint("settings show"))
	}
	return err
}

func (s *session) account(ctx context.Context, id string) (*billing.Account, error) {
	a, err := s.engine.Account(ctx, id)
	return a, notFound(err, "account "+id)
}

func (s *session) subscription(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	sub, err := s.engine.Subscription(ctx, n)
	return sub, notFound(err, "subscription "+n.String())
}

// keys returns the keys of the session's store.
func (s *session) keys(now func() time.Time) *key.Ring {
	return key.New(key.Options{Store: s.store, Table: s.tables.RecurringPayments.Name, Now: now, Log: s.log})
}

// readOnce gives the store that is opened next a small cache: a large one is of no use to a command that
// reads everything once.
func (p *program) readOnce() { p.cache = min(64<<20, p.cfg.CacheBytes) }
