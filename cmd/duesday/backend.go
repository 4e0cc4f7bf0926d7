package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking"
)

// A backend is where a tracking command reads and writes: the store, or a running duesday serve
// with the store open.
type backend struct {
	shop     httpapi.Shop
	ledger   httpapi.Ledger
	registry httpapi.Registry
	backlog  httpapi.Backlog
	hint     func(command string) string // is p.hint of a command with the same backend
}

func serverFlag(c *cobra.Command, server *string) {
	c.Flags().StringVar(server, "server", "",
		"`URL` of a running duesday serve to ask, instead of opening the store (default $"+config.EnvServer+")")
}

// backendHint returns p.hint of commands with the flag --server.
func (p *program) backendHint(server string) func(command string) string {
	return func(command string) string {
		if command = p.hint(command); server != "" {
			command += " --server " + quoted(server)
		}
		return command
	}
}

// backendNeed describes a command's use of its backend.
type backendNeed struct {
	create bool // makes the store if there is none
	stripe bool // asks Stripe
	write  bool // changes the store without asking Stripe; without any of these it only reads
}

// withBackend opens the backend, calls do and closes the backend again.
func (p *program) withBackend(ctx context.Context, server string, n backendNeed, do func(*backend) error) error {
	t, err := config.NewTracking(p.cfg, server, p.env)
	if err != nil {
		return &usageError{err}
	}
	hint := p.backendHint(server)
	if t.Server != "" {
		client, err := p.client(&t)
		if err != nil {
			return err
		}
		defer client.Close()
		return explainBackend(hint, do(&backend{client, client, client, client, hint}))
	}
	err = p.with(ctx, need{create: n.create, processor: n.stripe && p.cfg.UsesStripe(), read: n == backendNeed{}},
		func(s *session) error {
			return p.track(ctx, s, &t, n.stripe, tracking.Options{}, func(f followed) error {
				return explainBackend(hint, do(&backend{f.service, f.service, f.service, f.service, hint}))
			})
		})
	switch {
	case errors.Is(err, store.ErrMissing):
		return fmt.Errorf("there is no store at %s yet: duesday serve makes one, as does duesday connect add; or ask a "+
			"running duesday serve by --server, or %s", secret.Redact(p.cfg.Store), config.EnvServer)
	case errors.Is(err, store.ErrLocked):
		return fmt.Errorf("%w; if duesday serve has it, ask that by --server, or %s", err, config.EnvServer)
	}
	return err
}

func (p *program) client(t *config.Tracking) (*httpapi.Client, error) {
	if err := readAPIKey(t); err != nil {
		return nil, err
	}
	if t.APIKey.IsZero() {
		return nil, usagef("%s wants its API key: set %s, or %s to a file that holds it and that nobody else can read",
			t.Server, config.EnvAPIKey, config.EnvAPIKeyFile)
	}
	return httpapi.NewClient(t.Server, t.APIKey, nil)
}

// followed is an open tracking service with its Stripe account and mode.
type followed struct {
	service   *tracking.Service
	processor *stripe.Processor // nil where nothing is asked
	own       string            // acct_…
	live      bool
}

// track opens the tracking service in the session's store, calls do and closes it again. It fills
// in the options from the settings and the session. If asks is set, do may ask Stripe, with the
// settings' key. Otherwise it only reads the store.
func (p *program) track(ctx context.Context, s *session, t *config.Tracking, asks bool, o tracking.Options,
	do func(followed) error) (err error) {
	meta, err := s.engine.Meta(ctx)
	if err != nil {
		return err
	}
	var f followed
	if !asks {
		if f.own, f.live, err = tracking.Pinned(ctx, s.store, s.tables); errors.Is(err, store.ErrNotFound) {
			err = errors.New("nothing that Stripe runs is followed in this store yet: duesday serve begins it, as does " +
				"duesday connect add")
		}
	} else {
		var opened bool
		if f.processor, opened, err = p.stripeOf(s, t); err != nil {
			return err
		}
		if opened {
			defer func() { err = errors.Join(err, f.processor.Close()) }()
		}
		asked := sell.New(f.processor.API())
		o.Finder, o.Seller = asked, asked
		f.own, f.live, err = f.processor.API().Own(ctx)
		err = explainStripe(err, t.Stripe.APIBase)
		if err != nil && !errors.Is(err, billing.ErrRefused) { // webhooks are stored also while Stripe is away
			if own, live, missing := tracking.Pinned(ctx, s.store, s.tables); missing == nil &&
				live == strings.Contains(t.Stripe.Key.Reveal(), "_live_") {
				p.warn("%v; until Stripe answers, this goes on for %s, which the store follows", err, own)
				f.own, f.live, err = own, live, nil
			}
		}
	}
	if err != nil {
		return err
	}
	if p.cfg.UsesStripe() && s.processor != nil { // an event about one of billing's own payment intents settles its period
		o.Settler = s.engine
	}
	o.Shared = s.shared
	o.Store, o.Tables, o.Now, o.Log, o.Installation = s.store, s.tables, p.now, s.log, meta.Installation
	o.Own, o.Live, o.Decode = f.own, f.live, event.Decode
	if f.service, err = tracking.Open(ctx, o); err != nil {
		return err
	}
	return do(f)
}

