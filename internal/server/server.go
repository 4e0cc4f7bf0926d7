// Package server runs the service: it serves HTTP to Stripe, API clients, customers and operators on separate listeners,
// applies stored events, delivers actions and mail, polls Stripe for missing events, and runs the daily
// jobs, until its context ends.
//
// It does not read flags or settings, print, or open the store. It does not know package billing.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/openapi"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// Options configure a Server. All fields are required unless their comments say otherwise.
type Options struct {
	Service     *tracking.Service                            // nil: no Stripe is followed, and the fields for that are not needed
	Lister      poller.Lister                                // Stripe, for the poller and for imports
	Hooks       net.Listener                                 // for Stripe, and for whoever asks about the health; nil: none
	API         net.Listener                                 // for programs: keys, metrics, pollers elsewhere; nil: none
	Customer    net.Listener                                 // for customers with a signed link; nil: none
	Customers   http.Handler                                 // of Customer
	Pages       net.Listener                                 // for operators; nil: none
	Operators   func(api http.Handler) http.Handler          // of Pages
	Connections int                                          // at most, of each listener
	Opened      func(n int)                                  // is told of connections, as listen.Limits has it; nil: nobody is
	Mail        func(context.Context) (outbox.Report, error) // delivers the mail that is due; nil: none
	Deliveries  Deliveries                                   // sends messages to endpoints; nil: none
	Day         interface{ Run(context.Context) error }      // runs the daily jobs until ctx ends; nil: none
	Watch       interface{ Run(context.Context) error }      // tells of what is wrong until ctx ends; nil: nobody does
	Requested   interface{ Run(context.Context) error }      // does the long work that API clients request until ctx ends; nil: none
	HTTP        httpapi.Options                              // what it answers beside that of the Service

	WebhookSecrets []secret.Text // of HookPath; none: closed to Stripe
	ConnectSecrets []secret.Text // of ConnectPath; none: closed to Stripe

	// Puts holds an element when this process, or another one that shares the store's folder, has
	// put a row into any queue. nil: the drains look every three seconds.
	Puts <-chan struct{}

	// Due reports whether a row is due, and may miss the rows of the last seconds. It is for a
	// store that other machines share and whose reads are paid for: a drain without work looks ever
	// more rarely, down to every two minutes. nil: looks cost nothing.
	Due func(context.Context, outbox.Queue) (bool, error)

	PollEvery  time.Duration // 0: it does not poll
	PollSecret secret.Text   // of pollers elsewhere; none: there are none, and Events and StripeNow are not needed
	Events     Events
	StripeNow  func() time.Time // Stripe's clock, as far as it is known

	Now   func() time.Time // the machine's clock, by which signatures and polls go
	Clock *clock.Clock     // of the store, by which rows of the outbox are due
	Log   *slog.Logger
}

// Deliveries send the messages to endpoints that are due, as delivery.Sender does.
type Deliveries interface {
	Drain(context.Context) (outbox.Report, error)
	Wake() <-chan struct{}
	Close(context.Context)
}

// A Server serves once.
type Server struct {
	o      Options
	base   string         // of Hooks; "": none
	open   []httpapi.Hook // of Hooks
	hooks  http.Handler   // of Hooks
	api    http.Handler
	pages  http.Handler   // nil: none
	poller *poller.Poller // nil: it does not poll
	doors  []*door
}

// New returns a server that has not started yet.
func New(o Options) (*Server, error) {
	s := &Server{o: o}
	if o.Hooks != nil {
		var err error
		if s.base, err = LocalBase(o.Hooks.Addr()); err != nil {
			return nil, err
		}
	}
	hooks, api := o.HTTP, o.HTTP
	hooks.Now, hooks.Log, hooks.Keys, hooks.Metrics, hooks.Routes = o.Now, o.Log, nil, nil, nil
	api.Now, api.Log, api.Signed = o.Now, o.Log, nil
	docs, err := openapi.Paths()
	if err != nil {
		return nil, err
	}
	api.Paths = docs
	if o.Service != nil {
		s.addHooks(&hooks, &api)
	}
	s.hooks, s.api = httpapi.New(hooks), httpapi.New(api)
	if o.Operators != nil {
		s.pages = o.Operators(s.api)
	}
	if o.Service != nil {
		s.addPoller(&hooks)
	}
	for i, l := range []net.Listener{o.Hooks, o.API, o.Customer, o.Pages} {
		if l != nil {
			s.doors = append(s.doors, &door{listener: l, handler: []http.Handler{s.hooks, s.api, o.Customers, s.pages}[i], opened: o.Opened})
		}
	}
	return s, nil
}

