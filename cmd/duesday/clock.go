package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/stripe/api"
)

// processorClock is the test clock that begins at the processor's time.
const processorClock = "processor"

// setClock makes the program live by the test clock of a flag or variable, unless it is empty.
func (p *program) setClock(ctx context.Context, source, text string) (err error) {
	switch {
	case text == "":
		return nil
	case p.cfg.Live():
		return usagef("%s is for tests, and the processor is live", source)
	case text == processorClock:
		p.working = true // from here on a failure is no invalid usage
		if text, err = p.timeOfProcessor(ctx); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		p.follows = true
	}
	c, err := clock.Parse(text, p.machine())
	if err != nil {
		return usagef("%s: %w", source, err)
	}
	p.clock, p.now = c, c.Now
	return nil
}

// timeOfProcessor returns the test clock that shows the processor's time and goes on from there.
func (p *program) timeOfProcessor(ctx context.Context) (string, error) {
	if !p.cfg.UsesStripe() {
		return "", usagef("%s: the sandbox lives by our clock; want it with --processor stripe", processorClock)
	}
	processor, err := newStripe(p.cfg.Processor, &p.cfg.Stripe, "", p.machine(), p.logger())
	if err != nil {
		return "", err
	}
	defer processor.Close()
	if _, _, err := processor.API().Own(ctx); err != nil {
		return "", explainStripe(err, p.cfg.Stripe.APIBase)
	}
	ahead, at := processor.API().ClockAhead()
	if at.IsZero() {
		return "", errors.New("the answers of the processor have no Date")
	}
	now := p.machine()()
	return now.Add(ahead).UTC().Format(time.RFC3339Nano) + ",1s/s," + now.UTC().Format(time.RFC3339Nano), nil
}

// machine returns the machine's clock.
func (p *program) machine() func() time.Time {
	if p.clock != nil {
		return p.clock.Machine()
	}
	return p.now
}

// witnesses are the clocks of Stripe, if the session charges there or will follow it, and of the
// store's service.
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

// follow makes Stripe's clock a witness. It returns how far that is ahead, or false before an
// answer.
func (s *session) follow(client *api.Client) func() (time.Duration, bool) {
	s.stripe.Store(client)
	return func() (time.Duration, bool) {
		ahead, at := client.ClockAhead()
		return ahead, !at.IsZero()
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
			p.warn("the answers of %s have no Date: the clock is not compared with it", w.Name)
		}
	}
	if ended, err := s.engine.LastRunEnded(ctx); err == nil && !shown && !ended.IsZero() {
		p.warn("it is %s by this clock, more than 36 hours after it was last known to be right, at %s: expired "+
			"receipts and events are not deleted until you have looked at the clock and said %s", stamp(p.now()),
			stamp(since), p.hint("charging on"))
	}
}
