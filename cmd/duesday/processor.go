package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/stripefake"
)

// openProcessor opens the configured processor for the session: Stripe, or a ledger's file. A command
// that only reads may have a copy of a ledger that cannot be written.
func (p *program) openProcessor(s *session, reads bool) error {
	if p.cfg.UsesStripe() {
		processor, err := newStripe(p.cfg.Processor, &p.cfg.Stripe, s.now, s.log)
		if err != nil {
			return err
		}
		s.processor, s.ledger = processor, processor
		return nil
	}
	file, o, err := sandbox.Parse(p.cfg.Processor)
	if err != nil {
		return screen.Invalid(err)
	}
	file = p.path(file)
	o.Now = s.now
	box, err := sandbox.Open(file, o)
	if reads && store.IsUnwritable(err) {
		p.Warn("%v; reading its ledger as it is now", err)
		box, err = sandbox.ReadFile(file, o)
	}
	if err != nil {
		return err
	}
	s.processor, s.ledger = box, box
	return nil
}

// newStripe returns Stripe as the text and the settings say. Its errors are a usageError.
func newStripe(text string, c *config.Stripe, now func() time.Time, log *slog.Logger) (*stripe.Processor, error) {
	o, err := stripe.Parse(text)
	if err == nil {
		err = c.CheckKey()
	}
	if err != nil {
		return nil, screen.Invalid(err)
	}
	o.API.Key, o.API.Base, o.API.Now, o.API.Log, o.API.Proxy = c.Key.Text, c.APIBase, now, log, http.ProxyFromEnvironment
	p, err := stripe.New(o)
	return p, screen.Invalid(err)
}

// noPages reports whether there are no pages for customers, for want of an address to return to.
func noPages(c *config.Config) bool {
	return c.UsesStripe() && !strings.Contains(c.Processor, "return_url=")
}

// warnOfPages warns once if mail has no links to pages.
func (p *program) warnOfPages() {
	if noPages(&p.cfg) {
		p.Warn("mail is sent without links to Stripe's pages; set return_url, as in --processor " +
			"'stripe:?return_url=https://shop.example/thanks'")
	}
}

// explain adds a way out to errors of the processor at the opening of a store.
func (p *program) explain(err error) error {
	switch {
	case errors.Is(err, charging.ErrOtherProcessor):
		return fmt.Errorf("%w; nothing was done. Use the key and mode that charged this store's payments, or another store", err)
	case p.cfg.UsesStripe() && (errors.Is(err, processor.ErrRefused) || errors.Is(err, processor.ErrNotExecuted) ||
		errors.Is(err, processor.ErrUnknown)):
		return explainStripe(err, p.cfg.Stripe.APIBase)
	}
	return err
}

// explainStripe adds a way out to an error of Stripe at the address, "" for its own.
func explainStripe(err error, base string) error {
	switch {
	case errors.Is(err, processor.ErrRefused):
		return fmt.Errorf("%w; nothing was done. Check the key in %s or %[2]s%s", err, config.EnvStripeKey, config.InFile)
	case err != nil && base != "":
		return fmt.Errorf("%w; nothing was done. Check that Stripe, or its fake, answers at %s (%s)", err, base,
			config.EnvStripeAPIBase)
	}
	return err
}

// processorClock is the test clock that begins at the processor's time.
const processorClock = "processor"

// setClock makes the program live by the test clock of a flag or variable, unless it is empty.
func (p *program) setClock(ctx context.Context, source, text string) (err error) {
	switch {
	case text == "":
		return nil
	case p.cfg.Live():
		return screen.Usagef("%s is only for tests, but the processor is live", source)
	case text == processorClock:
		p.working = true // from here on a failure is no invalid usage
		if text, err = p.timeOfProcessor(ctx); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		p.follows = true
	}
	c, err := clock.Parse(text, p.machine())
	if err != nil {
		return screen.Usagef("%s: %w", source, err)
	}
	p.clock, p.now = c, c.Now
	return nil
}

