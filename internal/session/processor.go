package session

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
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/stripefake"
)

// OpenProcessor opens the session's configured processor, which is Stripe or the sandbox with its
// ledger file. If reads is set, the ledger file does not have to be writable.
func (p *Program) OpenProcessor(s *Session, reads bool) error {
	if p.Config.UsesStripe() {
		processor, err := NewStripe(p.Config.Processor, &p.Config.Stripe, s.Now, s.Log)
		if err != nil {
			return err
		}
		s.Processor, s.ledger = processor, processor
		return nil
	}
	file, o, err := sandbox.Parse(p.Config.Processor)
	if err != nil {
		return screen.Invalid(err)
	}
	file = p.Path(file)
	o.Now = s.Now
	box, err := sandbox.Open(file, o)
	if reads && store.IsUnwritable(err) {
		p.Warn("%v; reading its ledger as it is now", err)
		box, err = sandbox.ReadFile(file, o)
	}
	if err != nil {
		return err
	}
	s.Processor, s.ledger = box, box
	return nil
}

// NewStripe returns a Stripe processor for the --processor text and the settings. All of its errors
// are UsageErrors.
func NewStripe(text string, c *config.Stripe, now func() time.Time, log *slog.Logger) (*stripe.Processor, error) {
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

// noPages reports whether mail has no links to Stripe's pages, because no return_url is set.
func noPages(c *config.Config) bool {
	return c.UsesStripe() && !strings.Contains(c.Processor, "return_url=")
}

// WarnOfPages prints a warning if mail has no links to Stripe's pages.
func (p *Program) WarnOfPages() {
	if noPages(&p.Config) {
		p.Warn("mail is sent without links to Stripe's pages; set return_url, as in --processor " +
			"'stripe:?return_url=https://shop.example/thanks'")
	}
}

// explain adds advice to a processor error that occurred while a store was being opened.
func (p *Program) explain(err error) error {
	switch {
	case errors.Is(err, charging.ErrOtherProcessor):
		return fmt.Errorf("%w; nothing was done. Use the key and mode that charged this store's payments, or another store", err)
	case p.Config.UsesStripe() && (errors.Is(err, processor.ErrRefused) || errors.Is(err, processor.ErrNotExecuted) ||
		errors.Is(err, processor.ErrUnknown)):
		return ExplainStripe(err, p.Config.Stripe.APIBase)
	}
	return err
}

// ExplainStripe adds advice to an error from Stripe. base is the API's address, or "" for Stripe's
// own.
func ExplainStripe(err error, base string) error {
	switch {
	case errors.Is(err, processor.ErrRefused):
		return fmt.Errorf("%w; nothing was done. Check the key in %s or %[2]s%s", err, config.EnvStripeKey, config.InFile)
	case err != nil && base != "":
		return fmt.Errorf("%w; nothing was done. Check that Stripe, or its fake, answers at %s (%s)", err, base,
			config.EnvStripeAPIBase)
	}
	return err
}

// ProcessorClock selects a test clock that starts at the processor's time.
const ProcessorClock = "processor"

// SetClock makes the program use the test clock that text describes. It does nothing if text is
// empty. source names the flag or variable in errors.
func (p *Program) SetClock(ctx context.Context, source, text string) (err error) {
	switch {
	case text == "":
		return nil
	case p.Config.Live():
		return screen.Usagef("%s is only for tests, but the processor is live", source)
	case text == ProcessorClock:
		p.Working = true // from here on, a failure is not invalid usage
		if text, err = p.timeOfProcessor(ctx); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		p.follows = true
	}
	c, err := clock.Parse(text, p.Machine())
	if err != nil {
		return screen.Usagef("%s: %w", source, err)
	}
	p.Clock, p.Now = c, c.Now
	return nil
}

// timeOfProcessor returns the text form of a test clock that starts at the processor's current
// time.
func (p *Program) timeOfProcessor(ctx context.Context) (string, error) {
	if !p.Config.UsesStripe() {
		return "", screen.Usagef("%s: the sandbox has no clock of its own; use it with --processor stripe", ProcessorClock)
	}
	processor, err := NewStripe(p.Config.Processor, &p.Config.Stripe, p.Machine(), p.Logger())
	if err != nil {
		return "", err
	}
	defer processor.Close()
	if _, _, err := processor.API().Own(ctx); err != nil {
		return "", ExplainStripe(err, p.Config.Stripe.APIBase)
	}
	if base := p.Config.Stripe.APIBase; base != "" {
		if c, err := (stripefake.Control{Base: base}).Clock(ctx); err == nil { // exact, with its speed
			return clock.Text(c.Start, c.Speed, c.Anchor), nil
		}
	}
	ahead, at := processor.API().ClockAhead()
	if at.IsZero() {
		return "", errors.New("the processor's replies have no Date header")
	}
	now := p.Machine()()
	return clock.Text(now.Add(ahead), 1, now), nil
}

// Machine returns the machine's clock, even if the program uses a test clock.
func (p *Program) Machine() func() time.Time {
	if p.Clock != nil {
		return p.Clock.Machine()
	}
	return p.Now
}

// witnesses returns the clocks that the engine compares with its own: Stripe's, if the session uses
// or follows Stripe, and DynamoDB's, if it contains the store.
func (s *Session) witnesses(follows bool) (list []billing.Witness) {
	if processor, ok := s.Processor.(*stripe.Processor); ok {
		s.Stripe.Store(processor.API())
	}
	if follows || s.Stripe.Load() != nil {
		list = append(list, billing.Witness{Name: "Stripe",
			Ahead: func() (ahead time.Duration, at time.Time) {
				if client := s.Stripe.Load(); client != nil {
					ahead, at = client.ClockAhead()
				}
				return ahead, at
			},
			Ask: func(ctx context.Context) (err error) {
				if client := s.Stripe.Load(); client != nil {
					_, _, err = client.Own(ctx)
				}
				return err
			}})
	}
	if far, ok := s.Store.(interface {
		ClockAhead() (ahead time.Duration, at time.Time)
	}); ok {
		list = append(list, billing.Witness{Name: "DynamoDB", Ahead: far.ClockAhead,
			Ask: func(ctx context.Context) error {
				_, err := s.Store.Get(ctx, s.Tables.RecurringPayments.Name, billing.MetaKey)
				return err
			}})
	}
	return list
}

// WarnOfClock warns about each witness that returns no time, and about a local clock that nothing
// confirms.
func (p *Program) WarnOfClock(ctx context.Context, s *Session) {
	shown, since, err := s.Engine.ClockShown(ctx)
	if err != nil {
		return // the caller gets the same error later
	}
	for _, w := range s.Engine.Witnesses {
		if _, at := w.Ahead(); at.IsZero() {
			p.Warn("replies from %s have no Date header, so the clock is not compared with it", w.Name)
		}
	}
	if ended, err := s.Engine.LastRunEnded(ctx); err == nil && !shown && !ended.IsZero() {
		p.Warn("this clock shows %s, more than 36 hours after it was last known to be right, at %s; expired "+
			"receipts and events are not deleted until you check the clock and run: %s", view.Stamp(p.Now()),
			view.Stamp(since), p.Hint("charging on"))
	}
}
