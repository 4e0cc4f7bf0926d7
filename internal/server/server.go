// Package server is the running service: it answers HTTP on one listener, applies stored events,
// delivers actions, and polls Stripe for missing events, until it is told to stop.
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

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// Options are the parts of a Server. All are needed unless the field says otherwise.
type Options struct {
	Service  *tracking.Service
	Lister   poller.Lister // Stripe, for the poller
	Listener net.Listener
	Ready    func(context.Context) error // whether it can work

	WebhookSecrets []secret.Text // of HookPath; none: closed to Stripe
	ConnectSecrets []secret.Text // of ConnectPath; none: closed to Stripe
	APIKey         secret.Text   // of /v1 and /internal; none: closed

	PollEvery time.Duration // 0: it does not poll
	Now       func() time.Time
	Log       *slog.Logger
}

// A Server serves once.
type Server struct {
	o       Options
	base    string
	hooks   []httpapi.Hook
	open    []string // paths of the endpoints with a secret of Stripe's
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
	poll := secret.Text{}
	if o.PollEvery > 0 || !o.APIKey.IsZero() {
		poll = pollSecret(o.APIKey)
	}
	s.addHook(HookPath, false, o.WebhookSecrets, poll)
	s.addHook(ConnectPath, true, o.ConnectSecrets, poll)
	s.handler, err = httpapi.New(httpapi.Options{Inbox: o.Service, Shop: o.Service, Ledger: o.Service,
		Registry: o.Service, Backlog: o.Service,
		Verify: event.Verify, Hooks: s.hooks, Key: o.APIKey, Now: o.Now, Log: o.Log, Ready: o.Ready})
	if err != nil || o.PollEvery == 0 {
		return s, err
	}
	sender, err := newSender(base, poll, o.Now)
	if err != nil {
		return nil, err
	}
	s.poller = poller.New(poller.Options{Ledger: o.Service, Sender: sender, Lister: o.Lister, Now: o.Now, Log: o.Log,
		Interval: o.PollEvery})
	return s, nil
}

// Base returns the address at which this machine reaches the server.
func (s *Server) Base() string { return s.base }

// Webhooks returns the addresses to which Stripe may send events.
func (s *Server) Webhooks() []string {
	list := []string{}
	for _, path := range s.open {
		list = append(list, s.base+path)
	}
	return list
}

// Run serves until ctx ends. It then finishes the requests under way, and after them the events
// and actions under way. It returns an error if the listener fails or requests were cut off.
func (s *Server) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	draining, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	stop := make(chan struct{})
	events := drain{name: "events", see: "duesday event list --waiting", run: s.o.Service.DrainInbox,
		wake: make(chan struct{}, 1), log: s.o.Log}
	actions := drain{name: "jobs", see: "duesday job list", run: s.o.Service.Deliver, wake: make(chan struct{}, 1),
		log: s.o.Log}
	var running sync.WaitGroup
	running.Go(func() { wakeAll(stop, s.o.Service.Wake(), events.wake, actions.wake) })
	running.Go(func() { events.repeat(draining, stop) })
	running.Go(func() { actions.repeat(draining, stop) })
	if s.poller != nil {
		running.Go(func() { err = s.poller.Run(ctx) })
	}
	served := httpapi.Serve(ctx, s.o.Listener, s.handler, s.o.Log)
	cancel()
	close(stop)
	grace := time.AfterFunc(drainGrace, finish)
	defer grace.Stop()
	running.Wait()
	return errors.Join(served, err)
}
