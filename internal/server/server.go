// Package server is the running service: it answers HTTP on one listener, applies stored events,
// delivers actions and mail, polls Stripe for missing events, and has the daily jobs run beside
// that, until it is told to stop.
//
// It does not read flags or settings, print, or open the store. It knows nothing of billing.
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
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// Options are the parts of a Server. All are needed unless the field says otherwise.
type Options struct {
	Service     *tracking.Service // nil: no Stripe is followed, and the fields for that are not needed
	Lister      poller.Lister     // Stripe, for the poller
	Listener    net.Listener
	Connections int                                          // at most, of the listener
	Mail        func(context.Context) (outbox.Report, error) // delivers the mail that is due; nil: none
	Day         interface{ Run(context.Context) error }      // runs the daily jobs until ctx ends; nil: none
	Watch       interface{ Run(context.Context) error }      // tells of what is wrong until ctx ends; nil: nobody does
	HTTP        httpapi.Options                              // what it answers beside that of the Service

	WebhookSecrets []secret.Text // of HookPath; none: closed to Stripe
	ConnectSecrets []secret.Text // of ConnectPath; none: closed to Stripe

	PollEvery  time.Duration // 0: it does not poll
	PollSecret secret.Text   // of pollers elsewhere; none: there are none, and Events and StripeNow are not needed
	Events     Events
	StripeNow  func() time.Time // Stripe's clock, as far as it is known

	Now   func() time.Time // the machine's clock, by which signatures and polls go
	Clock *clock.Clock     // of the store, by which rows of the outbox are due
	Log   *slog.Logger
}

// A Server serves once.
type Server struct {
	o       Options
	base    string
	hooks   []httpapi.Hook
	handler http.Handler
	poller  *poller.Poller // nil: it does not poll
}

// New returns a server that does nothing yet.
func New(o Options) (*Server, error) {
	base, err := LocalBase(o.Listener.Addr())
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, base: base}
	answers := o.HTTP
	answers.Now, answers.Log = o.Now, o.Log
	if o.Service != nil {
		answers.Poll = s.poll()
		s.addHook(HookPath, false, o.WebhookSecrets)
		s.addHook(ConnectPath, true, o.ConnectSecrets)
		answers.Inbox, answers.Shop, answers.Record, answers.Verify = o.Service, o.Service, o.Service, event.Verify
		answers.Hooks, answers.CursorKey = s.hooks, o.Service.CursorKey()
	}
	s.handler = httpapi.New(answers)
	if o.Service != nil {
		s.addPoller(answers.Poll.Own)
	}
	return s, nil
}

// Base returns the address at which this machine reaches the server.
func (s *Server) Base() string { return s.base }

// Webhooks returns the addresses to which Stripe may send events.
func (s *Server) Webhooks() []string {
	list := []string{}
	for _, h := range s.hooks {
		if len(h.Secrets) > 0 {
			list = append(list, s.base+h.Path)
		}
	}
	return list
}

// Run serves until ctx ends. It then stops a job and the mail, and finishes the requests, events and
// actions under way. It returns an error if the listener fails or requests were cut off.
func (s *Server) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	draining, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	stop := make(chan struct{})
	var running sync.WaitGroup
	if t := s.o.Service; t != nil {
		events := s.drain("events", "duesday event list --waiting", t.DrainInbox)
		actions := s.drain("jobs", "duesday job list", t.Deliver)
		running.Go(func() { wakeAll(stop, t.Wake(), events.wake, actions.wake) })
		running.Go(func() { events.repeat(draining, stop) })
		running.Go(func() { actions.repeat(draining, stop) })
	}
	if s.o.Mail != nil {
		running.Go(func() { s.drain("mails", "duesday outbox list", s.o.Mail).repeat(ctx, ctx.Done()) })
	}
	var daily error
	if s.o.Day != nil {
		running.Go(func() { daily = s.o.Day.Run(ctx) })
	}
	if s.o.Watch != nil {
		running.Go(func() { _ = s.o.Watch.Run(ctx) }) // returns no error
	}
	if s.poller != nil {
		running.Go(func() { err = s.poller.Run(ctx) })
	}
	served := httpapi.Serve(ctx, s.o.Listener, s.handler, s.o.Connections, s.o.Log)
	cancel()
	close(stop)
	grace := time.AfterFunc(drainGrace, finish)
	defer grace.Stop()
	running.Wait()
	return errors.Join(served, err, daily)
}

// The paths of the webhook endpoints.
const (
	HookPath    = "/hooks/stripe"         // for events of the key's own account
	ConnectPath = "/hooks/stripe/connect" // for events of connected accounts
)

// addHook opens an endpoint if there are secrets, or pollers.
func (s *Server) addHook(path string, connect bool, secrets []secret.Text) {
	if len(secrets) > 0 || s.o.PollEvery > 0 || !s.o.PollSecret.IsZero() {
		s.hooks = append(s.hooks, httpapi.Hook{Path: path, Connect: connect, Secrets: secrets})
	}
}

// LocalBase returns the URL at which this machine reaches a server at the address.
func LocalBase(at net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() { // every address of this machine: localhost always works
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

const (
	drainEvery = 3 * time.Second              // for rows now due, and rows of other processes
	drainGrace = commandLimit + 5*time.Second // for a drain under way once the server is to stop
)

// A drain empties one queue of the outbox again and again.
type drain struct {
	name  string // in log messages
	see   string // the command that lists the queue
	run   func(context.Context) (outbox.Report, error)
	wake  chan struct{}
	clock *clock.Clock
	log   *slog.Logger
}

func (s *Server) drain(name, see string, run func(context.Context) (outbox.Report, error)) *drain {
	return &drain{name, see, run, make(chan struct{}, 1), s.o.Clock, s.o.Log}
}

// repeat runs the drain at once, when it is woken, and every few seconds, until stop. A run
// under way at stop is finished unless ctx ends.
func (d *drain) repeat(ctx context.Context, stop <-chan struct{}) {
	said := "" // the last error, which is logged once for as long as it stays the same
	for {
		r, err := d.run(ctx)
		was := said
		if said = ""; err != nil {
			said = err.Error()
		}
		switch {
		case err != nil && ctx.Err() == nil && said != was:
			d.log.Error("draining the "+d.name+" failed and is tried again", "error", err)
		case r.Failed+r.Dead > 0:
			d.log.Warn("some "+d.name+" could not be dealt with", "done", r.Delivered, "later", r.Failed, "given_up", r.Dead,
				"see", d.see)
		}
		select {
		case <-stop:
			return
		case <-d.wake:
		case <-d.clock.After(drainEvery):
		}
	}
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