// timeOfProcessor returns the test clock that shows the processor's time and goes on from there.
func (p *program) timeOfProcessor(ctx context.Context) (string, error) {
	if !p.cfg.UsesStripe() {
		return "", screen.Usagef("%s: the sandbox has no clock of its own; use it with --processor stripe", processorClock)
	}
	processor, err := newStripe(p.cfg.Processor, &p.cfg.Stripe, p.machine(), p.logger())
	if err != nil {
		return "", err
	}
	defer processor.Close()
	if _, _, err := processor.API().Own(ctx); err != nil {
		return "", explainStripe(err, p.cfg.Stripe.APIBase)
	}
	if base := p.cfg.Stripe.APIBase; base != "" {
		if c, err := (stripefake.Control{Base: base}).Clock(ctx); err == nil { // exact, and with its speed
			return clock.Text(c.Start, c.Speed, c.Anchor), nil
		}
	}
	ahead, at := processor.API().ClockAhead()
	if at.IsZero() {
		return "", errors.New("the processor's replies have no Date header")
	}
	now := p.machine()()
	return clock.Text(now.Add(ahead), 1, now), nil
}

func (p *program) machine() func() time.Time {
	if p.clock != nil {
		return p.clock.Machine()
	}
	return p.now
}

// witnesses are the clocks of Stripe, if the session asks it, and of the store's service.
func (s *session) witnesses(follows bool) (list []billing.Witness) {
	if processor, ok := s.processor.(*stripe.Processor); ok {
		s.stripe.Store(processor.API())
	}
	if follows || s.stripe.Load() != nil {
		list = append(list, billing.Witness{Name: "Stripe",
			Ahead: func() (ahead time.Duration, at time.Time) {
				if client := s.stripe.Load(); client != nil {
					ahead, at = client.ClockAhead()
				}
				return ahead, at
			},
			Ask: func(ctx context.Context) (err error) {
				if client := s.stripe.Load(); client != nil {
					_, _, err = client.Own(ctx)
				}
				return err
			}})
	}
	if far, ok := s.store.(interface {
		ClockAhead() (ahead time.Duration, at time.Time)
	}); ok {
		list = append(list, billing.Witness{Name: "DynamoDB", Ahead: far.ClockAhead,
			Ask: func(ctx context.Context) error {
				_, err := s.store.Get(ctx, s.tables.RecurringPayments.Name, billing.MetaKey)
				return err
			}})
	}
	return list
}

// follow makes Stripe's clock a witness, and returns how far it is ahead; false before an answer.
func (s *session) follow(client *api.Client) func() (time.Duration, bool) {
	s.stripe.Store(client)
	return func() (time.Duration, bool) {
		ahead, at := client.ClockAhead()
		return ahead, !at.IsZero()
	}
}

const (
	askTimeout = 5 * time.Second
	askEvery   = 5 * time.Minute // the poller asks for a quiet account every few hours only
)

// askStripe returns whether Stripe refuses the key, and since when it has not answered; zero: it
// has. If so, or if its last answer is five minutes old, it is asked once more: nobody else may
// ask, as a server that is not ready gets no orders.
func (s *session) askStripe(ctx context.Context) (refused bool, silent time.Time) {
	client := s.stripe.Load()
	_, last := client.ClockAhead()
	if client.KeyRefused() || !client.Silent().IsZero() || !last.IsZero() && client.Now().Sub(last) > askEvery {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		_, _, _ = client.Own(ctx) // the client notes what the answer says
	}
	return client.KeyRefused(), client.Silent()
}

// stripeNow returns Stripe's clock by its last answer, or ours before one.
func (p *program) stripeNow(client *api.Client) func() time.Time {
	return func() time.Time {
		ahead, _ := client.ClockAhead()
		return p.now().Add(ahead)
	}
}

// warnOfClock warns of a witness without a time, and of a clock that nothing shows to be right.
func (p *program) warnOfClock(ctx context.Context, s *session) {
	shown, since, err := s.engine.ClockShown(ctx)
	if err != nil {
		return // what follows meets it, too
	}
	for _, w := range s.engine.Witnesses {
		if _, at := w.Ahead(); at.IsZero() {
			p.Warn("replies from %s have no Date header, so the clock is not compared with it", w.Name)
		}
	}
	if ended, err := s.engine.LastRunEnded(ctx); err == nil && !shown && !ended.IsZero() {
		p.Warn("this clock shows %s, more than 36 hours after it was last known to be right, at %s; expired "+
			"receipts and events are not deleted until you check the clock and run: %s", screen.Stamp(p.now()),
			screen.Stamp(since), p.hint("charging on"))
	}
}
