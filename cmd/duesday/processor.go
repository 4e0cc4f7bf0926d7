package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe"
)

// openProcessor opens the configured processor for the session: Stripe, a ledger's file, or the client
// of a sandbox server. A command that only reads may have a copy of a ledger that nobody can write.
func (p *program) openProcessor(ctx context.Context, s *session, reads bool) error {
	if p.cfg.UsesStripe() {
		processor, err := newStripe(p.cfg.Processor, &p.cfg.Stripe, p.cfg.Store, s.now, s.log)
		if err != nil {
			return err
		}
		s.processor, s.ledger = processor, processor
		return nil
	}
	base, served, err := sandbox.ParseServer(p.cfg.Processor)
	switch {
	case err != nil:
		return &usageError{err}
	case served:
		client := sandbox.Connect(base)
		s.processor, s.ledger = client, client
		return nil
	}
	box, err := p.openLedger(ctx, s.now)
	if reads && store.IsUnwritable(err) {
		p.warn("%v: its ledger is read as it is now", err)
		file, o, _ := sandbox.Parse(p.cfg.Processor) // openLedger has read it
		o.Now = s.now
		box, err = sandbox.ReadFile(file, o)
	}
	if err != nil {
		return err
	}
	s.processor, s.ledger = box, box
	return nil
}

// newStripe returns Stripe as the text and the settings say. All processes with the folder of the
// store, where it has one, share one budget of requests. Its errors are a usageError.
func newStripe(text string, c *config.Stripe, store string, now func() time.Time,
	log *slog.Logger) (*stripe.Processor, error) {
	o, err := stripe.Parse(text)
	if err == nil {
		err = c.CheckKey()
	}
	if err != nil {
		return nil, &usageError{err}
	}
	o.API.Key, o.API.Base, o.API.Now, o.API.Log, o.API.Proxy = c.Key, c.APIBase, now, log, http.ProxyFromEnvironment
	if dir := folderOf(store); dir != "" {
		o.API.Budget = filepath.Join(dir, "STRIPE.budget")
	}
	p, err := stripe.New(o)
	return p, invalid(err)
}

// noPages reports whether there are no pages for customers, for want of an address to return to.
func noPages(c *config.Config) bool {
	return c.UsesStripe() && !strings.Contains(c.Processor, "return_url=")
}

// warnOfPages warns once if mail has no links to pages.
func (p *program) warnOfPages() {
	if noPages(&p.cfg) {
		p.warn("mail goes out without links to pages of Stripe's: set return_url, as in --processor " +
			"'stripe:?return_url=https://shop.example/thanks'")
	}
}

// explain adds a way out to errors of the processor at the opening of a store.
func (p *program) explain(err error) error {
	switch {
	case errors.Is(err, engine.ErrOtherProcessor):
		return fmt.Errorf("%w; nothing was done. Use the key and the mode of this store's charges, or another store", err)
	case p.cfg.UsesStripe() && (errors.Is(err, billing.ErrRefused) || errors.Is(err, billing.ErrNotExecuted) ||
		errors.Is(err, billing.ErrUnknown)):
		return explainStripe(err, p.cfg.Stripe.APIBase)
	}
	return err
}

// explainStripe adds a way out to an error of Stripe at the address, "" for its own.
func explainStripe(err error, base string) error {
	switch {
	case errors.Is(err, billing.ErrRefused):
		return fmt.Errorf("%w; nothing was done: look at the key in %s or %s", err, config.EnvStripeKey,
			config.EnvStripeKeyFile)
	case err != nil && base != "":
		return fmt.Errorf("%w; nothing was done: does Stripe, or its fake, answer at %s (%s)", err, base,
			config.EnvStripeAPIBase)
	}
	return err
}