// stripeOf returns the session's processor if it is Stripe. Otherwise it opens one, which the
// caller must close.
func (p *program) stripeOf(s *session, t *config.Tracking) (processor *stripe.Processor, opened bool, err error) {
	if processor, ok := s.processor.(*stripe.Processor); ok {
		return processor, false, nil
	}
	if err := readStripeKey(&t.Stripe); err != nil {
		return nil, false, err
	}
	processor, err = newStripe(t.Processor, &t.Stripe, p.cfg.Store, p.now, s.log)
	return processor, err == nil, err
}

// readStripeKey reads the key's file, where there is one.
func readStripeKey(c *config.Stripe) error {
	return readSecret(&c.Key, &c.KeyFile, config.EnvStripeKeyFile)
}

// readAPIKey reads the API key's file, where there is one.
func readAPIKey(t *config.Tracking) error {
	if t.APIKeyFile == "" {
		return nil
	}
	if err := readSecret(&t.APIKey, &t.APIKeyFile, config.EnvAPIKeyFile); err != nil {
		return err
	}
	return invalid(config.CheckAPIKey(config.EnvAPIKeyFile, t.APIKey))
}

// readSecret reads a secret from its file, which the variable names, unless it is there already.
func readSecret(into *secret.Text, file *string, variable string) (err error) {
	if *file == "" || !into.IsZero() {
		return nil
	}
	if *into, err = secret.FromFile(*file); err != nil {
		return usagef("%s: %w", variable, err)
	}
	*file = ""
	return nil
}

// explainBackend adds a way out to errors of a backend.
func explainBackend(hint func(string) string, err error) error {
	switch {
	case errors.Is(err, tracking.ErrUnregistered):
		return fmt.Errorf("%w; %s says which merchant has which Stripe account", err,
			hint("connect add --account UUID ACCT"))
	case errors.Is(err, tracking.ErrDisconnected):
		return fmt.Errorf("%w; the merchant has to connect it at Stripe again", err)
	}
	if e, ok := errors.AsType[*httpapi.StatusError](err); ok && e.Status == http.StatusUnauthorized {
		return fmt.Errorf("%w; look at %s or %s: it has to be that of the server", err, config.EnvAPIKey,
			config.EnvAPIKeyFile)
	}
	return err
}

// byFlag names the flag of an invalid field.
func byFlag(err error) error {
	if e, ok := errors.AsType[*tracking.FieldError](err); ok {
		return usagef("--%s: %s", strings.ReplaceAll(e.Field, "_", "-"), e.Problem)
	}
	return err
}

// withoutOther removes the text of tracking.ErrOther from the end of the error.
func withoutOther(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+tracking.ErrOther.Error())
}

// checkAccountFlag wants the UUID of a merchant, or with stripe also the id of a Stripe account, or
// nothing.
func checkAccountFlag(account string, stripe bool) error {
	switch {
	case tracking.IsUUID(account) || stripe && (account == "" || strings.HasPrefix(account, "acct_")):
		return nil
	case stripe:
		return usagef("--account %q: want an account at Stripe, acct_…, or the UUID of a merchant", account)
	}
	return usagef("--account %q: want the UUID of a merchant, such as 0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58", account)
}
