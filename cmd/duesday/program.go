package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/transfer"
)

// A program is one invocation: its streams, its clock and its flags.
type program struct {
	*screen.Screen
	env   func(string) string
	dir   string // where relative paths begin; "": in the folder of the process
	stdin io.Reader
	now   func() time.Time

	clock    *clock.Clock                 // a test clock, whose Now is now once a store is open; nil: none
	logClock *atomic.Pointer[clock.Clock] // a test clock that lines of the log show beside the machine's; nil: none
	follows  bool                         // the clock was taken from the processor's, and is compared with it
	lasting  bool                         // the process stays: a short one leaves it the folder
	cache    int64                        // bytes of the store's cache; 0: the setting's

	flag    func(name string) string // the text of a global flag
	cfg     config.Config            // from flags and env, once the command line has been understood
	command string                   // "duesday run payments", for messages
	name    string                   // as a person calls this program
	umask   string                   // command of sh for the one that a person's commands begin with
	working bool                     // the command line was understood: errors are failures from here on
}

func newProgram(env func(string) string, stdin io.Reader, stdout, stderr io.Writer, now func() time.Time) *program {
	return &program{env: env, stdin: stdin, Screen: screen.New(stdout, stderr, env),
		now: now, command: "duesday", name: "duesday", logClock: new(atomic.Pointer[clock.Clock])}
}

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

// path returns the path of a file that a flag, an argument or a setting names.
func (p *program) path(name string) string {
	if p.dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return p.dir + "/" + name
}

// setting returns a variable of the environment, with the path of a secret's file.
func (p *program) setting(name string) string {
	if strings.HasSuffix(name, config.InFile) {
		return p.path(p.env(name))
	}
	return p.env(name)
}

func (p *program) place() (storeurl.Place, error) {
	place, err := p.placeOf(p.cfg.Store)
	return place, screen.Invalid(err)
}

func (p *program) placeOf(url string) (storeurl.Place, error) {
	place, err := storeurl.Parse(url)
	place.Folder = p.path(place.Folder)
	return place, err
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

// tablesAt returns the tables of the store at the place. Invalid names are a usageError.
func tablesAt(place storeurl.Place) (schema.Tables, error) {
	t := schema.Named(cmp.Or(place.Prefix, schema.DefaultPrefix), place.RecurringTable)
	if err := t.CheckNames(); err != nil {
		return schema.Tables{}, screen.Usagef("store: prefix and recurring_table: %w", err)
	}
	return t, nil
}

// logger writes messages of the level and above to standard error, without secrets. A message about a
// request has its id.
func (p *program) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: p.cfg.LogLevel, ReplaceAttr: inSeconds}
	var h slog.Handler = slog.NewTextHandler(p.Err, options)
	if p.LogJSON {
		h = slog.NewJSONHandler(p.Err, options)
	}
	return slog.New(requestLog{secret.Handler(h), p.logClock})
}

// inSeconds has durations as numbers of seconds, in both forms of the log.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// A stray takes what libraries write to Go's standard logger.
type stray struct{ *program }

func (s stray) Write(text []byte) (int, error) {
	s.logger().Warn(strings.TrimSpace(string(text)))
	return len(text), nil
}

// A requestLog adds the id of the request in the context, and the time of a test clock beside the
// machine's.
type requestLog struct {
	slog.Handler
	clock *atomic.Pointer[clock.Clock]
}

func (l requestLog) Handle(ctx context.Context, r slog.Record) error {
	if id := httpapi.RequestID(ctx); id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("request", id))
	}
	if c := l.clock.Load(); c != nil {
		r = r.Clone()
		r.AddAttrs(slog.Time("test_clock", c.Now()))
	}
	return l.Handler.Handle(ctx, r)
}

func (l requestLog) WithAttrs(as []slog.Attr) slog.Handler {
	return requestLog{l.Handler.WithAttrs(as), l.clock}
}

func (l requestLog) WithGroup(name string) slog.Handler {
	return requestLog{l.Handler.WithGroup(name), l.clock}
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

// missingStore adds a way out to store.ErrMissing.
type missingStore struct {
	url string
	// A restore to the place was interrupted: its folder, and the command that repeats it.
	half, again string
}

func (p *program) missing() error {
	return &missingStore{p.cfg.Store, transfer.Interrupted(p.folder()), p.hint("store restore") + " --from FOLDER"}
}

func (e *missingStore) Error() string {
	if e.half != "" {
		return fmt.Sprintf("there is no store at %s, because a restore to it is running or was interrupted; run it again: %s, or "+
			"delete %s if you do not need it", e.url, e.again, e.half)
	}
	ways := "create one with duesday store create"
	if strings.HasPrefix(e.url, "dynamodb:") {
		ways += ", or with duesday store adopt from a table that other tools filled"
	}
	return fmt.Sprintf("there is no store at %s yet; %s, or set another with --store or %s. If a store was lost, restore its "+
		"backup, because a new store would charge its customers again", e.url, ways, config.EnvStore)
}

func (e *missingStore) Unwrap() error { return store.ErrMissing }

// folder returns the path of the store's folder, or "".
func (p *program) folder() string { return p.path(folderOf(p.cfg.Store)) }

// folderOf returns the folder of a pebble: store, or "".
func folderOf(url string) string {
	if dir, ok := strings.CutPrefix(url, "pebble:"); ok {
		return dir
	}
	return ""
}

// hint returns a command line on the same data, with this command's flags unless they are the default or
// in the environment. Readers of a server's hints have another environment.
func (p *program) hint(command string) string {
	words := []string{p.name, command}
	add := func(name, value, usual string) {
		f := config.Flag{Name: name}
		if given := p.env(f.Variable()); given != "" && !p.lasting {
			usual = given
		}
		if value != "" && value != usual {
			words = append(words, "--"+name, quoted(value))
		}
	}
	add("store", p.cfg.Store, config.DefaultStore)
	begins := func(families ...string) bool {
		return slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(command+" ", f+" ") })
	}
	charges := begins("run", "verify", "reconcile", "account attach", "account card-link", "receipt refund")
	// A subscription's page for the customer is asked for at Stripe.
	if charges || begins("subscription") && p.cfg.UsesStripe() {
		add("processor", p.cfg.Processor, config.DefaultProcessor)
	}
	if begins("run", "outbox") {
		add("mail", p.cfg.Mail, config.DefaultMail)
		if server, err := url.Parse(p.cfg.SMTP.Server); err == nil { // a password in it is refused where mail is sent
			add("smtp", server.Redacted(), "")
		}
	}
	return strings.Join(words, " ")
}

func quoted(text string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=@%+,", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