// addHooks adds what is about Stripe. Its secrets count at Hooks only, and the secret of pollers
// elsewhere at API only.
func (s *Server) addHooks(hooks, api *httpapi.Options) {
	for _, o := range []*httpapi.Options{hooks, api} {
		o.Inbox, o.Verify = s.o.Service, event.Verify
	}
	api.Import = func(ctx context.Context, account string, plan, fulfil bool) (view.Object, error) {
		now := s.o.Now()
		r, err := poller.Import(ctx, account, poller.ImportOptions{Ledger: s.o.Service, Lister: s.o.Lister, Now: now,
			Payments: now.Add(-poller.ImportedPayments), Plan: plan, Fulfil: fulfil, Each: func(poller.ImportRow) {}, Step: func() {}})
		return view.Import(&r, plan), err
	}
	api.Shop, api.Record, api.Backend, api.CursorKey = s.o.Service, s.o.Service, s.o.Service, s.o.Service.CursorKey()
	for _, connect := range []bool{false, true} {
		h := s.hook(connect)
		if len(h.Secrets) > 0 {
			s.open = append(s.open, h)
		}
		if !s.o.PollSecret.IsZero() {
			api.Hooks = append(api.Hooks, httpapi.Hook{Path: h.Path, Connect: h.Connect})
		}
	}
	hooks.Hooks = s.open
	if !s.o.PollSecret.IsZero() {
		api.Poll = httpapi.Poll{Given: s.o.PollSecret, Event: s.ask, Mark: s.mark}
	}
}

// hook returns the endpoint for events of the key's own account, or of connected ones.
func (s *Server) hook(connect bool) httpapi.Hook {
	if connect {
		return httpapi.Hook{Path: ConnectPath, Connect: true, Secrets: s.o.ConnectSecrets}
	}
	return httpapi.Hook{Path: HookPath, Secrets: s.o.WebhookSecrets}
}

// Webhooks returns the addresses to which Stripe may send events.
func (s *Server) Webhooks() []string {
	list := []string{}
	for _, h := range s.open {
		if s.base != "" {
			list = append(list, s.base+h.Path)
		}
	}
	return list
}

// Run serves until ctx ends. It then stops a job and the mail, and finishes the requests, events and
// actions under way. It returns an error if a listener fails or requests were cut off.
func (s *Server) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	draining, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	stop := make(chan struct{})
	var running sync.WaitGroup
	var put []chan<- struct{}
	if t := s.o.Service; t != nil {
		events := s.drain("events", "duesday event list --waiting", outbox.Inbox, t.DrainInbox)
		actions := s.drain("jobs", "duesday job list", outbox.Actions, t.Deliver)
		put = append(put, events.put, actions.put)
		running.Go(func() { wakeAll(stop, t.Wake(), events.wake, actions.wake) })
		running.Go(func() { events.repeat(draining, stop) })
		running.Go(func() { actions.repeat(draining, stop) })
	}
	if s.o.Mail != nil {
		mails := s.drain("mails", "duesday outbox list", outbox.Mail, s.o.Mail)
		mails.gap = drainEvery // a run connects to the mail server
		put = append(put, mails.put)
		running.Go(func() { mails.repeat(ctx, ctx.Done()) })
	}
	if s.o.Deliveries != nil {
		messages := s.drain("deliveries", "duesday delivery list --state waiting", outbox.Deliveries, s.o.Deliveries.Drain)
		put = append(put, messages.put)
		running.Go(func() { wakeAll(stop, s.o.Deliveries.Wake(), messages.wake) })
		running.Go(func() {
			messages.repeat(draining, stop)
			ctx, cancel := context.WithTimeout(draining, deliveryGrace)
			defer cancel()
			s.o.Deliveries.Close(ctx)
		})
	}
	running.Go(func() { wakeAll(stop, s.o.Puts, put...) })
	var daily error
	if s.o.Day != nil {
		running.Go(func() { daily = s.o.Day.Run(ctx) })
	}
	if s.o.Watch != nil {
		running.Go(func() { _ = s.o.Watch.Run(ctx) }) // returns no error
	}
	if s.o.Requested != nil {
		running.Go(func() { _ = s.o.Requested.Run(ctx) }) // records its errors
	}
	if s.poller != nil {
		running.Go(func() { err = s.poller.Run(ctx) })
	}
	served := make([]error, len(s.doors))
	var serving sync.WaitGroup
	for i, d := range s.doors {
		serving.Go(func() {
			served[i] = web.Serve(ctx, d.listener, d.handler,
				listen.Limits{Connections: s.o.Connections, Proxies: s.o.HTTP.Proxies, Opened: d.note}, s.o.Log)
			cancel()
		})
	}
	<-ctx.Done()
	serving.Wait()
	close(stop)
	grace := time.AfterFunc(drainGrace, finish)
	defer grace.Stop()
	running.Wait()
	return errors.Join(errors.Join(served...), err, daily)
}

