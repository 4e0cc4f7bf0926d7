package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/stripefake"
)

// A demoFake is a fake Stripe whose clock the demo moves; nil with another processor.
type demoFake struct {
	control stripefake.Control
}

// demoStripe refuses a demo at the real Stripe, which has no clock to move.
func (p *program) demoStripe(ctx context.Context) (*demoFake, error) {
	if !p.cfg.UsesStripe() {
		return nil, nil
	}
	const how = "start one with duesday stripe-fake, and set " + config.EnvStripeAPIBase + " as it says"
	if p.cfg.Stripe.APIBase == "" {
		return nil, usagef("a demo with --processor stripe wants a fake of it: %s", how)
	}
	f := &demoFake{stripefake.Control{Base: p.cfg.Stripe.APIBase}}
	if _, err := f.control.Identity(ctx); err != nil {
		return nil, fmt.Errorf("%s is not a fake Stripe that answers: %w; %s", p.cfg.Stripe.APIBase, err, how)
	}
	if err := f.unused(ctx); err != nil {
		return nil, err
	}
	p.demoSetting("return_url", p.cfg.Stripe.APIBase+"/_fake/") // customers come back to the fake itself
	p.demoSetting("rate", "1000")                               // it has no limit unless it was started with one
	return f, nil
}

// demoSetting gives the processor a parameter, unless the command line has.
func (p *program) demoSetting(name, value string) {
	scheme, query, _ := strings.Cut(p.cfg.Processor, "?")
	if strings.Contains("&"+query, "&"+name+"=") {
		return
	}
	if query != "" {
		query += "&"
	}
	p.cfg.Processor = strings.TrimSuffix(scheme, ":") + ":?" + query + name + "=" + url.QueryEscape(value)
}

// unused refuses a fake with charges: its clock would have to go back to the demo's first day.
func (f *demoFake) unused(ctx context.Context) error {
	for _, err := range f.control.Ledger(ctx) {
		if err == nil {
			err = errors.New("this fake Stripe has charges already; a demo needs a fresh one: start duesday stripe-fake anew")
		}
		return err
	}
	return nil
}

// set moves the fake's clock.
func (f *demoFake) set(ctx context.Context, now time.Time) error {
	if f == nil {
		return nil
	}
	_, err := f.control.SetNow(ctx, now)
	return err
}
