package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/tracking/poller"
)

const (
	drainEvery = 3 * time.Second                        // for what has become due, and what other processes have put in
	drainGrace = commandLimit + 5*time.Second           // for what is under way when serve is to stop
	maxSecrets = 4096                                   // bytes of a file of secrets
	pollLabel  = "duesday: the poller's webhook secret" // fixed: other processes make the same secret of the same key
)

// A waiter serves: what comes in over HTTP, and what has to be done after.
type waiter struct {
	p *program
	s *session
	t *config.Tracking
	o *serveFlags
	followed
	listener net.Listener
}

// run serves until ctx ends. Then what has begun is finished: first the requests, then what
// is done after them.
func (w *waiter) run(ctx context.Context) error {
	poll := secret.Text{}
	if !w.o.noPoll || !w.t.APIKey.IsZero() {
		poll = pollSecret(w.t.APIKey)
	}
	hooks := hooksOf(w.t, poll)
	handler, err := w.handler(hooks, poll)
	if err != nil {
		return err
	}
	base, err := localBase(w.listener.Addr())
	if err != nil {
		return err
	}
	poller, err := w.poller(base, poll)
	if err != nil {
		return err
	}
	if err := w.announce(hooks, base); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	after, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	stop := make(chan struct{})
	var running sync.WaitGroup
	inbox, actions := make(chan struct{}, 1), make(chan struct{}, 1)
	running.Go(func() { spread(stop, w.service.Wake(), inbox, actions) })
	running.Go(func() { w.drain(after, stop, inbox, "events", "duesday event list --waiting", w.service.Work) })
	running.Go(func() { w.drain(after, stop, actions, "jobs", "duesday job list", w.service.Deliver) })
	if !w.o.noPoll {
		running.Go(func() { err = errors.Join(err, poller.Run(ctx)) })
	}
	served := httpapi.Serve(ctx, w.listener, handler, w.s.log)
	cancel()
	close(stop)
	grace := time.AfterFunc(drainGrace, finish)
	defer grace.Stop()
	running.Wait()
	return errors.Join(served, err)
}

// handler is all that is answered over HTTP.
func (w *waiter) handler(hooks []hookOf, poll secret.Text) (http.Handler, error) {
	o := httpapi.Options{Inbox: w.service, Shop: w.service, Ledger: w.service, Registry: w.service, Backlog: w.service, Verify: stripe.VerifySignature,
		Key: w.t.APIKey, Now: w.p.now, Log: w.s.log,
		Ready: func(ctx context.Context) error { _, err := w.s.engine.Meta(ctx); return err }}
	for _, h := range hooks {
		o.Hooks = append(o.Hooks, httpapi.Hook{Path: h.path, Connect: h.connect, Secrets: h.secrets, Poll: poll})
	}
	return httpapi.New(o)
}

// poller looks for missing events, and sends them to the endpoints at the base.
func (w *waiter) poller(base string, poll secret.Text) (*poller.Poller, error) {
	sender, err := w.p.sender(base, poll)
	if err != nil {
		return nil, err
	}
	return poller.New(poller.Options{Ledger: w.service, Sender: sender, Lister: w.processor.Tracker(), Now: w.p.now, Log: w.s.log, Interval: w.o.every}), nil
}

// sender sends events to the endpoints of the server at the base, as Stripe would.
func (p *program) sender(base string, poll secret.Text) (*httpapi.Sender, error) {
	return httpapi.NewSender(httpapi.SenderOptions{Platform: base + hookPath, Connect: base + connectPath,
		Sign: func(_ bool, body []byte) string { return stripe.SignBody(body, poll, p.now()) }})
}

// pollSecret is what the poller signs with: made of the API key, so that a poller elsewhere
// that has the key has it too. Without a key it is another one each time.
func pollSecret(key secret.Text) secret.Text {
	if key.IsZero() {
		return secret.New("whsec_" + rand.Text())
	}
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	mac.Write([]byte(pollLabel)) // a hash returns no error
	return secret.New("whsec_" + hex.EncodeToString(mac.Sum(nil)))
}

// localBase is how this machine reaches what is served at the address.
func localBase(at net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() { // every address of this machine: the one that is sure to work here
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// secretLines reads a file of secrets as secret.FromFile reads one of a single secret, but for
// the white space between them.
func secretLines(path string) (string, error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe would wait for its writer
	if err != nil {
		return "", fmt.Errorf("secret file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("secret file %s: want a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("secret file %s: others than its owner may use it (mode %#o): chmod 600 %s", path, mode, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("secret file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxSecrets+1))
	if err == nil && len(text) > maxSecrets {
		err = fmt.Errorf("more than %d bytes: want secrets and nothing else", maxSecrets)
	}
	if err != nil {
		return "", fmt.Errorf("secret file %s: %w", path, err)
	}
	return string(text), nil
}

// spread wakes both drains whenever there is something to do for one of them.
func spread(stop <-chan struct{}, wake <-chan struct{}, to ...chan<- struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-wake:
		}
		for _, c := range to {
			select {
			case c <- struct{}{}:
			default: // it has not begun with what it was woken for before
			}
		}
	}
}

// drain does what is due, at once, whenever it is woken, and every few seconds, until stop.
// What is under way then is finished, unless ctx ends.
func (w *waiter) drain(ctx context.Context, stop, wake <-chan struct{}, what, see string, do func(context.Context) (outbox.Report, error)) {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		r, err := do(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			w.s.log.Error("draining the "+what+" failed, and is tried again", "error", err)
		case r.Failed+r.Dead > 0:
			w.s.log.Warn("some "+what+" could not be dealt with", "done", r.Delivered, "later", r.Failed, "given_up", r.Dead, "see", see)
		}
		select {
		case <-stop:
			return
		case <-wake:
		case <-tick.C:
		}
	}
}