// The paths of the webhook endpoints.
const (
	HookPath    = "/hooks/stripe"         // for events of the key's own account
	ConnectPath = "/hooks/stripe/connect" // for events of connected accounts
)

// LocalBase returns the URL at which this machine reaches a server at the address.
func LocalBase(at net.Addr) (string, error) {
	local, err := localAddress(at)
	return "http://" + local, err
}

func localAddress(at net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() { // every address of this machine: localhost always works
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}

const (
	drainEvery    = 3 * time.Second              // for rows now due, and rows of other processes
	drainNow      = 50 * time.Millisecond        // from one run to the next while rows are put without end
	drainTold     = 10 * time.Second             // where Puts tells of all rows: for those that become due
	drainRarely   = 115 * time.Second            // where Due tells: a row of another process is found within two minutes
	deliveryGrace = 3 * time.Second              // for requests to endpoints, which are repeated if they are cut off
	drainGrace    = commandLimit + 5*time.Second // for a drain under way once the server is to stop
)

// A drain empties one queue of the outbox again and again.
type drain struct {
	name  string // in log messages
	see   string // the command that lists the queue
	run   func(context.Context) (outbox.Report, error)
	due   func(context.Context) (bool, error) // nil: not known
	wake  chan struct{}                       // at once
	put   chan struct{}                       // at once, or gap after the last run: commits may be many
	gap   time.Duration
	tick  time.Duration // the shortest wait without a wake or a put
	clock *clock.Clock
	log   *slog.Logger
}

func (s *Server) drain(name, see string, q outbox.Queue, run func(context.Context) (outbox.Report, error)) *drain {
	d := &drain{name: name, see: see, run: run, wake: make(chan struct{}, 1), put: make(chan struct{}, 1),
		gap: drainNow, tick: drainEvery, clock: s.o.Clock, log: s.o.Log}
	switch {
	case s.o.Due != nil:
		d.gap = drainEvery
		d.due = func(ctx context.Context) (bool, error) { return s.o.Due(ctx, q) }
	case s.o.Puts != nil:
		d.tick = drainTold
	}
	return d
}

// repeat runs the drain at once, when it is woken, when a row was put, and every tick, until stop.
// Where due tells, the waits double while it finds nothing. A run under way at stop is finished
// unless ctx ends.
func (d *drain) repeat(ctx context.Context, stop <-chan struct{}) {
	said := "" // the last error, which is logged once for as long as it stays the same
	for idle, pause := false, d.tick/2; ; {
		var r outbox.Report
		due, err := true, error(nil)
		if idle {
			due, err = d.due(ctx)
		}
		if due && err == nil {
			r, err = d.run(ctx)
		}
		was := said
		if said = ""; err != nil {
			said = err.Error()
		}
		switch {
		case err != nil && ctx.Err() == nil && said != was:
			d.log.Error("the server could not deliver "+d.name+"; it tries again", "error", err)
		case r.Failed+r.Dead > 0:
			d.log.Warn("the server could not deliver some "+d.name, "done", r.Delivered, "later", r.Failed, "given_up", r.Dead,
				"see", d.see)
		}
		if d.due == nil || err != nil || r != (outbox.Report{}) {
			pause = d.tick / 2
		}
		pause = min(2*pause, drainRarely)
		if idle = d.wait(stop, pause) && d.due != nil; !idle {
			pause = d.tick / 2
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// wait waits for the next run, or for stop. It reports whether nothing has called for that run.
func (d *drain) wait(stop <-chan struct{}, pause time.Duration) (tick bool) {
	soon := d.clock.After(d.gap)
	select {
	case <-stop:
	case <-d.wake:
	case <-d.clock.After(pause):
		return true
	case <-d.put:
		select {
		case <-stop:
		case <-d.wake:
		case <-soon:
		}
	}
	return false
}

// wakeAll passes each wake on to the drains that have not been woken yet, until stop.
func wakeAll(stop <-chan struct{}, wake <-chan struct{}, drains ...chan<- struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-wake:
		}
		for _, c := range drains {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
